// ALBERT: BERT with a narrow embedding and groups of layers that share their tensors: group g's are
// those of block g.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_albert(const GgufFile& file, const Log& log, Spec* spec) {
  ArchitectureKeys keys(file, "albert");
  MOTE_TRY(keys.encoder(spec));
  spec->always |= kEmbeddingProjection;
  uint32_t groups = 1;
  MOTE_TRY(file.get_u32("mote.layer_groups", 1, &groups));
  if (groups < 1 || groups > spec->layers)
    return file_error(file, MOTE_ERROR_BAD_FILE, "key mote.layer_groups: expected 1..%u, found %u",
                      spec->layers, groups);
  for (uint32_t i = 0; i < spec->layers; ++i)
    spec->layer[i].block = uint16_t(uint64_t{i} * groups / spec->layers);
  return keys.head(log, spec);
}

}  // namespace mote
