// mote inspect: what a file holds, and the memory that a session of it would need.
#include <cstdio>
#include <optional>

#include "tools/commands.h"
#include "tools/developer/listing.h"
#include "tools/session.h"

namespace mote::tool {
namespace {

struct Report {
  FileListing file;
  std::string unusable;  // why the library cannot run it; empty: it can
  mote_model_info info{};
  std::vector<std::string> labels, tasks;
  size_t session_bytes = 0;
  uint32_t capacity = 0;  // of that session
};

std::vector<std::string> task_names(uint32_t tasks) {
  static constexpr std::pair<uint32_t, const char*> kNames[] = {
      {MOTE_TASK_GENERATE, "generate"}, {MOTE_TASK_CLASSIFY, "classify"},
      {MOTE_TASK_ANSWER, "answer"},     {MOTE_TASK_TAG, "tag"},
      {MOTE_TASK_EMBED, "embed"},       {MOTE_TASK_TOKENIZE, "tokenize"},
      {MOTE_TASK_CHAT, "chat"}};
  std::vector<std::string> names;
  for (const auto& [bit, name] : kNames)
    if (tasks & bit) names.push_back(name);
  return names;
}

Report inspect(const ModelOptions& options) {
  Report report;
  report.file = list_file(options.path);
  std::optional<Model> model;
  try {
    model.emplace(options.path);
  } catch (const Failure& failure) {
    report.unusable = failure.what();
    return report;
  }
  report.info = model->info();
  report.tasks = task_names(report.info.tasks);
  for (uint32_t i = 0; i < report.info.label_count; ++i) {
    mote_text name;
    check(mote_model_label(model->get(), i, &name));
    report.labels.emplace_back(name.data, name.length);
  }
  report.capacity = options.context ? options.context : default_capacity(*model);
  const mote_session_options session = session_options(*model, options);
  check(mote_session_size(model->get(), &session, &report.session_bytes));
  return report;
}

Json to_json(const Report& r) {
  const bool usable = r.unusable.empty();
  Json keys = Json::object(), tensors = Json::array();
  for (const ListedKey& key : r.file.keys) {
    if (key.type.rfind("array", 0) == 0)
      keys[key.name] = {{"type", key.type}, {"count", key.count}, {"first", key.value}};
    else
      keys[key.name] = key.value;
  }
  for (const ListedTensor& tensor : r.file.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.format},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes}});
  Json json;
  json["arch"] = r.file.architecture;
  json["parameters"] = r.file.parameters;
  json["file_bytes"] = r.file.file_bytes;
  json["context_length"] = usable ? Json(r.info.context_length) : Json(nullptr);
  json["tasks"] = r.tasks;
  json["labels"] = r.labels;
  json["session_bytes"] = usable ? Json(r.session_bytes) : Json(nullptr);
  json["heap_bytes"] = usable ? Json(r.info.heap_bytes) : Json(nullptr);
  json["keys"] = std::move(keys);
  json["tensors"] = std::move(tensors);
  if (!usable) json["error"] = r.unusable;
  return json;
}

std::string show(const ListedKey& key) {
  std::string text = key.value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 90) {
    size_t cut = 87;
    while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;  // not within a character
    text = text.substr(0, cut) + "...";
  }
  return key.type.rfind("array", 0) == 0 ? std::to_string(key.count) + " " + text : text;
}

void print_report(const Report& r, const ModelOptions& options) {
  char row[512];
  const auto put = [&](auto... values) {
    std::snprintf(row, sizeof row, values...);
    print(row);
  };
  put("%s: GGUF version %u, %llu bytes, architecture %s, %llu parameters\n\nkeys\n",
      options.path.c_str(), r.file.version, static_cast<unsigned long long>(r.file.file_bytes),
      r.file.architecture.empty() ? "not named" : r.file.architecture.c_str(),
      static_cast<unsigned long long>(r.file.parameters));
  for (const ListedKey& key : r.file.keys)
    put("  %-44s %-15s %s\n", key.name.c_str(), key.type.c_str(), show(key).c_str());
  if (!r.file.tensors.empty()) print("\ntensors\n");
  for (const ListedTensor& tensor : r.file.tensors) {
    std::string shape;
    for (uint64_t size : tensor.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(size);
    put("  %-44s %-7s %18s %12llu bytes\n", tensor.name.c_str(), tensor.format.c_str(),
        shape.c_str(), static_cast<unsigned long long>(tensor.bytes));
  }
  if (!r.unusable.empty()) return;
  std::string tasks;
  for (const std::string& task : r.tasks) tasks += (tasks.empty() ? "" : ", ") + task;
  put("\ntasks: %s\n", tasks.c_str());
  for (size_t i = 0; i < r.labels.size(); ++i) put("label %zu: %s\n", i, r.labels[i].c_str());
  put("memory: %llu bytes mapped, %llu on the heap, %zu for a session of %u tokens (%s cache)\n",
      static_cast<unsigned long long>(r.info.file_bytes),
      static_cast<unsigned long long>(r.info.heap_bytes), r.session_bytes, r.capacity,
      options.kv.c_str());
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  CommandLine line("inspect",
                   "Keys and tensors of a file, and the memory that a session would need.");
  ModelOptions options;
  options.add_model(line.app);
  options.add_context(line.app);
  options.add_kv(line.app);
  options.add_threads(line.app);
  line.add_json();
  if (!line.parse(arguments)) return 0;
  const Report report = inspect(options);
  if (line.json)
    print_json(to_json(report));
  else
    print_report(report, options);
  if (report.unusable.empty()) return 0;
  complain(report.unusable);
  return 1;
}

}  // namespace mote::tool
