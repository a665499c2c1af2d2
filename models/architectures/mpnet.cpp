// MPNet: BERT without token types and with a bias by relative distance, which all layers share.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_mpnet(const GgufFile& file, const Log& log, Spec* spec) {
  ArchitectureKeys keys(file, "mpnet");
  MOTE_TRY(keys.encoder(spec));
  MOTE_TRY(keys.count("attention.relative_buckets_count", 4, 1u << 16, &spec->relative_buckets));
  return keys.head(log, spec);
}

}  // namespace mote
