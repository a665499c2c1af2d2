#include "models/session.h"

#include <time.h>

#include <algorithm>
#include <cstring>

using mote::fail;
using mote::kOk;
using mote::Outcome;
using mote::Status;

namespace mote {

int64_t local_utc_offset() {
  const time_t now = time(nullptr);
  tm local = {};
  return localtime_r(&now, &local) ? int64_t(local.tm_gmtoff) : 0;
}

namespace {

constexpr uint32_t kDefaultCapacity = 2048, kDefaultBatch = 256, kDefaultTextBytesPerToken = 16;
constexpr uint32_t kMaxThreads = 256;
constexpr size_t kMaxTextBytes = size_t(1) << 30;
constexpr size_t kMaxBatch = size_t(1) << 26;
constexpr size_t kRenderedSlack = 4096;  // what a template adds to a short text

}  // namespace

Status resolve_sizes(const mote_model& model, const mote_session_options& options,
                     SessionSizes* sizes) {
  const Spec& spec = model.transformer.spec;
  const bool encoder = model.has_weights && !spec.causal;
  const uint32_t context = model.has_weights ? spec.context : kDefaultCapacity;
  const uint32_t usual = encoder ? spec.max_tokens : context;
  sizes->capacity = options.capacity ? options.capacity : std::min(kDefaultCapacity, usual);
  if (model.has_weights && sizes->capacity > context)
    return fail(
        MOTE_ERROR_CONTEXT,
        "session capacity: expected at most the %u tokens that %s was trained for, found %zu",
        context, model.name, sizes->capacity);
  sizes->batch_tokens = options.batch_tokens ? options.batch_tokens : kDefaultBatch;
  // A generator computes a long prompt in parts; a text of an encoder goes through in one.
  sizes->batch_tokens = encoder ? std::max(sizes->batch_tokens, sizes->capacity)
                                : std::min(sizes->batch_tokens, sizes->capacity);
  if (sizes->batch_tokens > kMaxBatch)
    return fail(MOTE_ERROR_ARGUMENT, "session batch_tokens: expected at most %zu, found %zu",
                kMaxBatch, sizes->batch_tokens);
  // 64 bits: a size_t may have 32, which the product for a vocabulary's capacity can pass.
  const uint64_t text_bytes = options.text_bytes
                                  ? options.text_bytes
                                  : uint64_t(sizes->capacity) * kDefaultTextBytesPerToken;
  if (text_bytes > kMaxTextBytes)
    return fail(MOTE_ERROR_ARGUMENT, "session text_bytes: expected at most %zu, found %llu",
                kMaxTextBytes, static_cast<unsigned long long>(text_bytes));
  sizes->text_bytes = size_t(text_bytes);
  if (options.kv_type > MOTE_KV_F32)
    return fail(MOTE_ERROR_ARGUMENT,
                "session kv_type: expected 0 (f16), 1 (q8_0) or 2 (f32), found %u",
                options.kv_type);
  sizes->kv_type = KvType(options.kv_type);
  sizes->threads = options.threads ? options.threads : default_thread_count();
  if (sizes->threads > kMaxThreads)
    return fail(MOTE_ERROR_ARGUMENT, "session threads: expected at most %u, found %u", kMaxThreads,
                sizes->threads);
  return kOk;
}

size_t session_bytes(const mote_model& model, const SessionSizes& sizes) {
  Arena arena;
  arena.take<mote_session>(1);
  mote_session probe;
  probe.plan(arena, model, sizes);
  return arena.used() > SIZE_MAX - Arena::kAlignment ? SIZE_MAX
                                                     : arena.used() + Arena::kAlignment - 1;
}

}  // namespace mote

void mote_session::plan(mote::Arena& arena, const mote_model& open_model,
                        const mote::SessionSizes& with) {
  model = &open_model;
  sizes = with;
  team.plan(arena, with.threads);
  if (open_model.has_weights) {
    transformer.plan(arena, open_model.transformer, with.kv_type, with.capacity, with.batch_tokens,
                     with.threads);
  }
  if (open_model.has_weights && open_model.transformer.spec.causal) {
    history = arena.take<int32_t>(with.capacity);
    prompt = arena.take<int32_t>(with.capacity);
    sampler.plan(arena, open_model.transformer.spec.vocabulary);
  }
  if (open_model.has_weights && open_model.tokenizer.present()) text.plan(arena, open_model, with);
  plan_text(arena);
}

