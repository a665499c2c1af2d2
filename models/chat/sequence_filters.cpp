// Filters of lists and dicts.
#include <algorithm>

#include "core/slice.h"
#include "models/chat/filters.h"
#include "models/chat/parser.h"
#include "models/chat/text.h"

namespace mote::chat {
namespace {

constexpr const char* kNothing[] = {nullptr};

// Key of an item: an attribute of it (path missing or none: itself), in lower case unless case
// matters.
Status sort_key(const FilterCall& call, const Value& item, const Value& path, bool case_sensitive,
                Value* key) {
  *key = item;
  if (!missing(path) && !path.is(Kind::none))
    MOTE_TRY(call.evaluator.attribute_path(item, path, key));
  if (key->is_string() && !case_sensitive) {
    MOTE_TRY(call.evaluator.spend(key->size / 4));
    return change_case(call.heap(), key->string(), Case::lower, key);
  }
  return kOk;
}

// An order of items by their keys that keeps equal ones in place: bottom-up merge sort, as
// comparing can fail.
Status sort_order(const FilterCall& call, const Value* keys, size_t count, bool reverse,
                  uint32_t** result) {
  uint32_t* order = call.heap().take<uint32_t>(2 * count);
  if (!order) return out_of_memory(call.heap(), 2 * count * sizeof(uint32_t));
  uint32_t* other = order + count;
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<uint32_t>(i);
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      const size_t middle = std::min(begin + width, count),
                   end = std::min(begin + 2 * width, count);
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          int sign = 0;
          MOTE_TRY(call.evaluator.spend(1));
          MOTE_TRY(compare(keys[order[right]], keys[order[left]], &sign, call.work()));
          take_right = reverse ? sign == 1 : sign == -1;
        }
        other[out] = order[take_right ? right++ : left++];
      }
    }
    std::swap(order, other);
  }
  *result = order;
  return kOk;
}

// min and max: sign -1 or 1.
Status extreme(const FilterCall& call, int sign) {
  Value values[2];
  static constexpr const char* kNames[] = {"case_sensitive", "attribute", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  Value items, best_key;
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  *call.result = Value::undefined("an item of an empty list");
  for (size_t i = 0; i < count_of(items); ++i) {
    Value key;
    int order = sign;
    MOTE_TRY(sort_key(call, item_of(items, i), values[1], is_true(values[0]), &key));
    if (i > 0) MOTE_TRY(compare(key, best_key, &order, call.work()));
    if (order != sign) continue;
    *call.result = item_of(items, i);
    best_key = key;
  }
  return kOk;
}

// select, reject and their ...attr: keeps the items that pass a test (none: are true).
Status select_items(const FilterCall& call, bool wanted, bool by_attribute) {
  Value items, *kept = nullptr;
  const Arguments& arguments = call.arguments;
  const size_t skip = by_attribute ? 1 : 0;
  if (arguments.count < skip) return fail(MOTE_ERROR_TEMPLATE, "expected the name of an attribute");
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  MOTE_TRY(call.evaluator.take_items(count_of(items), &kept));
  uint8_t test = 0;
  Arguments rest;
  if (arguments.count > skip) {
    const Value& name = arguments.values[skip];
    if (name.is_string()) test = find_test(name.string());
    if (!test)
      return fail(MOTE_ERROR_TEMPLATE, "no test is named '%.*s'",
                  name.is_string() ? static_cast<int>(name.size) : 0,
                  name.is_string() ? name.text : "");
    rest = Arguments{arguments.values + skip + 1, arguments.count - skip - 1, arguments.keywords,
                     arguments.keyword_count};
  }
  size_t count = 0;
  for (size_t i = 0; i < count_of(items); ++i) {
    const Value item = item_of(items, i);
    Value value = item;
    bool holds = false;
    MOTE_TRY(call.evaluator.spend(1));
    if (by_attribute) MOTE_TRY(call.evaluator.attribute_path(item, arguments.values[0], &value));
    if (test)
      MOTE_TRY(apply_test(test, call.evaluator, value, rest, &holds));
    else
      holds = is_true(value);
    if (holds == wanted) kept[count++] = item;
  }
  return call.give(Value::of(Kind::generator, kept, count));
}

// Lists of lists for batch and slice.
Status give_rows(const FilterCall& call, Value* rows, size_t count) {
  return call.give(Value::of(Kind::generator, rows, count));
}

}  // namespace

