// Functions that every template has, and the attributes of `loop`.
#include "models/chat/evaluate.h"
#include "models/chat/text.h"

namespace mote::chat {
namespace {

enum Function : uint8_t { kRange, kNamespace, kDict, kRaise, kNow, kCycler, kJoiner };
struct Name {
  const char* name;
  Function function;
};
constexpr Name kFunctions[] = {
    {"range", kRange},           {"namespace", kNamespace}, {"dict", kDict},
    {"raise_exception", kRaise}, {"strftime_now", kNow},    {"cycler", kCycler},
    {"joiner", kJoiner},
};

Status make_range(Evaluator& evaluator, const Arguments& arguments, Value* result) {
  int64_t bounds[3] = {0, 0, 1};
  if (arguments.count < 1 || arguments.count > 3 || arguments.keyword_count > 0)
    return fail(MOTE_ERROR_TEMPLATE, "range expects one to three integers");
  for (size_t i = 0; i < arguments.count; ++i) {
    if (!arguments.values[i].is_integral())
      return fail(MOTE_ERROR_TEMPLATE, "range expects integers, found '%s'",
                  type_name(arguments.values[i]));
    bounds[arguments.count == 1 ? 1 : i] = arguments.values[i].as_integer();
  }
  const int64_t start = bounds[0], stop = bounds[1], step = bounds[2];
  if (step == 0) return fail(MOTE_ERROR_TEMPLATE, "range with step 0");
  const bool empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t low = static_cast<uint64_t>(step > 0 ? start : stop);
  const uint64_t high = static_cast<uint64_t>(step > 0 ? stop : start);
  const uint64_t stride =
      step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t count = empty ? 0 : (high - low - 1) / stride + 1;
  if (count > static_cast<uint64_t>(kMaxRange))
    return fail(MOTE_ERROR_TEMPLATE, "a range of %llu elements, expected %lld at most",
                static_cast<unsigned long long>(count), static_cast<long long>(kMaxRange));
  Range* range = evaluator.heap.take<Range>(1);
  if (!range) return out_of_memory(evaluator.heap, sizeof(Range));
  *range = Range{start, stop, step};
  *result = Value::of(Kind::range);
  result->range = range;
  result->size = static_cast<uint32_t>(count);
  return kOk;
}

// The entries of dict(...) and namespace(...): of a dict, or of pairs, then the keywords.
Status make_entries(Evaluator& evaluator, const Arguments& arguments, Entry** entries,
                    uint32_t* count) {
  Value from = Value::of(Kind::list, nullptr, 0);
  if (arguments.count > 1)
    return fail(MOTE_ERROR_TEMPLATE, "dict expects one argument without a name at most");
  const bool mapping = arguments.count == 1 && arguments.values[0].is_mapping();
  if (mapping) from = arguments.values[0];
  if (arguments.count == 1 && !mapping) MOTE_TRY(evaluator.iterate(arguments.values[0], &from));
  const size_t capacity = count_of(from) + arguments.keyword_count;
  MOTE_TRY(evaluator.spend(capacity));
  *entries = evaluator.heap.take<Entry>(capacity);
  if (!*entries) return out_of_memory(evaluator.heap, capacity * sizeof(Entry));
  *count = 0;
  for (size_t i = 0; i < capacity; ++i) {
    Entry entry;
    if (i >= count_of(from)) {
      entry = arguments.keywords[i - count_of(from)];
    } else if (mapping) {
      entry = entry_of(from, i);
    } else {
      const Value pair = item_of(from, i);
      if (!pair.is_sequence() || count_of(pair) != 2)
        return fail(MOTE_ERROR_TEMPLATE, "dict expects a dict or pairs, found '%s'",
                    type_name(pair));
      entry = Entry{item_of(pair, 0), item_of(pair, 1)};
    }
    uint32_t place = 0;
    while (place < *count && !equal((*entries)[place].key, entry.key, evaluator.work)) ++place;
    if (place == *count) (*entries)[(*count)++].key = entry.key;
    (*entries)[place].value = entry.value;
  }
  return kOk;
}

Status make_namespace(Evaluator& evaluator, const Arguments& arguments, Value* result) {
  Namespace* space = evaluator.heap.take<Namespace>(1);
  if (!space) return out_of_memory(evaluator.heap, sizeof(Namespace));
  Entry* entries = nullptr;
  uint32_t count = 0;
  MOTE_TRY(make_entries(evaluator, arguments, &entries, &count));
  for (uint32_t i = 0; i < count; ++i)
    if (!entries[i].key.is_string()) return fail(MOTE_ERROR_TEMPLATE, "namespace expects names");
  *space = Namespace{entries, count, count};
  *result = Value::of(Kind::name_space);
  result->name_space = space;
  return kOk;
}

Status raise(Evaluator& evaluator, const Arguments& arguments) {
  Value message;
  static constexpr const char* kNames[] = {"message", nullptr};
  MOTE_TRY(bind(arguments, kNames, 1, &message));
  std::string_view text;
  MOTE_TRY(to_string(evaluator.heap, message, &text, evaluator.work));
  const int size = text.size() > 4096 ? 4096 : static_cast<int>(text.size());
  return fail(MOTE_ERROR_TEMPLATE, "%.*s", size, text.data());
}

Status make_cycler(Evaluator& evaluator, const Arguments& arguments, Kind kind, Value* result) {
  Cycler* cycler = evaluator.heap.take<Cycler>(1);
  if (!cycler) return out_of_memory(evaluator.heap, sizeof(Cycler));
  Value* separator = nullptr;
  if (kind == Kind::joiner) {
    static constexpr const char* kNames[] = {"sep", nullptr};
    MOTE_TRY(evaluator.take_items(1, &separator));
    MOTE_TRY(bind(arguments, kNames, 0, separator));
    if (missing(*separator)) *separator = Value::of(", ");
  } else if (arguments.count == 0 || arguments.keyword_count > 0) {
    return fail(MOTE_ERROR_TEMPLATE, "cycler expects at least one item");
  }
  *cycler =
      Cycler{separator ? separator : arguments.values, static_cast<uint32_t>(arguments.count), 0};
  *result = Value::of(kind);
  result->cycler = cycler;
  return kOk;
}

}  // namespace

bool find_function(std::string_view name, bool has_now, uint8_t* function) {
  for (const Name& entry : kFunctions) {
    if (name != entry.name) continue;
    *function = entry.function;
    return entry.function != kNow || has_now;
  }
  return false;
}

Status call_function(uint8_t function, Evaluator& evaluator, const Arguments& arguments,
                     Value* result) {
  switch (function) {
    case kRange:
      return make_range(evaluator, arguments, result);
    case kNamespace:
      return make_namespace(evaluator, arguments, result);
    case kDict: {
      Entry* entries = nullptr;
      uint32_t count = 0;
      MOTE_TRY(make_entries(evaluator, arguments, &entries, &count));
      *result = Value::of(entries, count);
      return kOk;
    }
    case kRaise:
      return raise(evaluator, arguments);
    case kNow: {
      Value format;
      static constexpr const char* kNames[] = {"format", nullptr};
      MOTE_TRY(bind(arguments, kNames, 1, &format));
      if (!format.is_string()) return fail(MOTE_ERROR_TEMPLATE, "strftime_now expects a string");
      return format_time(evaluator.heap, format.string(), evaluator.now(), result);
    }
    case kCycler:
      return make_cycler(evaluator, arguments, Kind::cycler, result);
    default:
      return make_cycler(evaluator, arguments, Kind::joiner, result);
  }
}

bool loop_attribute(const Value& object, std::string_view name, Value* result) {
  if (object.kind == Kind::cycler && name == "current") {
    *result = object.cycler->items[object.cycler->at];
    return true;
  }
  if (object.kind != Kind::loop) return false;
  const Loop& loop = *object.loop;
  const int64_t index = loop.index, count = static_cast<int64_t>(count_of(loop.items));
  if (name == "index") {
    *result = Value::of(index + 1);
  } else if (name == "index0") {
    *result = Value::of(index);
  } else if (name == "revindex") {
    *result = Value::of(count - index);
  } else if (name == "revindex0") {
    *result = Value::of(count - index - 1);
  } else if (name == "first") {
    *result = Value::of(index == 0);
  } else if (name == "last") {
    *result = Value::of(index + 1 >= count);
  } else if (name == "length") {
    *result = Value::of(count);
  } else if (name == "depth") {
    *result = Value::of(int64_t{loop.depth} + 1);
  } else if (name == "depth0") {
    *result = Value::of(int64_t{loop.depth});
  } else if (name == "previtem") {
    *result = index > 0 ? item_of(loop.items, loop.index - 1u) : Value::undefined("previous item");
  } else if (name == "nextitem") {
    *result =
        index + 1 < count ? item_of(loop.items, loop.index + 1u) : Value::undefined("next item");
  } else {
    return false;
  }
  return true;
}

}  // namespace mote::chat
