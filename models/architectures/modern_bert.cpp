// ModernBERT: norms before both blocks, but none before the first attention, whose input the
// embedding's norm gives; GELU gate; every third layer sees everything, the others a window around
// each token, with a rotary base of their own.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_modern_bert(const GgufFile& file, const Log& log, Spec* spec) {
  constexpr uint32_t kGlobalEvery = 3;
  constexpr float kGlobalBase = 160000.0f, kLocalBase = 10000.0f;
  ArchitectureKeys keys(file, "modern-bert");
  spec->always = kHeadNorm;
  MOTE_TRY(keys.encoder_sizes(spec));
  MOTE_TRY(keys.activation("mote.activation", ActivationKind::gelu_erf, &spec->activation));
  if (spec->activation != ActivationKind::gelu_erf &&
      spec->activation != ActivationKind::gelu_tanh && spec->activation != ActivationKind::silu)
    return file_error(
        file, MOTE_ERROR_UNSUPPORTED,
        "key mote.activation: expected gelu, gelu_tanh or silu, which gates have here");
  MOTE_TRY(keys.windows(kGlobalEvery, spec, true));
  MOTE_TRY(keys.rope(spec, kGlobalBase));
  MOTE_TRY(keys.local_rope(spec, kLocalBase));
  for (uint32_t i = 0; i < spec->layers; ++i) {
    LayerSpec& layer = spec->layer[i];
    layer.attention_norm = i > 0;
    if (!layer.window) continue;
    layer.rope_set = 1;
    layer.window = layer.window / 2 + 1;  // the file counts both sides
  }
  return keys.head(log, spec);
}

}  // namespace mote
