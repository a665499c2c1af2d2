// Tokens of encoders as Hugging Face's tokenizers give them: ids, offsets, words, windows,
// decoding.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/utf8.h"
#include "models/text_sequence.h"
#include "models/tokenizers/characters.h"
#include "tests/models/tokenizer_support.h"

namespace mote::test {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;
using Offsets = std::vector<std::pair<size_t, size_t>>;

// Where each code point begins, to turn bytes into code points as upstream counts.
class Points {
 public:
  explicit Points(std::string_view text) {
    for (size_t at = 0; at < text.size(); at += read_utf8(text, at).length) starts_.push_back(at);
  }
  size_t before(size_t byte) const {
    return static_cast<size_t>(std::lower_bound(starts_.begin(), starts_.end(), byte) -
                               starts_.begin());
  }

 private:
  std::vector<size_t> starts_;
};

Offsets offsets_of(const std::vector<mote_token>& tokens, std::string_view text) {
  const Points points(text);
  Offsets offsets;
  for (const mote_token& token : tokens)
    offsets.emplace_back(points.before(token.byte_start), points.before(token.byte_end));
  return offsets;
}

Ids ids_of(const std::vector<mote_token>& tokens) {
  Ids ids;
  for (const mote_token& token : tokens) ids.push_back(token.id);
  return ids;
}

std::vector<Json> json_lines(const std::string& path) {
  std::vector<Json> lines;
  for (const std::string& line : read_lines(path)) lines.push_back(Json::parse(line));
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

// From the shared folder where it is set, else the tests' own copy.
std::string golden_file(const std::string& name) {
  const std::string shared = shared_file(name);
  return shared.empty() ? data_file(name) : shared;
}

// ---- The small tokenizers of tests/data/tokenizers/encoders.

class SmallEncoder : public testing::TestWithParam<const char*> {};

TEST_P(SmallEncoder, GivesWhatHuggingFaceGives) {
  const std::string base = data_file(std::string("encoders/") + GetParam());
  TokenizerFile opened(read_file(base + ".gguf"));
  ASSERT_TRUE(opened.open().ok()) << last_error();
  constexpr uint32_t kFlags = MOTE_TOKENIZE_FRAME | MOTE_TOKENIZE_SPECIAL;
  for (const Json& line : json_lines(base + ".jsonl")) {
    const std::string text = line["text"];
    SCOPED_TRACE(line["text"].dump());
    std::vector<uint8_t> starts;
    const std::vector<mote_token> tokens = encode(opened.tokenizer, text, kFlags, &starts);
    ASSERT_EQ(ids_of(tokens), line["ids"].get<Ids>());
    EXPECT_EQ(offsets_of(tokens, text), line["offsets"].get<Offsets>());
    for (size_t i = 0; i < tokens.size(); ++i) {
      const Json &word = line["words"][i], before = i ? line["words"][i - 1] : Json();
      EXPECT_EQ(starts[i], word.is_null() || word != before) << "token " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, SmallEncoder,
                         testing::Values("xlm-roberta", "unigram-steps", "unigram-first",
                                         "unigram-whole", "roberta", "roberta-prefix",
                                         "modernbert"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

// ---- all-MiniLM-L6-v2.

class MiniLm : public testing::Test {
 protected:
  void SetUp() override {
    opened_ = std::make_unique<TokenizerFile>(read_file(data_file("minilm.gguf")));
    ASSERT_TRUE(opened_->open().ok()) << last_error();
  }
  const Tokenizer& tokenizer() const { return opened_->tokenizer; }

  void check_cases(const char* name) {
    for (const Json& line : json_lines(golden_file(name))) {
      SCOPED_TRACE(line["id"].get<std::string>());
      const std::string text = line["text"];
      const auto tokens = encode(tokenizer(), text, MOTE_TOKENIZE_FRAME | MOTE_TOKENIZE_SPECIAL);
      const Ids ids = ids_of(tokens);
      EXPECT_EQ(ids, line["ids"].get<Ids>());
      EXPECT_EQ(offsets_of(tokens, text), line["offsets"].get<Offsets>());
      EXPECT_EQ(encode_ids(tokenizer(), text, MOTE_TOKENIZE_FRAME), line["ids_plain"].get<Ids>());
      EXPECT_EQ(decode(tokenizer(), ids, false), line["decoded"].get<std::string>());
      EXPECT_EQ(decode(tokenizer(), ids, true), line["decoded_skip_special"].get<std::string>());
    }
  }
  std::unique_ptr<TokenizerFile> opened_;
};

TEST_F(MiniLm, SaysHowItFramesTexts) {
  EXPECT_EQ(tokenizer().max_tokens(), 256u);
  const Frame &one = tokenizer().frame(false), &two = tokenizer().frame(true);
  EXPECT_EQ(one.added(), 2u);
  EXPECT_EQ(two.added(), 3u);
  EXPECT_EQ(two.parts[3].id, Frame::kSecond);
  EXPECT_EQ(two.parts[4].type, 1);
  EXPECT_EQ(tokenizer().mask(), 103);
  EXPECT_EQ(tokenizer().unknown(), 100);
  EXPECT_EQ(tokenizer().padding(), 0);
  EXPECT_TRUE(tokenizer().marks_continuations());
  EXPECT_EQ(tokenizer().piece_characters(2075), 5u);  // ##ing
  EXPECT_EQ(tokenizer().piece_characters(7592), 5u);  // hello
  EXPECT_EQ(tokenizer().piece_characters(100), 5u);   // [UNK]
}

TEST_F(MiniLm, Cases) { check_cases("minilm.cases.jsonl"); }
TEST_F(MiniLm, Fuzz) { check_cases("minilm.fuzz.jsonl"); }

TEST_F(MiniLm, InvalidBytes) {
  for (const Json& line : json_lines(golden_file("minilm.invalid.jsonl")))
    EXPECT_EQ(encode_ids(tokenizer(), decode_base64(line["bytes_b64"].get<std::string>()),
                         MOTE_TOKENIZE_FRAME),
              line["ids_python_replace"].get<Ids>())
        << line["id"];
}

// Upstream's table is of Unicode 8. A character that has become a mark, punctuation or a format
// character since is an unknown letter to it; these two have changed their category.
bool newer_than_upstream(uint32_t value, const Ids& upstream) {
  if (value == 0x166d || value == 0x111c9) return true;
  return upstream == Ids{100, 100} &&
         (is_nonspacing_mark(value) || is_bert_punctuation(value) || is_control_or_private(value));
}

TEST_F(MiniLm, EveryOtherCodePoint) {
  const std::string path = shared_file("minilm.codepoints.tsv");
  if (path.empty()) GTEST_SKIP() << "MOTE_SHARED_DIR does not hold goldens/tokenizers";
  size_t lines = 0, newer = 0;
  for (const std::string& line : read_lines(path)) {
    std::istringstream in(line);
    uint32_t value = 0;
    if (!(in >> std::hex >> value >> std::dec)) continue;
    ++lines;
    Ids expected;
    for (int32_t id; in >> id;) expected.push_back(id);
    char character[4];
    const std::string c(character, write_utf8(value, character));
    const Ids found = encode_ids(tokenizer(), "a" + c + "b " + c, 0);
    if (found == expected) continue;
    ++newer;
    EXPECT_TRUE(newer_than_upstream(value, expected)) << "U+" << std::hex << value;
  }
  EXPECT_GT(lines, 17000u);
  EXPECT_LE(newer, 320u);  // 235 with Unicode 15
}

Json window_json(const Tokenizer& tokenizer, const TextWindow& window,
                 const std::vector<mote_token>* tokens, const std::string* texts) {
  const Frame& frame = tokenizer.frame(true);
  const size_t count = sequence_tokens(frame, window);
  Ids ids(count);
  std::vector<uint8_t> types(count);
  write_sequence(frame, window, tokens[0].data(), tokens[1].data(), ids.data(), types.data());
  Json sequence = Json::array(), offsets = Json::array();
  const Offsets of_texts[2] = {offsets_of(tokens[0], texts[0]), offsets_of(tokens[1], texts[1])};
  for (size_t i = 0; i < count; ++i) {
    const SequencePlace place = place_of(frame, window, i);
    sequence.push_back(place.text < 0 ? Json() : Json(place.text));
    if (place.text < 0)
      offsets.push_back({0, 0});
    else
      offsets.push_back(of_texts[place.text][place.token]);
  }
  return {{"ids", ids}, {"type_ids", types}, {"sequence_ids", sequence}, {"offsets", offsets}};
}

TEST_F(MiniLm, WindowsOverPairs) {
  size_t errors = 0;
  for (const Json& line : json_lines(golden_file("minilm.pairs.jsonl"))) {
    SCOPED_TRACE(line["id"].get<std::string>());
    const std::string texts[2] = {line["question"], line["context"]};
    const std::vector<mote_token> tokens[2] = {
        encode(tokenizer(), texts[0], MOTE_TOKENIZE_SPECIAL),
        encode(tokenizer(), texts[1], MOTE_TOKENIZE_SPECIAL)};
    TextLengths lengths = {tokens[0].size(), tokens[1].size(), true};
    TextWindows windows;
    const Status status =
        windows.open(tokenizer().frame(true), lengths, line["max_length"], line["stride"], 1);
    if (line.contains("error")) {
      EXPECT_EQ(status.code(), MOTE_ERROR_ARGUMENT);
      const bool too_long = line["error"] == "question_too_long";
      EXPECT_NE(std::string(last_error()).find(too_long ? "question" : "stride"), std::string::npos)
          << last_error();
      ++errors;
      continue;
    }
    ASSERT_TRUE(status.ok()) << last_error();
    ASSERT_EQ(windows.count(), line["windows"].size());
    for (size_t i = 0; i < windows.count(); ++i) {
      const Json found = window_json(tokenizer(), windows.window(i), tokens, texts);
      for (const auto& [key, value] : found.items())
        EXPECT_EQ(value, line["windows"][i][key]) << key << " of window " << i;
    }
  }
  EXPECT_GT(errors, 0u);
}

// ---- goldens/text: what the trained models were given.

std::string text_golden(const std::string& folder) {
  const char* shared = std::getenv("MOTE_SHARED_DIR");
  if (!shared) return "";
  const std::string path = std::string(shared) + "/goldens/text/" + folder + "/golden.jsonl";
  return std::ifstream(path) ? path : "";
}

// Ids as transformers' rerankers get them: the longer text gives way first.
TEST(TextGolden, TruncationOfPairs) {
  const std::string path = text_golden("text-rerank");
  if (path.empty()) GTEST_SKIP() << "MOTE_SHARED_DIR does not hold goldens/text";
  TokenizerFile opened(read_file(data_file("encoders/text-rerank.gguf")));
  ASSERT_TRUE(opened.open().ok()) << last_error();
  for (const Json& line : json_lines(path)) {
    SCOPED_TRACE(line["id"].get<std::string>());
    const std::string second = line["passage"];
    const auto first_tokens = encode(opened.tokenizer, line["query"].get<std::string>(), 0);
    const auto second_tokens = encode(opened.tokenizer, second, 0);
    const TextLengths lengths = {first_tokens.size(), second_tokens.size(), !second.empty()};
    const Frame& frame = opened.tokenizer.frame(lengths.pair);
    for (const auto& [name, most] : {std::pair("max_length_384", 384), {"max_length_64", 64}}) {
      TextWindow window;
      bool truncated = false;
      ASSERT_TRUE(truncate(frame, lengths, static_cast<size_t>(most), Truncation::longest_first,
                           &window, &truncated)
                      .ok())
          << last_error();
      Ids ids(sequence_tokens(frame, window));
      std::vector<uint8_t> types(ids.size());
      write_sequence(frame, window, first_tokens.data(), second_tokens.data(), ids.data(),
                     types.data());
      EXPECT_EQ(ids, line[name]["ids"].get<Ids>());
      EXPECT_EQ(types, line[name]["type_ids"].get<std::vector<uint8_t>>());
      EXPECT_EQ(truncated, line["tokens"].get<size_t>() > static_cast<size_t>(most));
    }
  }
}

}  // namespace
}  // namespace mote::test
