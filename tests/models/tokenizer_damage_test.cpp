// Damaged and unusual tokenizer keys: each gives a status and a message that names file and key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/models/tokenizer_support.h"

namespace mote::test {
namespace {

using testing::HasSubstr;

GgufBuilder good_bpe() {
  SmallVocabulary vocabulary;
  vocabulary.merge("a", "b").token("<s>", TokenType::control);
  GgufBuilder builder = vocabulary.builder("gpt-2");
  builder.u32("tokenizer.ggml.bos_token_id", 257);
  return builder;
}

GgufBuilder good_sentencepiece() {
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "llama");
  builder.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "\xe2\x96\x81",
                                          "\xe2\x96\x81"
                                          "a"});
  builder.array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, 1, 1});
  builder.array<float>("tokenizer.ggml.scores", GgufType::f32, {0, 0, 0, -2, -3, -1});
  return builder;
}

GgufBuilder good_wordpiece() {
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "bert");
  builder.texts("tokenizer.ggml.tokens", {"[UNK]", "[CLS]", "[SEP]",
                                          "\xe2\x96\x81"
                                          "a"});
  builder.array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1});
  builder.u32("tokenizer.ggml.unknown_token_id", 0);
  builder.u32("tokenizer.ggml.cls_token_id", 1);
  builder.u32("tokenizer.ggml.seperator_token_id", 2);
  builder.boolean("tokenizer.ggml.normalizer.lowercase", true);
  builder.boolean("mote.wordpiece.clean_text", true);
  builder.boolean("mote.wordpiece.chinese_spaces", true);
  builder.u32("mote.wordpiece.max_characters", 100);
  builder.array<int32_t>("mote.frame.single", GgufType::i32, {1, -1, 2});
  builder.array<int32_t>("mote.frame.pair", GgufType::i32, {1, -1, 2, -2, 2});
  builder.array<int32_t>("mote.frame.pair_types", GgufType::i32, {0, 0, 0, 1, 1});
  builder.u32("mote.max_tokens", 128);
  return builder;
}

GgufBuilder good_unigram() {
  GgufBuilder builder = good_sentencepiece();
  builder.text("tokenizer.ggml.model", "t5");
  builder.u32("tokenizer.ggml.bos_token_id", 1);
  builder.u32("tokenizer.ggml.eos_token_id", 2);
  return builder;
}

struct Damage {
  const char* name;
  GgufBuilder (*good)();
  std::function<void(GgufBuilder*)> damage;
  mote_status expected;
  std::vector<const char*> message;
};
void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class TokenizerDamage : public testing::TestWithParam<Damage> {};

TEST_P(TokenizerDamage, IsNamed) {
  GgufBuilder builder = GetParam().good();
  GetParam().damage(&builder);
  TokenizerFile file(builder);
  EXPECT_EQ(file.open().code(), GetParam().expected);
  EXPECT_FALSE(file.tokenizer.present());
  EXPECT_THAT(last_error(), HasSubstr("test.gguf"));
  for (const char* part : GetParam().message) EXPECT_THAT(last_error(), HasSubstr(part));
}

constexpr mote_status kBad = MOTE_ERROR_BAD_FILE, kUnsupported = MOTE_ERROR_UNSUPPORTED;
constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTypes = "tokenizer.ggml.token_type";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr const char* kBos = "tokenizer.ggml.bos_token_id";

