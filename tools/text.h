// Texts that commands read: files, standard input, lists of ids, JSON lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "tools/command_line.h"

namespace mote::tool {

// A file to read, or standard input as "-". Throws Failure. Where an InterruptScope lives, a signal
// ends it as its end does.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  std::istream& stream() { return stream_; }
  const std::string& name() const { return name_; }
  void check() const;  // that reading went well

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(const std::string& path);
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() override;
    int error() const { return error_; }  // errno, or 0

   protected:
    int_type underflow() override;

   private:
    int file_, error_ = 0;
    char bytes_[1 << 14];
  };

  std::string name_;
  Buffer buffer_;
  std::istream stream_;
};

// All bytes of a file; "-" is standard input. Throws Failure.
std::string read_file(const std::string& path);

// The lines of a file, one after the other. Throws Failure.
class LineReader {
 public:
  static constexpr size_t kMostBytes = size_t{4} << 20;  // of a line

  explicit LineReader(const std::string& path) : input_(path) {}
  // Without its "\n", and "\r" before it, and a byte order mark before the first. False: there is
  // no more. Of a line that is longer than kMostBytes nothing is given, and error() says so.
  bool next(std::string* line);
  const std::string& error() const { return error_; }  // of the last line; empty: none
  const std::string& name() const { return input_.name(); }
  size_t number() const { return number_; }  // of the last line, from 1

 private:
  InputFile input_;
  size_t number_ = 0;
  std::string error_;
};

// "1,2,3" or with spaces or brackets; "-" reads standard input. Throws UsageError, which begins
// with `what`.
std::vector<int32_t> parse_numbers(const std::string& text, const std::string& what);
std::vector<int32_t> parse_ids(const std::string& text);

// Throws Failure, which begins with the name and says where the fault is. An integer of more than
// 64 bits is one: it would come out as another.
Json parse_json(const std::string& text, const std::string& name);

// Calls handle(object) for each line that is not blank, numbered from 1. What it throws as Failure,
// and a line that is no JSON object, becomes one line {"error": ...} on stdout and one on stderr.
// Returns how many failed.
size_t for_each_json_line(const std::string& path,
                          const std::function<void(const Json& object)>& handle);

// Throws Failure where the output is one of the files that are read.
void refuse_own_input(const std::string& output, const std::vector<std::string>& inputs);

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
