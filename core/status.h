// Status of everything a file, a caller or the system can cause. Our own bugs are asserts.
#pragma once

#include <cstddef>
#include <string_view>

#include "mote.h"

namespace mote {

// A code of mote.h; the message that goes with a failure waits in this thread's buffer
// (last_error).
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr explicit Status(mote_status code) : code_(code) {}
  constexpr bool ok() const { return code_ == MOTE_OK; }
  constexpr mote_status code() const { return code_; }

 private:
  mote_status code_ = MOTE_OK;
};

inline constexpr Status kOk{};

// Writes the message (printf format, cut at 511 bytes, never allocates) and returns the code.
// Say what, where, expected and found: "model.gguf: key llama.block_count: expected 1..1024, found
// 0".
Status fail(mote_status code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// The same with MOTE_ERROR_IO and the system's text for an errno value behind the message.
Status fail_system(int error, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Puts "prefix: " in front of this thread's message: for a caller that knows the file's name.
Status with_context(Status status, const char* prefix);

// This thread's last message, never null.
const char* last_error();
void clear_error();

// Messages may quote names out of hostile files. This copies text so that it is harmless to print:
// control characters and bytes that are no UTF-8 become \xNN, direction overrides \u{NNNN}. Cut at
// a whole character, ends with a zero byte; returns the length. capacity >= 1. fail() and Log pass
// all through it.
size_t make_printable(const char* text, size_t length, char* out, size_t capacity);

// A string_view for "%.*s": fail(code, "key %.*s: ...", MOTE_SHOW(name)). Long ones are cut at
// kShownBytes.
inline constexpr size_t kShownBytes = 160;
inline int shown_length(std::string_view text) {
  return static_cast<int>(text.size() < kShownBytes ? text.size() : kShownBytes);
}
inline const char* shown_data(std::string_view text) { return text.data() ? text.data() : ""; }
#define MOTE_SHOW(text) ::mote::shown_length(text), ::mote::shown_data(text)

#define MOTE_TRY(expression)                                                                 \
  do {                                                                                       \
    if (::mote::Status mote_status_ = (expression); !mote_status_.ok()) return mote_status_; \
  } while (0)

}  // namespace mote
