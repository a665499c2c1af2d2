// A text as byte-level BPE sees it: its bytes, each written as one printable character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/utf8.h"

namespace mote {

// Bytes that are printable characters of Latin-1 stand for themselves, the others for U+0100 and
// on, in ascending order: the table of GPT-2.
constexpr bool is_printable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct ByteTable {
  uint16_t character[256];  // of each byte
  uint8_t byte[68];         // of U+0100 and on
};
constexpr ByteTable make_byte_table() {
  ByteTable table{};
  uint32_t others = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (is_printable(byte)) {
      table.character[byte] = static_cast<uint16_t>(byte);
    } else {
      table.byte[others] = static_cast<uint8_t>(byte);
      table.character[byte] = static_cast<uint16_t>(256 + others++);
    }
  }
  return table;
}
inline constexpr ByteTable kBytes = make_byte_table();

// -1: no byte is written so.
inline int32_t byte_of(uint32_t character) {
  if (character < 256) return is_printable(character) ? static_cast<int32_t>(character) : -1;
  return character < 256 + sizeof(kBytes.byte) ? kBytes.byte[character - 256] : -1;
}

// The bytes of a text in which each bad sequence is the bytes of U+FFFD.
class ByteReader {
 public:
  explicit ByteReader(std::string_view text) : text_(text) {}
  // start: the byte of the text that this one comes from.
  bool next(uint8_t* byte, size_t* start) {
    if (left_ == 0 && !open_character()) return false;
    --left_;

    *byte = static_cast<uint8_t>(valid_ ? text_[at_] : kReplacement[2 - left_]);
    *start = at_;
    // The replacement's bytes share those of the bad sequence; the last takes the rest.
    if (left_ == 0)
      at_ = end_;
    else if (at_ + 1 < end_)
      ++at_;
    return true;
  }

  // Of the last byte's character.
  bool done() const { return left_ == 0 && at_ >= text_.size(); }
  size_t character() const { return opened_ - 1; }  // how many before it
  size_t character_start() const { return begin_; }
  size_t character_end() const { return end_; }

 private:
  static constexpr char kReplacement[] = "\xef\xbf\xbd";
  bool open_character() {
    if (at_ >= text_.size()) return false;
    begin_ = at_;
    ++opened_;
    if (static_cast<uint8_t>(text_[at_]) < 0x80) {
      valid_ = true;
      left_ = 1;
      end_ = at_ + 1;
      return true;
    }
    const CodePoint point = read_utf8(text_, at_);
    valid_ = point.valid;
    left_ = point.valid ? point.length : 3;
    end_ = at_ + point.length;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0, begin_ = 0, end_ = 0, opened_ = 0;
  uint32_t left_ = 0;  // bytes of this character
  bool valid_ = true;
};

// The UTF-8 of the character that a byte is written as: one or two bytes.
inline size_t write_byte(uint8_t byte, char* out) {
  return write_utf8(kBytes.character[byte], out);
}

}  // namespace mote
