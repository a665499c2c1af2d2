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

// False where the answer failed; the conversation is then as before.
bool answer(const Session& session, const SamplingOptions& sampling, Conversation& conversation) {
  // All messages each time: what the cache holds of them is not computed again.
  const std::vector<mote_message> messages = conversation.messages();
  mote_prompt prompt{};
  prompt.messages = messages.data();
  prompt.message_count = messages.size();
  const Generation g = run_generation(session, prompt, sampling, true);
  if (g.result.generated_tokens > 0 || g.error.empty()) print("\n");
  finish_output();
  if (!g.error.empty()) {
    conversation.take_back();
    complain(g.error + " (/reset begins anew)");
    return false;
  }
  conversation.add("assistant", g.text);
  if (g.finish_reason == std::string("capacity"))
    complain("the context is full: /reset begins anew, or start with a larger --ctx");
  return true;
}

int chat(const ModelOptions& options, const SamplingOptions& sampling, const std::string* system) {
  const Model model(options.path);
  model.need_chat("mote generate continues a text");
  const Session session(model, session_options(model, options));
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
    failed |= !answer(session, sampling, conversation);
  }
  if (terminal) std::fputc('\n', stderr);
  return failed && !terminal ? 1 : 0;
}

}  // namespace

int run_chat(const Arguments& arguments) {
  CommandLine line("chat",
                   "A conversation in the terminal: a line in, an answer out. /reset begins anew.");
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
  model.add_model(line.app);
  const CLI::Option* system_option =
      line.app.add_option("--system", system, "a system message in front");
  sampling.add(line.app);
  model.add_context(line.app);
  model.add_kv(line.app);
  model.add_threads(line.app);
  if (!line.parse(arguments)) return 0;
  sampling.check();
  return chat(model, sampling, system_option->count() ? &system : nullptr);
}

}  // namespace mote::tool
