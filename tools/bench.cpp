// mote bench: speed of prefill and decoding, or of an encoder by length.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/session.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

struct Options {
  ModelOptions model;
  uint32_t prompt = 512, generated = 128, runs = 5, batch = 8;
  std::string threads, lengths = "8,32,128,512";
};

// Ctrl-C came: the rows so far are what there is.
struct Interrupted {};

void check_run(mote_status status) {
  if (InterruptScope::interrupted()) throw Interrupted();
  check(status);
}

struct Row {
  std::string test;
  uint32_t threads;
  double median, min, max;
  const char* unit;
};

std::vector<uint32_t> parse_threads(const std::string& text) {
  std::vector<uint32_t> threads;
  for (int32_t count : text.empty() ? std::vector<int32_t>{0}
                                    : parse_numbers(text, "-t: expected numbers of threads")) {
    if (!text.empty()) check_range("-t", count, 1, 256);
    threads.push_back(static_cast<uint32_t>(count));
  }
  if (threads.empty()) throw UsageError("-t: expected numbers of threads");
  return threads;
}

// Tokens that are the same every time and all over the vocabulary.
std::vector<int32_t> some_ids(uint32_t count, uint32_t vocabulary) {
  std::vector<int32_t> ids;
  uint32_t state = 1;
  for (uint32_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(static_cast<int32_t>(uint64_t{state} * vocabulary >> 32));
  }
  return ids;
}

// Seconds of one prompt of all ids, with the last position's logits.
double time_prompt(const Session& session, const std::vector<int32_t>& ids) {
  const float* logits = nullptr;
  check(mote_session_rewind(session.get(), 0));
  const auto begin = std::chrono::steady_clock::now();
  check_run(mote_session_append(session.get(), ids.data(), ids.size(), 0, &logits));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Seconds of decoding so many tokens behind one given, each chosen from its logits: the first
// choice needs no pass of its own, so there is one more.
double time_decoding(const Session& session, int32_t first, uint32_t count) {
  check(mote_session_rewind(session.get(), 0));
  mote_prompt prompt = {};
  prompt.ids = &first;
  prompt.id_count = 1;
  mote_generate_options options = {};
  options.size = sizeof options;
  options.max_tokens = count + 1;
  options.flags = MOTE_GENERATE_IGNORE_END;
  mote_generate_result result = {};
  result.size = sizeof result;
  check_run(mote_generate(session.get(), &prompt, &options, &result));
  if (InterruptScope::interrupted()) throw Interrupted();
  return result.decode_ms / 1000;
}

Row summarize(const std::string& test, const Session& session, std::vector<double> values,
              const char* unit) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median = values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {test, session.threads(), median, values.front(), values.back(), unit};
}

template <class Time>
Row measure(const std::string& test, const Session& session, const Options& o, size_t tokens,
            Time time) {
  std::vector<double> rates;
  time();  // pages and caches
  for (uint32_t run = 0; run < o.runs; ++run) rates.push_back(static_cast<double>(tokens) / time());
  return summarize(test, session, std::move(rates), "tok/s");
}

// A text of so many tokens, the model's frame among them.
std::string text_of(const Session& session, uint32_t tokens) {
  for (const char* word : {"the", "a", "of", "on", "1", "."}) {
    const auto repeated = [&](size_t times) {
      std::string text;
      for (size_t i = 0; i < times; ++i) text += (i ? " " : "") + std::string(word);
      return text;
    };
    const auto count = [&](size_t times) {
      return tokenize(session, repeated(times), MOTE_TOKENIZE_FRAME).size();
    };
    const size_t one = count(1), each = count(2) - one;
    if (each == 0 || tokens < one || (tokens - one) % each != 0) continue;
    const size_t times = 1 + (tokens - one) / each;
    if (count(times) == tokens) return repeated(times);
  }
  throw Failure("--lengths: no text of " + std::to_string(tokens) +
                " tokens is known for this tokenizer");
}

// Milliseconds for a batch of equal texts, tokenizing included.
void bench_encoder(const Model& model, const Options& o, uint32_t threads,
                   const std::vector<uint32_t>& lengths, std::vector<Row>* rows) {
  for (uint32_t length : lengths)
    for (uint32_t batch :
         o.batch > 1 ? std::vector<uint32_t>{1, o.batch} : std::vector<uint32_t>{1}) {
      ModelOptions options = o.model;
      options.threads = threads;
      options.context = length;
      mote_session_options session_options_ = session_options(model, options);
      session_options_.batch_tokens = length * batch;
      const Session session(model, session_options_);
      InterruptScope scope(session.get());
      const std::string text = text_of(session, length);
      const std::vector<mote_input> inputs(batch, mote_input{as_text(text), {}});
      std::vector<float> vectors(size_t{batch} * model.info().embedding_size);
      const auto time = [&] {
        const auto begin = std::chrono::steady_clock::now();
        check_run(mote_embed(session.get(), inputs.data(), batch, nullptr, vectors.data(),
                             vectors.size(), nullptr));
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count();
      };
      time();  // pages and caches
      std::vector<double> values;
      for (uint32_t run = 0; run < o.runs; ++run) values.push_back(time());
      rows->push_back(
          summarize("enc" + (batch > 1 ? std::to_string(batch) + "x" : "") + std::to_string(length),
                    session, std::move(values), "ms"));
    }
}

