// NomicBERT: BERT's norms and token types, rotary positions on halves, SiLU gate, no biases of
// matrices.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_nomic_bert(const GgufFile& file, const Log& log, Spec* spec) {
  ArchitectureKeys keys(file, "nomic-bert");
  MOTE_TRY(keys.encoder_sizes(spec));
  spec->norm_place = NormPlace::residual;
  spec->always = kNormBias;
  MOTE_TRY(keys.rope(spec, 1000.0f));
  return keys.head(log, spec);
}

}  // namespace mote
