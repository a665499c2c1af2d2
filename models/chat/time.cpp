// Dates: strftime and ISO 8601, in the proleptic Gregorian calendar, with English names.
#include "models/chat/text.h"

namespace mote::chat {
namespace {

struct Date {
  int64_t year;
  int month, day, hour, minute, second, weekday,
      day_of_year;  // month and day from 1, weekday from Sunday 0
};

bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

// Days since 1970-01-01. Years are counted from March, so that a leap day ends them.
int64_t days_of(int64_t year, int month, int day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719468;
}

Date date_of(int64_t seconds) {
  int64_t days = seconds / 86400, rest = seconds % 86400;
  if (rest < 0) rest += 86400, --days;
  Date date{};
  date.hour = static_cast<int>(rest / 3600);
  date.minute = static_cast<int>(rest / 60 % 60);
  date.second = static_cast<int>(rest % 60);
  date.weekday = static_cast<int>(((days + 4) % 7 + 7) % 7);
  const int64_t shifted = days + 719468;
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const int64_t day_of_era = shifted - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month = (5 * day_of_year + 2) / 153;
  date.day = static_cast<int>(day_of_year - (153 * month + 2) / 5 + 1);
  date.month = static_cast<int>(month < 10 ? month + 3 : month - 9);
  date.year = year_of_era + era * 400 + (date.month <= 2);
  date.day_of_year = static_cast<int>(days - days_of(date.year, 1, 1)) + 1;
  return date;
}

constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};
constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};

// pad: fills up to width digits; 0: none.
void append_padded(TextBuilder& out, int64_t value, int width, char pad) {
  for (int64_t limit = width == 3 ? 100 : 10; pad && limit > 1 && value < limit; limit /= 10)
    out.append(pad);
  out.append_integer(value);
}

// ISO 8601 week and its year: week 1 has the first Thursday.
void iso_week(const Date& date, int64_t* year, int* week) {
  const int monday_based = (date.weekday + 6) % 7;
  *year = date.year;
  *week = (date.day_of_year - 1 - monday_based + 10) / 7;
  const auto weeks_in = [](int64_t y) {
    const int64_t first = ((days_of(y, 1, 1) + 3) % 7 + 7) % 7;  // Monday 0
    return first == 3 || (first == 2 && is_leap(y)) ? 53 : 52;
  };
  if (*week < 1)
    *week = weeks_in(--*year);
  else if (*week > weeks_in(*year))
    *week = 1, ++*year;
}

Status append_directive(TextBuilder& out, const Date& date, char letter, char pad);

Status append_all(TextBuilder& out, const Date& date, const char* letters, char separator) {
  for (const char* letter = letters; *letter; ++letter) {
    if (letter != letters) out.append(separator);
    MOTE_TRY(append_directive(out, date, *letter, '0'));
  }
  return kOk;
}

