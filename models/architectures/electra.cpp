// ELECTRA: BERT whose embedding may be narrower than its layers.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_electra(const GgufFile& file, const Log& log, Spec* spec) {
  ArchitectureKeys keys(file, "electra");
  MOTE_TRY(keys.encoder(spec));
  return keys.head(log, spec);
}

}  // namespace mote
