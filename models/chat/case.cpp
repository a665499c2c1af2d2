// Upper, lower and title case with full mappings (Unicode's SpecialCasing), and the classes of
// str.is...().
#include "core/utf8.h"
#include "models/chat/text.h"
#include "utf8proc.h"

namespace mote::chat {
namespace {

// Code points whose upper case is more than one.
struct LongUpper {
  uint16_t from, to[3];
};
constexpr LongUpper kLongUpper[] = {
    {0x00DF, {0x0053, 0x0053}},         {0x0149, {0x02BC, 0x004E}},
    {0x01F0, {0x004A, 0x030C}},         {0x0390, {0x0399, 0x0308, 0x0301}},
    {0x03B0, {0x03A5, 0x0308, 0x0301}}, {0x0587, {0x0535, 0x0552}},
    {0x1E96, {0x0048, 0x0331}},         {0x1E97, {0x0054, 0x0308}},
    {0x1E98, {0x0057, 0x030A}},         {0x1E99, {0x0059, 0x030A}},
    {0x1E9A, {0x0041, 0x02BE}},         {0x1F50, {0x03A5, 0x0313}},
    {0x1F52, {0x03A5, 0x0313, 0x0300}}, {0x1F54, {0x03A5, 0x0313, 0x0301}},
    {0x1F56, {0x03A5, 0x0313, 0x0342}}, {0x1F80, {0x1F08, 0x0399}},
    {0x1F81, {0x1F09, 0x0399}},         {0x1F82, {0x1F0A, 0x0399}},
    {0x1F83, {0x1F0B, 0x0399}},         {0x1F84, {0x1F0C, 0x0399}},
    {0x1F85, {0x1F0D, 0x0399}},         {0x1F86, {0x1F0E, 0x0399}},
    {0x1F87, {0x1F0F, 0x0399}},         {0x1F88, {0x1F08, 0x0399}},
    {0x1F89, {0x1F09, 0x0399}},         {0x1F8A, {0x1F0A, 0x0399}},
    {0x1F8B, {0x1F0B, 0x0399}},         {0x1F8C, {0x1F0C, 0x0399}},
    {0x1F8D, {0x1F0D, 0x0399}},         {0x1F8E, {0x1F0E, 0x0399}},
    {0x1F8F, {0x1F0F, 0x0399}},         {0x1F90, {0x1F28, 0x0399}},
    {0x1F91, {0x1F29, 0x0399}},         {0x1F92, {0x1F2A, 0x0399}},
    {0x1F93, {0x1F2B, 0x0399}},         {0x1F94, {0x1F2C, 0x0399}},
    {0x1F95, {0x1F2D, 0x0399}},         {0x1F96, {0x1F2E, 0x0399}},
    {0x1F97, {0x1F2F, 0x0399}},         {0x1F98, {0x1F28, 0x0399}},
    {0x1F99, {0x1F29, 0x0399}},         {0x1F9A, {0x1F2A, 0x0399}},
    {0x1F9B, {0x1F2B, 0x0399}},         {0x1F9C, {0x1F2C, 0x0399}},
    {0x1F9D, {0x1F2D, 0x0399}},         {0x1F9E, {0x1F2E, 0x0399}},
    {0x1F9F, {0x1F2F, 0x0399}},         {0x1FA0, {0x1F68, 0x0399}},
    {0x1FA1, {0x1F69, 0x0399}},         {0x1FA2, {0x1F6A, 0x0399}},
    {0x1FA3, {0x1F6B, 0x0399}},         {0x1FA4, {0x1F6C, 0x0399}},
    {0x1FA5, {0x1F6D, 0x0399}},         {0x1FA6, {0x1F6E, 0x0399}},
    {0x1FA7, {0x1F6F, 0x0399}},         {0x1FA8, {0x1F68, 0x0399}},
    {0x1FA9, {0x1F69, 0x0399}},         {0x1FAA, {0x1F6A, 0x0399}},
    {0x1FAB, {0x1F6B, 0x0399}},         {0x1FAC, {0x1F6C, 0x0399}},
    {0x1FAD, {0x1F6D, 0x0399}},         {0x1FAE, {0x1F6E, 0x0399}},
    {0x1FAF, {0x1F6F, 0x0399}},         {0x1FB2, {0x1FBA, 0x0399}},
    {0x1FB3, {0x0391, 0x0399}},         {0x1FB4, {0x0386, 0x0399}},
    {0x1FB6, {0x0391, 0x0342}},         {0x1FB7, {0x0391, 0x0342, 0x0399}},
    {0x1FBC, {0x0391, 0x0399}},         {0x1FC2, {0x1FCA, 0x0399}},
    {0x1FC3, {0x0397, 0x0399}},         {0x1FC4, {0x0389, 0x0399}},
    {0x1FC6, {0x0397, 0x0342}},         {0x1FC7, {0x0397, 0x0342, 0x0399}},
    {0x1FCC, {0x0397, 0x0399}},         {0x1FD2, {0x0399, 0x0308, 0x0300}},
    {0x1FD3, {0x0399, 0x0308, 0x0301}}, {0x1FD6, {0x0399, 0x0342}},
    {0x1FD7, {0x0399, 0x0308, 0x0342}}, {0x1FE2, {0x03A5, 0x0308, 0x0300}},
    {0x1FE3, {0x03A5, 0x0308, 0x0301}}, {0x1FE4, {0x03A1, 0x0313}},
    {0x1FE6, {0x03A5, 0x0342}},         {0x1FE7, {0x03A5, 0x0308, 0x0342}},
    {0x1FF2, {0x1FFA, 0x0399}},         {0x1FF3, {0x03A9, 0x0399}},
    {0x1FF4, {0x038F, 0x0399}},         {0x1FF6, {0x03A9, 0x0342}},
    {0x1FF7, {0x03A9, 0x0342, 0x0399}}, {0x1FFC, {0x03A9, 0x0399}},
    {0xFB00, {0x0046, 0x0046}},         {0xFB01, {0x0046, 0x0049}},
    {0xFB02, {0x0046, 0x004C}},         {0xFB03, {0x0046, 0x0046, 0x0049}},
    {0xFB04, {0x0046, 0x0046, 0x004C}}, {0xFB05, {0x0053, 0x0054}},
    {0xFB06, {0x0053, 0x0054}},         {0xFB13, {0x0544, 0x0546}},
    {0xFB14, {0x0544, 0x0535}},         {0xFB15, {0x0544, 0x053B}},
    {0xFB16, {0x054E, 0x0546}},         {0xFB17, {0x0544, 0x053D}},
};

const LongUpper* find_long_upper(uint32_t c) {
  if (c < 0xDF || c > 0xFFFF) return nullptr;
  size_t low = 0, high = sizeof kLongUpper / sizeof kLongUpper[0];
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (kLongUpper[middle].from < c)
      low = middle + 1;
    else
      high = middle;
  }
  const bool found = low < sizeof kLongUpper / sizeof kLongUpper[0] && kLongUpper[low].from == c;
  return found ? &kLongUpper[low] : nullptr;
}

uint32_t simple_lower(uint32_t c) {
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
uint32_t simple_upper(uint32_t c) {
  return static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
uint32_t simple_title(uint32_t c) {
  return static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

void append_upper(TextBuilder& out, uint32_t c) {
  const LongUpper* found = find_long_upper(c);
  if (!found) return out.append_code_point(simple_upper(c));
  for (const uint16_t part : found->to)
    if (part) out.append_code_point(part);
}

void append_title(TextBuilder& out, uint32_t c) {
  const LongUpper* found = find_long_upper(c);
  const uint32_t simple = simple_title(c);
  constexpr uint32_t kIota = 0x399, kIotaBelow = 0x345;
  if (!found || (simple != c && simple != found->to[0])) return out.append_code_point(simple);
  if (c == 0x149) return append_upper(out, c);
  if (found->to[2] == kIota) {  // alpha, eta, omega with perispomeni and iota below
    out.append_code_point(c + 5);
    return out.append_code_point(found->to[1]);
  }
  out.append_code_point(found->to[0]);
  for (size_t i = 1; i < 3 && found->to[i]; ++i)
    out.append_code_point(found->to[i] == kIota && c > 0x1F00 ? kIotaBelow
                                                              : simple_lower(found->to[i]));
}

utf8proc_category_t category(uint32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_letter(uint32_t c) {
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}
bool is_upper(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || utf8proc_isupper(static_cast<utf8proc_int32_t>(c));
}
bool is_lower(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || utf8proc_islower(static_cast<utf8proc_int32_t>(c));
}
bool is_cased(uint32_t c) {
  return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

// Passed over when looking for a letter beside a final sigma.
bool is_case_ignorable(uint32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2018 || c == 0x2019 ||
             c == 0x2024 || c == 0x2027;
  }
}

// Whether the sigma at `at` ends a word: a letter before it and none behind.
bool is_final_sigma(std::string_view text, size_t at) {
  bool before = false;
  for (size_t i = 0; i < at; i += read_utf8(text, i).length) {
    const uint32_t c = read_utf8(text, i).value;
    if (!is_case_ignorable(c)) before = is_cased(c);
  }
  if (!before) return false;
  for (size_t i = at + 2; i < text.size(); i += read_utf8(text, i).length) {
    const uint32_t c = read_utf8(text, i).value;
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

void append_lower(TextBuilder& out, std::string_view text, size_t at, uint32_t c) {
  const Lowered lowered = lower_case(text, at, c);
  out.append_code_point(lowered.first);
  if (lowered.second) out.append_code_point(lowered.second);
}

}  // namespace

Lowered lower_case(std::string_view text, size_t at, uint32_t c) {
  constexpr uint32_t kSigma = 0x3A3, kFinalSigma = 0x3C2, kDottedI = 0x130;
  constexpr size_t kLongest =
      4096;  // the search for the ends of a word takes time with the square of this
  if (c == kSigma && text.size() <= kLongest && is_final_sigma(text, at)) return {kFinalSigma, 0};
  if (c == kDottedI) return {'i', 0x307};
  return {simple_lower(c), 0};
}

Status change_case(Heap& heap, std::string_view text, Case to, Value* result) {
  TextBuilder out(heap);
  bool after_letter = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_utf8(text, at);
    const uint32_t c = point.value;
    switch (to) {
      case Case::upper:
        append_upper(out, c);
        break;
      case Case::lower:
        append_lower(out, text, at, c);
        break;
      case Case::swapped:
        if (is_upper(c))
          append_lower(out, text, at, c);
        else if (is_lower(c))
          append_upper(out, c);
        else
          out.append_code_point(c);
        break;
      case Case::title:
      case Case::capital:
        if (after_letter)
          append_lower(out, text, at, c);
        else
          append_title(out, c);
        after_letter = to == Case::capital || is_cased(c);
        break;
    }
    at += point.length;
  }
  return out.finish(result);
}

bool is_class(std::string_view text, Class what) {
  bool cased = false, after_letter = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_utf8(text, at);
    const uint32_t c = point.value;
    const utf8proc_category_t kind = category(c);
    const bool number = kind == UTF8PROC_CATEGORY_ND;
    const bool upper = is_upper(c) || kind == UTF8PROC_CATEGORY_LT, lower = is_lower(c);
    bool fits = true;
    switch (what) {
      case Class::space:
        fits = is_space(c);
        break;
      case Class::digit:
        fits = number || c == 0xB2 || c == 0xB3 || c == 0xB9 ||
               (c >= 0x2070 && c <= 0x2089 && kind == UTF8PROC_CATEGORY_NO);
        break;
      case Class::alpha:
        fits = is_letter(c);
        break;
      case Class::alphanumeric:
        fits =
            is_letter(c) || number || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
        break;
      case Class::upper:
        fits = !lower && kind != UTF8PROC_CATEGORY_LT;
        break;
      case Class::lower:
        fits = !upper;
        break;
      case Class::title:
        fits = after_letter ? !upper : !lower;
        break;
      case Class::identifier:
        fits = is_letter(c) || c == '_' ||
               (at > 0 && (number || kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
                           kind == UTF8PROC_CATEGORY_PC));
        break;
      case Class::ascii:
        fits = c < 0x80 && point.valid;
        break;
    }
    if (!fits) return false;
    after_letter = upper || lower;
    cased |= after_letter;
    at += point.length;
  }
  if (what == Class::ascii) return true;
  const bool needs_cased = what == Class::upper || what == Class::lower || what == Class::title;
  return needs_cased ? cased : !text.empty();
}

}  // namespace mote::chat