Status append_directive(TextBuilder& out, const Date& date, char letter, char pad) {
  const int hour12 = date.hour % 12 == 0 ? 12 : date.hour % 12;
  int64_t iso_year = 0;
  int week = 0;
  iso_week(date, &iso_year, &week);
  switch (letter) {
    case 'Y':
      out.append_integer(date.year);
      break;
    case 'C':
      append_padded(out, date.year / 100, 2, pad);
      break;
    case 'y':
      append_padded(out, (date.year % 100 + 100) % 100, 2, pad);
      break;
    case 'm':
      append_padded(out, date.month, 2, pad);
      break;
    case 'd':
      append_padded(out, date.day, 2, pad);
      break;
    case 'e':
      append_padded(out, date.day, 2, pad == '0' ? ' ' : pad);
      break;
    case 'H':
      append_padded(out, date.hour, 2, pad);
      break;
    case 'k':
      append_padded(out, date.hour, 2, pad == '0' ? ' ' : pad);
      break;
    case 'I':
      append_padded(out, hour12, 2, pad);
      break;
    case 'l':
      append_padded(out, hour12, 2, pad == '0' ? ' ' : pad);
      break;
    case 'M':
      append_padded(out, date.minute, 2, pad);
      break;
    case 'S':
      append_padded(out, date.second, 2, pad);
      break;
    case 'f':
      out.append("000000");
      break;
    case 'j':
      append_padded(out, date.day_of_year, 3, pad);
      break;
    case 'w':
      out.append_integer(date.weekday);
      break;
    case 'u':
      out.append_integer(date.weekday == 0 ? 7 : date.weekday);
      break;
    case 'U':
      append_padded(out, (date.day_of_year + 6 - date.weekday) / 7, 2, pad);
      break;
    case 'W':
      append_padded(out, (date.day_of_year + 6 - (date.weekday + 6) % 7) / 7, 2, pad);
      break;
    case 'V':
      append_padded(out, week, 2, pad);
      break;
    case 'G':
      out.append_integer(iso_year);
      break;
    case 'B':
      out.append(kMonths[date.month - 1]);
      break;
    case 'b':
    case 'h':
      out.append(std::string_view(kMonths[date.month - 1], 3));
      break;
    case 'A':
      out.append(kDays[date.weekday]);
      break;
    case 'a':
      out.append(std::string_view(kDays[date.weekday], 3));
      break;
    case 'p':
      out.append(date.hour < 12 ? "AM" : "PM");
      break;
    case 'n':
      out.append('\n');
      break;
    case 't':
      out.append('\t');
      break;
    case '%':
      out.append('%');
      break;
    case 'z':
    case 'Z':
      break;  // a time without a zone
    case 'D':
    case 'x':
      return append_all(out, date, "mdy", '/');
    case 'F':
      return append_all(out, date, "Ymd", '-');
    case 'T':
    case 'X':
      return append_all(out, date, "HMS", ':');
    case 'R':
      return append_all(out, date, "HM", ':');
    case 'c':
      return append_all(out, date, "abeTY", ' ');
    case 'r':
      MOTE_TRY(append_all(out, date, "IMS", ':'));
      out.append(date.hour < 12 ? " AM" : " PM");
      break;
    default:
      return fail(MOTE_ERROR_TEMPLATE, "strftime: %%%c is not known", letter);
  }
  return kOk;
}

}  // namespace

Status format_time(Heap& heap, std::string_view format, int64_t seconds, Value* text) {
  constexpr int64_t kLatest = 253402300799;  // the end of the year 9999
  if (seconds < -62135596800 || seconds > kLatest)
    return fail(MOTE_ERROR_TEMPLATE, "strftime: the year is not in 1..9999");
  const Date date = date_of(seconds);
  TextBuilder out(heap);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.append(format[i]);
      continue;
    }
    char pad = '0', letter = format[++i];
    if ((letter == '-' || letter == '_' || letter == '0') && i + 1 < format.size()) {
      pad = letter == '-' ? '\0' : letter == '_' ? ' ' : '0';
      letter = format[++i];
    }
    MOTE_TRY(append_directive(out, date, letter, pad));
  }
  return out.finish(text);
}

bool parse_time(std::string_view text, int64_t* seconds) {
  // Digits stand where the pattern has a 0; a T may be a space.
  static constexpr char kPattern[] = "0000-00-00T00:00:00";
  int parts[6] = {1970, 1, 1, 0, 0, 0}, part = 0;
  size_t i = 0;
  if (text.size() < 10) return false;
  for (; i < text.size() && kPattern[i]; ++i) {
    const char expected = kPattern[i], c = text[i];
    if (expected == '0') {
      if (c < '0' || c > '9') return false;
      if (i == 0 || kPattern[i - 1] != '0') parts[part] = 0;
      parts[part] = parts[part] * 10 + (c - '0');
      if (kPattern[i + 1] != '0') ++part;
    } else if (c != expected && !(expected == 'T' && c == ' ')) {
      return false;
    }
  }
  if (i != 10 && i != 16 && i != 19) return false;
  const bool leap = is_leap(parts[0]);
  const int days = parts[1] == 2 ? (leap ? 29 : 28)
                   : parts[1] == 4 || parts[1] == 6 || parts[1] == 9 || parts[1] == 11 ? 30
                                                                                       : 31;
  if (parts[0] < 1 || parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[2] > days)
    return false;
  if (parts[3] > 23 || parts[4] > 59 || parts[5] > 59) return false;
  *seconds =
      days_of(parts[0], parts[1], parts[2]) * 86400 + parts[3] * 3600 + parts[4] * 60 + parts[5];
  return true;
}

}  // namespace mote::chat
