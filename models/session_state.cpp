// Saving a session and restoring it elsewhere. A state is, little-endian and without gaps: a
// StateHeader; the ids of the held tokens, int32; what the cache holds (KvCache::save); a hash of
// all that, 8 bytes.
#include <cinttypes>
#include <cstring>

#include "core/hash.h"
#include "models/session.h"

namespace mote {
namespace {

constexpr char kMagic[8] = {'m', 'o', 't', 'e', 'k', 'e', 'e', 'p'};
constexpr uint32_t kVersion = 1;

struct StateHeader {
  char magic[8];
  uint32_t version;
  uint32_t kv_type;
  uint64_t bytes;  // of the whole state
  uint64_t model;  // fingerprint()
  uint64_t capacity, batch_tokens;
  uint64_t held, computed, reached;
  uint64_t seed, drawn;
};
static_assert(sizeof(StateHeader) == 88 && alignof(StateHeader) == 8);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as GGUF files are read in place, too");
constexpr size_t kHashBytes = sizeof(uint64_t);

constexpr const char* kTypeNames[] = {"f16", "q8_0", "f32"};

// Which file this is: all of its header (keys, tokens, tensor table) and a few bytes of each
// tensor, so that it takes no seconds. Weights that were trained further differ everywhere.
uint64_t fingerprint(const mote_model& model) {
  constexpr size_t kSample = 64, kSamples = 4;
  const uint8_t *begin = model.file.data(), *end = begin + model.file.size(), *data = end;
  for (const Tensor& tensor : model.gguf.tensors())
    if (tensor.bytes && tensor.data < data) data = tensor.data;
  uint64_t hash = hash_bytes(begin, static_cast<size_t>(data - begin), model.file.size());
  for (const Tensor& tensor : model.gguf.tensors()) {
    if (tensor.bytes <= kSample * kSamples) {
      hash = hash_bytes(tensor.data, tensor.bytes, hash);
      continue;
    }
    for (size_t i = 0; i < kSamples; ++i)
      hash = hash_bytes(tensor.data + (tensor.bytes - kSample) / (kSamples - 1) * i, kSample, hash);
  }
  return hash;
}

StateHeader header_of(mote_session& session) {
  if (!session.has_fingerprint) {
    session.fingerprint = fingerprint(*session.model);
    session.has_fingerprint = true;
  }
  const KvCache& cache = session.transformer.cache();
  StateHeader header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.kv_type = uint32_t(session.sizes.kv_type);
  header.model = session.fingerprint;
  header.capacity = session.sizes.capacity;
  header.batch_tokens = session.sizes.batch_tokens;
  header.held = session.held;
  header.computed = session.computed;
  header.reached = cache.reached();
  header.seed = session.sampler.state().seed;
  header.drawn = session.sampler.state().drawn;
  header.bytes = sizeof header + session.held * sizeof(int32_t) +
                 cache.state_bytes(session.computed, cache.reached()) + kHashBytes;
  return header;
}

Status refuse(const char* what, uint64_t expected, uint64_t found) {
  return fail(MOTE_ERROR_STATE, "state: %s: expected %" PRIu64 ", found %" PRIu64, what, expected,
              found);
}

// That the bytes are a whole state of this version, as it was saved.
Status check_whole(const uint8_t* state, size_t bytes, StateHeader* header) {
  if (bytes < sizeof *header + kHashBytes)
    return fail(MOTE_ERROR_STATE, "state: cut short: expected at least %zu bytes, found %zu",
                sizeof *header + kHashBytes, bytes);
  std::memcpy(header, state, sizeof *header);
  if (std::memcmp(header->magic, kMagic, sizeof kMagic) != 0)
    return fail(MOTE_ERROR_STATE, "state: expected a saved session, found %.8s", header->magic);
  if (header->version != kVersion) return refuse("version", kVersion, header->version);
  if (header->bytes != bytes)
    return refuse(header->bytes > bytes ? "cut short: bytes" : "bytes", header->bytes, bytes);
  uint64_t hash = 0;
  std::memcpy(&hash, state + bytes - kHashBytes, kHashBytes);
  if (const uint64_t expected = hash_bytes(state, bytes - kHashBytes); hash != expected)
    return fail(MOTE_ERROR_STATE,
                "state: damaged: expected checksum %016" PRIx64 ", found %016" PRIx64, expected,
                hash);
  return kOk;
}

// That it is one of a session like this.
Status check_options(mote_session& session, const StateHeader& header) {
  const StateHeader own = header_of(session);
  if (header.model != own.model)
    return fail(MOTE_ERROR_STATE,
                "state: of another model than %s: expected fingerprint %016" PRIx64
                ", found %016" PRIx64,
                session.model->name, own.model, header.model);
  if (header.kv_type != own.kv_type)
    return fail(MOTE_ERROR_STATE, "state: kv_type: expected %s, found %s", kTypeNames[own.kv_type],
                header.kv_type < 3 ? kTypeNames[header.kv_type] : "one that is not known");
  if (header.capacity != own.capacity) return refuse("capacity", own.capacity, header.capacity);
  if (!session.transformer.cache().same_rings(header.batch_tokens))
    return refuse("batch_tokens (the model's attention windows keep that many tokens more)",
                  own.batch_tokens, header.batch_tokens);
  return kOk;
}

// That its counts and ids are some that a session can have: the checksum does not say who made it.
Status check_content(const mote_session& session, const StateHeader& header, const uint8_t* ids) {
  const KvCache& cache = session.transformer.cache();
  if (header.held > header.capacity)
    return fail(MOTE_ERROR_STATE, "state: tokens: expected at most %zu, found %" PRIu64,
                session.sizes.capacity, header.held);
  if (header.computed > header.held || header.reached > header.capacity ||
      header.reached < header.computed ||
      !cache.still_holds(size_t(header.reached), size_t(header.computed)))
    return fail(MOTE_ERROR_STATE,
                "state: positions: expected some that a session can have, found %" PRIu64
                " tokens, %" PRIu64 " of them computed, at most %" PRIu64,
                header.held, header.computed, header.reached);
  const uint64_t expected = sizeof header + header.held * sizeof(int32_t) +
                            cache.state_bytes(size_t(header.computed), size_t(header.reached)) +
                            kHashBytes;
  if (header.bytes != expected) return refuse("bytes", expected, header.bytes);
  const uint32_t vocabulary = session.model->transformer.spec.vocabulary;
  for (size_t i = 0; i < header.held; ++i) {
    int32_t id = 0;
    std::memcpy(&id, ids + i * sizeof id, sizeof id);
    if (id < 0 || uint32_t(id) >= vocabulary)
      return fail(MOTE_ERROR_STATE, "state: token %zu: expected an id of 0..%u, found %d", i,
                  vocabulary - 1, id);
  }
  return kOk;
}

}  // namespace

Status save_state(mote_session& session, void* buffer, size_t capacity, size_t* bytes) {
  const StateHeader header = header_of(session);
  *bytes = size_t(header.bytes);
  if (!buffer) return kOk;
  if (capacity < header.bytes)
    return fail(MOTE_ERROR_BUFFER, "state: expected room for %" PRIu64 " bytes, found %zu",
                header.bytes, capacity);
  auto* out = static_cast<uint8_t*>(buffer);
  std::memcpy(out, &header, sizeof header);
  uint8_t* at = out + sizeof header;
  std::memcpy(at, session.history, session.held * sizeof(int32_t));
  at += session.held * sizeof(int32_t);
  at = session.transformer.cache().save(session.computed, at);
  const uint64_t hash = hash_bytes(out, size_t(at - out));
  std::memcpy(at, &hash, sizeof hash);
  return kOk;
}

Status restore_state(mote_session& session, const void* state, size_t bytes) {
  const auto* in = static_cast<const uint8_t*>(state);
  StateHeader header;
  MOTE_TRY(check_whole(in, bytes, &header));
  MOTE_TRY(check_options(session, header));
  const uint8_t* ids = in + sizeof header;
  MOTE_TRY(check_content(session, header, ids));
  session.held = size_t(header.held);
  session.computed = size_t(header.computed);
  session.last_chunk = 0;
  session.sampler.restore({header.seed, header.drawn});
  std::memcpy(session.history, ids, session.held * sizeof(int32_t));
  session.transformer.cache().restore(session.computed, size_t(header.reached),
                                      ids + session.held * sizeof(int32_t));
  return kOk;
}

}  // namespace mote
