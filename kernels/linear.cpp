#include "kernels/declarations.h"
#include "kernels/linear_blocks.h"
#include "kernels/linear_floats.h"

namespace mote::MOTE_ISA {
namespace {

template <class F, class = void>
struct Family {
  static constexpr auto run = linear_floats<F>;
};
template <class F>
struct Family<F, decltype(void(F::kWeights))> {
  static constexpr auto run = F::Rows::kStep == 1 ? linear_blocks<F> : linear_packed_blocks<F>;
};

}  // namespace

#define LINEAR(format) \
  void linear_##format(const LinearTask* task) { Family<formats::format>::run(*task); }
#include "kernels/linear_formats.inc"
#undef LINEAR

}  // namespace mote::MOTE_ISA
