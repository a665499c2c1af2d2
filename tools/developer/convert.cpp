// mote convert: a Hugging Face folder to a GGUF file.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "core/gguf_writer.h"
#include "quant/quant.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/developer/import_architecture.h"
#include "tools/developer/import_tokenizer.h"
#include "tools/developer/import_values.h"
#include "tools/developer/status.h"

namespace mote::tool {
namespace {

struct Options {
  std::string folder, output, type = "source";
  bool no_tokenizer = false;
};

struct OutputType {
  const char* name;
  std::optional<Format> format;  // none: as the checkpoint has it
  uint32_t file_type;            // general.file_type
};
constexpr uint32_t kMixedFileType = 1;  // f16
const OutputType kTypes[] = {
    {"source", std::nullopt, kMixedFileType},
    {"f32", Format::f32, 0},
    {"f16", Format::f16, 1},
    {"bf16", Format::bf16, 32},
    {"q8_0", Format::q8_0, 7},
    {"q4_0", Format::q4_0, 2},
    {"q4_1", Format::q4_1, 3},
};

struct Job {
  ImportTensor tensor;
  Format format;
};

const OutputType& output_type(const std::string& name) {
  for (const OutputType& type : kTypes)
    if (name == type.name) return type;
  throw UsageError("--type: expected source, f32, f16, bf16, q8_0, q4_0 or q4_1, found " + name);
}

Format source_format(const std::string& dtype) {
  return dtype == "F16" ? Format::f16 : dtype == "BF16" ? Format::bf16 : Format::f32;
}

// Vectors stay f32; an embedding or head of a 4-bit file has 8 bits; rows that are no whole blocks
// have f16.
Format tensor_format(const ImportTensor& tensor, const OutputType& type, size_t* not_divisible) {
  if (tensor.vector) return Format::f32;
  Format format = type.format ? *type.format : source_format(tensor.source.entry->dtype);
  if (tensor.table && (format == Format::q4_0 || format == Format::q4_1)) format = Format::q8_0;
  if (tensor.columns % format_info(format).values != 0) {
    ++*not_divisible;
    format = Format::f16;
  }
  if (!quant::can_encode(format))
    throw Failure(std::string("format ") + format_info(format).name + " cannot be written");
  return format;
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
    Status operator()(const std::vector<bool>& v) {
      const std::vector<uint8_t> bytes(v.begin(), v.end());
      return writer.add_array(name, GgufType::boolean, bytes.data(), bytes.size());
    }
  };
  check(std::visit(Add{writer, name}, value));
}

GgufKeys general_keys(const HuggingFaceFolder& folder, const ImportArchitecture& architecture,
                      const OutputType& type) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::canonical(folder.path(), error);
  GgufKeys keys;
  keys.set("general.architecture", std::string(architecture.architecture));
  keys.set("general.type", std::string("model"));
  keys.set("general.name", (error ? fs::path(folder.path()) : whole).filename().string());
  keys.set("general.file_type", type.file_type);
  if (type.format && format_info(*type.format).values > 1)
    keys.set("general.quantization_version", uint32_t{2});
  return keys;
}

class Progress {
 public:
  explicit Progress(size_t total) : total_(total), shown_(isatty(STDERR_FILENO)) {}
  void step(const std::string& name) {
    ++done_;
    if (shown_)
      std::fprintf(stderr, "\r\033[K%zu/%zu %s", done_, total_, name.c_str()), std::fflush(stderr);
  }
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  size_t total_, done_ = 0;
  bool shown_;
};

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
    check(writer.add_tensor(job.tensor.target, job.format, shape, job.tensor.vector ? 1 : 2));
  }
  if (!rope_divisors.empty()) {
    const std::vector<uint8_t> bytes = encode_values(rope_divisors, Format::f32);
    check(writer.append(bytes.data(), bytes.size()));
  }
  Progress progress(jobs.size());
  for (const Job& job : jobs) {
    progress.step(job.tensor.target);
    import_values(job.tensor, job.format,
                  [&](const uint8_t* data, size_t bytes) { check(writer.append(data, bytes)); });
  }
  check(writer.finish());
}

void convert(const Options& options) {
  const OutputType& type = output_type(options.type);
  const HuggingFaceFolder folder(options.folder);
  const ImportArchitecture& architecture = find_import_architecture(folder.config());
  GgufKeys keys = general_keys(folder, architecture, type);
  ImportSizes sizes;
  read_architecture(folder.config(), architecture, &sizes, &keys);
  std::vector<ImportTensor> tensors = match_tensors(folder, architecture, sizes);
  const Warn warn = [](const std::string& message) { complain("warning: " + message); };
  for (const std::string& key : unknown_settings(folder.config(), architecture))
    warn(folder.config().path() + ": " + key + ": is not known and was left aside, found " +
         folder.config().shown(key.c_str()));
  if (!options.no_tokenizer) import_tokenizer(folder, sizes.vocabulary, &keys, warn);
  size_t not_divisible = 0;
  std::vector<Job> jobs;
  for (ImportTensor& tensor : tensors) {
    const Format format = tensor_format(tensor, type, &not_divisible);
    jobs.push_back({std::move(tensor), format});
  }
  if (not_divisible > 0)
    warn(std::to_string(not_divisible) + " tensors have rows that are not whole blocks of " +
         options.type + ": they are written as f16");
  const std::vector<float> divisors =
      rope_divisors(read_rope(folder.config(), architecture.rope), sizes.rotary);
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
  line.app.add_option("--type", options.type,
                      "source (default: as the checkpoint), f32, f16, bf16, q8_0, q4_0, q4_1; "
                      "vectors stay f32, embeddings of 4-bit files are q8_0");
  line.app.add_flag("--no-tokenizer", options.no_tokenizer, "leave the tokenizer out");
  if (!line.parse(arguments)) return 0;
  convert(options);
  return 0;
}

}  // namespace mote::tool
