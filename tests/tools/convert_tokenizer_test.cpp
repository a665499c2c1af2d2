// convert: tokenizers and chat templates.
#include "tests/tools/checkpoint_support.h"

namespace mote::test {
namespace {

class ConvertTokenizer : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_TOOL(); }

  ToolResult convert(const Checkpoint& checkpoint, Words more = {}) {
    more.insert(more.begin(), {"convert", checkpoint.write(folder_), "-o", out()});
    return run_tool(more);
  }
  std::string out() const { return folder_.path("out.gguf"); }
  Json keys() { return run_tool({"inspect", "-m", out(), "--json"}).json()["keys"]; }

  static Checkpoint with_tokenizer(const Json& tokenizer = Checkpoint::tokenizer_json()) {
    Checkpoint checkpoint = Checkpoint::load("llama");
    checkpoint.files["tokenizer.json"] = tokenizer.dump();
    checkpoint.files["tokenizer_config.json"] =
        R"({"eos_token": {"content": "<|im_end|>"}, "bos_token": "<|im_start|>", "chat_template": "{{ messages[0].content }}"})";
    return checkpoint;
  }

  TemporaryFolder folder_;
};

// The model made by other means has the same tokens, so the same texts give the same ids.
TEST_F(ConvertTokenizer, TokenizesLikeTheModelItWasMadeFrom) {
  ASSERT_EQ(convert(with_tokenizer()).status, 0);
  const std::string other = write_tiny_model(folder_);
  for (const char* text :
       {"the rain in the land", "  the\n\n12 caf\xc3\xa9 \xf0\x9f\x98\x80", "<|im_end|>"})
    for (bool special : {false, true}) {
      Words words = {"tokenize", text, "--json", "-m", out()};
      if (special) words.push_back("--special");
      const Json found = run_tool(words).json();
      words[4] = other;
      EXPECT_EQ(found, run_tool(words).json()) << text;
    }
}

TEST_F(ConvertTokenizer, KeysSayWhatTheFilesSay) {
  ASSERT_EQ(convert(with_tokenizer()).status, 0);
  const Json found = keys();
  EXPECT_EQ(found["tokenizer.ggml.model"], "gpt2");
  EXPECT_EQ(found["tokenizer.ggml.pre"], "smollm");
  EXPECT_EQ(found["tokenizer.ggml.tokens"]["count"], 300);
  EXPECT_EQ(found["tokenizer.ggml.merges"]["count"], 41);
  EXPECT_EQ(found["tokenizer.ggml.token_type"]["first"], Json({3, 3, 3, 1, 1, 1, 1, 1}));
  EXPECT_EQ(found["tokenizer.ggml.bos_token_id"], 1);
  EXPECT_EQ(found["tokenizer.ggml.eos_token_id"], 2);
  EXPECT_EQ(found["tokenizer.ggml.add_bos_token"], false);
  EXPECT_EQ(found["tokenizer.chat_template"], "{{ messages[0].content }}");
}

TEST_F(ConvertTokenizer, BothFormsOfMerges) {
  ASSERT_EQ(convert(with_tokenizer()).status, 0);
  const std::string expected = read_all(out());
  Json tokenizer = Checkpoint::tokenizer_json();
  for (Json& merge : tokenizer["model"]["merges"]) {
    const std::string text = merge;
    merge = {text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)};
  }
  ASSERT_EQ(convert(with_tokenizer(tokenizer)).status, 0);
  EXPECT_EQ(read_all(out()), expected);
}

