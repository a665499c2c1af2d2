// mote quantize: a GGUF file to another with its matrices in other formats.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "core/gguf_writer.h"
#include "core/mapped_file.h"
#include "quant/packed.h"
#include "quant/quant.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/developer/calibration.h"
#include "tools/developer/output_types.h"
#include "tools/developer/packed_writer.h"
#include "tools/developer/progress.h"
#include "tools/developer/row_encoder.h"
#include "tools/developer/status.h"
#include "tools/interrupt.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

struct Options {
  std::string input, output, type, calibrate;
  bool pure = false, requantize = false;
  uint32_t threads = 0;
};

struct Job {
  const Tensor* tensor;
  TensorFormat format;
  const char* not_packed = nullptr;   // why, where all should be
  double rmse = 0.0, relative = 0.0;  // the latter: by the root mean square of the values

  bool changes() const { return format.format != tensor->format; }
  bool fell_back() const { return format.format != format.wanted; }
};

// What --type asks for: a type, or other places for the same bits.
struct Target {
  std::optional<OutputType> type;
  std::string name;
  bool packed;

  explicit Target(const std::string& name_) : name(name_), packed(name_ == "packed") {
    if (packed || name == "unpacked") return;
    type = output_type(name);
    packed = type->packed;
    if (!packed) name = type->name;
  }
};

bool is_quantized(Format format) { return format_info(format).values > 1; }
const char* name_of(Format format) { return format_info(format).name; }

// The input, mapped.
class Source {
 public:
  explicit Source(const std::string& path) {
    check(file_.open(path.c_str(), 0, allocator_));
    check(gguf_.open(file_.data(), file_.size(), path, allocator_));
  }
  const GgufFile& gguf() const { return gguf_; }

 private:
  Allocator allocator_;
  MappedFile file_;
  GgufFile gguf_;
};

ModelShape model_shape(const GgufFile& file) {
  ModelShape shape;
  shape.tied = !file.find_tensor("output.weight");
  for (const Tensor& tensor : file.tensors())
    shape.layers = std::max(shape.layers, layers_by_name(tensor.name));
  std::string_view architecture, task;
  check(file.get_text("general.architecture", "", &architecture));
  check(file.get_text("mote.task", "", &task));
  bool causal = true;
  check(file.get_bool((std::string(architecture) + ".attention.causal").c_str(), true, &causal));
  shape.looked_up = !causal && task != "masked_lm";
  const std::string attention = std::string(architecture) + ".attention.head_count";
  // Some architectures have an array with a number for each layer; mixtures then do without.
  const GgufKey* key = file.find(attention + "_kv");
  if (key && key->type == GgufType::array) return shape;
  check(file.get_u32(attention, 1, &shape.heads));
  check(file.get_u32(attention + "_kv", shape.heads, &shape.kv_heads));
  return shape;
}

std::vector<Job> plan(const Options& options, const Target& target, const GgufFile& file) {
  const ModelShape shape = model_shape(file);
  std::vector<Job> jobs;
  std::string again;  // the first that would be quantized twice
  for (const Tensor& tensor : file.tensors()) {
    const bool vector = tensor.rows() == 1;
    const Format native = native_format(tensor.format);
    Job job = {&tensor, {native, native}};
    if (target.type && quant::can_decode(native))
      job.format = tensor_format(*target.type, options.pure, shape, tensor.name, vector,
                                 tensor.columns(), native);
    if (again.empty() && job.format.format != native && is_quantized(native) &&
        is_quantized(job.format.format))
      again = "tensor " + std::string(tensor.name) + " is " + name_of(tensor.format) +
              " already: quantizing it again to " + name_of(job.format.format) + " adds its errors";
    if (target.packed && !vector)
      job.not_packed = tensor.dimensions > 2
                           ? "more than two dimensions"
                           : why_not_packed(job.format.format, shape, tensor.name, tensor.rows());
    if (target.packed && !vector && !job.not_packed)
      job.format = {packed_format(job.format.format), packed_format(job.format.wanted)};
    jobs.push_back(job);
  }
  if (!again.empty() && !options.requantize)
    throw Failure(options.input + ": " + again + "; --requantize does it all the same");
  if (!again.empty()) complain("warning: " + options.input + ": " + again);
  return jobs;
}