INSTANTIATE_TEST_SUITE_P(
    Tokenizer, TokenizerDamage,
    testing::Values(
        Damage{"NoTokens", good_bpe, [](auto* b) { b->remove_key(kTokens); }, kBad, {kTokens}},
        Damage{"ZeroTokens",
               good_bpe,
               [](auto* b) { b->texts(kTokens, {}); },
               kBad,
               {kTokens, "found 0"}},
        Damage{"TokensAreNumbers",
               good_bpe,
               [](auto* b) {
                 b->template array<uint32_t>(kTokens, GgufType::u32, {1, 2});
               },
               kBad,
               {kTokens}},
        Damage{
            "TokensAreOneText", good_bpe, [](auto* b) { b->text(kTokens, "a"); }, kBad, {kTokens}},
        Damage{"TwoTokensAlike",
               good_bpe,
               [](auto* b) {
                 SmallVocabulary v;
                 v.token("a", TokenType::normal).token("b2", TokenType::normal);
                 b->texts(kTokens, v.tokens);
               },
               kBad,
               {kTokens, "tokens 97 and 256", "\"a\""}},
        Damage{"TypesTooShort",
               good_bpe,
               [](auto* b) {
                 b->template array<int32_t>(kTypes, GgufType::i32, {1, 1, 1});
               },
               kBad,
               {kTypes, "258", "found 3"}},
        Damage{"TypesAreBytes",
               good_bpe,
               [](auto* b) { b->array(kTypes, GgufType::u8, std::vector<uint8_t>(258, 1)); },
               kBad,
               {kTypes}},
        Damage{"TypeOutOfRange",
               good_bpe,
               [](auto* b) {
                 std::vector<int32_t> types(258, 1);
                 types[9] = -1;
                 b->array(kTypes, GgufType::i32, types);
               },
               kBad,
               {kTypes, "token 9", "found -1"}},
        Damage{"NoMerges", good_bpe, [](auto* b) { b->remove_key(kMerges); }, kBad, {kMerges}},
        Damage{"MergesAreNumbers",
               good_bpe,
               [](auto* b) { b->template array<int32_t>(kMerges, GgufType::i32, {1}); },
               kBad,
               {kMerges}},
        Damage{"MergeOfOne",
               good_bpe,
               [](auto* b) {
                 b->texts(kMerges, {"a b", "ab"});
               },
               kBad,
               {kMerges, "merge 1", "\"ab\""}},
        Damage{"MergeWithNothing",
               good_bpe,
               [](auto* b) { b->texts(kMerges, {"a "}); },
               kBad,
               {kMerges, "merge 0"}},
        Damage{"EmptyMerge",
               good_bpe,
               [](auto* b) { b->texts(kMerges, {""}); },
               kBad,
               {kMerges, "merge 0"}},
        Damage{"BosOutOfRange", good_bpe, [](auto* b) { b->u32(kBos, 258); }, kBad, {kBos, "258"}},
        Damage{"BosIsText", good_bpe, [](auto* b) { b->text(kBos, "<s>"); }, kBad, {kBos}},
        Damage{"EosOutOfRange",
               good_bpe,
               [](auto* b) { b->u32("tokenizer.ggml.eos_token_id", 0xffffffffu); },
               kBad,
               {"tokenizer.ggml.eos_token_id"}},
        Damage{"AddBosIsNumber",
               good_bpe,
               [](auto* b) { b->f32("tokenizer.ggml.add_bos_token", 1); },
               kBad,
               {"tokenizer.ggml.add_bos_token"}},
        Damage{"NoModel",
               good_bpe,
               [](auto* b) { b->remove_key("tokenizer.ggml.model"); },
               kBad,
               {"tokenizer.ggml.model"}},
        Damage{"ModelIsNumber",
               good_bpe,
               [](auto* b) { b->u32("tokenizer.ggml.model", 1); },
               kBad,
               {"tokenizer.ggml.model"}},
        Damage{"UnknownModel",
               good_bpe,
               [](auto* b) { b->text("tokenizer.ggml.model", "rwkv"); },
               kUnsupported,
               {"tokenizer.ggml.model", "\"rwkv\""}},
        Damage{"UnknownPreTokenizer",
               good_bpe,
               [](auto* b) { b->text("tokenizer.ggml.pre", "gpt-9"); },
               kUnsupported,
               {"tokenizer.ggml.pre", "\"gpt-9\""}},
        Damage{"PreTokenizerIsNumber",
               good_bpe,
               [](auto* b) { b->u32("tokenizer.ggml.pre", 1); },
               kBad,
               {"tokenizer.ggml.pre"}},
        Damage{"NoScores",
               good_sentencepiece,
               [](auto* b) { b->remove_key(kScores); },
               kBad,
               {kScores}},
        Damage{"ScoresAreBytes",
               good_sentencepiece,
               [](auto* b) { b->array(kScores, GgufType::u8, std::vector<uint8_t>(6, 1)); },
               kBad,
               {kScores}},
        Damage{"ScoresTooShort",
               good_sentencepiece,
               [](auto* b) { b->array(kScores, GgufType::f32, std::vector<float>(5, 1)); },
               kBad,
               {kScores}},
        Damage{"ScoreIsNaN",
               good_sentencepiece,
               [](auto* b) {
                 std::vector<float> scores(6, 1);
                 scores[4] = std::nanf("");
                 b->array(kScores, GgufType::f32, scores);
               },
               kBad,
               {kScores, "token 4"}}),
    [](const auto& info) { return std::string(info.param.name); });

