// Values of the template language, 16 bytes each, and the memory they live in while a template
// renders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/status.h"
#include "mote.h"

namespace mote::chat {

enum class Kind : uint8_t {
  undefined,  // text: the name that was looked for; detail: 0 a variable, else 1 + the owner's Kind
  none,
  boolean,
  integer,
  real,
  string,     // text, size bytes, not zero terminated
  list,       // items
  tuple,      // items
  generator,  // items, but only to go through: always true, no length, no subscript
  view,       // items of a dict's keys, values or items: a length, no subscript
  messages,   // a list of the caller's messages, read in place
  range,
  dict,        // entries
  message,     // a dict of one of the caller's messages: role and content
  name_space,  // namespace(): the only value that can change
  loop,        // the variable of a for loop
  macro,
  function,  // detail: Function
  method,    // detail: Method; bound to a value
  cycler,
  joiner,
};

struct Entry;
struct Range;
struct Namespace;
struct Loop;
struct Macro;
struct Cycler;

struct Value {
  Kind kind = Kind::undefined;
  uint8_t detail = 0;
  uint32_t size = 0;
  union {
    bool boolean;
    int64_t integer;
    double real;
    const char* text;
    const Value* items;
    const mote_message* message;
    const Entry* entries;
    const Range* range;
    Namespace* name_space;
    Loop* loop;
    const Macro* macro;
    const Value* self;
    Cycler* cycler;
  };

  Value() : text(nullptr) {}
  static Value none() { return of(Kind::none); }
  static Value of(bool value) {
    Value result = of(Kind::boolean);
    result.boolean = value;
    return result;
  }
  static Value of(int64_t value) {
    Value result = of(Kind::integer);
    result.integer = value;
    return result;
  }
  static Value of(double value) {
    Value result = of(Kind::real);
    result.real = value;
    return result;
  }
  static Value of(std::string_view text) {
    Value result = of(Kind::string);
    result.text = text.data();
    result.size = static_cast<uint32_t>(text.size());
    return result;
  }
  static Value of(const char* text) { return of(std::string_view(text)); }
  static Value of(Kind kind, const Value* items, size_t count) {
    Value result = of(kind);
    result.items = items;
    result.size = static_cast<uint32_t>(count);
    return result;
  }
  static Value of(const Entry* entries, size_t count) {
    Value result = of(Kind::dict);
    result.entries = entries;
    result.size = static_cast<uint32_t>(count);
    return result;
  }
  static Value of(Kind kind) {
    Value result;
    result.kind = kind;
    return result;
  }
  // owner: of an attribute that is not there; null: of a variable.
  static Value undefined(std::string_view name, const Value* owner = nullptr);

  bool is(Kind other) const { return kind == other; }
  bool is_string() const { return kind == Kind::string; }
  bool is_mapping() const { return kind == Kind::dict || kind == Kind::message; }
  bool is_number() const {
    return kind == Kind::integer || kind == Kind::real || kind == Kind::boolean;
  }
  bool is_integral() const { return kind == Kind::integer || kind == Kind::boolean; }
  // Has a length, an order and subscripts.
  bool is_sequence() const {
    return kind == Kind::list || kind == Kind::tuple || kind == Kind::messages ||
           kind == Kind::range;
  }
  // What one goes through with item(): sequences, generators and views.
  bool is_items() const { return is_sequence() || kind == Kind::generator || kind == Kind::view; }
  bool is_callable() const;
  std::string_view string() const { return std::string_view(text, size); }
  int64_t as_integer() const { return kind == Kind::boolean ? boolean : integer; }
  double as_real() const { return kind == Kind::real ? real : static_cast<double>(as_integer()); }
};
static_assert(sizeof(void*) > 8 || sizeof(Value) <= 16);

struct Entry {
  Value key, value;
};
struct Range {
  int64_t start, stop, step;
};
struct Namespace {
  Entry* entries;
  uint32_t count, capacity;
};
struct Cycler {  // and joiner: items[0] is the separator
  const Value* items;
  uint32_t count, at;
};
struct Loop {
  Value items;
  uint32_t index, depth;    // depth: of recursive calls, from 0
  uint32_t scope;           // where the loop stands
  const struct Node* node;  // of a recursive loop, else null
  const Value* changed;     // what changed() saw last, a tuple's items; null: nothing yet
  uint32_t changed_count;
};
struct Macro {
  std::string_view name;
  uint32_t parameters, body;  // nodes
  uint8_t uses;               // MacroUse bits
  uint32_t scope;             // where it was defined
  uint64_t serial;            // of that scope: it must still be alive
};

// One block of memory: values grow from the front, variables from the back. What a statement or a
// scope left behind is released when it ends.
class Heap {
 public:
  // base is aligned to 16. keeps: release does nothing (tests compare the results of both ways).
  Heap(void* base, size_t bytes, bool keeps)
      : base_(static_cast<char*>(base)), end_(bytes & ~size_t{15}), keeps_(keeps) {}

