// mote convert: a Hugging Face folder to a GGUF file.
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include "core/gguf_writer.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/developer/import_architecture.h"
#include "tools/developer/import_tokenizer.h"
#include "tools/developer/import_values.h"
#include "tools/developer/output_types.h"
#include "tools/developer/packed_writer.h"
#include "tools/developer/progress.h"
#include "tools/developer/status.h"
#include "tools/interrupt.h"

namespace mote::tool {
namespace {

struct Options {
  std::string folder, output, type = "source";
  bool no_tokenizer = false, tokenizer_only = false;
  uint32_t threads = 0;
};

constexpr uint32_t kMixedFileType = 1;  // f16

struct Job {
  ImportTensor tensor;
  TensorFormat format;
};

Format source_format(const std::string& dtype) {
  return dtype == "F16" ? Format::f16 : dtype == "BF16" ? Format::bf16 : Format::f32;
}

// type: null for what the checkpoint has.
TensorFormat format_for(const ImportTensor& tensor, const OutputType* type,
                        const ModelShape& shape) {
  if (tensor.vector || tensor.exact) return {Format::f32, Format::f32};
  const Format source = source_format(tensor.source.entry->dtype);
  if (!type) return {source, source};
  TensorFormat format =
      tensor_format(*type, false, shape, tensor.target, false, tensor.columns, source);
  if (type->packed && !why_not_packed(format.format, shape, tensor.target, tensor.rows))
    format = {packed_format(format.format), packed_format(format.wanted)};
  return format;
}

// Says which tensors could not have the format that they were to have.
void warn_of_fallbacks(const std::vector<Job>& jobs, const Warn& warn) {
  std::map<std::pair<std::string, std::string>, size_t> counts;
  for (const Job& job : jobs)
    if (job.format.format != job.format.wanted)
      ++counts[{format_info(job.format.wanted).name, format_info(job.format.format).name}];
  for (const auto& [formats, count] : counts)
    warn(std::to_string(count) + " tensors have rows that do not fit " + formats.first +
         ": they are written as " + formats.second);
}

void add_key(GgufWriter& writer, const std::string& name, const GgufKeys::Value& value) {
  struct Add {
    GgufWriter& writer;
    const std::string& name;
    Status operator()(uint32_t v) { return writer.add_u32(name, v); }
    Status operator()(float v) { return writer.add_f32(name, v); }
    Status operator()(bool v) { return writer.add_bool(name, v); }
    Status operator()(const std::string& v) { return writer.add_text(name, v); }
    Status operator()(const std::vector<std::string>& v) {
      const std::vector<std::string_view> views(v.begin(), v.end());
      return writer.add_texts(name, views.data(), views.size());
    }
    Status operator()(const std::vector<int32_t>& v) {
      return writer.add_array(name, GgufType::i32, v.data(), v.size());
    }
    Status operator()(const std::vector<float>& v) {
      return writer.add_array(name, GgufType::f32, v.data(), v.size());
    }
    Status operator()(const std::vector<uint8_t>& v) {
      return writer.add_array(name, GgufType::u8, v.data(), v.size());
    }
    Status operator()(const std::vector<bool>& v) {
      const std::vector<uint8_t> bytes(v.begin(), v.end());
      return writer.add_array(name, GgufType::boolean, bytes.data(), bytes.size());
    }
  };
  check(std::visit(Add{writer, name}, value));
}

GgufKeys general_keys(const HuggingFaceFolder& folder, const ImportArchitecture& architecture,
                      const OutputType* type) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::canonical(folder.path(), error);
  GgufKeys keys;
  keys.set("general.architecture", std::string(architecture.architecture));
  keys.set("general.type", std::string("model"));
  keys.set("general.name", (error ? fs::path(folder.path()) : whole).filename().string());
  keys.set("general.file_type", type ? type->file_type : kMixedFileType);
  if (type && format_info(type->format).values > 1)
    keys.set("general.quantization_version", uint32_t{2});
  return keys;
}

void warn(const std::string& message) { complain("warning: " + message); }

// Files of the folder are read while the output is written, and are nobody's to lose.
void refuse_own_input(const Options& options) {
  std::error_code ignored;
  if (!std::filesystem::exists(options.output, ignored)) return;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder, ignored))
    if (entry.path().extension() != ".gguf" &&
        std::filesystem::equivalent(entry.path(), options.output, ignored))
      throw Failure(options.output + ": is a file of the folder to convert");
}

