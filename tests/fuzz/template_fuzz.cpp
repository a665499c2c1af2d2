// Parses and renders any template: the input up to the first zero byte, with the JSON behind it as
// its variables (none: a conversation). What is rendered must not depend on scratch memory being
// used again.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "core/arena.h"
#include "core/memory.h"
#include "models/chat/template.h"

namespace {

using namespace mote;

struct Rendered {
  mote_status status;
  std::string text, error;
  size_t length = 0;
};

Rendered render(const ChatTemplate& chat, const TemplateInput& input, size_t scratch_bytes,
                size_t capacity) {
  Rendered result;
  void* scratch = nullptr;
  if (posix_memalign(&scratch, Arena::kAlignment, scratch_bytes) != 0) std::abort();
  std::memset(scratch, 0xCD, scratch_bytes);
  char* text = static_cast<char*>(std::malloc(capacity));
  result.status =
      chat.render(input, Arena(scratch, scratch_bytes), text, capacity, &result.length).code();
  if (result.status == MOTE_OK) result.text.assign(text, result.length);
  if (result.status != MOTE_OK) result.error = last_error();
  std::free(text);
  std::free(scratch);
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kScratch = 1 << 16, kCapacity = 1 << 15;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const std::string source(input.substr(0, zero));
  const std::string context(zero == std::string_view::npos ? "" : input.substr(zero + 1));
  Allocator allocator;
  {
    ChatTemplate chat;
    if (!chat.parse(source, allocator).ok()) {
      if (std::strstr(last_error(), "chat template") == nullptr) std::abort();
    } else {
      const mote_message messages[] = {{{"system", 6}, {" Be nice. ", 10}},
                                       {{"user", 4}, {"Hello {{ x }} \xF0\x9F\x98\x80\n", 19}},
                                       {{"assistant", 9}, {"", 0}}};
      TemplateInput variables;
      variables.messages = messages;
      variables.message_count = 3;
      variables.bos_token = "<s>";
      variables.eos_token = "</s>";
      variables.now = 1768469400;
      variables.context_json = context;
      const Rendered first = render(chat, variables, kScratch, kCapacity);
      variables.keep_scratch = true;
      const Rendered second = render(chat, variables, 4 * kScratch, kCapacity);
      if (first.status == MOTE_OK && second.status == MOTE_OK && first.text != second.text)
        std::abort();
      if (first.status == MOTE_OK && second.status == MOTE_OK && first.length > 0) {
        const Rendered cut = render(chat, variables, 4 * kScratch, first.length - 1);
        if (cut.status != MOTE_ERROR_BUFFER || cut.length != first.length) std::abort();
      }
      (void)render(chat, variables, 4096, 64);
    }
  }
  if (allocator.bytes_in_use() != 0) std::abort();
  return 0;
}
