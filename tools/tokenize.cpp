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

// An encoder's tokenizer: WordPiece, Unigram, or one that says how it takes pairs.
bool is_encoder(const Model& model) {
  const std::string kind = model.value("tokenizer.ggml.model").value_or("");
  return kind == "bert" || kind == "t5" || model.value("mote.frame.pair") ||
         (!model.can(MOTE_TASK_GENERATE) &&
          model.can(MOTE_TASK_CLASSIFY | MOTE_TASK_ANSWER | MOTE_TASK_TAG | MOTE_TASK_EMBED));
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

  // A question and what it is asked of: all windows over the latter.
  Json windows(const std::string& question, const std::string& context, uint32_t max_length,
               uint32_t stride) {
    prepare(std::max(question.size(), context.size()));
    const CodePoints points[2] = {CodePoints(question), CodePoints(context)};
    Json list = Json::array();
    for (size_t window = 0, count = 1; window < count; ++window)
      list.push_back(one_window(question, context, max_length, stride, window, points, &count));
    return {{"windows", list}};
  }

 private:
  Json one_window(const std::string& question, const std::string& context, uint32_t max_length,
                  uint32_t stride, size_t window, const CodePoints* points, size_t* windows) {
    std::vector<mote_token> tokens(64);
    std::vector<uint8_t> types;
    std::vector<int8_t> texts;
    size_t count = 0;
    mote_status status;
    do {
      tokens.resize(std::max(tokens.size(), count));
      types.resize(tokens.size());
      texts.resize(tokens.size());
      status = mote_tokenize_pair(session_->get(), as_text(question), as_text(context),
                                  special_ ? MOTE_TOKENIZE_SPECIAL : 0, max_length, stride, window,
                                  tokens.data(), types.data(), texts.data(), tokens.size(), &count,
                                  windows);
    } while (status == MOTE_ERROR_BUFFER && count > tokens.size());
    check(status);
    Json ids = Json::array(), type_ids = Json::array(), offsets = Json::array(),
         sequence_ids = Json::array();
    for (size_t i = 0; i < count; ++i) {
      ids.push_back(tokens[i].id);
      type_ids.push_back(types[i]);
      sequence_ids.push_back(texts[i] < 0 ? Json() : Json(texts[i]));
      const auto [first, last] =
          points[texts[i] > 0].range(tokens[i].byte_start, tokens[i].byte_end);
      offsets.push_back({first, last});
    }
    return {
        {"ids", ids}, {"type_ids", type_ids}, {"sequence_ids", sequence_ids}, {"offsets", offsets}};
  }

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
  const auto text = object.find("text"), bytes = object.find("bytes_b64");
  if (text != object.end() && text->is_string()) return text->get<std::string>();
  if (bytes != object.end() && bytes->is_string()) return decode_base64(bytes->get<std::string>());
  throw Failure("expected \"text\" or \"bytes_b64\" with a text");
}

uint32_t line_number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  if (!found->is_number_unsigned() || found->get<uint64_t>() > UINT32_MAX)
    throw Failure(std::string(key) + ": expected a count, found " + found->dump());
  return found->get<uint32_t>();
}

Json tokenize_line(Tokenizer& tokenizer, const Json& object) {
  const auto question = object.find("question"), context = object.find("context");
  if (question == object.end()) return tokenizer.tokenize(line_text(object));
  if (!question->is_string() || context == object.end() || !context->is_string())
    throw Failure("expected \"question\" and \"context\" with texts");
  return tokenizer.windows(question->get<std::string>(), context->get<std::string>(),
                           line_number(object, "max_length"), line_number(object, "stride"));
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
      Json result = tokenize_line(tokenizer, object);
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
  line.app.add_option(
      "--jsonl", o.lines,
      "a file with {\"text\"} or {\"bytes_b64\"} a line, or with {\"question\", "
      "\"context\", \"max_length\", \"stride\"}: then all windows over the context");
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
