// What the tokenizer tests share: files, a writer of small vocabularies, calls with exactly the
// scratch they ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/gguf.h"
#include "core/memory.h"
#include "models/tokenizers/tokenizer.h"

namespace mote::test {

// Empty where the environment variable is not set or the file is not there.
std::string shared_file(const std::string& name);  // $MOTE_SHARED_DIR/goldens/tokenizers/name
std::string model_file(const std::string& name);   // $MOTE_MODELS_DIR/name
std::string data_file(const std::string& name);    // tests/data/tokenizers/name

std::string read_file(const std::string& path);
std::vector<std::string> read_lines(const std::string& path);
std::string decode_base64(std::string_view text);

// Writes keys of a GGUF file, no tensors.
class KeyWriter {
 public:
  KeyWriter& text(std::string_view key, std::string_view value);
  KeyWriter& u32(std::string_view key, uint32_t value);
  KeyWriter& i32(std::string_view key, int32_t value);
  KeyWriter& boolean(std::string_view key, bool value);
  KeyWriter& texts(std::string_view key, const std::vector<std::string>& values);
  KeyWriter& i32s(std::string_view key, const std::vector<int32_t>& values);
  KeyWriter& u8s(std::string_view key, const std::vector<uint8_t>& values);
  KeyWriter& f32s(std::string_view key, const std::vector<float>& values);
  std::string file() const;

 private:
  void begin(std::string_view key, GgufType type);
  void begin_array(std::string_view key, GgufType element, size_t count);
  std::string keys_;
  uint64_t count_ = 0;
};

// A tokenizer over the bytes of a file.
class TokenizerFile {
 public:
  explicit TokenizerFile(const std::string& bytes);
  ~TokenizerFile();
  Status open();

  GgufFile file;
  Tokenizer tokenizer;
  std::vector<std::string> messages;  // logged
  size_t heap_bytes() const { return allocator_->bytes_in_use(); }

 private:
  std::unique_ptr<Allocator> allocator_ = std::make_unique<Allocator>();
  uint8_t* data_;
  size_t size_;
};

// Encodes with a scratch of exactly scratch_bytes(); the tokens must partition the text.
std::vector<mote_token> encode(const Tokenizer& tokenizer, std::string_view text, uint32_t flags);
std::vector<int32_t> encode_ids(const Tokenizer& tokenizer, std::string_view text, uint32_t flags);
std::string decode(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special);

// A byte-level vocabulary: the 256 bytes as ids 0 to 255, then `more` tokens of the given types.
struct SmallVocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;

  SmallVocabulary();
  // a and b are stored texts; adds the token a + b and its merge.
  SmallVocabulary& merge(const std::string& a, const std::string& b);
  SmallVocabulary& token(const std::string& text, TokenType type);
  KeyWriter writer(std::string_view pre) const;
};

}  // namespace mote::test
