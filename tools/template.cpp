// mote template: renders messages with the model's chat template, or with a given one.
#include <cstdlib>
#include <optional>

#include "tools/commands.h"
#include "tools/session.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

// A model that holds nothing, for templates that come without one: a GGUF file in memory (version
// 3, little-endian) whose only key is an empty-looking template.
class NoModel {
 public:
  NoModel() {
    append("GGUF", 4);
    number<uint32_t>(3);
    number<uint64_t>(0);  // tensors
    number<uint64_t>(1);  // keys
    text("tokenizer.chat_template");
    number<uint32_t>(8);  // a text
    text(" ");
    bytes_.copy(memory_, sizeof memory_);
    model_.emplace(memory_, sizeof memory_);
  }
  const Model& model() const { return *model_; }

 private:
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
  alignas(32) char memory_[96] = {};
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
// A template of one's own may do without messages.
Json read_context(const std::string& path, const Model* model, bool need_messages) {
  const std::string name = path == "-" ? "standard input" : path;
  Json context = parse_json(read_file(path), name);
  if (context.is_array()) context = Json{{"messages", context}};
  if (!context.is_object() || (need_messages && !context.contains("messages")))
    throw Failure(name + ": expected a JSON object with \"messages\", or an array of messages");
  if (!model || !model->can(MOTE_TASK_TOKENIZE)) return context;
  const std::pair<const char*, const char*> tokens[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"}, {"eos_token", "tokenizer.ggml.eos_token_id"}};
  for (const auto& [name, key] : tokens)
    if (!context.contains(name))
      if (const auto text = special_token(*model, key)) context[name] = *text;
  return context;
}

// chat_template: empty for the model's own.
std::string render(const Model& model, const std::string& chat_template,
                   const std::string& context) {
  // Templates repeat and indent: a generous bound on what they make of it.
  const size_t room = 16 * (context.size() + chat_template.size()) + (1u << 16);
  const Session session(model, session_options(model, smallest(), room));
  std::string text(room, '\0');
  size_t length = 0;
  const auto try_render = [&] {
    return mote_template_render_json(session.get(), as_text(chat_template), as_text(context),
                                     text.data(), text.size(), &length);
  };
  mote_status status = try_render();
  if (status == MOTE_ERROR_BUFFER) {
    text.resize(length);
    status = try_render();
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
  const std::string context =
      read_context(messages, model ? &*model : nullptr, template_path.empty())
          .dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  if (template_path.empty()) {
    text = render(*model, "", context);
  } else if (const std::string own = read_file(template_path); !own.empty()) {
    try {
      text = render(model ? *model : NoModel().model(), own, context);
    } catch (const Failure& failure) {
      throw Failure(template_path + ": " + failure.what());
    }
  }
  if (line.json)
    print_json({{"text", text}});
  else
    print(text);
  return 0;
}

}  // namespace mote::tool
