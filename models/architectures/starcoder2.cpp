// StarCoder2: layer norms, biases everywhere, a feed-forward without gate, and a window in every
// layer. Rotary positions on halves.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_starcoder2(const GgufFile& file, const Log&, Spec* spec) {
  ArchitectureKeys keys(file, "starcoder2");
  spec->norm = Norm::layer;
  spec->always = kNormBias;
  spec->activation = ActivationKind::gelu_tanh;
  spec->gated = false;
  MOTE_TRY(keys.decoder(spec));
  return keys.windows(0, spec);
}

}  // namespace mote
