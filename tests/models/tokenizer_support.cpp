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

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void append_text(std::string& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  out.append(text);
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

void KeyWriter::begin(std::string_view key, GgufType type) {
  ++count_;
  append_text(keys_, key);
  append(keys_, type);
}
void KeyWriter::begin_array(std::string_view key, GgufType element, size_t count) {
  begin(key, GgufType::array);
  append(keys_, element);
  append<uint64_t>(keys_, count);
}
KeyWriter& KeyWriter::text(std::string_view key, std::string_view value) {
  begin(key, GgufType::text);
  append_text(keys_, value);
  return *this;
}
KeyWriter& KeyWriter::u32(std::string_view key, uint32_t value) {
  begin(key, GgufType::u32);
  append(keys_, value);
  return *this;
}
KeyWriter& KeyWriter::i32(std::string_view key, int32_t value) {
  begin(key, GgufType::i32);
  append(keys_, value);
  return *this;
}
KeyWriter& KeyWriter::boolean(std::string_view key, bool value) {
  begin(key, GgufType::boolean);
  append<uint8_t>(keys_, value);
  return *this;
}
KeyWriter& KeyWriter::texts(std::string_view key, const std::vector<std::string>& values) {
  begin_array(key, GgufType::text, values.size());
  for (const std::string& value : values) append_text(keys_, value);
  return *this;
}
KeyWriter& KeyWriter::i32s(std::string_view key, const std::vector<int32_t>& values) {
  begin_array(key, GgufType::i32, values.size());
  for (int32_t value : values) append(keys_, value);
  return *this;
}
KeyWriter& KeyWriter::u8s(std::string_view key, const std::vector<uint8_t>& values) {
  begin_array(key, GgufType::u8, values.size());
  for (uint8_t value : values) append(keys_, value);
  return *this;
}
KeyWriter& KeyWriter::f32s(std::string_view key, const std::vector<float>& values) {
  begin_array(key, GgufType::f32, values.size());
  for (float value : values) append(keys_, value);
  return *this;
}
std::string KeyWriter::file() const {
  std::string out = "GGUF";
  append<uint32_t>(out, 3);
  append<uint64_t>(out, 0);
  append<uint64_t>(out, count_);
  return out + keys_;
}

TokenizerFile::TokenizerFile(const std::string& bytes) : size_(bytes.size()) {
  data_ = static_cast<uint8_t*>(std::aligned_alloc(64, (size_ + 63) / 64 * 64));
  std::memcpy(data_, bytes.data(), size_);
}
TokenizerFile::~TokenizerFile() { std::free(data_); }
Status TokenizerFile::open() {
  MOTE_TRY(file.open(data_, size_, "test.gguf", *allocator_));
  Log log;
  log.callback = keep_message;
  log.user = &messages;
  return tokenizer.open(file, *allocator_, log);
}

std::vector<mote_token> encode(const Tokenizer& tokenizer, std::string_view text, uint32_t flags) {
  const size_t bytes = tokenizer.scratch_bytes(text.size());
  void* scratch = std::aligned_alloc(64, bytes + (bytes == 0 ? 64 : 0));
  size_t count = 0;
  std::vector<mote_token> tokens(text.size() * 3 + 4);
  const Status status =
      tokenizer.encode(text, flags, Arena(scratch, bytes), tokens.data(), tokens.size(), &count);
  std::free(scratch);
  EXPECT_TRUE(status.ok()) << last_error();
  if (!status.ok()) return {};
  tokens.resize(count);
  size_t at = 0;
  for (const mote_token& token : tokens) {
    EXPECT_EQ(token.byte_start, at);
    EXPECT_LE(token.byte_start, token.byte_end);
    at = token.byte_end;
  }
  EXPECT_LE(at, text.size());
  return tokens;
}

std::vector<int32_t> encode_ids(const Tokenizer& tokenizer, std::string_view text, uint32_t flags) {
  std::vector<int32_t> ids;
  for (const mote_token& token : encode(tokenizer, text, flags)) ids.push_back(token.id);
  return ids;
}

std::string decode(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special) {
  std::string text, piece(tokenizer.longest_piece(), '\0');
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t length =
        tokenizer.decode(ids[i], i == 0, skip_special, piece.data(), piece.size());
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
KeyWriter SmallVocabulary::writer(std::string_view pre) const {
  KeyWriter writer;
  writer.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre);
  writer.texts("tokenizer.ggml.tokens", tokens).i32s("tokenizer.ggml.token_type", types);
  writer.texts("tokenizer.ggml.merges", merges);
  return writer;
}

}  // namespace mote::test
