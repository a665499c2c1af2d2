// Hostile and damaged templates, small buffers: always an error that says what is wrong, and soon.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/models/template_support.h"

namespace mote {
namespace {

using namespace test;

std::string repeat(const std::string& text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

std::string error_of(const std::string& source, const std::string& context = "{}") {
  const Rendered rendered = render(source, context);
  EXPECT_EQ(rendered.status, MOTE_ERROR_TEMPLATE)
      << source.substr(0, 200) << " gives " << rendered.text.substr(0, 200);
  EXPECT_EQ(rendered.text, "");
  return rendered.error;
}

TEST(TemplateLimits, EndlessWork) {
  const std::string templates[] = {
      "{% for i in range(10**9) %}x{% endfor %}",
      "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% for i in [[]] recursive %}{{ loop([[]]) }}{% endfor %}",
      "{{ 'x' * 10**9 }}",
      "{{ 'x' * 9223372036854775807 }}",
      "{{ [0] * 10**9 }}",
      "{{ ('x' * 1000) * 10**8 }}",
      "{{ 10 ** 100 }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ -9223372036854775807 - 2 }}",
      "{{ 3037000500 * 3037000500 }}",
      "{{ 99999999999999999999 }}",
      "{{ '%999999999d' % 1 }}",
      "{{ '{:999999999}'.format(1) }}",
      "{{ 'a'.center(10**12) }}",
      "{{ 'a' | center(10**12) }}",
      "{{ 'x' | indent(10**9, true) }}",
      "{{ [1] | batch(10**9, 0) | list }}",
      "{{ [1] | slice(10**9) | list }}",
      "{{ [1] | tojson(indent=10**9) }}",
      "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% "
      "endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = ns.l + ns.l %}{% "
      "endfor %}",
      "{% set ns = namespace(l=[]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% "
      "endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% "
      "endfor %}{{ ns.l | tojson }}",
      "{% set ns = namespace(l=[], m=[]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
      "{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
      "{% set ns = namespace() %}{% for i in range(100000) %}{% set ns.a = [i] %}{% endfor %}",
      "{% set x = 'ab' * 1000 %}{% for i in range(100000) %}{% set y = x | upper | lower | title "
      "%}{% endfor %}",
      repeat("{% for i in range(1000) %}", 40) + repeat("{% endfor %}", 40),
  };
  for (const std::string& source : templates) {
    SCOPED_TRACE(source.substr(0, 100));
    EXPECT_FALSE(error_of(source).empty());
  }
}

// Looking for a long text that is nearly everywhere takes their product of comparisons.
TEST(TemplateLimits, EndlessSearch) {
  for (const char* search :
       {"x.find(y)", "x.rfind(y)", "x.count(y)", "x.split(y)", "x.rsplit(y)", "x.partition(y)",
        "x.replace(y, '')", "x | replace(y, '')", "y in x"}) {
    SCOPED_TRACE(search);
    const std::string error = error_of(
        "{% set x = 'b' * 9000 %}{% set y = 'b' * 4500 + 'c' %}{% for i in range(99999) %}"
        "{% set z = " +
        std::string(search) + " %}{% endfor %}");
    EXPECT_NE(error.find("steps"), std::string::npos) << error;
  }
}

// Equal texts are compared to their ends.
TEST(TemplateLimits, EndlessComparison) {
  for (const char* test : {"x == y", "x <= y", "x in [y]"}) {
    const std::string error = error_of(
        "{% set x = 'b' * 6000 %}{% set y = 'b' * 6000 %}{% for i in range(99999) %}"
        "{% for j in range(9) %}"
        "{% set z = " +
        std::string(test) + " %}{% endfor %}{% endfor %}");
    EXPECT_NE(error.find("steps"), std::string::npos) << error;
  }
}

TEST(TemplateLimits, DeepNesting) {
  for (const size_t depth : {10u, 50u, 70u, 200u, 1000u, 100000u}) {
    SCOPED_TRACE(depth);
    const std::string templates[] = {
        "{{ " + repeat("(", depth) + "1" + repeat(")", depth) + " }}",
        "{{ " + repeat("[", depth) + repeat("]", depth) + " }}",
        "{{ " + repeat("{'a':", depth) + "1" + repeat("}", depth) + " }}",
        "{{ " + repeat("not ", depth) + "1 }}",
        "{{ " + repeat("-", depth) + "1 }}",
        "{{ " + repeat("1 if 1 else ", depth) + "1 }}",
        "{{ 1" + repeat("|abs", depth) + " }}",
        "{{ x" + repeat(".x", depth) + " }}",
        "{{ x" + repeat("[0", depth) + repeat("]", depth) + " }}",
        "{{ x" + repeat("()", depth) + " }}",
        "{{ x(" + repeat("x(", depth) + repeat(")", depth) + ") }}",
        repeat("{% if 1 %}", depth) + repeat("{% endif %}", depth),
        repeat("{% for i in [1] %}", depth) + repeat("{% endfor %}", depth),
        repeat("{% set x %}", depth) + repeat("{% endset %}", depth),
        repeat("{% macro f() %}", depth) + repeat("{% endmacro %}", depth),
        "{% set " + repeat("(", depth) + "a" + repeat(")", depth) + " = 1 %}",
    };
    for (const std::string& source : templates) {
      SCOPED_TRACE(source.substr(0, 40));
      const Rendered rendered = render(source, "{}");
      EXPECT_TRUE(rendered.status == MOTE_OK || rendered.status == MOTE_ERROR_TEMPLATE)
          << rendered.error;
      if (depth >= 1000) {
        EXPECT_EQ(rendered.status, MOTE_ERROR_TEMPLATE);
      }
      if (depth == 10 && source.find('x') == std::string::npos) {
        EXPECT_EQ(rendered.status, MOTE_OK) << rendered.error;
      }
    }
  }
  // Length is no depth.
  EXPECT_EQ(render("{{ 0" + repeat(" + 1", 5000) + " }}", "{}").text, "5000");
  EXPECT_EQ(render("{{ ''" + repeat(" ~ 'a'", 500) + " }}", "{}").text, repeat("a", 500));
  EXPECT_EQ(render("{{ 0" + repeat(" or 0", 5000) + " }}", "{}").text, "0");
  EXPECT_EQ(
      render("{% if 0 %}" + repeat("{% elif 0 %}", 5000) + "{% else %}x{% endif %}", "{}").text,
      "x");
  EXPECT_EQ(render(repeat("{{ 1 }}", 20000), "{}").text, repeat("1", 20000));
}

TEST(TemplateLimits, DeepContext) {
  for (const size_t depth : {10u, 60u, 70u, 100000u}) {
    const Rendered rendered = render("{{ x }}{{ x | tojson }}{{ x == x }}",
                                     "{\"x\":" + repeat("[", depth) + repeat("]", depth) + "}");
    EXPECT_EQ(rendered.status, depth < 64 ? MOTE_OK : MOTE_ERROR_TEMPLATE)
        << depth << rendered.error;
  }
}

TEST(TemplateLimits, WrongContext) {
  const char* contexts[] = {"[",
                            "{",
                            "{\"a\"}",
                            "{\"a\":}",
                            "{\"a\":1,}",
                            "[1]",
                            "1",
                            "{\"a\":01}",
                            "{\"a\":1.}",
                            "{\"a\":.5}",
                            "{\"a\":-}",
                            "{\"a\":1e}",
                            "{\"a\":tru}",
                            "{\"a\":\"\\x\"}",
                            "{\"a\":\"\\u12\"}",
                            "{\"a\":\"x}",
                            "{\"a\":\"x\\",
                            "{\"a\":1} 2",
                            "{\"a\":99999999999999999999}",
                            "{'a':1}",
                            "{\"a\":\"\n\"}",
                            "{\"now\":5}",
                            "{\"now\":\"2026-13-01\"}",
                            "{\"now\":\"2026-02-30\"}"};
  for (const char* context : contexts) {
    SCOPED_TRACE(context);
    EXPECT_NE(error_of("x", context).find("context JSON"), std::string::npos);
  }
  EXPECT_EQ(render("{{ a }}", "{\"a\":\"\\u00e9\\ud83d\\ude00\\ud800x\\n\\\"\\/\"}").text,
            "é😀\uFFFDx\n\"/");
  EXPECT_EQ(render("{{ a }}", " { \"a\" : 1 , \"b\" : [ ] , \"a\" : 2 } ").text, "2");
  EXPECT_EQ(render("{{ strftime_now('%H:%M %j') }}", "{\"now\":\"2024-12-31 23:59\"}").text,
            "23:59 366");
  EXPECT_NE(error_of("{{ strftime_now('%H') }}").find("strftime_now"), std::string::npos);
}

// Every beginning of every template, and every template without one of its bytes.
TEST(TemplateLimits, DamagedTemplates) {
  std::vector<std::string> sources;
  std::string context;
  for (const TemplateCase& test : read_template_cases(MOTE_TEST_DATA "/templates")) {
    if (std::find(sources.begin(), sources.end(), test.source) != sources.end()) continue;
    sources.push_back(test.source);
    context = test.context_json.find("messages") != std::string::npos && context.empty()
                  ? test.context_json
                  : context;
  }
  size_t renders = 0;
  for (const std::string& source : sources) {
    const size_t step = source.size() > 100 ? 13 : 2;
    for (size_t length = 0; length < source.size(); ++length) {
      Allocator allocator;
      ChatTemplate chat;
      const std::string exact(source.data(), length);
      const Status status = chat.parse(exact, allocator);
      EXPECT_TRUE(status.ok() || status.code() == MOTE_ERROR_TEMPLATE);
      if (!status.ok()) {
        EXPECT_NE(std::string(last_error()).find("chat template line "), std::string::npos)
            << last_error();
      }
      if (length % step) continue;
      for (const std::string& damaged :
           {exact, source.substr(0, length) + source.substr(length + 1)}) {
        const Rendered rendered = render(damaged, context);
        EXPECT_TRUE(rendered.status == MOTE_OK || rendered.status == MOTE_ERROR_TEMPLATE)
            << rendered.error;
        renders += rendered.status == MOTE_OK;
      }
    }
  }
  EXPECT_GT(renders, 1000u);
}

TEST(TemplateLimits, SmallBuffers) {
  const std::string source =
      "{% for m in messages %}<{{ m.role }}>{{ m.content | upper }}{% endfor %}";
  const std::vector<mote_message> messages = {{{"user", 4}, {"caf\xC3\xA9", 5}},
                                              {{"assistant", 9}, {"", 0}}};
  const Rendered whole = render_messages(source, messages, true);
  ASSERT_EQ(whole.text, "<user>CAF\xC3\x89<assistant>");
  for (size_t capacity = 0; capacity <= whole.length + 1; ++capacity) {
    RenderOptions options;
    options.capacity = capacity;
    const Rendered rendered = render_messages(source, messages, true, options);
    EXPECT_EQ(rendered.status, capacity < whole.length ? MOTE_ERROR_BUFFER : MOTE_OK);
    EXPECT_EQ(rendered.length, whole.length);
  }
}

TEST(TemplateLimits, SmallScratch) {
  for (const TemplateCase& test : read_template_cases(MOTE_TEST_DATA "/templates")) {
    SCOPED_TRACE(test.name);
    bool fitted = false;
    for (size_t bytes = 64; bytes <= 16384; bytes += bytes < 512 ? 64 : bytes / 4 / 64 * 64) {
      RenderOptions options;
      options.scratch_bytes = bytes;
      const Rendered rendered = render(test.source, test.context_json, options);
      if (rendered.status == MOTE_OK) {
        EXPECT_EQ(rendered.text, test.expected);
        fitted = true;
      } else {
        EXPECT_EQ(rendered.status, MOTE_ERROR_TEMPLATE);
        EXPECT_TRUE(test.fails || !fitted) << rendered.error;  // more memory never hurts
      }
    }
    EXPECT_NE(fitted, test.fails);
  }
  Allocator allocator;
  ChatTemplate chat;
  char text[8];
  size_t length = 1;
  EXPECT_EQ(chat.scratch_bytes(100), 0u);
  EXPECT_EQ(chat.render({}, Arena(), text, sizeof text, &length).code(), MOTE_ERROR_TASK);
  ASSERT_TRUE(chat.parse("x", allocator).ok());
  EXPECT_EQ(chat.scratch_bytes(SIZE_MAX / 2), SIZE_MAX);
  alignas(64) uint8_t memory[64];
  EXPECT_EQ(chat.render({}, Arena(memory, 0), text, sizeof text, &length).code(),
            MOTE_ERROR_TEMPLATE);
}

// What scratch_bytes promises: a conversation of that many bytes renders, with every template.
TEST(TemplateLimits, ScratchSuffices) {
  for (const TemplateCase& test : read_template_cases(MOTE_TEST_DATA "/templates")) {
    if (test.roles.empty() || test.fails) continue;
    SCOPED_TRACE(test.name);
    for (const size_t size : {8u, 100u, 5000u, 100000u}) {
      const std::string content = repeat(" x\xC3\xA9", size / 4) + "</think> y";
      std::vector<mote_message> messages;
      for (size_t i = 0; i < (size > 5000 ? 3u : 41u); ++i)
        messages.push_back(
            {{i % 2 ? "assistant" : "user", i % 2 ? 9u : 4u}, {content.data(), content.size()}});
      TemplateInput input;
      input.messages = messages.data();
      input.message_count = messages.size();
      input.now = 1;
      RenderOptions options;
      options.capacity = 1 << 20;
      const Rendered rendered =
          render_input(test.source, input, messages.size() * (content.size() + 4), options);
      EXPECT_EQ(rendered.status, MOTE_OK) << rendered.error;
    }
  }
}

TEST(TemplateLimits, NoMemory) {
  struct Budget {
    size_t left;
    static void* allocate(void* user, size_t bytes, size_t) {
      Budget& budget = *static_cast<Budget*>(user);
      if (budget.left == 0) return nullptr;
      --budget.left;
      return malloc(bytes);
    }
    static void release(void*, void* memory, size_t) { free(memory); }
  };
  mote_status status = MOTE_ERROR_MEMORY;
  for (size_t allowed = 0; status != MOTE_OK; ++allowed) {
    ASSERT_LT(allowed, 100u);
    Budget budget{allowed};
    const mote_allocator custom = {&budget, Budget::allocate, Budget::release};
    Allocator allocator(&custom);
    {
      ChatTemplate chat;
      status =
          chat.parse("a\r\n{{ 'x\\n' }}" + repeat("{{ (1, [2, {3: 4}]) }}", 100), allocator).code();
      EXPECT_TRUE(status == MOTE_OK || status == MOTE_ERROR_MEMORY);
    }
    EXPECT_EQ(allocator.bytes_in_use(), 0u);
  }
}

TEST(TemplateLimits, MessagesSayWhereAndWhat) {
  const struct {
    const char *source, *part, *other;
  } cases[] = {
      {"a\nb\n{% if x %}", "line 3", "endif"},
      {"{{ 1 + }}", "line 1", "an expression"},
      {"\n{% nonsense %}", "line 2", "a statement"},
      {"{% for x on y %}{% endfor %}", "expected in", "'on'"},
      {"{{ 'abc }}", "string", "line 1"},
      {"{# abc", "#}", "the end"},
      {"{% raw %}abc", "endraw", "the end"},
      {"{{ (1] }}", "')'", "']"},
      {"{% endif %}", "a statement", "endif"},
      {"{% break %}", "loop", "break"},
      {"\n\n{{ messages[0].content.nothing.more }}", "line 3", "'list object' has no attribute"},
      {"{{ raise_exception('Only user and assistant!') }}", "Only user and assistant!", "line 1"},
      {"{{ 1|nope }}", "no filter", "nope"},
      {"{{ 1 is nope }}", "no test", "nope"},
      {"{% include 'x' %}", "a statement", "include"},
  };
  for (const auto& one : cases) {
    const std::string error = error_of(one.source, "{\"messages\":[]}");
    EXPECT_NE(error.find(one.part), std::string::npos) << error;
    EXPECT_NE(error.find(one.other), std::string::npos) << error;
  }
}

// A message is data: nothing in it is read as template, whatever it says.
TEST(TemplateLimits, MessagesAreData) {
  const std::string evil = "{{ 7 * 7 }}{% raw %}{% endfor %}{# #}\\n'\"}}";
  const std::vector<mote_message> messages = {{{"user", 4}, {evil.data(), evil.size()}}};
  const char* source =
      "{% for m in messages %}{{ m['content'] }}{% set x = m.content %}{{ x ~ '' }}{{ '%s' % x "
      "}}{{ '{}'.format(x) }}"
      "{% endfor %}";
  EXPECT_EQ(render_messages(source, messages, true).text, evil + evil + evil + evil);
  const std::string zero("a\0b", 3);
  const std::vector<mote_message> binary = {{{"us\xFFr", 4}, {zero.data(), zero.size()}}};
  EXPECT_EQ(render_messages("{{ messages[0].role }}{{ messages[0].content }}", binary, true).text,
            "us\xFFr" + zero);
}

}  // namespace
}  // namespace mote
