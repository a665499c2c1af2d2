// Chat templates: a Jinja subset, parsed once when the model opens, rendered in the session's
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/memory.h"
#include "core/status.h"
#include "mote.h"

namespace mote {

struct TemplateInput {
  const mote_message* messages = nullptr;
  size_t message_count = 0;
  bool add_generation_prompt = true;
  std::string_view bos_token, eos_token;
  int64_t now = 0;  // seconds since 1970, local time of strftime_now; 0: strftime_now is undefined
  std::string_view context_json;  // instead of all the above, if not empty: an object of variables
  bool keep_scratch = false;      // for tests: memory is not used again before the end
};

class ChatTemplate {
 public:
  ChatTemplate() = default;
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;
  ~ChatTemplate();

  // source and allocator are kept by the caller. A wrong template is MOTE_ERROR_TEMPLATE with line
  // and what was expected.
  Status parse(std::string_view source, Allocator& allocator);
  bool present() const { return state_ != nullptr; }

  // Scratch that rendering messages of up to text_bytes in all takes, roles included: 3 *
  // text_bytes (texts on their way to the output: joined, trimmed, captured by a block or macro) +
  // 2 * the template's own bytes + kFixedScratch (variables, lists), rounded up to the arena's
  // alignment. Messages are read where they are. A template that wants more gets
  // MOTE_ERROR_TEMPLATE. For context_json pass about 4 times its length: its values are built in
  // scratch.
  size_t scratch_bytes(size_t text_bytes) const;
  static constexpr size_t kFixedScratch = 16 * 1024;
  // Writes up to capacity bytes, *length gets the full length (MOTE_ERROR_BUFFER if it is more).
  // raise_exception gives MOTE_ERROR_TEMPLATE with its message. Running out of scratch, depth or
  // steps is MOTE_ERROR_TEMPLATE too. Never allocates.
  Status render(const TemplateInput& input, Arena scratch, char* text, size_t capacity,
                size_t* length) const;

 private:
  struct State;
  Status parse_into_state(std::string_view source);
  void reset();
  State* state_ = nullptr;
};

}  // namespace mote
