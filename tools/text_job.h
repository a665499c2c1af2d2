// Commands that understand texts: from words, a file or JSON lines, in batches of bounded memory,
// to results in the order of the inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/session.h"
#include "tools/text.h"

namespace mote::tool {

struct TextItem {
  std::string text, pair;
  Json fields = Json::object();  // of its JSON line, but for the texts: they pass through
  size_t line = 0;               // of the file; 0: a word of the command line
  size_t pair_number = 0;        // where one text goes with many others
  std::string error;             // it could not be read
};

// Where texts come from.
struct TextSource {
  std::vector<std::string> words;
  std::string file, lines;         // --file, --jsonl
  std::vector<std::string> pairs;  // --pair: each text goes with each of them
  std::string pair_file;           // --pairs: one a line
  const char* text_field = "text";
  const char* pair_field = "pair";  // null: the command takes no pairs

  void add_files(CLI::App& app);
  std::vector<CLI::Option*> add_pairs(CLI::App& app);
  // Throws UsageError unless there are texts, from one place.
  void check() const;
  bool is_stream() const { return !file.empty() || !lines.empty() || !pair_file.empty(); }
};

// What is done with a batch.
class TextTask {
 public:
  virtual ~TextTask() = default;
  // Most bytes that compute() adds to a text.
  virtual size_t added_bytes() const { return 0; }
  // Calls the library; reports [count] or null.
  virtual mote_status compute(mote_session* session, const mote_input* inputs, size_t count,
                              mote_report* reports) = 0;
  // Results of input i of the last compute(): fields of its JSON, or its text.
  virtual void write_json(size_t i, const TextItem& item, Json* json) = 0;
  virtual std::string write_text(size_t i, const TextItem& item) = 0;
};

// How texts are read, and long ones treated.
struct Reading {
  std::string way = "truncate";
  uint32_t stride = 0;
  bool literal = false;  // names of special tokens stay text

  std::vector<CLI::Option*> add(CLI::App& app);
  void check() const;  // that options go together
  void apply(mote_text_options* options) const;
};

// Runs the task over all texts; returns the exit status. JSON lines give JSON always.
int run_texts(const Model& model, const ModelOptions& options, const TextSource& source, bool json,
              TextTask& task);

mote_text_options text_options();
// A float's shortest decimal, as JSON.
Json json_number(float value);
// {"start", "end", "byte_start", "byte_end", "score"} behind what is in `json`.
void add_span(const mote_span& span, Json* json);
std::string span_text(const mote_span& span, const std::string& text);
// With spaces for what would begin another line or column.
std::string one_line(std::string text);
// "0.9817".
std::string score_text(float score);

}  // namespace mote::tool
