// Runs a syntax tree: statements write to an output, expressions make values in a heap.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"
#include "models/chat/node.h"
#include "models/chat/value.h"

namespace mote::chat {

// What a template may do at most.
inline constexpr uint64_t kMaxSteps = 10'000'000;  // nodes evaluated and the like: about a second
inline constexpr int kMaxDepth = 160;              // of nested evaluations
inline constexpr uint32_t kMaxScopes = 64;         // of nested loops, macros and blocks
inline constexpr int64_t kMaxRange = 100'000;      // elements of range(), as in Jinja's sandbox

struct Arguments {
  const Value* values = nullptr;
  size_t count = 0;
  const Entry* keywords = nullptr;
  size_t keyword_count = 0;
};

// Spreads arguments over parameters by place and name. A parameter that is not given stays
// missing(). names end with a null pointer; the first `required` ones must be given.
Status bind(const Arguments& arguments, const char* const* names, size_t required, Value* values);
inline bool missing(const Value& value) { return value.kind == Kind::undefined && !value.text; }

// Where statements write: the caller's buffer, or chunks in the heap that become a value.
class Output {
 public:
  Output(Heap& heap, char* text, size_t capacity) : heap_(heap), text_(text), capacity_(capacity) {}
  explicit Output(Heap& heap) : heap_(heap), captures_(true) {}
  // Writes text and releases the heap's memory above mark, where text may lie.
  Status write(std::string_view text, size_t mark);
  Status write(std::string_view text) { return write(text, heap_.mark()); }
  // What was captured, as one text in the heap.
  Status finish(std::string_view* text);
  size_t length() const { return length_; }

 private:
  struct Chunk {
    Chunk* next;
    size_t size;
    char* text;
  };
  Heap& heap_;
  bool captures_ = false;
  char* text_ = nullptr;
  size_t capacity_ = 0, length_ = 0;
  Chunk* first_ = nullptr;
  Chunk* last_ = nullptr;
};

class Evaluator {
 public:
  Evaluator(const Node* nodes, Heap& heap, Output& output)
      : heap(heap), nodes_(nodes), output_(&output) {}

  // Defines a variable of the outermost scope.
  Status define(std::string_view name, const Value& value);
  // Variables that are looked up last; a dict.
  void set_context(const Value& context) { context_ = context; }
  // Seconds since 1970 for strftime_now; without it strftime_now is undefined.
  void set_now(int64_t seconds) { now_ = seconds, has_now_ = true; }
  Status run(uint32_t body);
  uint32_t line() const { return line_; }

  // For filters, tests, methods and functions.
  Heap& heap;
  Work work{kMaxSteps};
  int64_t now() const { return now_; }
  Status spend(uint64_t steps);
  // items: something to go through with item_of, made of any value that Python iterates over.
  Status iterate(const Value& value, Value* items);
  Status take_items(size_t count, Value** items);
  Status attribute(const Value& object, std::string_view name, Value* result);
  Status item(const Value& object, const Value& index, Value* result);
  // "a.b.0", as the filters map, sort, sum ... take it.
  Status attribute_path(const Value& object, const Value& path, Value* result);
  Status call(const Value& callee, const Arguments& arguments, Value* result);

 private:
  enum class Flow : uint8_t { go, leave, proceed };
  struct Variable {
    std::string_view name;
    Value value;
  };
  struct Scope {
    uint32_t parent, first;  // first: variables_ when it began
    uint64_t serial;
    size_t mark;
  };

