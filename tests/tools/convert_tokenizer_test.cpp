// convert: tokenizers and chat templates.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <tuple>

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
         {"single", {{{"SpecialToken", {{"id", "<|im_start|>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
         {"special_tokens", {{"<|im_start|>", {{"ids", {1}}}}}}}}}};
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
  refuse("/model/type", "WordLevel", "WordLevel");
  refuse("/model/byte_fallback", true, "pre_tokenizer");
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
  refuse("/normalizer", Json{{"type", "Nmt"}}, "Nmt");
  refuse("/pre_tokenizer", nullptr, "pre_tokenizer");
  Checkpoint model_only = Checkpoint::load("llama");
  model_only.files["tokenizer.model"] = "x";
  std::filesystem::remove_all(folder_.path("checkpoint"));
  expect_failure(convert(model_only), 1, "tokenizer.model");
  const ToolResult bare = convert(model_only, {"--no-tokenizer"});
  EXPECT_EQ(bare.status, 0) << bare.err;
}

// ---- Encoders: the tokenizer alone, from whatever files the folder has.

class ConvertEncoderTokenizer : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_TOOL(); }

  // A folder with config.json and these files.
  ToolResult convert(std::map<std::string, std::string> files, uint32_t vocab_size,
                     Words more = {}) {
    const std::string folder = folder_.path("encoder");
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    files["config.json"] = Json{{"model_type", "bert"}, {"vocab_size", vocab_size}}.dump();
    for (const auto& [name, text] : files)
      std::ofstream(folder + "/" + name, std::ios::binary) << text;
    more.insert(more.begin(), {"convert", folder, "-o", out(), "--tokenizer-only"});
    return run_tool(more);
  }
  std::string out() const { return folder_.path("out.gguf"); }
  Json keys() { return run_tool({"inspect", "-m", out(), "--json"}).json()["keys"]; }
  Json tokenize(const std::string& text) {
    return run_tool({"tokenize", "-m", out(), "--special", "--json", "--", text}).json();
  }

  static Json word_piece() {
    return {
        {"truncation", {{"max_length", 4}}},
        {"padding", {{"pad_id", 0}}},
        {"normalizer",
         {{"type", "BertNormalizer"},
          {"clean_text", true},
          {"handle_chinese_chars", false},
          {"strip_accents", nullptr},
          {"lowercase", false}}},
        {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
        {"post_processor",
         {{"type", "BertProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", {"[CLS]", 1}}}},
        {"added_tokens",
         {{{"id", 0}, {"content", "[UNK]"}, {"special", true}},
          {{"id", 1}, {"content", "[CLS]"}, {"special", true}},
          {{"id", 2}, {"content", "[SEP]"}, {"special", true}},
          {{"id", 6}, {"content", "<mask>"}, {"special", true}, {"lstrip", true}}}},
        {"model",
         {{"type", "WordPiece"},
          {"unk_token", "[UNK]"},
          {"continuing_subword_prefix", "##"},
          {"max_input_chars_per_word", 7},
          {"vocab", {{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"a", 3}, {"##b", 4}, {"b", 5}}}}}};
  }
  TemporaryFolder folder_;
};

TEST_F(ConvertEncoderTokenizer, WordPiece) {
  const ToolResult result = convert({{"tokenizer.json", word_piece().dump()}}, 8);
  ASSERT_EQ(result.status, 0) << result.err;
  const Json found = keys();
  EXPECT_EQ(found["tokenizer.ggml.model"], "bert");
  EXPECT_EQ(found["tokenizer.ggml.normalizer.lowercase"], false);
  EXPECT_EQ(found["tokenizer.ggml.normalizer.strip_accents"], false);
  EXPECT_EQ(found["mote.wordpiece.chinese_spaces"], false);
  EXPECT_EQ(found["mote.wordpiece.max_characters"], 7);
  EXPECT_EQ(found["mote.frame.pair"]["first"], Json({1, -1, 2, -2, 2}));
  EXPECT_EQ(found["mote.frame.pair_types"]["first"], Json({0, 0, 0, 1, 1}));
  EXPECT_FALSE(found.contains("mote.max_tokens"));
  // Truncation and padding of the file do not count, the mask takes the spaces before it.
  const Json tokens = tokenize("abb b A  <mask> a");
  EXPECT_EQ(tokens["ids"], Json({1, 3, 4, 4, 5, 0, 6, 3, 2}));
  EXPECT_EQ(tokens["offsets"][6], Json({7, 15}));
}