void mote_session::plan_text(mote::Arena& arena) {
  const mote::Tokenizer& tokenizer = model->tokenizer;
  const size_t guarded = mote::guarded_bytes(sizes.text_bytes);
  mote::Arena for_template, for_tokenizer;  // scratch: first the one, then the other
  if (model->chat.present()) {
    for_template.take<mote_message>(sizes.capacity);
    for_template.take<char>(guarded);
    for_template.take<uint8_t>(model->chat.scratch_bytes(guarded));
  }
  if (tokenizer.present()) {
    rendered_bytes = model->chat.present() ? 2 * guarded + mote::kRenderedSlack : 0;
    rendered = arena.take<char>(rendered_bytes);
    tokens = arena.take<mote_token>(sizes.capacity + 1);
    piece = arena.take<char>(tokenizer.longest_piece());
    characters = arena.take<char>(3, tokenizer.longest_piece() + 4);
    stops.plan(arena, 3 * tokenizer.longest_piece() + 12);
    for_tokenizer.take<uint32_t>(guarded);
    for_tokenizer.take<uint8_t>(
        tokenizer.scratch_bytes(std::max(sizes.text_bytes, rendered_bytes)));
  }
  scratch_bytes = std::max(for_template.used(), for_tokenizer.used());
  scratch = arena.take<uint8_t>(scratch_bytes);
}

Outcome mote_session::compute(const mote::Stop& stop, const mote::Progress& progress) {
  const size_t first = computed;
  while (computed < held) {
    const size_t tokens_now = std::min(sizes.batch_tokens, held - computed);
    if (!transformer.forward(team, history + computed, tokens_now, computed, stop, nullptr))
      return stop.timed_out() ? Outcome::deadline : Outcome::cancelled;
    computed += tokens_now;
    last_chunk = tokens_now;
    if (progress.callback) progress.callback(progress.user, computed - first, held - first);
  }
  return Outcome::done;
}

// A chunk may overwrite what a ring's windows no longer see from its first token on. That is all
// that the held tokens need later, however many of those ahead are dropped.
Outcome mote_session::compute_ahead(const mote::Stop& stop, size_t ahead) {
  const size_t tokens_now = held - computed + ahead;
  if (!transformer.forward(team, history + computed, tokens_now, computed, stop, nullptr))
    return stop.timed_out() ? Outcome::deadline : Outcome::cancelled;
  computed = held;
  last_chunk = tokens_now;
  return Outcome::done;
}

float* mote_session::last_logits(size_t count) {
  return transformer.logits(team, last_chunk - count, count);
}

Status mote_session::rewind(size_t position) {
  if (position > held)
    return fail(MOTE_ERROR_ARGUMENT, "rewind: expected a position up to %zu, found %zu", held,
                position);
  if (position < computed && position > 0 && !transformer.cache().can_rewind(computed, position))
    return fail(MOTE_ERROR_STATE,
                "rewind: position %zu is too far back of %zu for the model's attention windows",
                position, computed);
  held = position;
  computed = std::min(computed, position);
  return kOk;
}

Status mote_session::check_ids(const int32_t* ids, size_t count) const {
  const uint32_t vocabulary = model->transformer.spec.vocabulary;
  for (size_t i = 0; i < count; ++i)
    if (ids[i] < 0 || uint32_t(ids[i]) >= vocabulary)
      return fail(MOTE_ERROR_ARGUMENT, "token %zu: expected an id of 0..%u, found %d", i,
                  vocabulary - 1, ids[i]);
  return kOk;
}

Status mote_session::hold(const int32_t* ids, size_t count) {
  if (count > sizes.capacity - held)
    return fail(MOTE_ERROR_CAPACITY, "context: %zu tokens and %zu more, the session holds %zu",
                held, count, sizes.capacity);
  MOTE_TRY(check_ids(ids, count));
  std::memcpy(history + held, ids, count * sizeof *ids);
  held += count;
  return kOk;
}

