// SmolLM3: LLaMA's blocks; every fourth layer has no rotary positions.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_smollm3(const GgufFile& file, const Log&, Spec* spec) {
  constexpr uint32_t kInterval = 4;
  ArchitectureKeys keys(file, "smollm3");
  MOTE_TRY(keys.decoder(spec));
  spec->rope[0].interleaved = true;
  for (uint32_t i = kInterval - 1; i < spec->layers; i += kInterval) spec->layer[i].rope = false;
  return kOk;
}

}  // namespace mote