void frame(GgufBuilder* b, const char* key, std::vector<int32_t> ids) {
  b->array(key, GgufType::i32, ids);
}

INSTANTIATE_TEST_SUITE_P(
    Encoder, TokenizerDamage,
    testing::Values(
        Damage{"NoUnknownToken",
               good_wordpiece,
               [](auto* b) {
                 b->remove_key("tokenizer.ggml.unknown_token_id");
                 b->template array<int32_t>(kTypes, GgufType::i32, {3, 3, 3, 1});
               },
               kBad,
               {"tokenizer.ggml.unknown_token_id"}},
        Damage{"ClsOutOfRange",
               good_wordpiece,
               [](auto* b) { b->u32("tokenizer.ggml.cls_token_id", 4); },
               kBad,
               {"tokenizer.ggml.cls_token_id", "found 4"}},
        Damage{"FlagIsNumber",
               good_wordpiece,
               [](auto* b) { b->u32("mote.wordpiece.clean_text", 1); },
               kBad,
               {"mote.wordpiece.clean_text"}},
        Damage{"MaxCharactersIsText",
               good_wordpiece,
               [](auto* b) { b->text("mote.wordpiece.max_characters", "many"); },
               kBad,
               {"mote.wordpiece.max_characters"}},
        Damage{"MaxTokensIsText",
               good_wordpiece,
               [](auto* b) { b->text("mote.max_tokens", "many"); },
               kBad,
               {"mote.max_tokens"}},
        Damage{"FrameIdOutOfRange",
               good_wordpiece,
               [](auto* b) {
                 frame(b, "mote.frame.single", {1, -1, 4});
               },
               kBad,
               {"mote.frame.single", "item 2", "found 4"}},
        Damage{"FrameIdBelow",
               good_wordpiece,
               [](auto* b) {
                 frame(b, "mote.frame.pair", {-3, -1, -2});
               },
               kBad,
               {"mote.frame.pair"}},
        Damage{"FrameWithoutText",
               good_wordpiece,
               [](auto* b) {
                 frame(b, "mote.frame.single", {1, 2});
               },
               kBad,
               {"mote.frame.single", "-1 once"}},
        Damage{"FrameOfOneWithSecondText",
               good_wordpiece,
               [](auto* b) {
                 frame(b, "mote.frame.single", {-1, -2});
               },
               kBad,
               {"mote.frame.single"}},
        Damage{"PairWithoutSecondText",
               good_wordpiece,
               [](auto* b) {
                 frame(b, "mote.frame.pair", {1, -1, 2, 2, 2});
               },
               kBad,
               {"mote.frame.pair", "-2"}},
        Damage{"FrameTooLong",
               good_wordpiece,
               [](auto* b) { frame(b, "mote.frame.single", std::vector<int32_t>(17, 1)); },
               kBad,
               {"mote.frame.single", "16", "17"}},
        Damage{"EmptyFrame",
               good_wordpiece,
               [](auto* b) { frame(b, "mote.frame.single", {}); },
               kBad,
               {"mote.frame.single"}},
        Damage{"FrameTypesTooShort",
               good_wordpiece,
               [](auto* b) {
                 frame(b, "mote.frame.pair_types", {0, 0});
               },
               kBad,
               {"mote.frame.pair_types"}},
        Damage{"FrameTypeOutOfRange",
               good_wordpiece,
               [](auto* b) {
                 frame(b, "mote.frame.pair_types", {0, 0, 0, 1, 256});
               },
               kBad,
               {"mote.frame.pair", "256"}},
        Damage{"StripsATokenThatIsNotSpecial",
               good_wordpiece,
               [](auto* b) { frame(b, "mote.added_tokens.lstrip", {3}); },
               kBad,
               {"mote.added_tokens.lstrip", "found 3"}},
        Damage{"StripsATokenOutOfRange",
               good_wordpiece,
               [](auto* b) { frame(b, "mote.added_tokens.rstrip", {-1}); },
               kBad,
               {"mote.added_tokens.rstrip"}},
        Damage{"ControlTokenIsLate",
               good_wordpiece,
               [](auto* b) { frame(b, "mote.added_tokens.late", {1}); },
               kBad,
               {"mote.added_tokens.late", "found 1"}},
        Damage{"TooManyFlaggedTokens",
               good_wordpiece,
               [](auto* b) { frame(b, "mote.added_tokens.late", std::vector<int32_t>(5000, 1)); },
               kBad,
               {"mote.added_tokens.late", "5000"}},
        Damage{"UnigramWithoutUnknown",
               good_unigram,
               [](auto* b) {
                 b->template array<int32_t>(kTypes, GgufType::i32, {1, 3, 3, 1, 1, 1});
               },
               kBad,
               {"tokenizer.ggml.unknown_token_id"}},
        Damage{"UnigramWithoutScores",
               good_unigram,
               [](auto* b) { b->remove_key(kScores); },
               kBad,
               {kScores}},
        Damage{"UnigramScoreIsInfinite",
               good_unigram,
               [](auto* b) { b->array(kScores, GgufType::f32, std::vector<float>(6, HUGE_VALF)); },
               kBad,
               {kScores, "token 0"}},
        Damage{"UnigramPrefixIsUnknown",
               good_unigram,
               [](auto* b) { b->text("mote.unigram.prefix", "sometimes"); },
               kBad,
               {"mote.unigram.prefix", "sometimes"}},
        Damage{"MapIsText",
               good_unigram,
               [](auto* b) { b->text("tokenizer.ggml.precompiled_charsmap", "map"); },
               kBad,
               {"tokenizer.ggml.precompiled_charsmap"}},
        Damage{"NormalizerIsUnknown",
               good_unigram,
               [](auto* b) {
                 b->texts("mote.normalizer", {"nfc", "rot13"});
               },
               kUnsupported,
               {"mote.normalizer", "\"rot13\""}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(TokenizerOpen, GoodFilesOpenWithoutMessages) {
  for (auto good : {good_bpe, good_sentencepiece, good_wordpiece, good_unigram}) {
    TokenizerFile file(good());
    ASSERT_TRUE(file.open().ok()) << last_error();
    EXPECT_TRUE(file.tokenizer.present());
    EXPECT_THAT(file.messages, testing::IsEmpty());
  }
}

TEST(TokenizerOpen, NoKeysNoTokenizer) {
  GgufBuilder builder;
  builder.text("general.architecture", "llama");
  TokenizerFile file(builder);
  ASSERT_TRUE(file.open().ok()) << last_error();
  const Tokenizer& t = file.tokenizer;
  EXPECT_FALSE(t.present());
  EXPECT_EQ(t.size(), 0u);
  EXPECT_EQ(t.bos(), -1);
  EXPECT_EQ(t.find("a"), -1);
  EXPECT_EQ(t.decode(0, true, false, nullptr, 0), 0u);
  EXPECT_FALSE(t.is_end(0));
  size_t count = 7;
  EXPECT_EQ(t.encode("a", 0, Arena(), nullptr, 0, &count).code(), MOTE_ERROR_TASK);
  EXPECT_EQ(count, 0u);
}

TEST(TokenizerOpen, MissingPreTokenizerIsDefaultWithAWarning) {
  SmallVocabulary vocabulary;
  vocabulary.token("x", TokenType::normal);
  vocabulary.tokens.back() = "xyz";
  GgufBuilder builder = vocabulary.builder("gpt-2");
  builder.remove_key("tokenizer.ggml.pre");
  TokenizerFile file(builder);
  ASSERT_TRUE(file.open().ok()) << last_error();
  EXPECT_THAT(file.messages, testing::ElementsAre(HasSubstr("tokenizer.ggml.pre is missing")));
}

TEST(TokenizerOpen, MergesOfStrangersAreLeftOutWithAWarning) {
  GgufBuilder builder = good_bpe();
  builder.texts(kMerges, {"xx y", "a b", "b a"});
  TokenizerFile file(builder);
  ASSERT_TRUE(file.open().ok()) << last_error();
  EXPECT_THAT(file.messages,
              testing::ElementsAre(testing::AllOf(HasSubstr("2 of 3"), HasSubstr("\"xx y\""))));
  EXPECT_EQ(encode_ids(file.tokenizer, "ab", 0), std::vector<int32_t>{256});
}

TEST(TokenizerOpen, NoTypesAtAll) {
  GgufBuilder builder = good_bpe();
  builder.remove_key(kTypes);
  TokenizerFile file(builder);
  ASSERT_TRUE(file.open().ok()) << last_error();
  EXPECT_EQ(file.tokenizer.type(257), TokenType::control);  // BOS by its key
  EXPECT_EQ(file.tokenizer.type(256), TokenType::normal);
}

TEST(TokenizerOpen, EmptyTokensAreAllowed) {
  SmallVocabulary vocabulary;
  vocabulary.token("", TokenType::unused)
      .token("", TokenType::control)
      .token("", TokenType::user_defined);
  TokenizerFile file(vocabulary.builder("gpt-2"));
  ASSERT_TRUE(file.open().ok()) << last_error();
  EXPECT_EQ(file.tokenizer.find(""), -1);
  EXPECT_EQ(encode_ids(file.tokenizer, "ab", MOTE_TOKENIZE_SPECIAL).size(), 2u);
  EXPECT_EQ(decode(file.tokenizer, {256, 257, 258}, false), "");
}

// A byte token gives a byte, whatever its text: buffers of longest_piece() must hold it.
TEST(TokenizerOpen, ByteTokenWithoutText) {
  GgufBuilder builder = good_sentencepiece();
  builder.texts(kTokens, {""});
  builder.array<int32_t>(kTypes, GgufType::i32, {6});
  builder.array<float>(kScores, GgufType::f32, {0});
  TokenizerFile file(builder);
  ASSERT_TRUE(file.open().ok()) << last_error();
  EXPECT_EQ(file.tokenizer.decode(0, true, false, nullptr, 0), 1u);
  EXPECT_EQ(file.tokenizer.longest_piece(), 1u);
}

TEST(TokenizerOpen, FrameTokenWithoutAnIdIsNotAdded) {
  SmallVocabulary vocabulary;
  GgufBuilder builder = vocabulary.builder("llama-bpe");
  TokenizerFile file(builder);
  ASSERT_TRUE(file.open().ok()) << last_error();
  EXPECT_FALSE(file.tokenizer.adds_bos());
  EXPECT_THAT(file.messages, testing::ElementsAre(HasSubstr(kBos)));
  EXPECT_EQ(encode_ids(file.tokenizer, "a", MOTE_TOKENIZE_FRAME).size(), 1u);
}

}  // namespace
}  // namespace mote::test