namespace mote {

Status score(mote_session& session, const int32_t* ids, size_t count, float* nll) {
  // A text that is refused leaves the session as it was.
  const size_t held = session.held, computed = session.computed;
  MOTE_TRY(session.rewind(0));
  const Status taken = session.hold(ids, count);
  if (!taken.ok()) {
    session.held = held;
    session.computed = computed;
    return taken;
  }
  const Kernels& kernels = *session.model->transformer.kernels;
  const size_t vocabulary = session.model->transformer.spec.vocabulary;
  const Stop stop{&session.cancelled, 0};
  while (session.computed < count) {
    const size_t first = session.computed;
    const size_t chunk = std::min(session.sizes.batch_tokens, count - first);
    if (!session.transformer.forward(session.team, ids + first, chunk, first, stop, nullptr)) {
      session.held = session.computed;
      return fail(MOTE_ERROR_CANCELLED, "score: cancelled after %zu of %zu tokens", first, count);
    }
    session.computed += chunk;
    const size_t targets = std::min(chunk, count - 1 - first);  // the last token predicts nothing
    for (size_t t = 0; t < targets; t += Transformer::kLogitRows) {
      const size_t rows = std::min(Transformer::kLogitRows, targets - t);
      const float* logits = session.transformer.logits(session.team, t, rows);
      for (size_t r = 0; r < rows; ++r) {
        const float* row = logits + r * vocabulary;
        nll[first + t + r] = kernels.log_sum_exp(row, vocabulary) - row[ids[first + t + r + 1]];
      }
    }
    session.last_chunk = chunk;
  }
  return kOk;
}

Status append(mote_session& session, const int32_t* ids, size_t count, uint32_t deadline_ms,
              const float** logits) {
  const size_t held = session.held;
  MOTE_TRY(session.hold(ids, count));
  const Stop stop{&session.cancelled,
                  deadline_ms ? monotonic_ns() + uint64_t(deadline_ms) * 1000000u : 0};
  Outcome outcome = Outcome::done;
  session.team.run([&] {
    outcome = session.compute(stop, {});
    if (outcome == Outcome::done && logits) *logits = session.last_logits();
  });
  if (outcome == Outcome::done) return kOk;
  session.held = std::max(held, session.computed);
  return fail(outcome == Outcome::deadline ? MOTE_ERROR_DEADLINE : MOTE_ERROR_CANCELLED,
              "append: ended after %zu of %zu tokens", session.held - held, count);
}

Status detokenize(mote_session& session, const int32_t* ids, size_t count, bool skip_special,
                  char* text, size_t capacity, size_t* length) {
  const Tokenizer& tokenizer = session.model->tokenizer;
  for (size_t i = 0; i < count; ++i)
    if (ids[i] < 0 || uint32_t(ids[i]) >= tokenizer.size())
      return fail(MOTE_ERROR_ARGUMENT, "token %zu: expected an id of 0..%u, found %d", i,
                  tokenizer.size() - 1, ids[i]);
  CharacterStream stream;
  size_t written = 0;
  const auto write = [&](size_t ready) {
    const size_t room = written < capacity ? std::min(ready, capacity - written) : 0;
    if (room) std::memcpy(text + written, session.characters, room);
    written += ready;
  };
  bool first = true;  // of those that are not left out
  for (size_t i = 0; i < count; ++i) {
    const size_t bytes =
        tokenizer.decode(ids[i], first, skip_special, session.piece, tokenizer.longest_piece());
    const TokenType type = tokenizer.type(ids[i]);
    first &= skip_special && (type == TokenType::control || type == TokenType::unknown);
    write(stream.push({session.piece, bytes}, session.characters));
  }
  write(stream.finish(session.characters));
  *length = written;
  if (written > capacity)
    return fail(MOTE_ERROR_BUFFER, "text: expected room for %zu bytes, found %zu", written,
                capacity);
  return kOk;
}

Status forward(mote_session* session, const int32_t* ids, size_t count, size_t chunk,
               const ForwardSink& sink) {
  if (!session->model->has_weights)
    return fail(MOTE_ERROR_TASK, "%s holds a vocabulary only", session->model->name);
  if (!model_spec(session->model).causal)
    return fail(MOTE_ERROR_TASK, "%s is an encoder", session->model->name);
  MOTE_TRY(session->hold(ids, count));
  const size_t most =
      std::min(chunk ? chunk : session->sizes.batch_tokens, session->sizes.batch_tokens);
  session->team.run([&] {
    while (session->computed < session->held) {
      const size_t first = session->computed, tokens = std::min(most, session->held - first);
      session->transformer.forward(session->team, session->history + first, tokens, first, Stop{},
                                   &sink);
      session->computed += tokens;
      session->last_chunk = tokens;
      if (!sink.logits || (sink.last_only && session->computed < session->held)) continue;
      for (size_t t = sink.last_only ? tokens - 1 : 0; t < tokens; t += Transformer::kLogitRows) {
        const size_t rows = std::min(Transformer::kLogitRows, tokens - t);
        sink.logits(sink.user, first + t, rows,
                    session->transformer.logits(session->team, t, rows));
      }
    }
  });
  return kOk;
}

const Spec& model_spec(const mote_model* model) { return model->transformer.spec; }
const GgufFile& model_file(const mote_model* model) { return model->gguf; }

}  // namespace mote
