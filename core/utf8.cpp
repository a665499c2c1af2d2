#include "core/utf8.h"

namespace mote {
namespace {

// What may follow a lead byte: how many bytes the character has, and the range of its second byte
// (Unicode standard, table 3-7). length 0: no character begins so.
struct Lead {
  uint32_t length;
  uint8_t low, high;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

// How many bytes at text[at] belong to the character that the lead byte promises.
uint32_t matching_bytes(std::string_view text, size_t at, const Lead& lead) {
  const size_t left = text.size() - at;
  uint32_t count = 1;
  for (; count < lead.length && count < left; ++count) {
    const uint8_t byte = static_cast<uint8_t>(text[at + count]);
    const bool second = count == 1;
    if (byte < (second ? lead.low : 0x80) || byte > (second ? lead.high : 0xbf)) break;
  }
  return count;
}

}  // namespace

CodePoint read_utf8(std::string_view text, size_t at) {
  const uint8_t first = static_cast<uint8_t>(text[at]);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {0xfffd, 1, false};
  const uint32_t count = matching_bytes(text, at, lead);
  if (count < lead.length) return {0xfffd, count, false};
  uint32_t value = first & (0x7fu >> lead.length);
  for (uint32_t i = 1; i < count; ++i)
    value = value << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3fu);
  return {value, count, true};
}

size_t write_utf8(uint32_t value, char* out) {
  if (value < 0x80) {
    out[0] = static_cast<char>(value);
    return 1;
  }
  const size_t length = value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; --i) {
    out[i] = static_cast<char>(0x80 | (value & 0x3f));
    value >>= 6;
  }
  const uint32_t mark = length == 2 ? 0xc0 : length == 3 ? 0xe0 : 0xf0;
  out[0] = static_cast<char>(mark | value);
  return length;
}

size_t incomplete_utf8_tail(std::string_view text) {
  const size_t most = text.size() < 3 ? text.size() : 3;
  for (size_t back = 1; back <= most; ++back) {
    const size_t at = text.size() - back;
    const Lead lead = lead_of(static_cast<uint8_t>(text[at]));
    if (lead.length > back && matching_bytes(text, at, lead) == back) return back;
    if (lead.length != 0) return 0;  // a whole or broken character begins here
  }
  return 0;
}

}  // namespace mote