void write_file(const Options& options, const GgufKeys& keys, const std::vector<Job>& jobs,
                const std::vector<float>& rope_divisors) {
  refuse_own_input(options);
  Allocator allocator;
  GgufWriter writer(allocator);
  check(writer.create(options.output.c_str()));
  for (const auto& [name, value] : keys) add_key(writer, name, value);
  if (!rope_divisors.empty())
    check(writer.add_tensor("rope_freqs.weight", Format::f32, {rope_divisors.size()}));
  for (const Job& job : jobs) {
    const uint64_t shape[2] = {job.tensor.vector ? job.tensor.rows : job.tensor.columns,
                               job.tensor.rows};
    check(
        writer.add_tensor(job.tensor.target, job.format.format, shape, job.tensor.vector ? 1 : 2));
  }
  if (!rope_divisors.empty()) {
    const std::vector<uint8_t> bytes = encode_values(rope_divisors, Format::f32);
    check(writer.append(bytes.data(), bytes.size()));
  }
  RowEncoder encoder(options.threads);
  Progress progress(jobs.size());
  for (const Job& job : jobs) {
    progress.step(job.tensor.target);
    PackedWriter out(job.format.format, job.tensor.columns, writer);
    import_values(job.tensor, native_format(job.format.format), encoder,
                  [&](const uint8_t* data, size_t bytes) { out.add(data, bytes); });
    out.finish();
  }
  check(writer.finish());
}

// The vocabulary alone, for a file that only takes texts apart.
void convert_tokenizer(const Options& options) {
  const HuggingFaceFolder folder(options.folder, HuggingFaceFolder::Weights::none);
  GgufKeys keys;
  keys.set("general.architecture", folder.config().text("model_type", "tokenizer"));
  std::vector<std::string> warnings;
  import_tokenizer(folder, folder.config().number("vocab_size"), &keys,
                   [&](const std::string& message) { warnings.push_back(message); });
  if (!keys.find("tokenizer.ggml.model"))
    throw Failure(options.folder + ": there are no tokenizer files");
  for (const std::string& message : warnings) warn(message);
  write_file(options, keys, {}, {});
  complain("wrote " + options.output + ": the tokenizer");
}

void convert(const Options& options) {
  if (options.tokenizer_only) return convert_tokenizer(options);
  std::optional<OutputType> named;
  if (options.type != "source") named = output_type(options.type);
  const OutputType* type = named ? &*named : nullptr;
  const HuggingFaceFolder folder(options.folder);
  const ImportArchitecture architecture = find_import_architecture(folder);
  GgufKeys keys = general_keys(folder, architecture, type);
  ImportSizes sizes;
  read_architecture(folder.config(), architecture, &sizes, &keys);
  std::vector<ImportTensor> tensors = match_tensors(folder, architecture, sizes);
  if (architecture.encoder) {
    const bool dense = std::any_of(tensors.begin(), tensors.end(), [](const ImportTensor& tensor) {
      return tensor.target == "cls.weight";
    });
    read_head(folder.config(), architecture, sizes, dense, &keys);
    read_sentence_settings(folder, architecture, &keys);
  }
  for (const std::string& key : unknown_settings(folder.config(), architecture))
    warn(folder.config().path() + ": " + key + ": is not known and was left aside, found " +
         folder.config().shown(key.c_str()));
  if (!options.no_tokenizer) import_tokenizer(folder, sizes.vocabulary, &keys, warn);
  ModelShape shape;
  shape.layers = sizes.layers;
  shape.heads = sizes.heads;
  shape.kv_heads = sizes.kv_heads;
  shape.tied = !(sizes.present & kUntied);
  const GgufKeys::Value* task = keys.find("mote.task");
  shape.looked_up =
      architecture.encoder && !(task && *task == GgufKeys::Value(std::string("masked_lm")));
  std::vector<Job> jobs;
  for (ImportTensor& tensor : tensors) {
    const TensorFormat format = format_for(tensor, type, shape);
    jobs.push_back({std::move(tensor), format});
  }
  warn_of_fallbacks(jobs, warn);
  const std::vector<float> divisors =
      architecture.rope.present
          ? rope_divisors(read_rope(folder.config(), architecture.rope), sizes.rotary)
          : std::vector<float>();
  write_file(options, keys, jobs, divisors);
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(options.output, error);
  complain("wrote " + options.output + ": " + architecture.architecture + ", " +
           std::to_string(jobs.size() + !divisors.empty()) + " tensors, " +
           std::to_string(error ? 0 : bytes) + " bytes");
}

}  // namespace

int run_convert(const Arguments& arguments) {
  CommandLine line("convert", "Writes a Hugging Face model folder as a GGUF file.");
  Options options;
  line.app.add_option("DIR", options.folder, "folder with config.json and safetensors")->required();
  line.app.add_option("-o,--output", options.output, "the GGUF file to write")->required();
  line.app.add_option(
      "--type", options.type,
      "source (default: as the checkpoint), or " + output_type_names() + "; vectors stay f32");
  line.app.add_flag("--no-tokenizer", options.no_tokenizer, "leave the tokenizer out");
  line.app.add_option("-t,--threads", options.threads, "threads")->check(within(1, 256));
  line.app
      .add_flag("--tokenizer-only", options.tokenizer_only, "write the tokenizer and no weights")
      ->excludes("--no-tokenizer");
  if (!line.parse(arguments)) return 0;
  const InterruptScope scope(nullptr);
  convert(options);
  return 0;
}

}  // namespace mote::tool