TEST_F(ConvertEncoderTokenizer, LengthComesFromSentenceTransformersFirst) {
  std::map<std::string, std::string> files = {
      {"tokenizer.json", word_piece().dump()},
      {"tokenizer_config.json", R"({"model_max_length": 512})"}};
  ASSERT_EQ(convert(files, 8).status, 0);
  EXPECT_EQ(keys()["mote.max_tokens"], 512);
  files["sentence_bert_config.json"] = R"({"max_seq_length": 256})";
  ASSERT_EQ(convert(files, 8).status, 0);
  EXPECT_EQ(keys()["mote.max_tokens"], 256);
  files.erase("sentence_bert_config.json");
  files["tokenizer_config.json"] = R"({"model_max_length": 1000000000000000019884624838656})";
  ASSERT_EQ(convert(files, 8).status, 0);
  EXPECT_FALSE(keys().contains("mote.max_tokens"));
}

TEST_F(ConvertEncoderTokenizer, VocabTxtAlone) {
  const std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nA\n";
  ASSERT_EQ(convert({{"vocab.txt", vocab}}, 8).status, 0);
  EXPECT_EQ(tokenize("Ab [MASK]")["ids"], Json({2, 5, 6, 4, 3}));
  const Json found = keys();
  EXPECT_EQ(found["tokenizer.ggml.padding_token_id"], 0);
  EXPECT_EQ(found["tokenizer.ggml.unknown_token_id"], 1);
  EXPECT_EQ(found["tokenizer.ggml.cls_token_id"], 2);
  EXPECT_EQ(found["tokenizer.ggml.seperator_token_id"], 3);
  EXPECT_EQ(found["tokenizer.ggml.mask_token_id"], 4);
  EXPECT_EQ(found["tokenizer.ggml.token_type"]["first"], Json({3, 2, 3, 3, 3, 1, 1, 1}));
  ASSERT_EQ(
      convert({{"vocab.txt", vocab}, {"tokenizer_config.json", R"({"do_lower_case": false})"}}, 8)
          .status,
      0);
  EXPECT_EQ(tokenize("Ab")["ids"], Json({2, 7, 6, 3}));
  expect_failure(convert({{"vocab.txt", vocab}}, 4), 1, "vocab_size");
  const ToolResult cut = convert({{"vocab.txt", vocab}}, 30);
  EXPECT_EQ(cut.status, 0);
  EXPECT_THAT(cut.err, testing::HasSubstr("has 8 tokens, config.json's vocab_size is 30"));
  const ToolResult lacking = convert({{"vocab.txt", "[UNK]\n[CLS]\na\nb\n"}}, 4);
  EXPECT_EQ(lacking.status, 1);
  EXPECT_THAT(lacking.err, testing::HasSubstr("no sep_token [SEP]"));
}

TEST_F(ConvertEncoderTokenizer, VocabJsonWithMerges) {
  const Json vocab = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2},   {"<unk>", 3}, {"a", 4},
                      {"b", 5},   {"ab", 6},    {"\u0120", 7}, {"<mask>", 8}};
  ASSERT_EQ(
      convert({{"vocab.json", vocab.dump()}, {"merges.txt", "#version: 0.2\na b\n"}}, 9).status, 0);
  const Json tokens = tokenize("ab <mask>");
  EXPECT_EQ(tokens["ids"], Json({0, 6, 8, 2}));
  EXPECT_EQ(keys()["mote.frame.pair"]["first"], Json({0, -1, 2, 2, -2, 2}));
  EXPECT_EQ(keys()["tokenizer.ggml.mask_token_id"], 8);
  EXPECT_EQ(keys()["tokenizer.ggml.cls_token_id"], 0);
  expect_failure(convert({{"vocab.json", vocab.dump()}, {"merges.txt", "ab\n"}}, 9), 1,
                 "merges.txt");
  expect_failure(convert({{"vocab.json", vocab.dump()}}, 9), 1, "merges.txt");
}

