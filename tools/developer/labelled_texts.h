// Texts with labels: what a classifier is trained and measured on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mote::tool {

struct LabelledText {
  std::string label, text;
  size_t line = 0;  // of the file, from 1, where it begins
};

enum class TextFormat : uint8_t { tsv, csv, jsonl };

// By how the file's name ends: .tsv, .csv, .jsonl or .ndjson. Throws UsageError for another.
TextFormat text_format(const std::string& path);

// What a file holds, in its order. Throws Failure that names `name`, the line, what was expected
// and what was found: a field that is missing or empty (a text of spaces too), a label that is no
// UTF-8.
//
// tsv: a line is label, tab, text; nothing is quoted. csv: RFC 4180, so fields may be in quotes and
// then hold commas, quotes (doubled) and line ends. In both a first line that has the fields
// `label` and `text` (in any case and order, among others) is a header and says which columns
// count; without it there must be two columns, label first. jsonl: an object a line with the
// strings `label` and `text`; others are left aside. All: blank lines and a byte order mark are
// skipped, lines may end in CR LF. Spaces around a label do not belong to it.
std::vector<LabelledText> parse_labelled_texts(std::string_view bytes, const std::string& name,
                                               TextFormat format);

}  // namespace mote::tool
