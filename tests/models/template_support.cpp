#include "tests/models/template_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/guard_page.h"

namespace mote::test {
namespace {

using Json = nlohmann::ordered_json;

// When strftime_now was frozen for the references.
constexpr const char* kNow = "2026-01-15T09:30:00";

void add_messages(const Json& messages, TemplateCase* test) {
  for (const Json& message : messages) {
    if (message.size() != 2 || !message["content"].is_string()) {
      test->roles.clear();
      return;
    }
    test->roles.push_back(message["role"]);
    test->contents.push_back(message["content"]);
  }
}

void expect(const Json& json, TemplateCase* test) {
  test->fails = json.contains("error");
  if (!test->fails)
    test->expected = json["expected"];
  else if (json["error"]["type"] == "TemplateError")
    test->expected = json["error"]["message"];
}

void read_conversations(const std::filesystem::path& path, std::vector<TemplateCase>* cases) {
  std::ifstream in(path);
  const Json json = Json::parse(in);
  for (const Json& one : json["cases"]) {
    TemplateCase test;
    test.name = path.stem().string() + " " + one["id"].get<std::string>();
    test.source = json["template"];
    test.bos_token = json["bos_token"];
    test.eos_token = json["eos_token"];
    test.add_generation_prompt = one["add_generation_prompt"];
    test.context_json = Json{
        {"messages", one["messages"]},
        {"add_generation_prompt", one["add_generation_prompt"]},
        {"bos_token", json["bos_token"]},
        {"eos_token", json["eos_token"]},
        {"now", kNow}}.dump();
    add_messages(one["messages"], &test);
    expect(one, &test);
    cases->push_back(test);
  }
}

void read_snippets(const std::filesystem::path& path, std::vector<TemplateCase>* cases) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line);
    TemplateCase test;
    test.name = path.stem().string() + " " + json["id"].dump();
    test.source = json["template"];
    Json context = json["context"];
    context["now"] = kNow;
    test.context_json = context.dump();
    expect(json, &test);
    cases->push_back(test);
  }
}

}  // namespace

std::vector<TemplateCase> read_template_cases(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::vector<TemplateCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    if (path.extension() == ".json") read_conversations(path, &cases);
    if (path.extension() == ".jsonl") read_snippets(path, &cases);
  }
  return cases;
}

Rendered render_input(std::string_view source, const TemplateInput& input, size_t text_bytes,
                      const RenderOptions& options) {
  Rendered result;
  Allocator allocator;
  {
    ChatTemplate chat;
    result.status = chat.parse(source, allocator).code();
    if (result.status == MOTE_OK) {
      EXPECT_TRUE(chat.present());
      const size_t before = allocator.bytes_in_use();
      const size_t bytes =
          options.scratch_bytes ? options.scratch_bytes : chat.scratch_bytes(text_bytes);
      const size_t whole = bytes / Arena::kAlignment * Arena::kAlignment;
      GuardedBytes scratch(whole), text(options.capacity);
      result.status =
          chat.render(input, Arena(scratch.data(), whole), reinterpret_cast<char*>(text.data()),
                      options.capacity, &result.length)
              .code();
      EXPECT_EQ(allocator.bytes_in_use(), before);
      if (result.status == MOTE_OK) {
        EXPECT_LE(result.length, options.capacity);
        result.text.assign(reinterpret_cast<char*>(text.data()), result.length);
      }
    }
    if (result.status != MOTE_OK) result.error = last_error();
  }
  EXPECT_EQ(allocator.bytes_in_use(), 0u);
  return result;
}

Rendered render(std::string_view source, std::string_view context_json,
                const RenderOptions& options) {
  TemplateInput input;
  input.context_json = context_json;
  input.keep_scratch = options.keep_scratch;
  return render_input(source, input, 4 * context_json.size(), options);
}

Rendered render_messages(std::string_view source, const std::vector<mote_message>& messages,
                         bool add_generation_prompt, const RenderOptions& options) {
  TemplateInput input;
  input.messages = messages.data();
  input.message_count = messages.size();
  input.add_generation_prompt = add_generation_prompt;
  input.keep_scratch = options.keep_scratch;
  size_t text_bytes = 0;
  for (const mote_message& message : messages)
    text_bytes += message.role.length + message.content.length;
  return render_input(source, input, text_bytes, options);
}

}  // namespace mote::test