// Those that the model takes, for the default; all of those that were asked for.
std::vector<uint32_t> parse_lengths(const Options& o, const Model& model, bool asked) {
  std::vector<uint32_t> lengths;
  for (int32_t length : parse_ids(o.lengths)) {
    if (asked) check_range("--lengths", length, 1, model.info().context_length);
    if (length <= static_cast<int64_t>(model.info().context_length))
      lengths.push_back(static_cast<uint32_t>(length));
  }
  return lengths;
}

void bench_threads(const Model& model, const Options& o, uint32_t threads, std::vector<Row>* rows) {
  const uint32_t vocabulary = model.info().vocabulary_size;
  const std::vector<int32_t> prompt = some_ids(std::max(o.prompt, 1u), vocabulary);
  ModelOptions options = o.model;
  options.threads = threads;
  if (!options.context) options.context = std::max({o.prompt, o.generated + 2, 1u});
  const Session session(model, session_options(model, options));
  InterruptScope scope(session.get());
  if (o.prompt)
    rows->push_back(measure("pp" + std::to_string(o.prompt), session, o, o.prompt,
                            [&] { return time_prompt(session, prompt); }));
  if (o.generated)
    rows->push_back(measure("tg" + std::to_string(o.generated), session, o, o.generated,
                            [&] { return time_decoding(session, prompt[0], o.generated); }));
}

std::vector<Row> bench(const Options& o, bool lengths_asked) {
  const std::vector<uint32_t> thread_counts = parse_threads(o.threads);
  const Model model(o.model.path);
  model.need(MOTE_TASK_GENERATE | MOTE_TASK_EMBED, "weights to run");
  const bool encoder = !model.can(MOTE_TASK_GENERATE);
  std::vector<uint32_t> lengths;
  if (encoder) {
    model.need(MOTE_TASK_TOKENIZE, "tokenizer");
    lengths = parse_lengths(o, model, lengths_asked);
  } else if (lengths_asked) {
    throw UsageError("--lengths: for encoders; a generator has -p and -n");
  }
  std::vector<Row> rows;
  try {
    for (uint32_t threads : thread_counts)
      encoder ? bench_encoder(model, o, threads, lengths, &rows)
              : bench_threads(model, o, threads, &rows);
  } catch (const Interrupted&) {
    complain("cancelled: these are the rows until then");
  }
  return rows;
}

void print_rows(const std::vector<Row>& rows, bool json) {
  if (json) {
    Json list = Json::array();
    for (const Row& row : rows)
      list.push_back({{"test", row.test},
                      {"threads", row.threads},
                      {"median", row.median},
                      {"min", row.min},
                      {"max", row.max},
                      {"unit", row.unit}});
    return print_json({{"rows", list}});
  }
  print("test      threads     median        min        max  unit\n");
  for (const Row& row : rows) {
    char text[128];
    const int digits = std::string(row.unit) == "ms" ? 3 : 1;
    std::snprintf(text, sizeof text, "%-9s %7u %10.*f %10.*f %10.*f  %s\n", row.test.c_str(),
                  row.threads, digits, row.median, digits, row.min, digits, row.max, row.unit);
    print(text);
  }
}

}  // namespace

int run_bench(const Arguments& arguments) {
  CommandLine line("bench",
                   "Tokens per second of prefill (pp) and decoding (tg), or milliseconds of an "
                   "encoder (enc) for texts of some lengths: medians of some runs.");
  Options o;
  o.model.add_model(line.app);
  line.app.add_option("-p,--prompt", o.prompt, "tokens of the prompt (default 512; 0: no prefill)");
  line.app.add_option("-n,--generated", o.generated,
                      "tokens decoded (default 128; 0: no decoding)");
  const CLI::Option* lengths = line.app.add_option(
      "--lengths", o.lengths, "of an encoder's texts, in tokens (default 8,32,128,512)");
  line.app.add_option("--batch", o.batch, "texts in one call, beside one alone (default 8)")
      ->check(within(1, 4096));
  line.app.add_option("-r,--runs", o.runs, "runs of each (default 5)")->check(within(1, 1000));
  line.app.add_option("-t,--threads", o.threads,
                      "numbers of threads: 1,2 (default: the fast cores)");
  o.model.add_context(line.app);
  o.model.add_kv(line.app);
  line.add_json();
  if (!line.parse(arguments)) return 0;
  check_range("-p", o.prompt, 0, 1 << 24);
  check_range("-n", o.generated, 0, 1 << 24);
  if (!o.prompt && !o.generated) throw UsageError("-p 0 -n 0: there is nothing to measure");
  print_rows(bench(o, lengths->count() > 0), line.json);
  return 0;
}

}  // namespace mote::tool
