#include "tools/text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "tools/interrupt.h"
#include "tools/json_depth.h"

namespace mote::tool {
namespace {

// Length of the sequence at text[at]: of a character, or of a maximal beginning of one that is cut
// or broken (WHATWG).
size_t sequence_length(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0xc2 || lead > 0xf4) return 1;
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  uint8_t least = 0x80,
          most = 0xbf;  // of the second byte: no overlong forms, surrogates or beyond U+10FFFF
  if (lead == 0xe0) least = 0xa0;
  if (lead == 0xed) most = 0x9f;
  if (lead == 0xf0) least = 0x90;
  if (lead == 0xf4) most = 0x8f;
  size_t read = 1;
  while (read < length && at + read < text.size() && byte(at + read) >= least &&
         byte(at + read) <= most) {
    ++read;
    least = 0x80, most = 0xbf;
  }
  return read;
}

}  // namespace

InputFile::Buffer::Buffer(const std::string& path)
    : file_(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) throw Failure(path + ": cannot open: " + std::strerror(errno));
}

InputFile::Buffer::~Buffer() {
  if (file_ != STDIN_FILENO) close(file_);
}

InputFile::Buffer::int_type InputFile::Buffer::underflow() {
  ssize_t count = 0;
  do {
    if (!InterruptScope::wait_to_read(file_)) return traits_type::eof();
    count = read(file_, bytes_, sizeof bytes_);
  } while (count < 0 && (errno == EINTR || errno == EAGAIN));
  if (count < 0) error_ = errno;
  if (count <= 0) return traits_type::eof();
  setg(bytes_, bytes_, bytes_ + count);
  return traits_type::to_int_type(bytes_[0]);
}

InputFile::InputFile(const std::string& path)
    : name_(path == "-" ? "standard input" : path), buffer_(path), stream_(&buffer_) {}

void InputFile::check() const {
  if (buffer_.error()) throw Failure(name_ + ": cannot read: " + std::strerror(buffer_.error()));
}

std::string read_file(const std::string& path) {
  InputFile input(path);
  std::ostringstream text;
  if (input.stream().peek() != std::char_traits<char>::eof()) text << input.stream().rdbuf();
  input.check();
  return text.str();
}

std::vector<int32_t> parse_numbers(const std::string& text, const std::string& what) {
  std::string list = text == "-" ? read_file("-") : text;
  for (char& c : list)
    if (std::strchr(",;[] \t\r\n", c)) c = ' ';
  std::vector<int32_t> ids;
  const char* at = list.data();
  const char* const end = at + list.size();
  while ((at = std::find_if(at, end, [](char c) { return c != ' '; })) != end) {
    int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next != end && *next != ' ') || id < 0)
      throw UsageError(what + ", found \"" + std::string(at, std::find(at, end, ' ')) + "\"");
    ids.push_back(id);
    at = next;
  }
  return ids;
}

bool LineReader::next(std::string* line) {
  std::istream& stream = input_.stream();
  char part[4096];
  size_t bytes = 0;
  bool ended = false;
  line->clear();
  while (!ended && stream.getline(part, sizeof part).gcount() > 0) {
    // The end of a line is counted but not kept; without it the part is full, or the file ends.
    ended = !stream.fail() && !stream.eof();
    if (!stream.eof()) stream.clear(stream.rdstate() & ~std::ios::failbit);
    const size_t length = static_cast<size_t>(stream.gcount()) - ended;
    bytes += length;
    if (bytes <= kMostBytes) line->append(part, length);
  }
  input_.check();
  if (!ended && bytes == 0) return false;
  ++number_;
  error_.clear();
  if (bytes > kMostBytes) {
    *line = std::string();
    error_ = "expected a line of at most " + std::to_string(kMostBytes) + " bytes, found " +
             std::to_string(bytes);
  }
  if (!line->empty() && line->back() == '\r') line->pop_back();
  if (number_ == 1 && line->compare(0, 3, "\xef\xbb\xbf") == 0) line->erase(0, 3);
  return true;
}

std::vector<int32_t> parse_ids(const std::string& text) {
  return parse_numbers(text, "--ids: expected token ids");
}

Json parse_json(const std::string& text, const std::string& name) {
  if (nested_deeply(text)) throw Failure(name + ": arrays and objects are nested too deeply");
  if (const std::string_view number = long_integer(text); !number.empty())
    throw Failure(name + ": expected integers of at most 64 bits, found " + std::string(number));
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    // Of "[json.exception.parse_error.101] parse error at ..." the last part.
    const std::string what = error.what();
    const size_t end = what.find("] ");
    throw Failure(name + ": is not JSON: " + (end == what.npos ? what : what.substr(end + 2)));
  }
}

size_t for_each_json_line(const std::string& path, const std::function<void(const Json&)>& handle) {
  LineReader input(path);
  std::string line;
  size_t failed = 0;
  while (input.next(&line)) {
    if (input.error().empty() && line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      if (!input.error().empty()) throw Failure(input.error());
      const Json object = parse_json(line, "line");
      if (!object.is_object()) throw Failure("expected a JSON object");
      handle(object);
    } catch (const Failure& failure) {
      ++failed;
      print_json({{"error", failure.what()}});
      complain(input.name() + ": line " + std::to_string(input.number()) + ": " + failure.what());
    }
  }
  return failed;
}

void refuse_own_input(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  for (const std::string& input : inputs)
    if (!input.empty() && std::filesystem::equivalent(input, output, ignored))
      throw Failure(output + ": is an input too, and would be lost");
}

std::string decode_base64(const std::string& text) {
  static const std::string kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0, held = 0;
  const size_t end = text.find_last_not_of('=') + 1;  // npos + 1 is 0
  for (size_t i = 0; i < end; ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string::npos) throw Failure("bytes_b64: is not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held >= 8) bytes.push_back(static_cast<char>(bits >> (held -= 8)));
  }
  if (end % 4 == 1 || text.size() - end > 2) throw Failure("bytes_b64: is not base64");
  return bytes;
}

CodePoints::CodePoints(const std::string& text) {
  for (size_t at = 0; at < text.size(); at += sequence_length(text, at))
    starts_.push_back(static_cast<uint32_t>(at));
}

std::pair<size_t, size_t> CodePoints::range(size_t first, size_t last) const {
  const auto before = [&](size_t byte) {  // code points that begin before it
    return static_cast<size_t>(std::lower_bound(starts_.begin(), starts_.end(), byte) -
                               starts_.begin());
  };
  if (first >= last) return {before(first), before(first)};
  const size_t start = before(first + 1) - 1;
  return {start, std::max(before(last), start + 1)};
}

}  // namespace mote::tool