void write_keys(const Target& target, const GgufFile& file, bool quantized, GgufWriter* writer) {
  constexpr std::string_view kFileType = "general.file_type";
  constexpr std::string_view kVersion = "general.quantization_version";
  for (const GgufKey& key : file.keys())
    if (!target.type || (key.name != kFileType && key.name != kVersion))
      check(writer->copy_key(key));
  if (!target.type) return;
  check(writer->add_u32(kFileType, target.type->file_type));
  if (quantized) check(writer->add_u32(kVersion, 2));
}

// Rows of a tensor in the native form of its format. first: a multiple of a tile's rows.
const uint8_t* native_rows(const Tensor& tensor, uint64_t first, uint64_t rows,
                           std::vector<uint8_t>* copy) {
  const uint8_t* at = tensor.data + first * row_bytes(tensor.format, tensor.columns());
  if (!is_packed(tensor.format)) return at;
  copy->resize(row_bytes(tensor.format, rows * tensor.columns()));
  quant::unpack(tensor.format, at, rows, tensor.columns(), copy->data());
  return copy->data();
}

void write_tensor(const std::string& path, const Importance* importance, RowEncoder& encoder,
                  Job* job, GgufWriter* writer) {
  const Tensor& tensor = *job->tensor;
  const Format from = native_format(tensor.format), to = native_format(job->format.format);
  const uint64_t columns = tensor.columns(), rows = tensor.rows();
  if (!job->changes()) return check(writer->append(tensor.data, tensor.bytes));
  const uint64_t tiles = rows_per_chunk(columns) / quant::kPackedRows + 1;
  const uint64_t chunk = std::min(tiles * quant::kPackedRows, rows);
  std::vector<uint8_t> native, bytes(from == to ? 0 : row_bytes(to, chunk * columns));
  PackedWriter out(job->format.format, columns, *writer);
  const std::string what = path + ": tensor " + std::string(tensor.name);
  const float* weights = importance ? importance->find(tensor.data, columns) : nullptr;
  double error = 0.0, power = 0.0;
  std::vector<float> values(columns);
  for (uint64_t row = 0; row < rows; row += chunk) {
    const uint64_t count = std::min(chunk, rows - row);
    const uint8_t* source = native_rows(tensor, row, count, &native);
    if (from == to) {
      out.add(source, row_bytes(to, count * columns));
      continue;
    }
    error += encoder.encode(what, from, source, to, count, columns, weights, bytes.data());
    for (uint64_t i = 0; i < count; ++i) {
      quant::decode(from, source + i * row_bytes(from, columns), columns, values.data());
      for (const float value : values) power += double(value) * double(value);
    }
    out.add(bytes.data(), row_bytes(to, count * columns));
  }
  out.finish();
  job->rmse = std::sqrt(error / static_cast<double>(tensor.values()));
  job->relative = power > 0.0 ? std::sqrt(error / power) : 0.0;
}

void report_line(const Job& job) {
  const Tensor& tensor = *job.tensor;
  std::string shape;
  for (uint32_t i = 0; i < tensor.dimensions; ++i)
    shape += (i ? "x" : "") + std::to_string(tensor.shape[i]);
  std::fprintf(stderr, "%-36s %-14s %-6s %-6s", std::string(tensor.name).c_str(), shape.c_str(),
               name_of(tensor.format), job.changes() ? name_of(job.format.format) : "kept");
  if (job.changes()) std::fprintf(stderr, "  rmse %.3e  relative %.5f", job.rmse, job.relative);
  if (job.fell_back())
    std::fprintf(stderr, "  rows of %llu do not fit %s",
                 static_cast<unsigned long long>(tensor.columns()), name_of(job.format.wanted));
  if (job.not_packed) std::fprintf(stderr, "  not packed: %s", job.not_packed);
  std::fputc('\n', stderr);
}

