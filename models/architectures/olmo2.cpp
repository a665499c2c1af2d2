// OLMo 2: RMS norms behind attention and feed-forward instead of before, and over all query and all
// key heads at once.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_olmo2(const GgufFile& file, const Log&, Spec* spec) {
  ArchitectureKeys keys(file, "olmo2");
  MOTE_TRY(keys.decoder(spec));
  spec->norm_place = NormPlace::post;
  spec->query_norm = QueryNorm::all_heads;
  return kOk;
}

}  // namespace mote
