#include "tests/models/tokenizer_support.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/utf8.h"

namespace mote::test {
namespace {

std::string file_in(const char* variable, const std::string& rest) {
  const char* directory = std::getenv(variable);
  if (!directory) return "";
  const std::string path = std::string(directory) + "/" + rest;
  return std::filesystem::exists(path) ? path : "";
}

void keep_message(void* user, int32_t, const char* message, size_t length) {
  static_cast<std::vector<std::string>*>(user)->emplace_back(message, length);
}

}  // namespace

std::string shared_file(const std::string& name) {
  return file_in("MOTE_SHARED_DIR", "goldens/tokenizers/" + name);
}
std::string model_file(const std::string& name) { return file_in("MOTE_MODELS_DIR", name); }
std::string data_file(const std::string& name) {
  return std::string(MOTE_TEST_DATA) + "/tokenizers/" + name;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string decode_base64(std::string_view text) {
  const std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0, count = 0;
  for (char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(alphabet.find(c));
    count += 6;
    if (count >= 8) out.push_back(static_cast<char>(bits >> (count -= 8)));
  }
  return out;
}

TokenizerFile::TokenizerFile(const GgufBuilder& builder)
    : TokenizerFile([&] {
        const Bytes bytes = builder.build();
        return std::string(bytes.begin(), bytes.end());
      }()) {}
TokenizerFile::TokenizerFile(std::string_view bytes) : size_(bytes.size()) {
  data_ = static_cast<uint8_t*>(std::aligned_alloc(64, (size_ + 63) / 64 * 64));
  std::memcpy(data_, bytes.data(), size_);
}
std::unique_ptr<TokenizerFile> TokenizerFile::map(const std::string& path) {
  std::unique_ptr<TokenizerFile> file(new TokenizerFile);
  EXPECT_TRUE(file->mapped_.open(path.c_str(), 0, file->allocator_).ok()) << last_error();
  return file;
}
TokenizerFile::~TokenizerFile() { std::free(data_); }
Status TokenizerFile::open() {
  MOTE_TRY(file.open(data_ ? data_ : mapped_.data(), data_ ? size_ : mapped_.size(), "test.gguf",
                     allocator_));
  Log log;
  log.callback = keep_message;
  log.user = &messages;
  return tokenizer.open(file, allocator_, log);
}

std::vector<mote_token> encode(const Tokenizer& tokenizer, std::string_view text, uint32_t flags,
                               std::vector<uint8_t>* word_starts) {
  const size_t bytes = tokenizer.scratch_bytes(text.size());
  void* scratch = std::aligned_alloc(64, bytes + (bytes == 0 ? 64 : 0));
  size_t count = 0;
  std::vector<mote_token> tokens(text.size() * 6 + 4);
  std::vector<uint8_t> starts(tokens.size(), 2);
  const Status status = tokenizer.encode(text, flags, Arena(scratch, bytes), tokens.data(),
                                         tokens.size(), &count, {}, starts.data());
  std::free(scratch);
  EXPECT_TRUE(status.ok()) << last_error();
  if (!status.ok()) return {};
  tokens.resize(count);
  starts.resize(count);
  for (uint8_t start : starts) EXPECT_LE(start, 1);
  if (word_starts) *word_starts = starts;
  const bool covers = !tokenizer.partitions();
  size_t at = 0;
  for (const mote_token& token : tokens) {
    EXPECT_LE(token.byte_start, token.byte_end);
    EXPECT_LE(token.byte_end, text.size());
    if (covers && token.byte_end == 0) continue;  // of the frame
    if (covers) {
      EXPECT_GE(token.byte_end, at);  // they may overlap, and lie apart
    } else {
      EXPECT_EQ(token.byte_start, at);
    }
    at = token.byte_end;
  }
  return tokens;
}

std::vector<int32_t> encode_ids(const Tokenizer& tokenizer, std::string_view text, uint32_t flags) {
  std::vector<int32_t> ids;
  for (const mote_token& token : encode(tokenizer, text, flags)) ids.push_back(token.id);
  return ids;
}

std::string decode(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special) {
  std::string text, piece(tokenizer.longest_piece(), '\0');
  bool first = true;
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t length = tokenizer.decode(ids[i], first, skip_special, piece.data(), piece.size());
    const TokenType type = tokenizer.type(ids[i]);
    first &= skip_special && (type == TokenType::control || type == TokenType::unknown);
    EXPECT_LE(length, piece.size());
    text.append(piece, 0, length);
  }
  CharacterStream stream;
  std::string out(text.size() * 3 + 24, '\0');
  size_t length = stream.push(text, out.data());
  length += stream.finish(out.data() + length);
  out.resize(length);
  return out;
}

SmallVocabulary::SmallVocabulary() {
  // The table of GPT-2, written another way than the library's: bytes in the order of their
  // characters.
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    char text[4];
    tokens.emplace_back(text, write_utf8(printable ? byte : next++, text));
    types.push_back(1);
  }
}
SmallVocabulary& SmallVocabulary::merge(const std::string& a, const std::string& b) {
  merges.push_back(a + " " + b);
  return token(a + b, TokenType::normal);
}
SmallVocabulary& SmallVocabulary::token(const std::string& text, TokenType type) {
  tokens.push_back(text);
  types.push_back(static_cast<int32_t>(type));
  return *this;
}
GgufBuilder SmallVocabulary::builder(const std::string& pre) const {
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "gpt2");
  builder.text("tokenizer.ggml.pre", pre);
  builder.texts("tokenizer.ggml.tokens", tokens);
  builder.array("tokenizer.ggml.token_type", GgufType::i32, types);
  builder.texts("tokenizer.ggml.merges", merges);
  return builder;
}

}  // namespace mote::test