// The tokenizer.json of tests/data/tokenizers/encoders/unigram-first.
Json small_unigram() {
  return {
      {"normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}}},
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "WhitespaceSplit"}},
          {{"type", "Metaspace"}, {"replacement", "\xe2\x96\x81"}, {"add_prefix_space", true}}}}}},
      {"post_processor",
       {{"type", "RobertaProcessing"}, {"sep", {"</s>", 2}}, {"cls", {"<s>", 0}}}},
      {"added_tokens", {{{"id", 0}, {"content", "<s>"}, {"special", true}}}},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 3},
        {"vocab", Json::parse(R"([["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0],
                                    ["\u2581", -2.5], ["a", -2.0], ["\u2581a", -3.0]])")}}}};
}

TEST_F(ConvertEncoderTokenizer, Unigram) {
  const ToolResult result = convert({{"tokenizer.json", small_unigram().dump()}}, 7);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(keys()["tokenizer.ggml.model"], "t5");
  EXPECT_EQ(keys()["tokenizer.ggml.scores"]["first"][6], -3.0);
  EXPECT_EQ(keys()["mote.normalizer"]["first"], Json({"nfc"}));
  EXPECT_EQ(tokenize("a aa x")["ids"], Json({0, 6, 6, 5, 4, 3, 2}));
  EXPECT_EQ(tokenize("a aa x")["offsets"][2], Json({2, 3}));
}

TEST_F(ConvertEncoderTokenizer, WhatIsNotKnownIsShown) {
  const auto refuse = [&](Json tokenizer, const std::string& pointer, const Json& value,
                          const std::string& what) {
    tokenizer[Json::json_pointer(pointer)] = value;
    expect_failure(convert({{"tokenizer.json", tokenizer.dump()}}, 8), 1, what);
  };
  refuse(word_piece(), "/normalizer", Json{{"type", "Nmt"}}, "Nmt");
  refuse(word_piece(), "/pre_tokenizer/type", "Whitespace", "\"Whitespace\"");
  refuse(word_piece(), "/post_processor/type", "Strange", "Strange");
  refuse(word_piece(), "/post_processor/cls", "x", "BertProcessing");
  refuse(word_piece(), "/model/unk_token", "nothing", "nothing");
  refuse(word_piece(), "/model/vocab/a", 9, "\"a\"");
  refuse(word_piece(), "/model/vocab/a", 5, "5");
  refuse(small_unigram(), "/normalizer/normalizers/0/type", "Nmt", "Nmt");
  refuse(small_unigram(), "/pre_tokenizer/pretokenizers/1/replacement", "_", "\"_\"");
  refuse(small_unigram(), "/model/vocab/4", Json::array({"a"}), "item 4");
  refuse(small_unigram(), "/model/unk_id", 70, "unk_token");
  refuse(small_unigram(), "/model/byte_fallback", true, "byte_fallback");
}

// A model in the wire format of protocol buffers, with these pieces.
std::string sentencepiece_model(uint32_t type,
                                const std::vector<std::tuple<std::string, float, int>>& pieces) {
  std::string bytes;
  for (const auto& [text, score, kind] : pieces) {
    std::string piece = std::string("\x0a") + static_cast<char>(text.size()) + text + "\x15";
    piece.append(reinterpret_cast<const char*>(&score), 4);
    piece += std::string("\x18") + static_cast<char>(kind);
    bytes += std::string("\x0a") + static_cast<char>(piece.size()) + piece;
  }
  bytes += std::string("\x12\x02\x18") + static_cast<char>(type);
  return bytes;
}

