// StableLM: layer norms, a part of each head turns; without a norm of its own the feed-forward runs
// beside attention.
#include "models/architectures/keys.h"
#include "models/spec.h"

namespace mote {

Status read_stablelm(const GgufFile& file, const Log&, Spec* spec) {
  ArchitectureKeys keys(file, "stablelm");
  spec->norm = Norm::layer;
  spec->always = kNormBias;
  MOTE_TRY(keys.decoder(spec));
  // Where the norm is missing the key may still say that there should be one.
  bool parallel = true;
  MOTE_TRY(file.get_bool(keys.name("use_parallel_residual"), true, &parallel));
  spec->parallel = parallel && file.find_tensor("blk.0.ffn_norm.weight") == nullptr;
  if (file.find_tensor("blk.0.attn_q_norm.weight"))
    return file_error(
        file, MOTE_ERROR_UNSUPPORTED,
        "tensor blk.0.attn_q_norm.weight: layer norms of heads have no implementation here");
  return kOk;
}

}  // namespace mote
