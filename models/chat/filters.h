// How filters are written: one function each, found by name in the table of filters.cpp.
#pragma once

#include "models/chat/evaluate.h"

namespace mote::chat {

struct FilterCall {
  Evaluator& evaluator;
  const Value& input;
  const Arguments& arguments;
  Value* result;

  Heap& heap() const { return evaluator.heap; }
  Work& work() const { return evaluator.work; }
  Status give(const Value& value) const {
    *result = value;
    return kOk;
  }
};
using Filter = Status (*)(const FilterCall& call);

// An argument that is an integer; missing or none: stays what it is.
Status integer_argument(const Value& value, int64_t* integer);

// sequence_filters.cpp
Status filter_batch(const FilterCall& call);
Status filter_dictsort(const FilterCall& call);
Status filter_first(const FilterCall& call);
Status filter_groupby(const FilterCall& call);
Status filter_items(const FilterCall& call);
Status filter_join(const FilterCall& call);
Status filter_last(const FilterCall& call);
Status filter_length(const FilterCall& call);
Status filter_list(const FilterCall& call);
Status filter_map(const FilterCall& call);
Status filter_max(const FilterCall& call);
Status filter_min(const FilterCall& call);
Status filter_reject(const FilterCall& call);
Status filter_rejectattr(const FilterCall& call);
Status filter_reverse(const FilterCall& call);
Status filter_select(const FilterCall& call);
Status filter_selectattr(const FilterCall& call);
Status filter_slice(const FilterCall& call);
Status filter_sort(const FilterCall& call);
Status filter_sum(const FilterCall& call);
Status filter_unique(const FilterCall& call);

}  // namespace mote::chat
