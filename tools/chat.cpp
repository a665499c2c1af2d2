// mote chat: a conversation in the terminal.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "tools/commands.h"
#include "tools/generation.h"

namespace mote::tool {
namespace {

class Conversation {
 public:
  explicit Conversation(const std::string* system) : system_(system) {}

  void reset() { turns_.clear(); }
  void add(const char* role, std::string text) { turns_.push_back({role, std::move(text)}); }
  void take_back() { turns_.pop_back(); }

  std::vector<mote_message> messages() const {
    std::vector<mote_message> messages;
    if (system_) messages.push_back({{"system", 6}, as_text(*system_)});
    for (const Turn& turn : turns_) messages.push_back({as_text(turn.role), as_text(turn.text)});
    return messages;
  }

 private:
  struct Turn {
    std::string role, text;
  };
  const std::string* system_;
  std::vector<Turn> turns_;
};

struct Options {
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
  bool stats = false;
};

// False where the answer failed. Where there is none, the conversation is as before.
bool answer(const Session& session, const Options& options, Conversation& conversation) {
  // All messages each time: what the cache holds of them is not computed again.
  const std::vector<mote_message> messages = conversation.messages();
  mote_prompt prompt{};
  prompt.messages = messages.data();
  prompt.message_count = messages.size();
  const Generation g = run_generation(session, prompt, options.sampling, true);
  const bool nothing = g.result.generated_tokens == 0 && g.result.finish != MOTE_FINISH_END;
  if (!nothing) print("\n");
  finish_output();
  if (options.stats && g.error.empty())
    std::fprintf(stderr, "%s; %s\n", speed_of(g).c_str(), g.finish_reason);
  if (nothing || !g.error.empty())
    conversation.take_back();
  else
    conversation.add("assistant", g.text);
  if (!nothing && g.result.finish == MOTE_FINISH_CAPACITY)
    complain("the context is full: /reset begins anew, or start with a larger --ctx");
  const std::string fault = g.error.empty() ? why_nothing(g, options.sampling) : g.error;
  if (!fault.empty()) complain(fault + " (/reset begins anew)");
  return fault.empty();
}

int chat(const Options& options, const std::string* system) {
  const Model model(options.model.path);
  model.need_chat("mote generate continues a text");
  const Session session(model, session_options(model, options.model));
  Conversation conversation(system);
  const bool terminal = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
  if (terminal) std::fprintf(stderr, "/reset begins anew, Ctrl-C stops an answer, Ctrl-D ends.\n");
  std::string line;
  bool failed = false;
  while (true) {
    if (terminal) std::fprintf(stderr, "> ");
    if (!std::getline(std::cin, line)) break;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    if (line == "/reset") {
      conversation.reset();
      continue;
    }
    conversation.add("user", line);
    failed |= !answer(session, options, conversation);
  }
  if (terminal) std::fputc('\n', stderr);
  return failed && !terminal ? 1 : 0;
}

}  // namespace

int run_chat(const Arguments& arguments) {
  CommandLine line("chat",
                   "A conversation in the terminal: a line in, an answer out. /reset begins anew.");
  Options options;
  options.model.add_model(line.app);
  const CLI::Option* system_option =
      line.app.add_option("--system", options.system, "a system message in front");
  options.sampling.add(line.app);
  options.model.add_context(line.app);
  options.model.add_kv(line.app);
  options.model.add_threads(line.app);
  line.app.add_flag("--stats", options.stats, "speed on stderr after each answer");
  if (!line.parse(arguments)) return 0;
  options.sampling.check();
  return chat(options, system_option->count() ? &options.system : nullptr);
}

}  // namespace mote::tool
