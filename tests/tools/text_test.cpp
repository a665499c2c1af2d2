// tokenize, detokenize and template, on a small model.
#include "tests/support/tiny_model.h"
#include "tests/tools/tool_support.h"

namespace mote::test {
namespace {

class Text : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_TOOL();
    model_ = write_tiny_model(folder_);
  }
  ToolResult run(const std::string& command, Words words, const std::string& input = "") {
    words.insert(words.begin(), {command, "-m", model_});
    return run_tool(words, input);
  }

  TemporaryFolder folder_;
  std::string model_;
};

TEST_F(Text, IdsPiecesAndOffsets) {
  // "é" is one token of two bytes; the emoji is a token of its first two bytes and one for each
  // other.
  const Json json = run("tokenize", {"in \xc3\xa9\xf0\x9f\x98\x80!", "--json"}).json();
  EXPECT_EQ(json["pieces"],
            Json({"in", " ", "\xc3\xa9", "\xef\xbf\xbd", "\xef\xbf\xbd", "\xef\xbf\xbd", "!"}));
  EXPECT_EQ(json["ids"].size(), 7u);
  EXPECT_EQ(json["offsets"], Json({{0, 2}, {2, 3}, {3, 4}, {4, 5}, {4, 5}, {4, 5}, {5, 6}}));
}

TEST_F(Text, AnyTextIsAText) {
  // What CLI11 would take for lists, options, commands or quotes.
  const Words texts = {"[a,b]", "[CLS]", "\"x\"", "generate", "{}", "-", "a=b", "%d", ""};
  Words words = {"--json"};
  words.insert(words.end(), texts.begin(), texts.end());
  words.insert(words.end(), {"--", "-x", "--json", "--"});
  const std::vector<Json> lines = run("tokenize", words, "from stdin").json_lines();
  Words expected = texts;
  expected[5] = "from stdin";
  expected.insert(expected.end(), {"-x", "--json", "--"});
  ASSERT_EQ(lines.size(), expected.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string text;
    for (const Json& piece : lines[i]["pieces"]) text += piece.get<std::string>();
    EXPECT_EQ(text, expected[i]);
  }
}

// A generator's vocabulary alone: no BOS unless asked for.
TEST_F(Text, VocabularyFilesTokenize) {
  TinyModel model;
  model.weights = false;
  GgufBuilder builder = model.builder();
  builder.boolean("tokenizer.ggml.add_bos_token", true);
  const Bytes bytes = builder.build();
  const std::string file = folder_.write("vocab.gguf", std::string(bytes.begin(), bytes.end()));
  const Json plain = run_tool({"tokenize", "-m", file, "in", "--json"}).json();
  EXPECT_EQ(plain["pieces"], Json({"in"}));
  const Json framed = run_tool({"tokenize", "-m", file, "in", "--bos", "--json"}).json();
  EXPECT_EQ(framed["pieces"], Json({"<|im_start|>", "in"}));
  EXPECT_EQ(framed["offsets"], Json({{0, 0}, {0, 2}}));
  expect_failure(run_tool({"generate", "-m", file, "-p", "x"}), 1, "weights");
}

TEST_F(Text, SpecialTokensOnlyWhereAsked) {
  EXPECT_GT(run("tokenize", {"<|im_end|>", "--json"}).json()["ids"].size(), 1u);
  const Json special = run("tokenize", {"<|im_end|>", "--special", "--json"}).json();
  EXPECT_EQ(special["ids"], Json({2}));
  EXPECT_EQ(special["pieces"], Json({"<|im_end|>"}));
  EXPECT_EQ(run("detokenize", {"--ids", "2,2"}).out, "<|im_end|><|im_end|>\n");
  EXPECT_EQ(run("detokenize", {"--ids", "2,2", "--skip-special"}).out, "\n");
}

TEST_F(Text, JsonLines) {
  const std::string lines =
      "{\"text\": \"in\", \"id\": \"a\"}\n"
      "{\"bytes_b64\": \"aW7/\"}\n\n"
      "not json\n"
      "{\"bytes_b64\": \"!!\"}\n"
      "{\"question\": \"q\", \"context\": \"c\"}\n"
      "{\"text\": 5}\n"
      "{\"text\": \"in\"}";
  const ToolResult result = run("tokenize", {"--jsonl", folder_.write("in.jsonl", lines)});
  EXPECT_EQ(result.status, 1);
  const std::vector<Json> out = result.json_lines();
  ASSERT_EQ(out.size(), 7u);
  EXPECT_EQ(out[0]["id"], "a");
  EXPECT_EQ(out[0]["pieces"], Json({"in"}));
  EXPECT_EQ(out[1]["offsets"].back(), Json({2, 3}));  // a bad byte is one code point
  for (size_t i : {2u, 3u, 4u, 5u}) EXPECT_TRUE(out[i].contains("error")) << i;
  EXPECT_EQ(out[6]["ids"], out[0]["ids"]);
  EXPECT_NE(result.err.find("line 4"), std::string::npos) << result.err;
  EXPECT_EQ(run("tokenize", {"--jsonl", "-"}, "{\"text\": \"in\"}\n").json()["ids"], out[0]["ids"]);
}

