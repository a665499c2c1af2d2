// mote tokenize: ids, pieces and offsets of texts.
#include <algorithm>
#include <memory>

#include "tools/commands.h"
#include "tools/session.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

struct Options {
  ModelOptions model;
  std::vector<std::string> prompts;
  std::string file, lines;
  bool special = false, bos = false;
};

// A file with a vocabulary alone has no tasks of either: its architecture's name tells.
bool is_encoder(const Model& model) {
  if (model.can(MOTE_TASK_GENERATE)) return false;
  const std::string name(model.info().architecture.data, model.info().architecture.length);
  return model.can(MOTE_TASK_CLASSIFY | MOTE_TASK_ANSWER | MOTE_TASK_TAG | MOTE_TASK_EMBED) ||
         name.find("bert") != std::string::npos;
}

// A tokenizer for texts of any length: its session grows with them.
class Tokenizer {
 public:
  explicit Tokenizer(const Options& o) : model_(o.model.path), special_(o.special), bos_(o.bos) {
    model_.need(MOTE_TASK_TOKENIZE, "tokenizer");
  }

  Json tokenize(const std::string& text) {
    prepare(text.size());
    const uint32_t flags =
        (special_ ? MOTE_TOKENIZE_SPECIAL : 0) | (frames() ? MOTE_TOKENIZE_FRAME : 0);
    const std::vector<mote_token> tokens = tool::tokenize(*session_, text, flags);
    const CodePoints points(text);
    Json ids = Json::array(), pieces = Json::array(), offsets = Json::array();
    for (const mote_token& token : tokens) {
      ids.push_back(token.id);
      pieces.push_back(detokenize(*session_, {token.id}, 0));
      const auto [first, last] = points.range(token.byte_start, token.byte_end);
      offsets.push_back({first, last});
    }
    return {{"ids", ids}, {"pieces", pieces}, {"offsets", offsets}};
  }

 private:
  // An encoder's frame belongs to its input; a generator's BOS is for whoever asks.
  bool frames() const { return bos_ || is_encoder(model_); }

  void prepare(size_t text_bytes) {
    if (session_ && text_bytes <= room_) return;
    session_.reset();
    room_ = std::max<size_t>(text_bytes * 2, 4096);
    ModelOptions smallest;
    smallest.context = 8;
    smallest.threads = 1;
    session_ = std::make_unique<Session>(model_, session_options(model_, smallest, room_));
  }

  Model model_;
  std::unique_ptr<Session> session_;
  size_t room_ = 0;
  bool special_, bos_;
};

// The text of a JSON line: {"text"} or {"bytes_b64"}.
std::string line_text(const Json& object) {
  if (object.contains("question"))
    throw Failure("pairs of question and context are not supported yet");
  const auto text = object.find("text"), bytes = object.find("bytes_b64");
  if (text != object.end() && text->is_string()) return text->get<std::string>();
  if (bytes != object.end() && bytes->is_string()) return decode_base64(bytes->get<std::string>());
  throw Failure("expected \"text\" or \"bytes_b64\" with a text");
}

void print_tokens(const Json& result, bool json) {
  if (json) return print_json(result);
  std::string text;
  for (size_t i = 0; i < result["ids"].size(); ++i)
    text += std::to_string(result["ids"][i].get<int32_t>()) + "\t" +
            result["pieces"][i].dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  print(text);
}

int tokenize_all(const Options& o, const std::vector<std::string>& words, bool json) {
  Tokenizer tokenizer(o);
  if (!o.lines.empty()) {
    const size_t failed = for_each_json_line(o.lines, [&](const Json& object) {
      Json result = tokenizer.tokenize(line_text(object));
      if (object.contains("id")) result["id"] = object["id"];
      print_tokens(result, true);
    });
    return failed ? 1 : 0;
  }
  if (!o.file.empty()) print_tokens(tokenizer.tokenize(read_file(o.file)), json);
  for (const std::string& word : words)
    print_tokens(tokenizer.tokenize(word == "-" ? read_file("-") : word), json);
  return 0;
}

}  // namespace

int run_tokenize(const Arguments& arguments) {
  CommandLine line("tokenize", "Ids and pieces of texts.");
  Options o;
  o.model.add_model(line.app);
  line.accept_texts(
      "TEXT...: the texts; - reads one from standard input. Behind -- a text may begin with -.");
  line.app.add_option("-p,--prompt", o.prompts, "a text too")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  line.app.add_option("--file", o.file, "a file that is one text");
  line.app.add_option("--jsonl", o.lines, "a file with {\"text\"} or {\"bytes_b64\"} a line");
  line.app.add_flag("--special", o.special, "read special tokens' names in the text as such");
  line.app.add_flag("--bos", o.bos, "what the model puts around a text");
  line.add_json();
  if (!line.parse(arguments)) return 0;
  std::vector<std::string> words = o.prompts;
  words.insert(words.end(), line.texts().begin(), line.texts().end());
  if (words.empty() && o.file.empty() && o.lines.empty())
    throw UsageError("give a text, --file or --jsonl");
  if (!o.lines.empty() && (!words.empty() || !o.file.empty()))
    throw UsageError("--jsonl does not go with other texts");
  return tokenize_all(o, words, line.json);
}

}  // namespace mote::tool
