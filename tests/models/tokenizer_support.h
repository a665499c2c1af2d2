// What the tokenizer tests share: files, small vocabularies, calls with exactly the
// scratch they ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/gguf.h"
#include "core/mapped_file.h"
#include "core/memory.h"
#include "models/tokenizers/tokenizer.h"
#include "tests/support/gguf_builder.h"

namespace mote::test {

// Empty where the environment variable is not set or the file is not there.
std::string shared_file(const std::string& name);  // $MOTE_SHARED_DIR/goldens/tokenizers/name
std::string model_file(const std::string& name);   // $MOTE_MODELS_DIR/name
std::string data_file(const std::string& name);    // tests/data/tokenizers/name

std::string read_file(const std::string& path);
std::vector<std::string> read_lines(const std::string& path);
std::string decode_base64(std::string_view text);

// A tokenizer over the bytes of a file.
class TokenizerFile {
  Allocator allocator_;  // outlives what it gave
  MappedFile mapped_;
  uint8_t* data_ = nullptr;  // copied bytes, where no file is mapped
  size_t size_ = 0;
  TokenizerFile() = default;

 public:
  explicit TokenizerFile(std::string_view bytes);
  explicit TokenizerFile(const GgufBuilder& builder);
  static std::unique_ptr<TokenizerFile> map(const std::string& path);
  ~TokenizerFile();
  Status open();

  GgufFile file;
  Tokenizer tokenizer;
  std::vector<std::string> messages;  // logged
};

// Encodes with a scratch of exactly scratch_bytes(); a generator's tokens must partition the text,
// an encoder's must not go back in it.
std::vector<mote_token> encode(const Tokenizer& tokenizer, std::string_view text, uint32_t flags,
                               std::vector<uint8_t>* word_starts = nullptr);
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
  GgufBuilder builder(const std::string& pre) const;
};

}  // namespace mote::test
