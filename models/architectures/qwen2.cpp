// Qwen2: LLaMA's blocks with biases of q, k and v. Rotary positions on halves.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_qwen2(const GgufFile& file, const Log&, Spec* spec) {
  ArchitectureKeys keys(file, "qwen2");
  spec->always = kQueryKeyValueBias;
  MOTE_TRY(keys.decoder(spec));
  return keys.windows(0, spec);
}

}  // namespace mote
