#include "tools/generation.h"

#include <algorithm>
#include <cstdio>

#include "tools/interrupt.h"

namespace mote::tool {
namespace {

struct Output {
  std::string* text;
  bool stream;
  bool broken = false;  // stdout takes no more
};

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
  app.add_option("--seed", seed, "the same seed gives the same text");
  app.add_option("--stop", stops, "end before this text; may be given up to 16 times")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--ignore-eos", ignore_end, "never choose an end token");
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
  Output output{&generation.text, stream};
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
  generate.user = &output;
  generate.flags = options.ignore_end ? MOTE_GENERATE_IGNORE_END : 0;
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

}  // namespace mote::tool
