// The kernels of kernels.inc, declared in the namespace of this instruction set.
#pragma once

#include "kernels/kernels.h"

namespace mote::MOTE_ISA {
#define KERNEL(type, name, parameters) type name parameters;
#include "kernels/kernels.inc"
#undef KERNEL
}  // namespace mote::MOTE_ISA
