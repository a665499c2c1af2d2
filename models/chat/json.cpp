// Reads and writes JSON.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/slice.h"
#include "core/utf8.h"
#include "models/chat/text.h"

namespace mote::chat {
namespace {

class JsonReader {
 public:
  JsonReader(Heap& heap, std::string_view json) : heap_(heap), json_(json) {}

  Status read(Value* value) {
    MOTE_TRY(read_value(value, 0));
    skip_spaces();
    return at_ == json_.size() ? kOk : error("the end");
  }

 private:
  Status error(const char* expected) const {
    if (at_ >= json_.size())
      return fail(MOTE_ERROR_TEMPLATE, "context JSON at byte %zu: expected %s, found the end", at_,
                  expected);
    const std::string_view found = slice(json_, at_, 16);
    return fail(MOTE_ERROR_TEMPLATE, "context JSON at byte %zu: expected %s, found '%.*s'", at_,
                expected, static_cast<int>(found.size()), found.data());
  }

  void skip_spaces() {
    while (at_ < json_.size() && (json_[at_] == ' ' || (json_[at_] >= '\t' && json_[at_] <= '\r' &&
                                                        json_[at_] != '\v' && json_[at_] != '\f')))
      ++at_;
  }
  bool skip(std::string_view word) {
    if (slice(json_, at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  char peek() const { return at_ < json_.size() ? json_[at_] : '\0'; }

  // Items of the list or dict that was just opened: commas at its own level, and one.
  size_t count_items() const {
    size_t count = 1, depth = 0;
    for (size_t i = at_; i < json_.size(); ++i) {
      const char c = json_[i];
      if (c == '"') {
        for (++i; i < json_.size() && json_[i] != '"'; ++i) i += json_[i] == '\\';
      } else if (c == '[' || c == '{') {
        ++depth;
      } else if (c == ']' || c == '}') {
        if (depth-- == 0) break;
      } else if (c == ',' && depth == 0) {
        ++count;
      }
    }
    return count;
  }

  Status read_value(Value* value, int depth) {
    if (depth > kMaxValueDepth) return error("fewer nested lists and objects (64 at most)");
    skip_spaces();
    switch (peek()) {
      case '{':
        return read_object(value, depth);
      case '[':
        return read_array(value, depth);
      case '"':
        return read_string(value);
      default:
        break;
    }
    if (skip("true")) return *value = Value::of(true), kOk;
    if (skip("false")) return *value = Value::of(false), kOk;
    if (skip("null")) return *value = Value::none(), kOk;
    return read_number(value);
  }

  Status read_array(Value* value, int depth) {
    ++at_;
    skip_spaces();
    if (skip("]")) return *value = Value::of(Kind::list, nullptr, 0), kOk;
    const size_t capacity = count_items();
    Value* items = heap_.take<Value>(capacity);
    if (!items) return out_of_memory(heap_, capacity * sizeof(Value));
    for (size_t count = 0; count < capacity;) {
      MOTE_TRY(read_value(&items[count++], depth + 1));
      skip_spaces();
      if (skip("]")) return *value = Value::of(Kind::list, items, count), kOk;
      if (!skip(",")) break;
    }
    return error("a comma or ]");
  }

  Status read_object(Value* value, int depth) {
    ++at_;
    skip_spaces();
    if (skip("}")) return *value = Value::of(static_cast<Entry*>(nullptr), 0), kOk;
    const size_t capacity = count_items();
    Entry* entries = heap_.take<Entry>(capacity);
    if (!entries) return out_of_memory(heap_, capacity * sizeof(Entry));
    size_t count = 0;
    for (size_t i = 0; i < capacity; ++i) {
      Entry entry;
      skip_spaces();
      if (peek() != '"') return error("a key");
      MOTE_TRY(read_string(&entry.key));
      skip_spaces();
      if (!skip(":")) return error("':'");
      MOTE_TRY(read_value(&entry.value, depth + 1));
      size_t place = 0;  // a key that comes again replaces the first
      while (place < count && entries[place].key.string() != entry.key.string()) ++place;
      entries[place] = place == count ? entry : Entry{entries[place].key, entry.value};
      count += place == count;
      skip_spaces();
      if (skip("}")) return *value = Value::of(entries, count), kOk;
      if (!skip(",")) break;
    }
    return error("a comma or }");
  }

  // Four hexadecimal digits at at_, or -1.
  int read_unit() {
    int unit = 0;
    if (json_.size() - at_ < 4) return -1;
    for (int i = 0; i < 4; ++i) {
      const char c = json_[at_ + static_cast<size_t>(i)], low = static_cast<char>(c | 32);
      const int digit = c >= '0' && c <= '9'       ? c - '0'
                        : low >= 'a' && low <= 'f' ? low - 'a' + 10
                                                   : -1;
      if (digit < 0) return -1;
      unit = unit * 16 + digit;
    }
    at_ += 4;
    return unit;
  }

  // After the backslash.
  Status read_escape(char** out) {
    static constexpr char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
    const char c = peek();
    ++at_;
    const char* found = c ? strchr(kFrom, c) : nullptr;
    if (found) {
      *(*out)++ = kTo[found - kFrom];
      return kOk;
    }
    int unit = c == 'u' ? read_unit() : -1;
    if (unit < 0) return --at_, error("a known escape");
    uint32_t code_point = static_cast<uint32_t>(unit);
    if (unit >= 0xD800 && unit < 0xDC00 && slice(json_, at_, 2) == "\\u") {
      const size_t back = at_;
      at_ += 2;
      const int second = read_unit();
      if (second >= 0xDC00 && second < 0xE000) {
        code_point =
            0x10000 + ((code_point - 0xD800) << 10) + (static_cast<uint32_t>(second) - 0xDC00);
      } else {
        at_ = back;
      }
    }
    if (code_point >= 0xD800 && code_point < 0xE000) code_point = 0xFFFD;
    *out += write_utf8(code_point, *out);
    return kOk;
  }

  Status read_string(Value* value) {
    const size_t begin = ++at_;
    bool escaped = false;
    while (at_ < json_.size() && json_[at_] != '"') {
      if (static_cast<unsigned char>(json_[at_]) < 0x20)
        return error("an escape for a control character");
      if (json_[at_] == '\\') escaped = true, ++at_;
      ++at_;
    }
    if (at_ >= json_.size()) return at_ = json_.size(), error("the end of a string");
    const size_t end = at_;
    if (end - begin > UINT32_MAX) return error("a shorter string");
    if (escaped) {
      char* text = heap_.take(end - begin, 1);
      if (!text) return out_of_memory(heap_, end - begin);
      char* out = text;
      for (at_ = begin; at_ < end;) {
        if (json_[at_] != '\\') {
          *out++ = json_[at_++];
          continue;
        }
        ++at_;
        MOTE_TRY(read_escape(&out));
      }
      const size_t size = static_cast<size_t>(out - text);
      heap_.give_back(end - begin - size);
      *value = Value::of(std::string_view(text, size));
    } else {
      *value = Value::of(slice(json_, begin, end - begin));
    }
    at_ = end + 1;
    return kOk;
  }

  Status read_number(Value* value) {
    size_t end = at_;
    bool real = false, digits = false;
    if (peek() == '-') ++end;
    for (; end < json_.size(); ++end) {
      const char c = json_[end];
      if (c >= '0' && c <= '9') {
        digits = true;
      } else if (c == '.' || c == 'e' || c == 'E') {
        real = true;
      } else if (!((c == '+' || c == '-') && end > at_ && (json_[end - 1] | 32) == 'e')) {
        break;
      }
    }
    const std::string_view text = slice(json_, at_, end - at_);
    int64_t integer = 0;
    double number = 0;
    const size_t first = text.size() > 0 && text[0] == '-' ? 1 : 0;
    const bool zeros = text.size() > first + 1 && text[first] == '0' && text[first + 1] >= '0' &&
                       text[first + 1] <= '9';
    if (!digits || zeros || text.back() == '.' || text[first] == '.') return error("a value");
    if (!(real ? read_real(text, &number) : read_integer(text, 10, &integer)))
      return error(real ? "a number" : "a whole number of 64 bits");
    *value = real ? Value::of(number) : Value::of(integer);
    at_ = end;
    return kOk;
  }

  Heap& heap_;
  std::string_view json_;
  size_t at_ = 0;
};

class JsonWriter {
 public:
  JsonWriter(Heap& heap, const JsonStyle& style, Work& work)
      : heap_(heap), out_(heap), style_(style), work_(work) {}

  Status write(const Value& value, int depth) {
    if (depth > kMaxValueDepth)
      return fail(MOTE_ERROR_TEMPLATE, "tojson: more than %d nested values", kMaxValueDepth);
    if (!work_.spend(1)) return fail(MOTE_ERROR_TEMPLATE, "tojson: too many values");
    switch (value.kind) {
      case Kind::none:
        out_.append("null");
        return kOk;
      case Kind::boolean:
        out_.append(value.boolean ? "true" : "false");
        return kOk;
      case Kind::integer:
        out_.append_integer(value.integer);
        return kOk;
      case Kind::real:
        write_real(value.real);
        return kOk;
      case Kind::string:
        write_string(value.string());
        return kOk;
      case Kind::list:
      case Kind::tuple:
      case Kind::messages:
        return write_items(value, depth);
      case Kind::dict:
      case Kind::message:
        return write_entries(value, depth);
      default:
        return fail(MOTE_ERROR_TEMPLATE, "tojson: a value of type %s cannot be written as JSON",
                    type_name(value));
    }
  }
  Status finish(Value* text) { return out_.finish(text); }

 private:
  void write_real(double value) {
    if (std::isnan(value)) {
      out_.append("NaN");
    } else if (std::isinf(value)) {
      out_.append(value < 0 ? "-Infinity" : "Infinity");
    } else {
      append_real(out_, value);
    }
  }

  void write_unit(uint32_t unit) {
    static constexpr char kDigits[] = "0123456789abcdef";
    const char text[6] = {'\\',
                          'u',
                          kDigits[unit >> 12 & 15],
                          kDigits[unit >> 8 & 15],
                          kDigits[unit >> 4 & 15],
                          kDigits[unit & 15]};
    out_.append(std::string_view(text, 6));
  }

  void write_string(std::string_view text) {
    out_.append('"');
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = read_utf8(text, at);
      const uint32_t c = point.value;
      static constexpr char kFrom[] = "\"\\\b\f\n\r\t", kTo[] = "\"\\bfnrt";
      const char* found = c && c < 128 ? strchr(kFrom, static_cast<int>(c)) : nullptr;
      if (found) {
        out_.append('\\');
        out_.append(kTo[found - kFrom]);
      } else if (c < 0x20 || (style_.ascii && c > 0x7E && c < 0x10000)) {
        write_unit(c);
      } else if (style_.ascii && c >= 0x10000) {
        write_unit(0xD800 + ((c - 0x10000) >> 10));
        write_unit(0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        out_.append_code_point(c);
      }
      at += point.length;
    }
    out_.append('"');
  }

  void new_line(int depth) {
    if (!style_.has_indent) return;
    out_.append('\n');
    for (int i = 0; i < depth; ++i) out_.append(style_.indent);
  }

  Status write_items(const Value& value, int depth) {
    out_.append('[');
    for (size_t i = 0; i < count_of(value); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      new_line(depth + 1);
      MOTE_TRY(write(item_of(value, i), depth + 1));
    }
    if (count_of(value) > 0) new_line(depth);
    out_.append(']');
    return kOk;
  }

  Status write_key(const Value& key) {
    switch (key.kind) {
      case Kind::string:
        write_string(key.string());
        return kOk;
      case Kind::none:
      case Kind::boolean:
      case Kind::integer:
      case Kind::real: {
        out_.append('"');
        MOTE_TRY(write(key, 0));
        out_.append('"');
        return kOk;
      }
      default:
        return fail(MOTE_ERROR_TEMPLATE, "tojson: a key of type %s", type_name(key));
    }
  }

  Status write_entries(const Value& value, int depth) {
    const size_t count = count_of(value);
    uint32_t* order = nullptr;
    if (style_.sort_keys) {
      order = heap_.take<uint32_t>(count);
      if (!order && count) return out_of_memory(heap_, count * 4);
      for (size_t i = 0; i < count; ++i) order[i] = static_cast<uint32_t>(i);
      for (size_t i = 0; i < count; ++i)
        if (!entry_of(value, i).key.is_string())
          return fail(MOTE_ERROR_TEMPLATE, "tojson: only text keys can be sorted");
      std::sort(order, order + count, [&](uint32_t a, uint32_t b) {
        return entry_of(value, a).key.string() < entry_of(value, b).key.string();
      });
    }
    out_.append('{');
    for (size_t i = 0; i < count; ++i) {
      const Entry entry = entry_of(value, order ? order[i] : i);
      if (i > 0) out_.append(style_.item_separator);
      new_line(depth + 1);
      MOTE_TRY(write_key(entry.key));
      out_.append(style_.key_separator);
      MOTE_TRY(write(entry.value, depth + 1));
    }
    if (count > 0) new_line(depth);
    out_.append('}');
    return kOk;
  }

  Heap& heap_;
  TextBuilder out_;
  const JsonStyle& style_;
  Work& work_;
};

}  // namespace

Status read_json(Heap& heap, std::string_view json, Value* value) {
  return JsonReader(heap, json).read(value);
}

Status to_json(Heap& heap, const Value& value, const JsonStyle& style, Value* text, Work& work) {
  JsonWriter writer(heap, style, work);
  MOTE_TRY(writer.write(value, 0));
  return writer.finish(text);
}

}  // namespace mote::chat
