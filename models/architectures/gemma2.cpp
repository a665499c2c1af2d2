// Gemma 2: norms before and behind each block, capped scores and logits, a window in every other
// layer.
#include <cmath>

#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_gemma2(const GgufFile& file, const Log&, Spec* spec) {
  constexpr uint32_t kWindow = 4096, kGlobalEvery = 2, kLayersOf27B = 46;
  ArchitectureKeys keys(file, "gemma2");
  MOTE_TRY(keys.gemma(spec));
  MOTE_TRY(keys.f32("attn_logit_softcapping", 50.0f, &spec->attention_cap));
  MOTE_TRY(keys.f32("final_logit_softcapping", 30.0f, &spec->logit_cap));
  if (spec->layers == kLayersOf27B)
    spec->attention_scale = 1.0f / std::sqrt(float(spec->hidden / spec->heads));
  MOTE_TRY(keys.f32("attention.scale", spec->attention_scale, &spec->attention_scale));
  MOTE_TRY(keys.windows(kGlobalEvery, spec));
  if (!file.find(keys.name("attention.sliding_window")))
    for (uint32_t i = 0; i < spec->layers; i += kGlobalEvery) spec->layer[i].window = kWindow;
  return kOk;
}

}  // namespace mote
