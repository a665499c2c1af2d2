// Phi-3: LLaMA's blocks with q, k, v in one matrix, gate and up in another, and a window in every
// layer.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_phi3(const GgufFile& file, const Log&, Spec* spec) {
  ArchitectureKeys keys(file, "phi3");
  MOTE_TRY(keys.decoder(spec));
  if (file.find_tensor("rope_factors_long.weight"))
    return file_error(
        file, MOTE_ERROR_UNSUPPORTED,
        "tensor rope_factors_long.weight: rotary positions with factors for long and short "
        "contexts have no implementation here");
  return keys.windows(0, spec);
}

}  // namespace mote
