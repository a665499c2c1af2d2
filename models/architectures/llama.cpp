// LLaMA and what shares its blocks (Mistral, SmolLM2): RMS norm before attention and feed-forward,
// rotary positions on interleaved pairs (as GGUF stores q and k of this architecture), SiLU gate.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_llama(const GgufFile& file, const Log&, Spec* spec) {
  ArchitectureKeys keys(file, "llama");
  MOTE_TRY(keys.decoder(spec));
  spec->rope[0].interleaved = true;
  uint32_t experts = 0;
  MOTE_TRY(keys.u32("expert_count", 0, &experts));
  if (experts > 0)
    return file_error(file, MOTE_ERROR_UNSUPPORTED,
                      "key llama.expert_count: expected 0, found %u (mixture of experts)", experts);
  return keys.windows(0, spec);
}

}  // namespace mote