Status filter_select(const FilterCall& call) { return select_items(call, true, false); }
Status filter_reject(const FilterCall& call) { return select_items(call, false, false); }
Status filter_selectattr(const FilterCall& call) { return select_items(call, true, true); }
Status filter_rejectattr(const FilterCall& call) { return select_items(call, false, true); }
Status filter_min(const FilterCall& call) { return extreme(call, -1); }
Status filter_max(const FilterCall& call) { return extreme(call, 1); }

Status filter_length(const FilterCall& call) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  size_t length = 0;
  if (!length_of(call.input, &length))
    return fail(MOTE_ERROR_TEMPLATE, "a value of type %s has no length", type_name(call.input));
  MOTE_TRY(call.evaluator.spend(call.input.is_string() ? call.input.size / 64 : 0));
  return call.give(Value::of(static_cast<int64_t>(length)));
}

Status filter_first(const FilterCall& call) {
  Value items;
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  return call.give(count_of(items) ? item_of(items, 0)
                                   : Value::undefined("first item of an empty list"));
}

Status filter_last(const FilterCall& call) {
  Value items;
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  if (call.input.is(Kind::generator))
    return fail(MOTE_ERROR_TEMPLATE, "last expects a list, found a generator");
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  const size_t count = count_of(items);
  return call.give(count ? item_of(items, count - 1)
                         : Value::undefined("last item of an empty list"));
}

Status filter_list(const FilterCall& call) {
  Value items, *copy = nullptr;
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  if (items.is(Kind::messages)) return call.give(items);
  if (items.is(Kind::range)) {
    MOTE_TRY(call.evaluator.take_items(count_of(items), &copy));
    for (size_t i = 0; i < count_of(items); ++i) copy[i] = item_of(items, i);
    return call.give(Value::of(Kind::list, copy, count_of(items)));
  }
  return call.give(
      Value::of(Kind::list, items.items, count_of(items)));  // values do not change: no copy
}

Status filter_reverse(const FilterCall& call) {
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  const Value none = Value::none(), back = Value::of(int64_t{-1});
  if (call.input.is_string())
    return slice_value(call.input, none, none, back, call.evaluator, call.result);
  Value items, *reversed = nullptr;
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  const size_t count = count_of(items);
  MOTE_TRY(call.evaluator.take_items(count, &reversed));
  for (size_t i = 0; i < count; ++i) reversed[i] = item_of(items, count - 1 - i);
  return call.give(Value::of(Kind::generator, reversed, count));
}