  // scope.cpp, execute.cpp, blocks.cpp: variables and statements.
  Status execute(uint32_t first);
  Status execute_one(const Node& node);
  Status print(const Node& node);
  Status branch(const Node& node);
  Status loop(const Node& node);
  Status run_loop(const Node& node, const Value& iterable, uint32_t scope, uint32_t depth);
  Status filter_items(const Node& target, uint32_t condition, uint32_t scope, Value* items);
  Status set(const Node& node);
  Status set_block(const Node& node);
  Status with(const Node& node);
  Status filter_block(const Node& node);
  Status call_block(const Node& node);
  Status make_macro(const Node& node, std::string_view name, uint32_t parameters, Value* macro);
  Status call_macro(const Macro& macro, const Arguments& arguments, Value* result);
  Status bind_parameters(const Macro& macro, const Arguments& arguments);
  Status call_loop(const Loop& loop, const Arguments& arguments, Value* result);
  Status capture(uint32_t body, Value* text);
  Status assign(const Node& target, const Value& value);
  Status assign_attribute(const Node& target, const Value& value);
  Status open_scope(uint32_t parent);
  void close_scope();
  Status set_variable(std::string_view name, const Value& value);
  bool find_variable(std::string_view name, Value* value);
  Variable& variable(uint32_t index) { return variables_end_[-1 - static_cast<int64_t>(index)]; }

  // evaluate.cpp: expressions.
  Status evaluate(uint32_t index, Value* value);
  Status evaluate_node(const Node& node, Value* value);
  Status evaluate_name(const Node& node, Value* value);
  Status evaluate_words(const Node& node, Value* value);
  Status evaluate_compare(const Node& node, Value* value);
  Status evaluate_arithmetic(const Node& node, Value* value);
  Status evaluate_concat(const Node& node, Value* value);
  Status evaluate_conditional(const Node& node, Value* value);
  Status evaluate_items(const Node& node, Value* value);
  Status evaluate_dict(const Node& node, Value* value);
  Status evaluate_item(const Node& node, Value* value);
  Status evaluate_slice(const Node& node, const Value& object, Value* value);
  Status evaluate_call(const Node& node, const Entry* caller, Value* value);
  Status evaluate_filter(const Node& node, Value* value);
  Status evaluate_test(const Node& node, Value* value);
  // last: one more keyword argument, or null.
  Status evaluate_arguments(uint32_t first, const Entry* last, Arguments* arguments);
  const Node& node(uint32_t index) const { return nodes_[index]; }

  const Node* nodes_;
  Output* output_;
  Value context_;
  Value captured_;
  int64_t now_ = 0;
  bool has_now_ = false;
  uint32_t line_ = 1;
  int depth_ = 0;
  Flow flow_ = Flow::go;
  Variable* variables_end_ = nullptr;  // one past the first variable: they lie backwards
  uint32_t variables_ = 0;
  uint32_t scope_ = 0, scope_count_ = 0;
  uint64_t serial_ = 0;
  Scope scopes_[kMaxScopes];
};

// operators.cpp
Status arithmetic(Op op, const Value& left, const Value& right, Evaluator& evaluator,
                  Value* result);
Status negate(const Value& value, Value* result);
Status compare_by(Op op, const Value& left, const Value& right, Work& work, bool* result);
Status slice_value(const Value& object, const Value& start, const Value& stop, const Value& step,
                   Evaluator& evaluator, Value* result);

// filters.cpp, sequence_filters.cpp, tests.cpp: by the numbers that the parser found.
Status apply_filter(uint8_t filter, Evaluator& evaluator, const Value& input,
                    const Arguments& arguments, Value* result);
Status apply_test(uint8_t test, Evaluator& evaluator, const Value& input,
                  const Arguments& arguments, bool* result);

// functions.cpp: index, first, last ... of the variable of a loop; false: it is none, or has no
// such attribute.
bool loop_attribute(const Value& object, std::string_view name, Value* result);
// detail of the tuples that groupby makes.
inline constexpr uint8_t kGroup = 1;

// methods.cpp: methods of texts, dicts, lists ...; false: the object has no such method.
bool find_method(const Value& object, std::string_view name, uint8_t* method);
Status call_method(uint8_t method, Evaluator& evaluator, const Value& self,
                   const Arguments& arguments, Value* result);

// functions.cpp: range, namespace, raise_exception ...
bool find_function(std::string_view name, bool has_now, uint8_t* function);
Status call_function(uint8_t function, Evaluator& evaluator, const Arguments& arguments,
                     Value* result);

}  // namespace mote::chat
