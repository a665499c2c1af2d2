#include "tools/text_job.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "tools/interrupt.h"

namespace mote::tool {
namespace {

// Of results, and not of all: an input's fields of these names do not pass through.
constexpr const char* kOwnFields[] = {"error", "windows", "none_of_these"};

constexpr size_t kBatchTexts = 1024, kBatchBytes = 256 << 10;  // of one call

// What is typed or piped as a text ends with a line end that is none of it.
std::string read_standard_input() {
  std::string text = read_file("-");
  if (!text.empty() && text.back() == '\n') {
    text.pop_back();
    if (!text.empty() && text.back() == '\r') text.pop_back();
  }
  return text;
}

// The texts one after the other, whatever they come from.
class TextReader {
 public:
  explicit TextReader(const TextSource& source) : source_(source), pairs_(source.pairs) {
    if (!source.file.empty()) lines_ = std::make_unique<LineReader>(source.file);
    if (!source.lines.empty()) lines_ = std::make_unique<LineReader>(source.lines);
    if (!source.pair_file.empty()) pair_lines_ = std::make_unique<LineReader>(source.pair_file);
  }

  // False: there is no more.
  bool next(TextItem* item) {
    *item = TextItem();
    const bool goes_on = pair_lines_ ? pair_lines_->number() > 0 : next_pair_ > 0;
    if (!goes_on && !read_text(&current_)) return false;
    *item = current_;
    if (pair_lines_) return read_pair_line(item);
    if (pairs_.empty()) return true;
    item->pair = pairs_[next_pair_];
    if (pairs_.size() > 1) item->pair_number = next_pair_ + 1;
    next_pair_ = (next_pair_ + 1) % pairs_.size();
    return true;
  }
  std::string place(const TextItem& item) const {
    const LineReader* reader = pair_lines_ ? pair_lines_.get() : lines_.get();
    if (!reader || item.line == 0) return "";
    return reader->name() + ": line " + std::to_string(item.line) + ": ";
  }

 private:
  bool read_pair_line(TextItem* item) {
    if (!pair_lines_->next(&item->pair)) return false;
    item->line = item->pair_number = pair_lines_->number();
    item->error = pair_lines_->error();
    return true;
  }
  bool read_text(TextItem* item) {
    *item = TextItem();
    if (!lines_) {
      if (next_word_ == source_.words.size()) return false;
      const std::string& word = source_.words[next_word_++];
      item->text = word == "-" ? read_standard_input() : word;
      return true;
    }
    std::string line;
    while (lines_->next(&line)) {
      item->line = lines_->number();
      item->error = lines_->error();
      if (!source_.file.empty() || !item->error.empty()) {
        item->text = std::move(line);
        return true;
      }
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      read_object(line, item);
      return true;
    }
    return false;
  }
  // {"text", "pair"} and other fields.
  void read_object(const std::string& line, TextItem* item) {
    try {
      Json object = parse_json(line, "line");
      if (!object.is_object()) throw Failure("expected a JSON object");
      item->fields = std::move(object);
      for (const char* own : kOwnFields) item->fields.erase(own);
      take_field(source_.text_field, true, &item->fields, &item->text);
      take_field(source_.pair_field ? source_.pair_field : "pair", false, &item->fields,
                 &item->pair);
      if (!source_.pair_field && !item->pair.empty())
        throw Failure("expected one text, found a pair");
    } catch (const Failure& failure) {
      item->error = failure.what();
    }
  }
  static void take_field(const char* name, bool needed, Json* object, std::string* text) {
    const auto field = object->find(name);
    if (field == object->end() || (field->is_null() && !needed)) {
      if (needed) throw Failure(std::string("expected \"") + name + "\" with a text");
      return;
    }
    const Json value = std::move(*field);
    object->erase(field);
    if (!value.is_string())
      throw Failure(std::string("\"") + name + "\": expected a text, found " + value.type_name());
    *text = value.get<std::string>();
  }

  const TextSource& source_;
  const std::vector<std::string>& pairs_;
  std::unique_ptr<LineReader> lines_, pair_lines_;
  TextItem current_;
  size_t next_word_ = 0, next_pair_ = 0;
};

// "12000 texts, 950 a second" on a terminal, once a second; and at the end of a file, anywhere.
class Throughput {
 public:
  explicit Throughput(bool wanted)
      : wanted_(wanted), terminal_(wanted && isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO)) {}

