// Qwen3: LLaMA's blocks with RMS norms of each query and key head. Rotary positions on halves.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_qwen3(const GgufFile& file, const Log&, Spec* spec) {
  ArchitectureKeys keys(file, "qwen3");
  spec->always = kQueryKeyNorm;
  MOTE_TRY(keys.decoder(spec));
  return keys.windows(0, spec);
}

}  // namespace mote