Json to_json(const Options& options, const Target& target, const std::vector<Job>& jobs,
             uint64_t bytes) {
  Json tensors = Json::array();
  for (const Job& job : jobs) {
    Json tensor = {{"name", std::string(job.tensor->name)},
                   {"from", name_of(job.tensor->format)},
                   {"to", name_of(job.format.format)},
                   {"rmse", job.rmse}};
    if (job.fell_back()) tensor["wanted"] = name_of(job.format.wanted);
    if (job.not_packed) tensor["not_packed"] = job.not_packed;
    tensors.push_back(std::move(tensor));
  }
  return {{"output", options.output},
          {"type", target.name},
          {"bytes", bytes},
          {"tensors", std::move(tensors)}};
}

// Other places for the same bits: nothing is quantized.
void refuse_options_of_types(const Options& options) {
  const char* const option = options.pure                ? "--pure"
                             : options.requantize        ? "--requantize"
                             : options.calibrate.empty() ? nullptr
                                                         : "--calibrate";
  if (option) throw UsageError(std::string(option) + " does not apply to --type " + options.type);
}

void quantize(const Options& options, bool json) {
  const Target target(options.type);
  if (!target.type) refuse_options_of_types(options);
  const Source source(options.input);
  const GgufFile& file = source.gguf();
  refuse_own_input(options.output, {options.input, options.calibrate});
  std::vector<Job> jobs = plan(options, target, file);
  std::optional<Importance> importance;
  if (!options.calibrate.empty())
    importance.emplace(options.input, options.calibrate, options.threads, file);
  const InterruptScope scope(nullptr);
  Allocator allocator;
  GgufWriter writer(allocator);
  check(writer.create(options.output.c_str()));
  bool quantized = false;
  for (const Job& job : jobs) quantized = quantized || is_quantized(job.format.format);
  write_keys(target, file, quantized, &writer);
  for (const Job& job : jobs)
    check(writer.add_tensor(job.tensor->name, job.format.format, job.tensor->shape,
                            job.tensor->dimensions));
  RowEncoder encoder(options.threads);
  {
    Progress progress(jobs.size());
    for (Job& job : jobs) {
      progress.step(std::string(job.tensor->name));
      write_tensor(options.input, importance ? &*importance : nullptr, encoder, &job, &writer);
    }
  }
  check(writer.finish());
  size_t fallbacks = 0;
  for (const Job& job : jobs) {
    report_line(job);
    fallbacks += job.fell_back();
  }
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(options.output, error);
  if (fallbacks > 0)
    complain("warning: " + std::to_string(fallbacks) +
             " tensors have rows that do not fit their format and got the one shown");
  complain("wrote " + options.output + ": " + target.name + ", " + std::to_string(jobs.size()) +
           " tensors, " + std::to_string(error ? 0 : bytes) + " bytes");
  if (json) print_json(to_json(options, target, jobs, error ? 0 : bytes));
}

}  // namespace

int run_quantize(const Arguments& arguments) {
  CommandLine line("quantize", "Writes a GGUF file with its matrices in another format.");
  Options options;
  line.app.add_option("IN", options.input, "the GGUF file to read")->required();
  line.app.add_option("OUT", options.output, "the GGUF file to write")->required();
  line.app
      .add_option("--type", options.type,
                  output_type_names() +
                      "; packed: each tensor keeps its bits, in the order in which mote computes "
                      "fastest and which no other program reads; unpacked: the way back"
                      "; a layer's products, the embedding and the head change, the rest is kept")
      ->required();
  line.app.add_flag("--pure", options.pure,
                    "every matrix gets the type's own format, the head too");
  line.app.add_option("--calibrate", options.calibrate,
                      "a text: weights count by the inputs that they meet when the model reads it");
  line.app.add_flag("--requantize", options.requantize,
                    "quantize anew what is quantized already, errors upon errors");
  line.app.add_option("-t,--threads", options.threads, "threads")->check(within(1, 256));
  line.add_json();
  if (!line.parse(arguments)) return 0;
  quantize(options, line.json);
  return 0;
}

}  // namespace mote::tool