  void add(size_t texts, size_t tokens) {
    texts_ += texts;
    tokens_ += tokens;
    const Clock::time_point now = Clock::now();
    if (!terminal_ || now - shown_at_ < std::chrono::seconds(1)) return;
    shown_at_ = now;
    std::fprintf(stderr, "\r%s\033[K", line().c_str());
    shown_ = true;
  }
  void finish() {
    if (shown_) std::fputs("\r\033[K", stderr);
    if (wanted_) std::fprintf(stderr, "%s\n", line().c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string line() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    char text[160];
    std::snprintf(text, sizeof text, "%zu texts, %zu tokens in %.2f s: %.0f texts/s, %.0f tokens/s",
                  texts_, tokens_, seconds, double(texts_) / std::max(seconds, 1e-9),
                  double(tokens_) / std::max(seconds, 1e-9));
    return text;
  }

  bool wanted_, terminal_, shown_ = false;
  Clock::time_point start_ = Clock::now(), shown_at_ = start_;
  size_t texts_ = 0, tokens_ = 0;
};

class TextJob {
 public:
  TextJob(const Model& model, const ModelOptions& options, const TextSource& source, bool json,
          TextTask& task)
      : model_(model),
        options_(options),
        json_(json || !source.lines.empty()),
        many_(source.is_stream()),
        task_(task),
        reader_(source),
        throughput_(source.is_stream()) {}

  int run() {
    while (read_batch()) {
      compute_batch();
      show_batch();
    }
    finish_output();  // before a signal may end the program within a line
    throughput_.finish();
    const bool cancelled = InterruptScope::interrupted();
    if (cancelled) complain("cancelled: these are the results until then");
    return failed_ || cancelled ? 1 : 0;
  }

 private:
  // False: there is no more, or a signal has come. Reading ends then, maybe within a text.
  bool read_batch() {
    items_.clear();
    size_t bytes = 0;
    TextItem item;
    while (items_.size() < kBatchTexts && bytes < kBatchBytes && reader_.next(&item)) {
      bytes += item.text.size() + item.pair.size();
      items_.push_back(std::move(item));
    }
    return !items_.empty() && !InterruptScope::interrupted();
  }

  // A session for texts of this length: it grows with the longest.
  void prepare(size_t text_bytes) {
    if (session_ && text_bytes <= room_) return;
    interrupt_.watch(nullptr);
    session_.reset();
    constexpr size_t kMostSlack = 1 << 16;
    const size_t room = std::max<size_t>(text_bytes + std::min(text_bytes / 2, kMostSlack), 4096);
    mote_session_options options = session_options(model_, options_, room);
    options.text_bytes = static_cast<uint32_t>(std::min<size_t>(room, UINT32_MAX));
    session_ = std::make_unique<Session>(model_, options);
    interrupt_.watch(session_->get());
    room_ = room;
  }

  void compute_batch() {
    inputs_.clear();
    numbers_.clear();
    size_t longest = 0;
    for (const TextItem& item : items_) {
      numbers_.push_back(inputs_.size());
      if (!item.error.empty()) continue;
      longest = std::max(longest, item.text.size() + item.pair.size());
      mote_input input{};
      input.text = as_text(item.text);
      if (!item.pair.empty()) input.pair = as_text(item.pair);
      inputs_.push_back(input);
    }
    prepare(longest + task_.added_bytes());
    reports_.assign(inputs_.size(), {0, 0, 0, MOTE_ERROR_CANCELLED});
    if (InterruptScope::interrupted()) return;
    const mote_status status =
        task_.compute(session_->get(), inputs_.data(), inputs_.size(), reports_.data());
    if (status != MOTE_ERROR_CANCELLED) check(status);
    size_t tokens = 0, cancelled = 0;
    for (const mote_report& report : reports_) {
      cancelled += report.status == MOTE_ERROR_CANCELLED;
      if (report.status != MOTE_ERROR_CANCELLED) tokens += report.tokens;
    }
    throughput_.add(items_.size() - cancelled, tokens);
  }

  // Results first, as asking for a message computes anew; then all in order.
  void show_batch() {
    std::vector<std::string> results(items_.size());
    for (size_t i = 0; i < items_.size(); ++i)
      if (succeeded(i)) results[i] = result_of(i);
    for (size_t i = 0; i < items_.size(); ++i) {
      if (succeeded(i)) {
        print(results[i]);
      } else if (!items_[i].error.empty()) {
        show_error(items_[i], items_[i].error);
      } else if (reports_[numbers_[i]].status != MOTE_ERROR_CANCELLED) {
        show_error(items_[i], message_of(numbers_[i]));
      }
    }
  }
  bool succeeded(size_t i) const {
    return items_[i].error.empty() && reports_[numbers_[i]].status == MOTE_OK;
  }
  std::string result_of(size_t i) {
    const size_t input = numbers_[i];
    if (!json_) return task_.write_text(input, items_[i]);
    const mote_report& report = reports_[input];
    Json json = items_[i].fields;
    if (items_[i].pair_number) json["pair"] = items_[i].pair_number;
    task_.write_json(input, items_[i], &json);
    json["tokens"] = report.tokens;
    json["truncated"] = report.truncated != 0;
    if (report.windows > 1) json["windows"] = report.windows;
    return json_line(json);
  }

