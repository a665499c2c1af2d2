#include "tools/generation.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tools/interrupt.h"

namespace mote::tool {
namespace {

// "prompt: 512 of 2000 tokens" on a terminal, once a second has gone by; wiped out afterwards.
class PromptProgress {
 public:
  explicit PromptProgress(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO)) {}
  ~PromptProgress() { wipe(); }
  PromptProgress(const PromptProgress&) = delete;
  PromptProgress& operator=(const PromptProgress&) = delete;

  void show(size_t done, size_t total) {
    if (!wanted_ || std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1)) return;
    if (done == total) return wipe();
    std::fprintf(stderr, "\rprompt: %zu of %zu tokens", done, total);
    shown_ = true;
  }

 private:
  void wipe() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

  bool wanted_, shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Output {
  std::string* text;
  bool stream;
  PromptProgress progress;
  bool broken = false;  // stdout takes no more
};

void on_progress(void* user, size_t done, size_t total) {
  static_cast<Output*>(user)->progress.show(done, total);
}

int on_text(void* user, const char* text, size_t length) {
  auto* output = static_cast<Output*>(user);
  output->text->append(text, length);
  if (output->stream)
    output->broken = std::fwrite(text, 1, length, stdout) != length || std::fflush(stdout) != 0;
  return output->broken || InterruptScope::interrupted();
}

const char* finish_name(int32_t finish) {
  switch (finish) {
    case MOTE_FINISH_END:
      return "end";
    case MOTE_FINISH_STOP:
      return "stop";
    case MOTE_FINISH_LENGTH:
      return "length";
    case MOTE_FINISH_CAPACITY:
      return "capacity";
    case MOTE_FINISH_CALLBACK:  // our callback ends it for a signal or a closed pipe
    case MOTE_FINISH_CANCELLED:
      return "cancelled";
    case MOTE_FINISH_DEADLINE:
      return "deadline";
    default:
      return "failed";
  }
}

}  // namespace

void SamplingOptions::add(CLI::App& app) {
  app.add_option("-n,--max-tokens", max_tokens, "tokens at most (default 256; 0: as many as fit)");
  app.add_option("--temp", temperature,
                 "temperature; 0 (default) always takes the likeliest token");
  app.add_option("--top-k", top_k, "only the K likeliest tokens (0: all)");
  app.add_option("--top-p", top_p, "only the likeliest tokens that together have P (0: all)");
  app.add_option("--min-p", min_p,
                 "only tokens at least P times as likely as the likeliest (0: all)");
  app.add_option("--repeat-penalty", repeat_penalty,
                 "divides the odds of recent tokens (0 or 1: off)");
  app.add_option("--seed", seed, "the same seed gives the same text")->check(unsigned_number());
  app.add_option("--stop", stops, "end before this text; may be given up to 16 times")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--ignore-eos", ignore_end, "never choose an end token");
  app.add_option(
         "--speculate", speculate,
         "guess up to N tokens ahead, 1 to 7, from what followed the same tokens before: the "
         "same text, sooner where it repeats something (0: off)")
      ->check(within(0, MOTE_MAX_DRAFT));
  app.add_option("--deadline-ms", deadline_ms, "stop after this time (0: none)");
}

void SamplingOptions::check() const {
  check_range("--temp", temperature, 0, 100);
  check_range("--top-p", top_p, 0, 1);
  check_range("--min-p", min_p, 0, 1);
  check_range("--repeat-penalty", repeat_penalty, 0, 100);
  if (stops.size() > 16) throw UsageError("--stop: expected at most 16 texts");
  for (const std::string& stop : stops)
    if (stop.empty() || stop.size() > 256)
      throw UsageError("--stop: expected 1 to 256 bytes, found " + std::to_string(stop.size()));
}

Generation run_generation(const Session& session, const mote_prompt& prompt,
                          const SamplingOptions& options, bool stream) {
  Generation generation;
  std::vector<mote_text> stops;
  for (const std::string& stop : options.stops) stops.push_back(as_text(stop));
  generation.ids.resize(options.max_tokens
                            ? std::min<size_t>(options.max_tokens, session.capacity())
                            : session.capacity());
  Output output{&generation.text, stream, PromptProgress(stream)};
  mote_generate_options generate{};
  generate.size = sizeof generate;
  generate.max_tokens = options.max_tokens;
  generate.deadline_ms = options.deadline_ms;
  generate.temperature = options.temperature;
  generate.top_k = options.top_k;
  generate.top_p = options.top_p;
  generate.min_p = options.min_p;
  generate.repeat_penalty = options.repeat_penalty;
  generate.seed = options.seed;
  generate.stop_count = static_cast<uint32_t>(stops.size());
  generate.stop = stops.data();
  generate.on_text = on_text;
  generate.on_progress = on_progress;
  generate.user = &output;
  generate.flags = options.ignore_end ? MOTE_GENERATE_IGNORE_END : 0;
  generate.draft_tokens = options.speculate;
  generate.ids = generation.ids.data();
  generate.ids_capacity = generation.ids.size();
  generation.result.size = sizeof generation.result;
  InterruptScope scope(session.get());
  const mote_status status = mote_generate(session.get(), &prompt, &generate, &generation.result);
  if (status != MOTE_OK) generation.error = mote_last_error();
  if (output.broken) generation.error = "stdout: cannot write";
  generation.ids.resize(
      std::min<size_t>(generation.ids.size(), generation.result.generated_tokens));
  generation.finish_reason =
      generation.error.empty() ? finish_name(generation.result.finish) : "failed";
  return generation;
}

std::string speed_of(const Generation& generation) {
  const mote_generate_result& r = generation.result;
  const auto rate = [](double tokens, double ms) { return ms > 0 ? 1000 * tokens / ms : 0; };
  char text[240];
  const int length =
      std::snprintf(text, sizeof text,
                    "prompt %u tokens (%u reused) in %.0f ms (%.0f tok/s); %u generated in %.0f ms "
                    "(%.0f tok/s)",
                    r.prompt_tokens, r.reused_tokens, r.prefill_ms,
                    rate(r.prompt_tokens - r.reused_tokens, r.prefill_ms), r.generated_tokens,
                    r.decode_ms, rate(r.generated_tokens, r.decode_ms));
  if (r.drafted_tokens)
    std::snprintf(text + length, sizeof text - static_cast<size_t>(length),
                  ", %u of %u drafted accepted", r.accepted_tokens, r.drafted_tokens);
  return text;
}

std::string why_nothing(const Generation& generation, const SamplingOptions& options) {
  const mote_generate_result& result = generation.result;
  const std::string prompt = "the prompt of " + std::to_string(result.prompt_tokens) + " tokens";
  if (result.generated_tokens > 0) return {};
  if (result.finish == MOTE_FINISH_DEADLINE)
    return "no token: the deadline of " + std::to_string(options.deadline_ms) +
           " ms passed within " + prompt;
  if (result.finish == MOTE_FINISH_CAPACITY)
    return "no token: " + prompt + " fills the context; a larger --ctx gives room";
  return {};
}

}  // namespace mote::tool
