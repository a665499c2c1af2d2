#include "models/tokenizers/characters.h"

#include <utf8proc.h>

namespace mote {
namespace {

utf8proc_category_t category(uint32_t value) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

// Hangul syllables are composed by arithmetic (Unicode, 3.12).
constexpr uint32_t kSyllables = 0xac00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11a7;
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr uint32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

}  // namespace

bool is_white_space(uint32_t value) {
  return (value >= 0x09 && value <= 0x0d) || value == 0x20 || value == 0x85 || value == 0xa0 ||
         value == 0x1680 || (value >= 0x2000 && value <= 0x200a) || value == 0x2028 ||
         value == 0x2029 || value == 0x202f || value == 0x205f || value == 0x3000;
}

bool is_bert_punctuation(uint32_t value) {
  if (value < 0x80)
    return (value >= 0x21 && value <= 0x2f) || (value >= 0x3a && value <= 0x40) ||
           (value >= 0x5b && value <= 0x60) || (value >= 0x7b && value <= 0x7e);
  const utf8proc_category_t found = category(value);
  return found >= UTF8PROC_CATEGORY_PC && found <= UTF8PROC_CATEGORY_PO;
}

bool is_control_or_private(uint32_t value) {
  const utf8proc_category_t found = category(value);
  return found == UTF8PROC_CATEGORY_CC || found == UTF8PROC_CATEGORY_CF ||
         found == UTF8PROC_CATEGORY_CO;
}

bool is_nonspacing_mark(uint32_t value) { return category(value) == UTF8PROC_CATEGORY_MN; }

bool is_mark(uint32_t value) {
  const utf8proc_category_t found = category(value);
  return found >= UTF8PROC_CATEGORY_MN && found <= UTF8PROC_CATEGORY_ME;
}

bool is_word_character(uint32_t value) {
  const utf8proc_category_t found = category(value);
  return (found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_ND) ||
         found == UTF8PROC_CATEGORY_NL || found == UTF8PROC_CATEGORY_PC || value == 0x200c ||
         value == 0x200d || (value >= 0x24b6 && value <= 0x24e9);
}

bool is_bert_ideograph(uint32_t value) {
  return (value >= 0x4e00 && value <= 0x9fff) || (value >= 0x3400 && value <= 0x4dbf) ||
         (value >= 0x20000 && value <= 0x2a6df) || (value >= 0x2a700 && value <= 0x2b81f) ||
         (value >= 0x2b920 && value <= 0x2ceaf) || (value >= 0xf900 && value <= 0xfaff) ||
         (value >= 0x2f800 && value <= 0x2fa1f);
}

uint8_t combining_class(uint32_t value) {
  return static_cast<uint8_t>(
      utf8proc_get_property(static_cast<utf8proc_int32_t>(value))->combining_class);
}

size_t to_lower(uint32_t value, uint32_t* out) {
  if (value == 0x130) {  // the one character whose lower case is two
    out[0] = 'i';
    out[1] = 0x307;
    return 2;
  }
  out[0] = static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value)));
  return 1;
}

size_t decompose(uint32_t value, bool compatibility, uint32_t* out) {
  out[0] = value;
  if (value < 0xa0) return 1;
  if (value - kSyllables < kSyllableCount) {
    const uint32_t index = value - kSyllables, tail = index % kTailCount;
    out[0] = kLeads + index / (kVowelCount * kTailCount);
    out[1] = kVowels + index % (kVowelCount * kTailCount) / kTailCount;
    out[2] = kTails + tail;
    return tail ? 3 : 2;
  }
  const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(value));
  if (property->decomp_seqindex == UINT16_MAX || (property->decomp_type && !compatibility))
    return 1;
  utf8proc_int32_t parts[kMaxDecomposed];
  int boundary = UTF8PROC_BOUNDCLASS_START;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(value),
                                                         parts, kMaxDecomposed, options, &boundary);
  if (count < 1 || count > static_cast<utf8proc_ssize_t>(kMaxDecomposed)) return 1;
  for (utf8proc_ssize_t i = 0; i < count; ++i) out[i] = static_cast<uint32_t>(parts[i]);
  return static_cast<size_t>(count);
}

uint32_t compose(uint32_t first, uint32_t second) {
  if (second < 0x300) return 0;  // nothing below composes with what stands before it
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + second - kVowels) * kTailCount;
  if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTailCount == 0 &&
      second > kTails && second < kTails + kTailCount)
    return first + second - kTails;
  utf8proc_int32_t pair[2] = {static_cast<utf8proc_int32_t>(first),
                              static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  return utf8proc_normalize_utf32(pair, 2, options) == 1 ? static_cast<uint32_t>(pair[0]) : 0;
}

}  // namespace mote
