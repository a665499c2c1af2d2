// What the chat template tests share: parsing and rendering with exactly the memory that is asked
// for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/memory.h"
#include "models/chat/template.h"

namespace mote::test {

struct Rendered {
  mote_status status = MOTE_OK;
  std::string text;   // if status is MOTE_OK
  std::string error;  // else: the message
  size_t length = 0;
};

struct RenderOptions {
  size_t scratch_bytes = 0;  // 0: scratch_bytes(4 * the context's length)
  size_t capacity = 1 << 15;
  bool keep_scratch = false;
};

// Rendered with the variables of a JSON object; the output lies before a guard page.
Rendered render(std::string_view source, std::string_view context_json,
                const RenderOptions& options = {});
// With messages.
Rendered render_messages(std::string_view source, const std::vector<mote_message>& messages,
                         bool add_generation_prompt, const RenderOptions& options = {});
Rendered render_input(std::string_view source, const TemplateInput& input, size_t text_bytes,
                      const RenderOptions& options);

struct TemplateCase {
  std::string name, source, context_json;
  bool fails = false;
  std::string expected;  // text, or what the message must hold if it is a TemplateError
  std::vector<std::string> roles, contents;  // of the messages, where each is a plain text
  bool add_generation_prompt = false;
  std::string bos_token, eos_token;
};
// All cases of the templates and snippets in a folder.
std::vector<TemplateCase> read_template_cases(const std::string& folder);

}  // namespace mote::test
