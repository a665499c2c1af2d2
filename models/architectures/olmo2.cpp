// OLMo 2: RMS norms behind attention and feed-forward instead of before, and over all query and all
// key heads at once.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_olmo2(const GgufFile& file, const Log&, Spec* spec) {
  ArchitectureKeys keys(file, "olmo2");
  MOTE_TRY(keys.decoder(spec));
  uint32_t window = 0;
  MOTE_TRY(keys.u32("attention.sliding_window", 0, &window));
  if (window > 0)  // OLMo 3, in files of the same architecture
    return file_error(file, MOTE_ERROR_UNSUPPORTED,
                      "key olmo2.attention.sliding_window: expected 0, found %u (OLMo 3)", window);
  spec->norm_place = NormPlace::post;
  spec->query_norm = QueryNorm::all_heads;
  spec->always = kQueryKeyNorm;
  return kOk;
}

}  // namespace mote