Status filter_join(const FilterCall& call) {
  Value values[2], items;
  static constexpr const char* kNames[] = {"d", "attribute", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  std::string_view separator;
  MOTE_TRY(to_string(call.heap(), values[0], &separator, call.work()));
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  TextBuilder text(call.heap());
  for (size_t i = 0; i < count_of(items); ++i) {
    Value item = item_of(items, i);
    const Value from = item;
    if (!missing(values[1]) && !values[1].is(Kind::none))
      MOTE_TRY(call.evaluator.attribute_path(from, values[1], &item));
    if (i > 0) text.append(separator);
    append_string(text, item, call.work());
    MOTE_TRY(call.evaluator.spend(1 + item.size / 64));
  }
  return text.finish(call.result);
}

Status filter_map(const FilterCall& call) {
  Value items, *mapped = nullptr;
  const Arguments& arguments = call.arguments;
  Value path, otherwise;
  bool by_attribute = false;
  if (arguments.count == 0) {
    static constexpr const char* kNames[] = {"attribute", "default", nullptr};
    Value values[2];
    MOTE_TRY(bind(arguments, kNames, 1, values));
    path = values[0];
    otherwise = values[1];
    by_attribute = true;
  }
  const uint8_t filter = !by_attribute && arguments.values[0].is_string()
                             ? find_filter(arguments.values[0].string())
                             : 0;
  if (!by_attribute && !filter)
    return fail(MOTE_ERROR_TEMPLATE, "map expects the name of a filter or attribute=...");
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  MOTE_TRY(call.evaluator.take_items(count_of(items), &mapped));
  const Arguments rest{arguments.values + (by_attribute ? 0 : 1),
                       arguments.count - (by_attribute ? 0 : 1), arguments.keywords,
                       arguments.keyword_count};
  for (size_t i = 0; i < count_of(items); ++i) {
    MOTE_TRY(call.evaluator.spend(1));
    if (!by_attribute) {
      MOTE_TRY(apply_filter(filter, call.evaluator, item_of(items, i), rest, &mapped[i]));
      continue;
    }
    MOTE_TRY(call.evaluator.attribute_path(item_of(items, i), path, &mapped[i]));
    if (mapped[i].is(Kind::undefined) && !missing(otherwise)) mapped[i] = otherwise;
  }
  return call.give(Value::of(Kind::generator, mapped, count_of(items)));
}

Status filter_sum(const FilterCall& call) {
  Value values[2], items;
  static constexpr const char* kNames[] = {"attribute", "start", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  *call.result = missing(values[1]) ? Value::of(int64_t{0}) : values[1];
  if (call.result->is_string()) return fail(MOTE_ERROR_TEMPLATE, "sum cannot add strings");
  for (size_t i = 0; i < count_of(items); ++i) {
    Value item = item_of(items, i);
    const Value from = item, total = *call.result;
    MOTE_TRY(call.evaluator.spend(1));
    if (!missing(values[0]) && !values[0].is(Kind::none))
      MOTE_TRY(call.evaluator.attribute_path(from, values[0], &item));
    MOTE_TRY(arithmetic(Op::add, total, item, call.evaluator, call.result));
  }
  return kOk;
}

Status filter_sort(const FilterCall& call) {
  Value values[3], items, *keys = nullptr, *sorted = nullptr;
  static constexpr const char* kNames[] = {"reverse", "case_sensitive", "attribute", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  const size_t count = count_of(items);
  MOTE_TRY(call.evaluator.take_items(count, &keys));
  MOTE_TRY(call.evaluator.take_items(count, &sorted));
  const bool several =
      values[2].is_string() && values[2].string().find(',') != std::string_view::npos;
  for (size_t i = 0; i < count; ++i) {
    if (!several) {
      MOTE_TRY(sort_key(call, item_of(items, i), values[2], is_true(values[1]), &keys[i]));
      continue;
    }
    // "a,b": a tuple of keys.
    std::string_view rest = values[2].string();
    const size_t parts = static_cast<size_t>(std::count(rest.begin(), rest.end(), ',')) + 1;
    Value* tuple = nullptr;
    MOTE_TRY(call.evaluator.take_items(parts, &tuple));
    for (size_t part = 0; part < parts; ++part) {
      const size_t comma = rest.find(',');
      MOTE_TRY(sort_key(call, item_of(items, i), Value::of(slice(rest, 0, comma)),
                        is_true(values[1]), &tuple[part]));
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    keys[i] = Value::of(Kind::tuple, tuple, parts);
  }
  uint32_t* order = nullptr;
  MOTE_TRY(sort_order(call, keys, count, is_true(values[0]), &order));
  for (size_t i = 0; i < count; ++i) sorted[i] = item_of(items, order[i]);
  return call.give(Value::of(Kind::list, sorted, count));
}

// (key, value) of a dict as tuples.
static Status pairs_of(const FilterCall& call, const Value& dict, Value** pairs) {
  Value* parts = nullptr;
  MOTE_TRY(call.evaluator.take_items(count_of(dict), pairs));
  MOTE_TRY(call.evaluator.take_items(2 * count_of(dict), &parts));
  for (size_t i = 0; i < count_of(dict); ++i) {
    const Entry entry = entry_of(dict, i);
    parts[2 * i] = entry.key;
    parts[2 * i + 1] = entry.value;
    (*pairs)[i] = Value::of(Kind::tuple, parts + 2 * i, 2);
  }
  return kOk;
}

Status filter_items(const FilterCall& call) {
  Value* pairs = nullptr;
  MOTE_TRY(bind(call.arguments, kNothing, 0, nullptr));
  if (call.input.is(Kind::undefined)) return call.give(Value::of(Kind::generator, nullptr, 0));
  if (!call.input.is_mapping())
    return fail(MOTE_ERROR_TEMPLATE, "items expects a dict, found '%s'", type_name(call.input));
  MOTE_TRY(pairs_of(call, call.input, &pairs));
  return call.give(Value::of(Kind::generator, pairs, count_of(call.input)));
}

Status filter_dictsort(const FilterCall& call) {
  Value values[3], *pairs = nullptr, *keys = nullptr, *sorted = nullptr;
  static constexpr const char* kNames[] = {"case_sensitive", "by", "reverse", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  if (!call.input.is_mapping())
    return fail(MOTE_ERROR_TEMPLATE, "dictsort expects a dict, found '%s'", type_name(call.input));
  const std::string_view by = values[1].is_string() ? values[1].string() : "key";
  if (by != "key" && by != "value")
    return fail(MOTE_ERROR_TEMPLATE, "dictsort: by must be 'key' or 'value'");
  const size_t count = count_of(call.input);
  MOTE_TRY(pairs_of(call, call.input, &pairs));
  MOTE_TRY(call.evaluator.take_items(count, &keys));
  MOTE_TRY(call.evaluator.take_items(count, &sorted));
  for (size_t i = 0; i < count; ++i)
    MOTE_TRY(sort_key(call, pairs[i].items[by == "value"], Value(), is_true(values[0]), &keys[i]));
  uint32_t* order = nullptr;
  MOTE_TRY(sort_order(call, keys, count, is_true(values[2]), &order));
  for (size_t i = 0; i < count; ++i) sorted[i] = pairs[order[i]];
  return call.give(Value::of(Kind::list, sorted, count));
}

Status filter_unique(const FilterCall& call) {
  Value values[2], items, *keys = nullptr, *kept = nullptr;
  static constexpr const char* kNames[] = {"case_sensitive", "attribute", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 0, values));
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  MOTE_TRY(call.evaluator.take_items(count_of(items), &keys));
  MOTE_TRY(call.evaluator.take_items(count_of(items), &kept));
  size_t count = 0;
  for (size_t i = 0; i < count_of(items); ++i) {
    size_t seen = 0;
    MOTE_TRY(sort_key(call, item_of(items, i), values[1], is_true(values[0]), &keys[count]));
    while (seen < count && !equal(keys[seen], keys[count], call.work())) ++seen;
    if (seen == count) kept[count++] = item_of(items, i);
  }
  MOTE_TRY(call.evaluator.spend(1));
  return call.give(Value::of(Kind::generator, kept, count));
}

Status filter_groupby(const FilterCall& call) {
  Value values[3], items, *keys = nullptr, *sorted = nullptr, *groups = nullptr;
  static constexpr const char* kNames[] = {"attribute", "default", "case_sensitive", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, values));
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  const size_t count = count_of(items);
  MOTE_TRY(call.evaluator.take_items(2 * count, &keys));  // as compared, then as found
  MOTE_TRY(call.evaluator.take_items(count, &sorted));
  MOTE_TRY(
      call.evaluator.take_items(3 * count, &groups));  // the groups, then the two parts of each
  for (size_t i = 0; i < count; ++i) {
    Value& key = keys[count + i];
    MOTE_TRY(call.evaluator.attribute_path(item_of(items, i), values[0], &key));
    if (key.is(Kind::undefined) && !missing(values[1])) key = values[1];
    MOTE_TRY(sort_key(call, key, Value(), is_true(values[2]), &keys[i]));
  }
  uint32_t* order = nullptr;
  MOTE_TRY(sort_order(call, keys, count, false, &order));
  size_t group_count = 0;
  for (size_t i = 0; i < count; ++i) {
    sorted[i] = item_of(items, order[i]);
    if (i > 0 && equal(keys[order[i]], keys[order[i - 1]], call.work())) {
      ++groups[count + 2 * (group_count - 1) + 1].size;
      continue;
    }
    Value* parts = groups + count + 2 * group_count;
    parts[0] = keys[count + order[i]];
    parts[1] = Value::of(Kind::list, sorted + i, 1);
    groups[group_count] = Value::of(Kind::tuple, parts, 2);
    groups[group_count++].detail = kGroup;
  }
  return call.give(Value::of(Kind::list, groups, group_count));
}

Status filter_batch(const FilterCall& call) {
  Value values[2], items, *rows = nullptr, *copy = nullptr;
  static constexpr const char* kNames[] = {"linecount", "fill_with", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, values));
  int64_t width = 0;
  MOTE_TRY(integer_argument(values[0], &width));
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  const size_t count = count_of(items);
  if (width < 1 || width > kMaxRange)
    return fail(MOTE_ERROR_TEMPLATE, "batch: %lld items in a row", static_cast<long long>(width));
  const size_t per_row = static_cast<size_t>(width), row_count = (count + per_row - 1) / per_row;
  MOTE_TRY(call.evaluator.take_items(row_count, &rows));
  MOTE_TRY(call.evaluator.take_items(row_count * per_row, &copy));
  const bool fill = !missing(values[1]) && !values[1].is(Kind::none);
  for (size_t i = 0; i < row_count * per_row; ++i)
    copy[i] = i < count ? item_of(items, i) : values[1];
  for (size_t i = 0; i < row_count; ++i)
    rows[i] = Value::of(Kind::list, copy + i * per_row,
                        fill ? per_row : std::min(per_row, count - i * per_row));
  return give_rows(call, rows, row_count);
}

Status filter_slice(const FilterCall& call) {
  Value values[2], items, *rows = nullptr, *copy = nullptr;
  static constexpr const char* kNames[] = {"slices", "fill_with", nullptr};
  MOTE_TRY(bind(call.arguments, kNames, 1, values));
  int64_t slices = 0;
  MOTE_TRY(integer_argument(values[0], &slices));
  MOTE_TRY(call.evaluator.iterate(call.input, &items));
  if (slices < 1 || slices > kMaxRange)
    return fail(MOTE_ERROR_TEMPLATE, "slice: %lld slices", static_cast<long long>(slices));
  const size_t count = count_of(items), row_count = static_cast<size_t>(slices);
  const size_t per_row = count / row_count, longer = count % row_count;
  MOTE_TRY(call.evaluator.take_items(row_count, &rows));
  MOTE_TRY(call.evaluator.take_items(count + row_count, &copy));
  const bool fill = !missing(values[1]) && !values[1].is(Kind::none);
  size_t at = 0;
  for (size_t i = 0; i < row_count; ++i) {
    rows[i] = Value::of(Kind::list, copy, per_row + (i < longer));
    for (size_t k = 0; k < rows[i].size; ++k) *copy++ = item_of(items, at++);
    if (fill && i >= longer) *copy++ = values[1], ++rows[i].size;
  }
  return give_rows(call, rows, row_count);
}

}  // namespace mote::chat