  // Null when there is no room.
  char* take(size_t bytes, size_t alignment);
  template <class T>
  T* take(size_t count) {
    if (count > SIZE_MAX / sizeof(T)) return nullptr;
    return reinterpret_cast<T*>(take(count * sizeof(T), alignof(T)));
  }
  size_t left() const { return end_ - top_; }
  // Gives back the last bytes of the piece that was taken last.
  void give_back(size_t bytes) { top_ -= bytes; }
  // Whether text ends where the next piece would begin, so that it can grow in place.
  bool ends_at_top(const char* text, size_t size) const { return text + size == base_ + top_; }

  size_t mark() const { return top_; }
  void release(size_t mark) {
    if (mark < floor_) mark = floor_;
    if (mark < capture_floor_) mark = capture_floor_;
    if (mark < top_ && !keeps_) top_ = mark;
  }
  // Releases all but text, which moves down to what is free then.
  std::string_view release_all_but(size_t mark, std::string_view text);
  // Value is about to be stored where it outlives its scope.
  void keep(const Value& value);

  // Captured output must outlive the scopes inside of the capture: while it lasts, nothing that
  // lies below the last hold_all() is released. begin gives what end takes.
  size_t begin_capture() const { return capture_floor_; }
  void hold_all() { capture_floor_ = top_; }
  void end_capture(size_t before) { capture_floor_ = before; }

  // Room for one more variable at the back; null when there is none.
  template <class T>
  T* push_back() {
    if (left() < sizeof(T)) return nullptr;
    end_ -= sizeof(T);
    return reinterpret_cast<T*>(base_ + end_);
  }
  void pop_back(size_t bytes) { end_ += bytes; }

 private:
  char* base_;
  size_t top_ = 0;    // values are below
  size_t end_;        // variables are above; a multiple of their alignment
  size_t floor_ = 0;  // nothing below is released, ever
  size_t capture_floor_ = 0;
  bool keeps_;
};

// What rendering may still do: everything that costs time takes from it, so that every template
// ends.
struct Work {
  uint64_t left;
  // False, and then for ever, when there is not so much left.
  bool spend(uint64_t steps) {
    left = steps < left ? left - steps : 0;
    return left != 0;
  }
};

// Steps of looking for a text in another one: at worst all of it is compared at every place.
inline uint64_t search_steps(size_t text, size_t wanted) {
  return text / 16 + uint64_t{text} * wanted / 2048;
}

// Deepest nesting of lists and dicts that is compared, printed or read.
inline constexpr int kMaxValueDepth = 64;

// Name as in the messages of Python: "str", "int", "dict".
const char* type_name(const Value& value);
// As Python's bool().
bool is_true(const Value& value);
// Length of what has one; false for the rest. Of strings in code points.
bool length_of(const Value& value, size_t* length);
// Number of items or entries; 0 for anything else.
inline size_t count_of(const Value& value) { return value.kind == Kind::message ? 2 : value.size; }
// The item at index < size of is_items().
Value item_of(const Value& value, size_t index);
// The key and value at index of a mapping, and the value of a key (false: not there).
Entry entry_of(const Value& value, size_t index);
bool find_key(const Value& mapping, std::string_view key, Value* value);
bool find_key(const Value& mapping, const Value& key, Value* value, Work& work);
bool find_attribute(const Namespace& space, std::string_view name, Value* value);

// Python's ==. Nesting beyond kMaxValueDepth is unequal, so is everything when no work is left.
bool equal(const Value& left, const Value& right, Work& work, int depth = 0);
// -1, 0 or 1; an error for kinds that have no order. NaN gives 2: no comparison with it holds.
Status compare(const Value& left, const Value& right, int* order, Work& work, int depth = 0);
// Python's `item in container`.
Status contains(const Value& container, const Value& item, bool* result, Work& work);

}  // namespace mote::chat
