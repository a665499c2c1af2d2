// mote generate: continues a prompt, or answers it through the model's chat template.
#include <chrono>
#include <cstdio>

#include "tools/commands.h"
#include "tools/generation.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

struct Options {
  ModelOptions model;
  SamplingOptions sampling;
  std::string prompt, file, ids, system;
  bool raw = false, special = false, stats = false;
  CLI::Option *prompt_option, *file_option, *ids_option, *system_option;
};

void add_options(CommandLine& line, Options& o) {
  o.model.add_model(line.app);
  o.prompt_option =
      line.app.add_option("-p,--prompt", o.prompt, "the prompt; - reads standard input");
  o.file_option = line.app.add_option("--file", o.file, "a file with the prompt");
  o.ids_option = line.app.add_option("--ids", o.ids, "a raw prompt as token ids: 1,2,3");
  o.system_option = line.app.add_option("--system", o.system, "a system message in front");
  line.app.add_flag("--raw", o.raw, "continue the prompt as it is, without the chat template");
  line.app.add_flag("--special", o.special, "read special tokens' names in a raw prompt as such");
  o.sampling.add(line.app);
  o.model.add_context(line.app);
  o.model.add_kv(line.app);
  o.model.add_threads(line.app);
  line.app.add_flag("--stats", o.stats, "speed on stderr when done");
  line.add_json();
}

void check_options(const Options& o) {
  const size_t prompts = o.prompt_option->count() + o.file_option->count() + o.ids_option->count();
  if (prompts != 1) throw UsageError("give the prompt with exactly one of -p, --file and --ids");
  if (o.system_option->count() && (o.raw || o.ids_option->count()))
    throw UsageError("--system needs the chat template: it does not go with --raw or --ids");
  o.sampling.check();
}

// The prompt in the form that the options and the model ask for; keeps what mote_prompt points to.
class Prompt {
 public:
  explicit Prompt(const Options& o) {
    if (o.ids_option->count())
      ids_ = parse_ids(o.ids);
    else if (o.file_option->count())
      text_ = read_file(o.file);
    else
      text_ = o.prompt == "-" ? read_file("-") : o.prompt;
    if (o.ids_option->count() && ids_.empty())
      throw UsageError("--ids: expected token ids, found none");
  }
  size_t text_bytes() const { return text_.size(); }

  mote_prompt build(const Options& o, const Model& model, const Session& session) {
    mote_prompt prompt{};
    const bool tokenizes = model.can(MOTE_TASK_TOKENIZE);
    const bool raw = o.raw || !tokenizes || !model.has_template();
    if (raw && tokenizes && o.special && !o.ids_option->count())
      for (const mote_token& token :
           tokenize(session, text_, MOTE_TOKENIZE_FRAME | MOTE_TOKENIZE_SPECIAL))
        ids_.push_back(token.id);
    if (!ids_.empty()) {
      prompt.ids = ids_.data();
      prompt.id_count = ids_.size();
    } else if (!raw) {
      // Continuing the text of someone who expects an answer would look like a bad answer.
      model.need_chat("--raw continues the text as it is");
      if (o.system_option->count()) messages_.push_back({{"system", 6}, as_text(o.system)});
      messages_.push_back({{"user", 4}, as_text(text_)});
      prompt.messages = messages_.data();
      prompt.message_count = messages_.size();
    } else {
      if (o.system_option->count())
        model.need(MOTE_TASK_CHAT, "chat template, so --system cannot be used");
      prompt.text = as_text(text_);
    }
    return prompt;
  }

 private:
  std::string text_;
  std::vector<int32_t> ids_;
  std::vector<mote_message> messages_;
};

Json to_json(const Generation& g, const Model& model, uint32_t threads, double load_ms) {
  Json json;
  json["text"] = model.can(MOTE_TASK_TOKENIZE) ? Json(g.text) : Json(nullptr);
  json["tokens"] = g.ids;
  json["finish_reason"] = g.finish_reason;
  json["prompt_tokens"] = g.result.prompt_tokens;
  json["generated_tokens"] = g.result.generated_tokens;
  json["drafted_tokens"] = g.result.drafted_tokens;
  json["accepted_tokens"] = g.result.accepted_tokens;
  json["threads"] = threads;
  json["load_ms"] = load_ms;
  json["prefill_ms"] = g.result.prefill_ms;
  json["decode_ms"] = g.result.decode_ms;
  if (!g.error.empty()) json["error"] = g.error;
  return json;
}

// Without a tokenizer the ids are the answer.
void print_ids(const std::vector<int32_t>& ids) {
  std::string text;
  for (int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  print(text);
}

int generate(const Options& o, bool json) {
  Prompt source(o);
  const auto begin = std::chrono::steady_clock::now();
  const Model model(o.model.path);
  model.need(MOTE_TASK_GENERATE, "weights to generate with");
  // The chat template adds to a text.
  const Session session(
      model, session_options(model, o.model, source.text_bytes() + o.system.size() + 64));
  const std::chrono::duration<double, std::milli> load = std::chrono::steady_clock::now() - begin;
  const mote_prompt prompt = source.build(o, model, session);
  const Generation g = run_generation(session, prompt, o.sampling, !json);
  if (!g.error.empty() && (!json || g.result.generated_tokens == 0)) throw Failure(g.error);
  if (json) {
    print_json(to_json(g, model, session.threads(), load.count()));
  } else if (g.result.generated_tokens > 0 || g.result.finish == MOTE_FINISH_END) {
    if (!model.can(MOTE_TASK_TOKENIZE)) print_ids(g.ids);
    print("\n");
  }
  finish_output();  // before what stderr says of it
  if (o.stats)
    std::fprintf(stderr, "load %.0f ms; %s; %u threads; %s\n", load.count(), speed_of(g).c_str(),
                 session.threads(), g.finish_reason);
  const std::string remark = g.error.empty() && !json ? why_nothing(g, o.sampling) : g.error;
  if (!remark.empty()) complain(remark);
  return g.error.empty() ? 0 : 1;
}

}  // namespace

int run_generate(const Arguments& arguments) {
  CommandLine line("generate",
                   "Continues a prompt, or answers it through the model's chat template.");
  Options options;
  add_options(line, options);
  if (!line.parse(arguments)) return 0;
  check_options(options);
  return generate(options, line.json);
}

}  // namespace mote::tool
