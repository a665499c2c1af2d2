#include "kernels/declarations.h"

#define MOTE_STRING_OF(name) #name
#define MOTE_STRING(name) MOTE_STRING_OF(name)

namespace mote::MOTE_ISA {

extern const Kernels table;
const Kernels table = {
    MOTE_STRING(MOTE_ISA),
#define KERNEL(type, name, parameters) name,
#include "kernels/kernels.inc"
#undef KERNEL
};

}  // namespace mote::MOTE_ISA
