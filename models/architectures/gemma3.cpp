// Gemma 3: norms before and behind each block, norms of query and key heads; five layers with a
// window and a rotary base of their own, then one that sees everything. Files name neither the
// pattern nor the local base.
#include <cmath>

#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_gemma3(const GgufFile& file, const Log&, Spec* spec) {
  constexpr uint32_t kGlobalEvery = 6, kLayersOf27B = 62;
  constexpr float kLocalBase = 10000.0f;
  ArchitectureKeys keys(file, "gemma3");
  spec->always = kQueryKeyNorm;
  MOTE_TRY(keys.gemma(spec));
  MOTE_TRY(keys.f32("final_logit_softcapping", 0.0f, &spec->logit_cap));
  if (spec->layers == kLayersOf27B)
    spec->attention_scale = 1.0f / std::sqrt(float(spec->hidden / spec->heads));
  MOTE_TRY(keys.f32("attention.scale", spec->attention_scale, &spec->attention_scale));
  MOTE_TRY(keys.windows(kGlobalEvery, spec));
  MOTE_TRY(keys.local_rope(spec, kLocalBase));
  for (uint32_t i = 0; i < spec->layers; ++i)
    if (spec->layer[i].window) spec->layer[i].rope_set = 1;
  return kOk;
}

}  // namespace mote
