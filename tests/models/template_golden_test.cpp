// Templates and snippets against what Jinja itself makes of them (tests/data/templates/README.md).
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/models/template_support.h"

namespace mote {
namespace {

using namespace test;

constexpr int64_t kNow = 1768469400;  // 2026-01-15 09:30:00

void check(const TemplateCase& test, const Rendered& rendered) {
  if (test.fails) {
    EXPECT_EQ(rendered.status, MOTE_ERROR_TEMPLATE) << test.source << "\n" << rendered.text;
    EXPECT_NE(rendered.error.find(test.expected), std::string::npos) << rendered.error;
    EXPECT_NE(rendered.error.find("chat template line "), std::string::npos) << rendered.error;
  } else {
    EXPECT_EQ(rendered.status, MOTE_OK) << test.source << "\n" << rendered.error;
    EXPECT_EQ(rendered.text, test.expected) << test.source;
    EXPECT_EQ(rendered.length, test.expected.size());
  }
}

void check_folder(const std::string& folder, size_t least) {
  const std::vector<TemplateCase> cases = read_template_cases(folder);
  EXPECT_GE(cases.size(), least);
  for (const TemplateCase& test : cases) {
    SCOPED_TRACE(test.name);
    check(test, render(test.source, test.context_json));
  }
}

TEST(TemplateGolden, TemplatesAndSnippets) { check_folder(MOTE_TEST_DATA "/templates", 430); }

TEST(TemplateGolden, SharedTemplatesAndSnippets) {
  const char* shared = std::getenv("MOTE_SHARED_DIR");
  if (!shared || !*shared) GTEST_SKIP() << "MOTE_SHARED_DIR is not set";
  check_folder(std::string(shared) + "/goldens/templates", 150);
}

// The same conversations as messages of the API, read where they are.
TEST(TemplateGolden, Messages) {
  size_t compared = 0;
  for (const TemplateCase& test : read_template_cases(MOTE_TEST_DATA "/templates")) {
    if (test.roles.empty()) continue;
    SCOPED_TRACE(test.name);
    std::vector<mote_message> messages;
    size_t text_bytes = 0;
    for (size_t i = 0; i < test.roles.size(); ++i) {
      messages.push_back({{test.roles[i].data(), test.roles[i].size()},
                          {test.contents[i].data(), test.contents[i].size()}});
      text_bytes += test.roles[i].size() + test.contents[i].size();
    }
    TemplateInput input;
    input.messages = messages.data();
    input.message_count = messages.size();
    input.add_generation_prompt = test.add_generation_prompt;
    input.bos_token = test.bos_token;
    input.eos_token = test.eos_token;
    input.now = kNow;
    check(test, render_input(test.source, input, text_bytes, {}));
    ++compared;
  }
  EXPECT_GE(compared, 100u);
}

// Scratch memory that is used again within a rendering must not change the result.
TEST(TemplateGolden, MemoryUsedAgain) {
  for (const TemplateCase& test : read_template_cases(MOTE_TEST_DATA "/templates")) {
    SCOPED_TRACE(test.name);
    RenderOptions keep;
    keep.keep_scratch = true;
    keep.scratch_bytes = 1 << 20;
    check(test, render(test.source, test.context_json, keep));
  }
}

}  // namespace
}  // namespace mote
