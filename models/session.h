// A session: one block of memory with everything that runs need, and the tokens so far.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/threads.h"
#include "models/model.h"
#include "models/sampler.h"
#include "models/stop_strings.h"
#include "models/text_tasks.h"
#include "models/transformer.h"
#include "mote.h"

namespace mote {

// Session options with every default filled in.
struct SessionSizes {
  size_t capacity = 0, batch_tokens = 0, text_bytes = 0;
  KvType kv_type = KvType::f16;
  uint32_t threads = 1;
};
Status resolve_sizes(const mote_model& model, const mote_session_options& options,
                     SessionSizes* sizes);
// Slack for an unaligned address included.
size_t session_bytes(const mote_model& model, const SessionSizes& sizes);
// Seconds that the local time is ahead of UTC.
int64_t local_utc_offset();

// Messages of text_bytes in all with a byte before each name of a control token in them; more of
// these are an error.
inline size_t guarded_bytes(size_t text_bytes) { return text_bytes + text_bytes / 3 + 64; }

// How a computation that may be stopped ended.
enum class Outcome : uint8_t { done, cancelled, deadline };

struct Progress {
  mote_progress_callback callback = nullptr;
  void* user = nullptr;
};

}  // namespace mote

struct mote_session {
  const mote_model* model = nullptr;
  mote::SessionSizes sizes;
  std::atomic<uint32_t> busy{0}, cancelled{0};
  mote::Team team;
  mote::Transformer transformer;
  mote::StopStrings stops;
  mote::Sampler sampler;
  mote::TextWork text;

  // Of the model's file, for saved states: computed by the first one.
  uint64_t fingerprint = 0;
  bool has_fingerprint = false;

  int64_t utc_offset = 0;  // seconds; read at creation, as the system may allocate for it

  // The tokens of the context. Those from `computed` on are not in the cache yet: the last token
  // that a generation chose waits there until something follows it.
  int32_t* history = nullptr;  // [capacity]
  size_t held = 0, computed = 0;

  mote_token* tokens = nullptr;  // [capacity + 1] of a prompt that is a text
  int32_t* prompt = nullptr;     // [capacity]
  char* rendered = nullptr;      // [rendered_bytes] a prompt through the chat template
  size_t rendered_bytes = 0;
  char* piece = nullptr;       // [longest piece]
  char* characters = nullptr;  // [ready_bytes()] whole characters of a piece
  uint8_t* scratch = nullptr;  // [scratch_bytes] of tokenizer and template
  size_t scratch_bytes = 0;

  void* memory = nullptr;  // as allocated or given
  size_t memory_bytes = 0;
  bool owns_memory = false;

  // Takes every buffer from the arena; the same for a measuring one.
  void plan(mote::Arena& arena, const mote_model& open_model, const mote::SessionSizes& with);
  void plan_text(mote::Arena& arena);
  mote::Arena scratch_arena() const { return mote::Arena(scratch, scratch_bytes); }

  // Every one of these runs inside team.run().
  // Computes what is held but not in the cache. done: the last chunk's logits can be asked for.
  mote::Outcome compute(const mote::Stop& stop, const mote::Progress& progress);
  // The same in one pass, with `ahead` tokens that stand in history behind the held ones; they stay
  // behind them, and their places in the cache are free again. held - computed + ahead <=
  // batch_tokens, held + ahead <= capacity.
  mote::Outcome compute_ahead(const mote::Stop& stop, size_t ahead);
  // Logits [count][vocabulary] of the last tokens that were computed, count <= kLogitRows.
  float* last_logits(size_t count = 1);
  size_t last_chunk = 0;  // tokens of the last forward()

  // Forgets what follows the first `position` tokens.
  mote::Status rewind(size_t position);
  // Appends ids to the held tokens: an error where they do not fit or are no tokens, and then
  // nothing changes.
  mote::Status hold(const int32_t* ids, size_t count);
  // ids[0, count) are tokens of the model.
  mote::Status check_ids(const int32_t* ids, size_t count) const;
};

namespace mote {

// What mote_generate() does, after the arguments are checked and the session is entered.
Status generate(mote_session& session, const mote_prompt& prompt,
                const mote_generate_options& options, mote_generate_result* result);
// The model's chat template, or why there is none; then the text of the messages, up to where the
// answer begins.
Status render_messages(mote_session& session, const mote_message* messages, size_t count,
                       char* text, size_t capacity, size_t* length);
// Ids of a prompt, in session.prompt.
Status prompt_ids(mote_session& session, const mote_prompt& prompt, size_t* count);
// The same of any template (empty: the model's) and any variables.
Status render_json(mote_session& session, std::string_view chat_template, std::string_view context,
                   char* text, size_t capacity, size_t* length);
Status detokenize(mote_session& session, const int32_t* ids, size_t count, bool skip_special,
                  char* text, size_t capacity, size_t* length);
// What mote_session_append() does. Tokens that were computed before a deadline or cancellation
// stay.
Status append(mote_session& session, const int32_t* ids, size_t count, uint32_t deadline_ms,
              const float** logits);
// The session's state (session_state.cpp says of what), bytes in all; buffer may be null.
Status save_state(mote_session& session, void* buffer, size_t capacity, size_t* bytes);
// MOTE_ERROR_STATE: not a whole state of a session with this model and these options; then nothing
// has changed.
Status restore_state(mote_session& session, const void* state, size_t bytes);
// nll [count - 1] of ids, from an empty cache.
Status score(mote_session& session, const int32_t* ids, size_t count, float* nll);

}  // namespace mote
