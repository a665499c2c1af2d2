// What the functions of mote.h share: arguments in, structs of any version, one call at a time.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/status.h"
#include "models/session.h"
#include "mote.h"

namespace mote {

// The caller's struct of any version: fields that it does not have are zero, fields not known here
// must be.
template <class Options>
Status read_options(const Options* given, const char* name, Options* options) {
  std::memset(static_cast<void*>(options), 0, sizeof *options);
  options->size = sizeof *options;
  if (!given) return kOk;
  if (given->size < 8 || given->size > 4096)
    return fail(MOTE_ERROR_ARGUMENT, "%s.size: expected sizeof(%s) = %zu, found %u", name, name,
                sizeof *options, given->size);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof *options; i < given->size; ++i)
    if (bytes[i])
      return fail(
          MOTE_ERROR_ARGUMENT,
          "%s: expected the %zu bytes that this version knows, found a newer field at byte %zu",
          name, sizeof *options, i);
  std::memcpy(static_cast<void*>(options), given, std::min<size_t>(given->size, sizeof *options));
  options->size = sizeof *options;
  return kOk;
}

// The other way: fills as much as the caller has room for.
template <class Info>
Status check_info_size(const Info* info, const char* name) {
  if (!info) return fail(MOTE_ERROR_ARGUMENT, "%s: expected a pointer, found null", name);
  if (info->size < 8 || info->size > 4096)
    return fail(MOTE_ERROR_ARGUMENT, "%s.size: expected sizeof(%s) = %zu, found %u", name, name,
                sizeof *info, info->size);
  return kOk;
}
template <class Info>
void write_info(const Info& from, Info* to) {
  const uint32_t size = to->size;
  std::memcpy(static_cast<void*>(to), &from, std::min<size_t>(size, sizeof from));
  to->size = size;
}

inline Status need(const void* pointer, const char* name) {
  if (!pointer) return fail(MOTE_ERROR_ARGUMENT, "%s: expected a pointer, found null", name);
  return kOk;
}

// Measures MOTE_NUL_TERMINATED.
inline Status read_text(mote_text* text, const char* name) {
  if (!text->data && text->length)
    return fail(MOTE_ERROR_ARGUMENT, "%s: expected data, found null", name);
  if (text->length == MOTE_NUL_TERMINATED) text->length = std::strlen(text->data);
  if (!text->data) text->data = "";
  return kOk;
}

// One call inside a session at a time; the next call's cancellation starts clear.
class Entry {
 public:
  explicit Entry(mote_session* session) : session_(session) {
    uint32_t idle = 0;
    entered_ = session && session->busy.compare_exchange_strong(idle, 1, std::memory_order_acquire);
    if (entered_) session->cancelled.store(0, std::memory_order_relaxed);
  }
  ~Entry() {
    if (entered_) session_->busy.store(0, std::memory_order_release);
  }
  Status status() const {
    MOTE_TRY(need(session_, "session"));
    if (!entered_) return fail(MOTE_ERROR_BUSY, "another thread is inside this session");
    return kOk;
  }

 private:
  mote_session* session_;
  bool entered_;
};

// The message is written by fail(); a success leaves none.
inline mote_status finish(Status status) {
  if (status.ok()) clear_error();
  return status.code();
}

}  // namespace mote
