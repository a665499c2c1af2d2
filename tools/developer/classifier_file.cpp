#include "tools/developer/classifier_file.h"

#include <filesystem>
#include <string_view>

#include "core/gguf.h"
#include "core/gguf_writer.h"
#include "core/mapped_file.h"
#include "tools/developer/status.h"
#include "tools/interrupt.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

bool begins_with(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}
bool ends_in(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}

bool is_head_tensor(std::string_view name) {
  return begins_with(name, "cls.") || begins_with(name, "tag.") || begins_with(name, "qa.");
}
bool is_head_key(std::string_view name) {
  return name == "mote.task" || begins_with(name, "mote.head.") ||
         ends_in(name, ".classifier.output_labels");
}

// [classes][features] of f32 from [features][classes].
std::vector<float> transposed(const LogisticModel& head) {
  std::vector<float> weight(head.classes * head.features);
  for (size_t f = 0; f < head.features; ++f)
    for (size_t c = 0; c < head.classes; ++c)
      weight[c * head.features + f] = float(head.parameters[f * head.classes + c]);
  return weight;
}

void add_keys(const GgufFile& file, const std::string& pooling,
              const std::vector<std::string>& labels, GgufWriter* writer) {
  for (const GgufKey& key : file.keys())
    if (!is_head_key(key.name)) check(writer->copy_key(key));
  std::string_view architecture;
  check(file.get_text("general.architecture", &architecture));
  check(writer->add_text("mote.task", "classify"));
  check(writer->add_text("mote.head.activation", "none"));
  check(writer->add_text("mote.head.pooling", pooling));
  check(writer->add_bool("mote.head.normalize", true));
  check(writer->add_text("mote.head.problem", "single_label_classification"));
  const std::vector<std::string_view> names(labels.begin(), labels.end());
  check(writer->add_texts(std::string(architecture) + ".classifier.output_labels", names.data(),
                          names.size()));
}

}  // namespace

void check_classifier_output(const std::string& encoder, const std::string& output) {
  refuse_own_input(output, {encoder});
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(output).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    throw Failure(output + ": there is no folder " + folder.string());
}

void write_classifier(const std::string& encoder, const std::string& output,
                      const std::string& pooling, const std::vector<std::string>& labels,
                      const LogisticModel& head) {
  check_classifier_output(encoder, output);
  Allocator allocator;
  MappedFile mapped;
  check(mapped.open(encoder.c_str(), 0, allocator));
  GgufFile file;
  check(file.open(mapped.data(), mapped.size(), encoder, allocator));
  const InterruptScope scope(nullptr);
  GgufWriter writer(allocator);
  check(writer.create(output.c_str()));
  add_keys(file, pooling, labels, &writer);
  for (const Tensor& tensor : file.tensors())
    if (!is_head_tensor(tensor.name))
      check(writer.add_tensor(tensor.name, tensor.format, tensor.shape, tensor.dimensions));
  check(writer.add_tensor("cls.output.weight", Format::f32, {head.features, head.classes}));
  check(writer.add_tensor("cls.output.bias", Format::f32, {head.classes}));
  for (const Tensor& tensor : file.tensors())
    if (!is_head_tensor(tensor.name)) check(writer.append(tensor.data, tensor.bytes));
  const std::vector<float> weight = transposed(head);
  const std::vector<float> bias(head.parameters.end() - ptrdiff_t(head.classes),
                                head.parameters.end());
  check(writer.append(weight.data(), weight.size() * sizeof(float)));
  check(writer.append(bias.data(), bias.size() * sizeof(float)));
  if (InterruptScope::interrupted()) throw Failure("interrupted; nothing was written");
  check(writer.finish());
}

}  // namespace mote::tool
