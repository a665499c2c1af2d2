// Rows of values from one format to another, on several threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"
#include "core/threads.h"

namespace mote::tool {

class RowEncoder {
 public:
  // threads: 0 for as many as there are fast cores.
  explicit RowEncoder(uint32_t threads);
  RowEncoder(const RowEncoder&) = delete;
  RowEncoder& operator=(const RowEncoder&) = delete;
  ~RowEncoder();

  // source: rows of `columns` values, whole blocks of both formats. importance: [columns], or null.
  // Returns the sum of squared differences between the values and what out says. Throws Failure
  // that begins with `what` where a value is not finite or the format cannot hold it, and when the
  // user has interrupted the run.
  double encode(const std::string& what, Format from, const uint8_t* source, Format to, size_t rows,
                size_t columns, const float* importance, uint8_t* out);

 private:
  Allocator allocator_;
  size_t bytes_ = 0;
  void* memory_ = nullptr;  // of the team
  Team team_;
  std::vector<std::vector<float>> scratch_;  // per thread
  std::vector<double> errors_;               // per row
};

// Rows that are worth one call: about a million values.
uint64_t rows_per_chunk(uint64_t columns);

}  // namespace mote::tool
