// Granite: LLaMA's blocks with multipliers of embedding, scores, residual branches and logits.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_granite(const GgufFile& file, const Log&, Spec* spec) {
  ArchitectureKeys keys(file, "granite");
  MOTE_TRY(keys.decoder(spec));
  spec->rope[0].interleaved = true;
  MOTE_TRY(keys.f32("embedding_scale", 1.0f, &spec->embedding_scale));
  MOTE_TRY(keys.f32("residual_scale", 1.0f, &spec->residual_scale));
  MOTE_TRY(keys.f32("attention.scale", 0.0f, &spec->attention_scale));
  float divisor = 1.0f;
  MOTE_TRY(keys.f32("logit_scale", 1.0f, &divisor));
  if (divisor == 0.0f)
    return file_error(file, MOTE_ERROR_BAD_FILE,
                      "key granite.logit_scale: expected another number than 0");
  spec->logit_scale = 1.0f / divisor;
  return kOk;
}

}  // namespace mote