TEST_F(ConvertTokenizer, PreTokenizersAreKnownByTheirText) {
  const std::string head = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})",
                    tail = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const auto split = [](const std::string& pattern) {
    return Json{{"type", "Sequence"},
                {"pretokenizers",
                 {{{"type", "Split"},
                   {"pattern", {{"Regex", pattern}}},
                   {"behavior", "Isolated"},
                   {"invert", false}},
                  {{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", false}}}}};
  };
  const std::pair<Json, const char*> known[] = {
      {split(head + "{1,3}" + tail), "llama-bpe"},
      {split(head + tail), "qwen2"},
      {Json{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}}, "gpt-2"}};
  for (const auto& [pre, name] : known) {
    Json tokenizer = Checkpoint::tokenizer_json();
    tokenizer["pre_tokenizer"] = pre;
    const ToolResult result = convert(with_tokenizer(tokenizer));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(keys()["tokenizer.ggml.pre"], name);
  }
  Json tokenizer = Checkpoint::tokenizer_json();
  tokenizer["pre_tokenizer"] = split(head + "{1,4}" + tail);
  expect_failure(convert(with_tokenizer(tokenizer)), 1, "{1,4}");
  EXPECT_EQ(convert(with_tokenizer(tokenizer), {"--no-tokenizer"}).status, 0);
}

TEST_F(ConvertTokenizer, SeveralEndTokensAndBos) {
  Checkpoint checkpoint = with_tokenizer();
  checkpoint.files["generation_config.json"] = R"({"eos_token_id": [2, 0]})";
  checkpoint.files["tokenizer_config.json"] =
      R"({"eos_token": "<|im_end|>", "add_bos_token": true})";
  checkpoint.files["special_tokens_map.json"] = R"({"bos_token": {"content": "<|endoftext|>"}})";
  ASSERT_EQ(convert(checkpoint).status, 0);
  Json found = keys();
  EXPECT_EQ(found["tokenizer.ggml.eos_token_id"], 2);
  EXPECT_EQ(found["tokenizer.ggml.eot_token_id"], 0);
  EXPECT_EQ(found["tokenizer.ggml.bos_token_id"], 0);
  EXPECT_EQ(found["tokenizer.ggml.add_bos_token"], true);
  // As Llama 3 has it: the post-processor adds BOS.
  Json tokenizer = Checkpoint::tokenizer_json();
  tokenizer["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}},
        {{"type", "TemplateProcessing"},
         {"single",
          {{{"SpecialToken", {{"id", "<|im_start|>"}}}}, {{"Sequence", {{"id", "A"}}}}}}}}}};
  ASSERT_EQ(convert(with_tokenizer(tokenizer)).status, 0);
  EXPECT_EQ(keys()["tokenizer.ggml.add_bos_token"], true);
}

TEST_F(ConvertTokenizer, ChatTemplates) {
  Checkpoint checkpoint = with_tokenizer();
  checkpoint.files["tokenizer_config.json"] =
      R"({"eos_token": "<|im_end|>", "chat_template": [{"name": "default", "template": "{{ 1 }}"},
          {"name": "tool_use", "template": "{{ 2 }}"}]})";
  ASSERT_EQ(convert(checkpoint).status, 0);
  EXPECT_EQ(keys()["tokenizer.chat_template"], "{{ 1 }}");
  EXPECT_EQ(keys()["tokenizer.chat_template.tool_use"], "{{ 2 }}");
  checkpoint.files["chat_template.jinja"] = "{{ 3 }}";
  ASSERT_EQ(convert(checkpoint).status, 0);
  EXPECT_EQ(keys()["tokenizer.chat_template"], "{{ 3 }}");
}

TEST_F(ConvertTokenizer, UnusedIdsAreFilled) {
  Json tokenizer = Checkpoint::tokenizer_json();
  tokenizer["model"]["vocab"].erase("ĊĊ");
  tokenizer["model"]["merges"].erase(40);
  tokenizer["added_tokens"].push_back({{"id", 298}, {"content", "<tool>"}, {"special", false}});
  tokenizer["model"]["vocab"].erase("as");
  tokenizer["model"]["merges"].erase(39);
  const ToolResult result = convert(with_tokenizer(tokenizer));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(keys()["tokenizer.ggml.tokens"]["count"], 300);
  EXPECT_EQ(
      run_tool({"tokenize", "-m", out(), "a<tool>", "--special", "--json"}).json()["ids"].back(),
      298);
}

TEST_F(ConvertTokenizer, DamageIsNamed) {
  const auto refuse = [&](const std::string& pointer, const Json& value, const std::string& what) {
    Json tokenizer = Checkpoint::tokenizer_json();
    tokenizer[Json::json_pointer(pointer)] = value;
    expect_failure(convert(with_tokenizer(tokenizer)), 1, what);
  };
  refuse("/model/type", "WordPiece", "WordPiece");
  refuse("/model/byte_fallback", true, "byte_fallback");
  refuse("/model/vocab", 3, "vocab");
  refuse("/model/vocab/A", 300, "\"A\"");
  refuse("/model/vocab/A", -1, "\"A\"");
  refuse("/model/vocab/A", 5, "5");
  refuse("/model/merges", nullptr, "merges");
  refuse("/model/merges/3", "abc", "item 3");
  refuse("/model/merges/3", Json({"a b", "c"}), "item 3");
  refuse("/model/merges/3", Json({"a"}), "item 3");
  refuse("/added_tokens/0", "x", "added_tokens");
  refuse("/added_tokens/0/id", 5000, "5000");
  refuse("/normalizer", Json{{"type", "Lowercase"}}, "Lowercase");
  refuse("/pre_tokenizer", nullptr, "pre_tokenizer");
  Checkpoint model_only = Checkpoint::load("llama");
  model_only.files["tokenizer.model"] = "x";
  std::filesystem::remove_all(folder_.path("checkpoint"));
  expect_failure(convert(model_only), 1, "tokenizer.model");
  const ToolResult bare = convert(model_only, {"--no-tokenizer"});
  EXPECT_EQ(bare.status, 0) << bare.err;
}

TEST_F(ConvertTokenizer, WithoutFilesItWarns) {
  const ToolResult result = convert(Checkpoint::load("llama"));
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.err.find("warning"), std::string::npos) << result.err;
  EXPECT_FALSE(keys().contains("tokenizer.ggml.model"));
}

}  // namespace
}  // namespace mote::test
