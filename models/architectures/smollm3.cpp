// SmolLM3: LLaMA's blocks; every fourth layer has no rotary positions, unless the file says which
// have them, in a key of our own as GGUF has none.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_smollm3(const GgufFile& file, const Log&, Spec* spec) {
  constexpr uint32_t kInterval = 4;
  ArchitectureKeys keys(file, "smollm3");
  MOTE_TRY(keys.decoder(spec));
  spec->rope[0].interleaved = true;
  const GgufKey* turned = nullptr;
  if (file.find("mote.rope.layers"))
    MOTE_TRY(file.get_array("mote.rope.layers", GgufType::boolean, spec->layers, &turned));
  for (uint32_t i = 0; i < spec->layers; ++i)
    spec->layer[i].rope = turned ? turned->data[i] != 0 : (i + 1) % kInterval != 0;
  return kOk;
}

}  // namespace mote
