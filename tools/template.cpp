// mote template: renders messages with the model's chat template, or with a given one.
#include <cstdlib>
#include <memory>
#include <optional>

#include "tools/commands.h"
#include "tools/session.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

// A model that is nothing but a chat template: a GGUF file in memory with one key (version 3,
// little-endian).
class TemplateModel {
 public:
  explicit TemplateModel(const std::string& source) {
    append("GGUF", 4);
    number<uint32_t>(3);
    number<uint64_t>(0);  // tensors
    number<uint64_t>(1);  // keys
    text("tokenizer.chat_template");
    number<uint32_t>(8);  // a text
    text(source);
    bytes_.resize((bytes_.size() + 31) / 32 * 32, '\0');
    memory_.reset(static_cast<char*>(std::aligned_alloc(32, bytes_.size())));
    if (!memory_) throw Failure("no memory for the template");
    bytes_.copy(memory_.get(), bytes_.size());
    model_.emplace(memory_.get(), bytes_.size());
  }
  const Model& model() const { return *model_; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  void append(const char* data, size_t length) { bytes_.append(data, length); }
  template <class T>
  void number(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  void text(const std::string& value) {
    number<uint64_t>(value.size());
    append(value.data(), value.size());
  }

  std::string bytes_;
  std::unique_ptr<char, Free> memory_;
  std::optional<Model> model_;
};

ModelOptions smallest() {
  ModelOptions options;
  options.context = 64;
  options.threads = 1;
  return options;
}

// The text of a special token that a key of the file names.
std::optional<std::string> special_token(const Model& model, const char* key) {
  const std::optional<std::string> id = model.value(key);
  if (!id || id->empty() || id->find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  const Session session(model, session_options(model, smallest()));
  return detokenize(session, {static_cast<int32_t>(std::strtol(id->c_str(), nullptr, 10))}, 0);
}

// The variables: the object as given, a list of messages as "messages", and the model's own special
// tokens.
Json read_context(const std::string& path, const Model* model) {
  Json context = Json::parse(read_file(path), nullptr, false);
  if (context.is_array()) context = Json{{"messages", context}};
  if (!context.is_object())
    throw Failure(path + ": expected a JSON object with \"messages\", or an array of messages");
  if (!model || !model->can(MOTE_TASK_TOKENIZE)) return context;
  const std::pair<const char*, const char*> tokens[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"}, {"eos_token", "tokenizer.ggml.eos_token_id"}};
  for (const auto& [name, key] : tokens)
    if (!context.contains(name))
      if (const auto text = special_token(*model, key)) context[name] = *text;
  return context;
}

std::string render(const Model& model, const std::string& context) {
  // Templates repeat and indent: a generous bound on what they make of it.
  const size_t room = 16 * context.size() + (1u << 16);
  const Session session(model, session_options(model, smallest(), room));
  std::string text(room, '\0');
  size_t length = 0;
  const mote_text own{nullptr, 0};
  mote_status status = mote_template_render_json(session.get(), own, as_text(context), text.data(),
                                                 text.size(), &length);
  if (status == MOTE_ERROR_BUFFER) {
    text.resize(length);
    status = mote_template_render_json(session.get(), own, as_text(context), text.data(),
                                       text.size(), &length);
  }
  check(status);
  text.resize(length);
  return text;
}

}  // namespace

int run_template(const Arguments& arguments) {
  CommandLine line("template", "Renders messages with a chat template.");
  std::string model_path, messages, template_path;
  line.app.add_option("-m,--model", model_path,
                      "the model whose template and special tokens are used");
  line.app
      .add_option(
          "--messages", messages,
          "JSON: {\"messages\": [{\"role\", \"content\"}], \"add_generation_prompt\", ...}; "
          "- reads standard input")
      ->required();
  line.app.add_option("--template", template_path,
                      "a file with the template; -m is not needed then");
  line.add_json();
  if (!line.parse(arguments)) return 0;
  if (model_path.empty() && template_path.empty()) throw UsageError("give -m or --template");
  std::optional<Model> model;
  if (!model_path.empty()) model.emplace(model_path);
  const std::string context = read_context(messages, model ? &*model : nullptr)
                                  .dump(-1, ' ', false, Json::error_handler_t::replace);
  std::optional<TemplateModel> given;
  if (!template_path.empty()) given.emplace(read_file(template_path));
  const std::string text = render(given ? given->model() : *model, context);
  if (line.json)
    print_json({{"text", text}});
  else
    print(text);
  return 0;
}

}  // namespace mote::tool
