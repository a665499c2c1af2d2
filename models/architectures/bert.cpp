// BERT, and what GGUF files call so: DistilBERT, RoBERTa and XLM-RoBERTa, whose table of positions
// begins at their first position.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_bert(const GgufFile& file, const Log& log, Spec* spec) {
  ArchitectureKeys keys(file, "bert");
  MOTE_TRY(keys.encoder(spec));
  return keys.head(log, spec);
}

}  // namespace mote