TEST_F(Text, LongTextsGrowTheSession) {
  std::string lines;
  for (size_t length : {10u, 5000u, 100000u})
    lines += Json{{"text", std::string(length, 'q')}}.dump() + "\n";
  const std::vector<Json> out =
      run("tokenize", {"--jsonl", folder_.write("long.jsonl", lines)}).json_lines();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[2]["ids"].size(), 100000u);
}

TEST_F(Text, DetokenizeTakesListsLinesAndStandardInput) {
  const std::string ids = run("tokenize", {"the sea\nin the rain", "--json"}).json()["ids"].dump();
  EXPECT_EQ(run("detokenize", {"--ids", ids}).out, "the sea\nin the rain\n");
  EXPECT_EQ(run("detokenize", {"--ids", "-", "--json"}, ids).json()["text"],
            "the sea\nin the rain");
  const ToolResult lines = run("detokenize", {"--jsonl", "-"},
                               "{\"ids\": " + ids + "}\n{\"ids\": [1, -1]}\n{\"ids\": [99999]}\n");
  EXPECT_EQ(lines.status, 1);
  const std::vector<Json> out = lines.json_lines();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0]["text"], "the sea\nin the rain");
  EXPECT_TRUE(out[1].contains("error"));
  EXPECT_TRUE(out[2].contains("error"));
}

TEST_F(Text, TemplateOfTheModel) {
  const std::string object =
      R"({"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": true})";
  const std::string expected = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(run("template", {"--messages", folder_.write("m.json", object)}).out, expected);
  EXPECT_EQ(run("template", {"--messages", "-", "--json"}, object).json()["text"], expected);
  const std::string list = R"([{"role": "user", "content": "Hi"}])";
  EXPECT_EQ(run("template", {"--messages", "-"}, list).out, "<|im_start|>user\nHi<|im_end|>\n");
  for (const char* none : {"5", "{}", "{\"message\": []}"})
    expect_failure(run("template", {"--messages", "-"}, none), 1, "\"messages\"");
  expect_failure(run("template", {"--messages", "-"}, "{\"messages\": 1e400}"), 1, "overflow");
  const std::string deep = "{\"messages\": " + std::string(100000, '[');
  expect_failure(run("template", {"--messages", "-"}, deep), 1, "too deeply");
  expect_failure(run("template", {"--messages", "-"}, "{\"messages\": \"\xff\"}"), 1, "UTF-8");
}

TEST_F(Text, TemplateOfAFile) {
  const std::string file = folder_.write(
      "t.jinja",
      "{{ bos_token }}|{{ now_word }}|{% for m in messages %}{{ m.content }}{% endfor %}");
  const std::string object = R"({"messages": [{"content": "\u00e9"}], "now_word": "then"})";
  EXPECT_EQ(run_tool({"template", "--template", file, "--messages", "-"}, object).out,
            "|then|\xc3\xa9");
  EXPECT_EQ(run("template", {"--template", file, "--messages", "-"}, object).out,
            "<|im_start|>|then|\xc3\xa9");
  const std::string refusal = folder_.write("no.jinja", "{{ raise_exception('not this way') }}");
  expect_failure(run_tool({"template", "--template", refusal, "--messages", "-"}, object), 1,
                 "not this way");
  const std::string broken = folder_.write("broken.jinja", "a\n{{ x");
  const ToolResult fault = run_tool({"template", "--template", broken, "--messages", "-"}, object);
  expect_failure(fault, 1, "broken.jinja: chat template line 2");
  EXPECT_EQ(fault.err.find("chat template"), fault.err.rfind("chat template"));  // said once
}

// Every golden of the template engine, through the command.
TEST_F(Text, TemplateGoldens) {
  const Json golden = Json::parse(read_all(MOTE_TEST_DATA "/templates/Qwen-Qwen3-0.6B.json"));
  const std::string file = folder_.write("t.jinja", golden["template"]);
  for (const Json& test : golden["cases"]) {
    Json context = {{"messages", test["messages"]},
                    {"add_generation_prompt", test["add_generation_prompt"]},
                    {"bos_token", golden["bos_token"]},
                    {"eos_token", golden["eos_token"]},
                    {"tools", nullptr},
                    {"documents", nullptr},
                    {"now", "2026-01-15T09:30:00"}};
    const ToolResult result =
        run_tool({"template", "--template", file, "--messages", "-"}, context.dump());
    if (test.contains("error")) {
      EXPECT_EQ(result.status, 1) << test["id"];
    } else {
      EXPECT_EQ(result.out, test["expected"].get<std::string>()) << test["id"];
    }
  }
}

}  // namespace
}  // namespace mote::test
