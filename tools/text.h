// Texts that commands read: files, standard input, lists of ids, JSON lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/command_line.h"

namespace mote::tool {

// All bytes of a file; "-" is standard input. Throws Failure.
std::string read_file(const std::string& path);

// "1,2,3" or with spaces or brackets; "-" reads standard input. Throws UsageError.
std::vector<int32_t> parse_ids(const std::string& text);

// Calls handle(object) for each line that is not blank, numbered from 1. What it throws as Failure,
// and a line that is no JSON object, becomes one line {"error": ...} on stdout and one on stderr.
// Returns how many failed.
size_t for_each_json_line(const std::string& path,
                          const std::function<void(const Json& object)>& handle);

// Bytes of base64 (RFC 4648, padding optional). Throws Failure.
std::string decode_base64(const std::string& text);

// A text's code points, for offsets: a bad sequence is one, as the library reads it.
class CodePoints {
 public:
  explicit CodePoints(const std::string& text);
  // Code points that bytes [first, last) touch, half open.
  std::pair<size_t, size_t> range(size_t first, size_t last) const;

 private:
  std::vector<uint32_t> starts_;  // byte where each begins
};

}  // namespace mote::tool
