#include "tools/developer/labelled_texts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/utf8.h"
#include "tools/failure.h"
#include "tools/json_depth.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;
using Fields = std::vector<std::string>;

std::string_view trimmed(std::string_view text) {
  constexpr const char* kSpaces = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kSpaces);
  return first == text.npos ? std::string_view()
                            : text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
}

// The part of a message that shows something of the file.
std::string excerpt(std::string_view text) {
  constexpr size_t kShown = 40;
  if (text.size() <= kShown) return "'" + std::string(text) + "'";
  size_t end = kShown;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return "'" + std::string(text.substr(0, end)) + "...'";
}

class Parser {
 public:
  Parser(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {
    if (bytes_.substr(0, 3) == "\xef\xbb\xbf") bytes_.remove_prefix(3);
    refuse_utf16();
  }

  std::vector<LabelledText> parse(TextFormat format) {
    Fields fields;
    while (at_ < bytes_.size()) {
      record_line_ = line_;
      if (format == TextFormat::jsonl) {
        const std::string_view line = next_line();
        if (!trimmed(line).empty()) add_json(line);
        continue;
      }
      fields.clear();
      format == TextFormat::csv ? read_csv_record(&fields) : read_tsv_record(&fields);
      if (fields.size() == 1 && trimmed(fields[0]).empty()) continue;  // a blank line
      if (!seen_record_ && read_header(fields)) continue;
      add_record(fields, format);
    }
    if (texts_.empty()) throw Failure(name_ + ": there is no text with a label in it");
    return std::move(texts_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Failure(name_ + ": line " + std::to_string(record_line_) + ": " + what);
  }

  // Of every ASCII character UTF-16 and UTF-32 have a zero byte, which no text has.
  void refuse_utf16() {
    const std::string_view mark = bytes_.substr(0, 2);
    const size_t zero = bytes_.find('\0');
    if (zero == bytes_.npos && mark != "\xff\xfe" && mark != "\xfe\xff") return;
    const auto before = bytes_.begin() + ptrdiff_t(zero == bytes_.npos ? 0 : zero);
    record_line_ += size_t(std::count(bytes_.begin(), before, '\n'));
    fail("expected UTF-8, found bytes of another encoding, as UTF-16 has them");
  }

  // Without its end: LF or CR LF.
  std::string_view next_line() {
    const size_t end = std::min(bytes_.find('\n', at_), bytes_.size());
    std::string_view line = bytes_.substr(at_, end - at_);
    at_ = std::min(end + 1, bytes_.size());
    ++line_;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
  }

  void read_tsv_record(Fields* fields) {
    std::string_view line = next_line();
    for (size_t tab; (tab = line.find('\t')) != line.npos; line.remove_prefix(tab + 1))
      fields->emplace_back(line.substr(0, tab));
    fields->emplace_back(line);
  }

  void read_csv_record(Fields* fields) {
    while (true) {
      fields->push_back(at_ < bytes_.size() && bytes_[at_] == '"' ? quoted_field() : plain_field());
      if (at_ >= bytes_.size()) return;
      if (bytes_[at_] == ',') {
        ++at_;
        continue;
      }
      const std::string_view rest = next_line();  // only the line's end may be left
      if (!rest.empty()) fail("expected a comma behind a quoted field, found " + excerpt(rest));
      return;
    }
  }

  std::string plain_field() {
    size_t end = at_;
    while (end < bytes_.size() && bytes_[end] != ',' && bytes_[end] != '\n') ++end;
    std::string_view field = bytes_.substr(at_, end - at_);
    at_ = end;
    if (!field.empty() && field.back() == '\r') field.remove_suffix(1);
    return std::string(field);
  }

  std::string quoted_field() {
    std::string field;
    for (++at_; at_ < bytes_.size(); ++at_) {
      if (bytes_[at_] != '"') {
        line_ += bytes_[at_] == '\n';
        field += bytes_[at_];
      } else if (at_ + 1 < bytes_.size() && bytes_[at_ + 1] == '"') {
        field += bytes_[at_++];
      } else {
        ++at_;
        return field;
      }
    }
    fail("a quoted field that begins here does not end: " + excerpt(field));
  }

  // Whether it is one; it says then which columns are label and text.
  bool read_header(const Fields& fields) {
    seen_record_ = true;
    size_t label = fields.size(), text = fields.size();
    for (size_t i = 0; i < fields.size(); ++i) {
      std::string word(trimmed(fields[i]));
      for (char& c : word) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
      if (word == "label") label = i;
      if (word == "text") text = i;
    }
    if (label == fields.size() || text == fields.size()) return false;
    label_column_ = label, text_column_ = text, columns_ = fields.size();
    return true;
  }

  void add_record(const Fields& fields, TextFormat format) {
    if (fields.size() != columns_) {
      const char* separator = format == TextFormat::csv ? "commas" : "tabs";
      fail("expected " + std::to_string(columns_) + " fields (" +
           (columns_ == 2 ? "label and text, " : "") + "separated by " + separator + "), found " +
           std::to_string(fields.size()) + (fields.size() == 1 ? ": " + excerpt(fields[0]) : ""));
    }
    add(fields[label_column_], fields[text_column_]);
  }

  void add_json(std::string_view line) {
    if (nested_deeply(line)) fail("arrays and objects are nested too deeply");
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) fail("expected a JSON object, found " + excerpt(line));
    const auto text_of = [&](const char* key) {
      const auto found = object.find(key);
      if (found == object.end()) fail(std::string("\"") + key + "\" is missing");
      if (!found->is_string())
        fail(std::string("\"") + key + "\": expected a string, found " + found->type_name());
      return found->get<std::string>();
    };
    const std::string label = text_of("label");
    add(label, text_of("text"));
  }

  void add(std::string_view label, std::string_view text) {
    label = trimmed(label);
    if (label.empty()) fail("the label is missing, the text is " + excerpt(text));
    if (!valid_utf8(label)) fail("the label is not UTF-8");
    if (trimmed(text).empty()) fail("the text of label " + excerpt(label) + " is empty");
    texts_.push_back({std::string(label), std::string(text), record_line_});
  }

  static bool valid_utf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = read_utf8(text, at);
      if (!point.valid) return false;
      at += point.length;
    }
    return true;
  }

  std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 0, line_ = 1, record_line_ = 1;
  bool seen_record_ = false;
  size_t label_column_ = 0, text_column_ = 1, columns_ = 2;
  std::vector<LabelledText> texts_;
};

}  // namespace

TextFormat text_format(const std::string& path) {
  const auto ends_in = [&](std::string_view end) {
    return path.size() > end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
  };
  if (ends_in(".tsv")) return TextFormat::tsv;
  if (ends_in(".csv")) return TextFormat::csv;
  if (ends_in(".jsonl") || ends_in(".ndjson")) return TextFormat::jsonl;
  throw UsageError(path + ": expected a name that ends in .tsv, .csv or .jsonl; --format says " +
                   "what another is");
}

std::vector<LabelledText> parse_labelled_texts(std::string_view bytes, const std::string& name,
                                               TextFormat format) {
  return Parser(bytes, name).parse(format);
}

}  // namespace mote::tool