  // A report has no message: the input alone fails with one.
  std::string message_of(size_t input) {
    const mote_status status = task_.compute(session_->get(), &inputs_[input], 1, nullptr);
    const bool same = status == reports_[input].status;  // and not cancelled by now
    const std::string message = same ? mote_last_error() : "";
    return message.empty() ? mote_status_text(reports_[input].status) : message;
  }
  void show_error(const TextItem& item, const std::string& message) {
    ++failed_;
    Json json = item.fields;
    if (item.line && !json.contains("line")) json["line"] = item.line;
    json["error"] = message;
    if (json_)
      print_json(json);
    else if (many_)
      print("\n");  // its place
    complain(reader_.place(item) + message);
  }

  const Model& model_;
  const ModelOptions& options_;
  const bool json_, many_;
  TextTask& task_;
  TextReader reader_;
  Throughput throughput_;
  std::unique_ptr<Session> session_;
  InterruptScope interrupt_{nullptr};  // over all of it: what is printed are whole lines
  size_t room_ = 0, failed_ = 0;
  std::vector<TextItem> items_;
  std::vector<mote_input> inputs_;
  std::vector<size_t> numbers_;  // of the item among the inputs
  std::vector<mote_report> reports_;
};

}  // namespace

void TextSource::add_files(CLI::App& app) {
  app.add_option("--file", file, "a file with a text a line; - reads standard input");
  app.add_option("--jsonl", lines,
                 std::string("a file with {\"") + text_field +
                     (pair_field ? std::string("\", \"") + pair_field : "") +
                     "\"} a line; other fields pass through");
}

std::vector<CLI::Option*> TextSource::add_pairs(CLI::App& app) {
  CLI::Option* const pair_option = app.add_option(
      "--pair", pairs, "the second text of a pair; each text goes with each of several");
  pair_option->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return {pair_option, app.add_option("--pairs", pair_file,
                                      "a file with second texts, one a line, for one text")};
}

void TextSource::check() const {
  const size_t places = !words.empty() + !file.empty() + !lines.empty();
  if (places != 1) throw UsageError("give texts, --file or --jsonl, one of them");
  if (!lines.empty() && (!pairs.empty() || !pair_file.empty()))
    throw UsageError("--jsonl has the pairs in its lines");
  if (!pair_file.empty() && (words.size() != 1 || !pairs.empty()))
    throw UsageError("--pairs goes with one text and without --pair");
  if (std::count(words.begin(), words.end(), "-") + (pair_file == "-") > 1)
    throw UsageError("- may be given once: standard input is one text, or --pairs");
}

std::vector<CLI::Option*> Reading::add(CLI::App& app) {
  CLI::Option* const long_option = app.add_option(
      "--long", way,
      "texts longer than the model takes: truncate, windows (results are merged), error (default " +
          way + ")");
  CLI::Option* const stride_option =
      app.add_option("--stride", stride, "tokens that windows overlap (default 128, or less)");
  long_option->check(one_of({"truncate", "windows", "error"}));
  stride_option->check(within(1, 1 << 24));
  return {long_option, stride_option,
          app.add_flag("--literal", literal, "names of special tokens in texts stay text")};
}

void Reading::check() const {
  if (stride > 0 && way != "windows") throw UsageError("--stride goes with --long windows");
}

void Reading::apply(mote_text_options* options) const {
  options->too_long = way == "windows" ? MOTE_LONG_WINDOWS
                      : way == "error" ? MOTE_LONG_ERROR
                                       : MOTE_LONG_TRUNCATE;
  options->window_stride = stride;
  options->literal = literal;
}

int run_texts(const Model& model, const ModelOptions& options, const TextSource& source, bool json,
              TextTask& task) {
  return TextJob(model, options, source, json, task).run();
}

mote_text_options text_options() {
  mote_text_options options{};
  options.size = sizeof options;
  return options;
}

Json json_number(float value) {
  if (!std::isfinite(value)) return nullptr;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double shortest = value;
  std::from_chars(text, end, shortest);
  return shortest;
}

void add_span(const mote_span& span, Json* json) {
  (*json)["start"] = span.character_start;
  (*json)["end"] = span.character_end;
  (*json)["byte_start"] = span.byte_start;
  (*json)["byte_end"] = span.byte_end;
  (*json)["score"] = json_number(span.score);
}

std::string span_text(const mote_span& span, const std::string& text) {
  return text.substr(span.byte_start, span.byte_end - span.byte_start);
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return text;
}

std::string score_text(float score) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", static_cast<double>(score));
  return text;
}

}  // namespace mote::tool