TEST_F(ConvertEncoderTokenizer, SentencePieceModels) {
  const std::string mark = "\xe2\x96\x81";
  const std::string unigram = sentencepiece_model(1, {{"<unk>", 0, 2},
                                                      {"<s>", 0, 3},
                                                      {"</s>", 0, 3},
                                                      {mark, -2, 1},
                                                      {"a", -2, 1},
                                                      {mark + "a", -3, 1}});
  ToolResult result = convert({{"sentencepiece.bpe.model", unigram}}, 8);
  ASSERT_EQ(result.status, 0) << result.err;
  // As XLM-RoBERTa numbers them.
  EXPECT_EQ(tokenize("a aa <mask>")["ids"], Json({0, 6, 6, 5, 7, 2}));
  EXPECT_EQ(tokenize("x")["ids"], Json({0, 4, 3, 2}));
  const std::string bpe = sentencepiece_model(2, {{"<unk>", 0, 2},
                                                  {"<s>", 0, 3},
                                                  {"</s>", 0, 3},
                                                  {mark + "a", 0, 1},
                                                  {mark, -1, 1},
                                                  {"a", -2, 1}});
  result = convert({{"tokenizer.model", bpe},
                    {"tokenizer.json", R"({"model": {"type": "BPE", "byte_fallback": true}})"}},
                   8);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(keys()["tokenizer.ggml.model"], "llama");
  EXPECT_EQ(tokenize("aa")["ids"], Json({3, 5}));
  expect_failure(convert({{"tokenizer.model", "x"}}, 8), 1, "tokenizer.model");
  expect_failure(convert({{"tokenizer.model", unigram.substr(0, 20)}}, 8), 1, "tokenizer.model");
  expect_failure(convert({{"tokenizer.model", sentencepiece_model(3, {{"a", 0, 1}})}}, 8), 1,
                 "type 3");
}

// As LLaMA 2 has it in tokenizer.json: merges instead of scores.
TEST_F(ConvertEncoderTokenizer, BpeWithByteFallback) {
  const std::string mark = "\xe2\x96\x81";
  Json tokenizer = {
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         {{{"type", "Prepend"}, {"prepend", mark}},
          {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", mark}}}}}},
      {"added_tokens", {{{"id", 1}, {"content", "<s>"}, {"special", true}}}},
      {"model",
       {{"type", "BPE"},
        {"byte_fallback", true},
        {"unk_token", "<unk>"},
        {"vocab",
         {{"<unk>", 0},
          {"<s>", 1},
          {"<0x78>", 2},
          {"a", 3},
          {"b", 4},
          {mark, 5},
          {"ab", 6},
          {mark + "a", 7}}},
        {"merges", {mark + " a", "a b"}}}}};
  ToolResult result = convert({{"tokenizer.json", tokenizer.dump()}}, 8);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(tokenize("ab abx")["ids"], Json({7, 4, 7, 4, 2}));
  tokenizer["model"]["merges"] = {"a b", mark + " a"};
  ASSERT_EQ(convert({{"tokenizer.json", tokenizer.dump()}}, 8).status, 0);
  EXPECT_EQ(tokenize("ab")["ids"], Json({5, 6}));
  tokenizer["normalizer"]["normalizers"][1]["content"] = "_";
  expect_failure(convert({{"tokenizer.json", tokenizer.dump()}}, 8), 1, "\"_\"");
  tokenizer["normalizer"] = nullptr;
  expect_failure(convert({{"tokenizer.json", tokenizer.dump()}}, 8), 1, "U+2581");
}

// Qwen 2 composes its texts first.
TEST_F(ConvertTokenizer, ComposesWhereTheFileSaysSo) {
  Json tokenizer = Checkpoint::tokenizer_json();
  tokenizer["normalizer"] = {{"type", "NFC"}};
  ASSERT_EQ(convert(with_tokenizer(tokenizer)).status, 0);
  EXPECT_EQ(keys()["mote.normalizer"]["first"], Json({"nfc"}));
  const auto ids = [&](const char* text) {
    return run_tool({"tokenize", "-m", out(), "--json", text}).json()["ids"];
  };
  EXPECT_EQ(ids("cafe\xcc\x81 a"), ids("caf\xc3\xa9 a"));
}

TEST_F(ConvertEncoderTokenizer, FolderWithoutATokenizer) {
  expect_failure(convert({}, 8), 1, "tokenizer");
}

TEST_F(ConvertTokenizer, WithoutFilesItWarns) {
  const ToolResult result = convert(Checkpoint::load("llama"));
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.err.find("warning"), std::string::npos) << result.err;
  EXPECT_FALSE(keys().contains("tokenizer.ggml.model"));
}

}  // namespace
}  // namespace mote::test
