// Tokenizes and detokenizes anything, with small vocabularies of each kind and with damaged ones.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/gguf.h"
#include "core/utf8.h"
#include "models/tokenizers/tokenizer.h"
#include "tests/support/gguf_builder.h"

namespace mote::test {
namespace {

[[noreturn]] void report(const char* what) {
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void add_tokens(GgufBuilder* builder, std::vector<std::string> tokens, std::vector<int32_t> types) {
  for (const char* text : {"<|im_start|>", "<|im_end|>"}) {
    tokens.emplace_back(text);
    types.push_back(3);
  }
  for (const char* text : {"  ", "   ", "[user]", "<|"}) {
    tokens.emplace_back(text);
    types.push_back(4);
  }
  builder->texts("tokenizer.ggml.tokens", tokens);
  builder->array("tokenizer.ggml.token_type", GgufType::i32, types);
  builder->array("tokenizer.ggml.scores", GgufType::f32, std::vector<float>(tokens.size(), -1.0f));
  builder->u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(tokens.size() - 6));
}

GgufBuilder byte_level(const char* pre) {
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "gpt2");
  builder.text("tokenizer.ggml.pre", pre);
  std::vector<std::string> tokens;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    char text[4];
    tokens.emplace_back(text, write_utf8(printable ? byte : next++, text));
  }
  tokens[4] = "not a byte";
  std::vector<std::string> merges;
  for (const char* pair :
       {"a b", "b c", "Ġ a", "ab c", "a a", "aa aa", "Ã ©", "ï ¿", "ï¿ ½", "ï¿½ ï¿½"}) {
    const std::string merge = pair;
    const size_t space = merge.find(' ');
    merges.push_back(merge);
    tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  builder.texts("tokenizer.ggml.merges", merges);
  const size_t count = tokens.size();
  add_tokens(&builder, std::move(tokens), std::vector<int32_t>(count, 1));
  return builder;
}

GgufBuilder sentencepiece(bool bytes, bool remove_spaces) {
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "llama");
  builder.boolean("tokenizer.ggml.remove_extra_whitespaces", remove_spaces);
  std::vector<std::string> tokens = {"<unk>",
                                     "<s>",
                                     "</s>",
                                     "a",
                                     "b",
                                     "ab",
                                     "aa",
                                     "aaaa",
                                     "\xe2\x96\x81",
                                     "\xe2\x96\x81"
                                     "a",
                                     "é",
                                     "\xef\xbf\xbd",
                                     "\xef\xbf\xbd\xef\xbf\xbd"};
  std::vector<int32_t> types(tokens.size(), 1);
  types[0] = 2, types[1] = types[2] = 3;
  for (int byte = 0; bytes && byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.emplace_back(text);
    types.push_back(6);
  }
  add_tokens(&builder, std::move(tokens), std::move(types));
  return builder;
}

void add_frames(GgufBuilder* builder, int32_t begin, int32_t end) {
  builder->array<int32_t>("mote.frame.single", GgufType::i32, {begin, -1, end});
  builder->array<int32_t>("mote.frame.pair", GgufType::i32, {begin, -1, end, -2, end});
}

// As RoBERTa and ModernBERT have it.
GgufBuilder framed_byte_level(bool prefix, bool composes) {
  GgufBuilder builder = byte_level("gpt-2");
  builder.boolean("tokenizer.ggml.add_space_prefix", prefix);
  if (composes) builder.texts("mote.normalizer", {"nfc"});
  const int32_t count = 256 + 10;
  builder.array<int32_t>("mote.added_tokens.lstrip", GgufType::i32, {count, count + 2});
  builder.array<int32_t>("mote.added_tokens.rstrip", GgufType::i32, {count + 1});
  builder.array<int32_t>("mote.added_tokens.single_word", GgufType::i32, {count + 4});
  builder.array<int32_t>("mote.added_tokens.late", GgufType::i32, {count + 2, count + 3});
  add_frames(&builder, count, count + 1);
  return builder;
}

GgufBuilder wordpiece(bool lowercase, bool cleans) {
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "bert");
  builder.boolean("tokenizer.ggml.normalizer.lowercase", lowercase);
  builder.boolean("mote.wordpiece.clean_text", cleans);
  builder.boolean("mote.wordpiece.chinese_spaces", cleans);
  builder.u32("mote.wordpiece.max_characters", 12);
  builder.u32("tokenizer.ggml.unknown_token_id", 0);
  std::vector<std::string> tokens = {"[UNK]",
                                     "a",
                                     "b",
                                     "ab",
                                     "aa",
                                     "\xe2\x96\x81"
                                     "a",
                                     "\xe2\x96\x81"
                                     "hello",
                                     "\xe2\x96\x81,",
                                     "\xe2\x96\x81\xe4\xb8\xad",
                                     "\xe1\x84\x80",
                                     "\xe2\x96\x81"
                                     "e"};
  std::vector<int32_t> types(tokens.size(), 1);
  types[0] = 2;
  const int32_t count = static_cast<int32_t>(tokens.size());
  add_tokens(&builder, std::move(tokens), std::move(types));
  add_frames(&builder, count, count + 1);
  return builder;
}

// A map from "a" to "bb", from "e" to nothing and from a grapheme's first byte to a ligature.
std::vector<uint8_t> charsmap() {
  std::vector<uint32_t> units(1024, 0);
  units[0] = 256u << 10;
  const std::string texts("bb\0\0ffi\0", 8);
  const auto leaf = [&](uint8_t label, size_t block, uint32_t value) {
    const size_t at = 256 ^ label;
    units[at] = label | 1u << 8 | static_cast<uint32_t>(at ^ block) << 10;
    units[block] = 0x80000000u | value;
  };
  leaf('a', 512, 0);
  leaf('e', 513, 3);
  leaf(0xef, 514, 4);
  const uint32_t bytes = static_cast<uint32_t>(units.size() * 4);
  std::vector<uint8_t> map(4 + bytes);
  std::memcpy(map.data(), &bytes, 4);
  std::memcpy(map.data() + 4, units.data(), bytes);
  map.insert(map.end(), texts.begin(), texts.end());
  return map;
}

GgufBuilder unigram(bool maps, const std::vector<std::string>& steps, bool splits) {
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "t5");
  builder.u32("tokenizer.ggml.unknown_token_id", 0);
  builder.boolean("mote.unigram.split_white_space", splits);
  if (!splits) builder.text("mote.unigram.prefix", "first");
  if (maps) builder.array("tokenizer.ggml.precompiled_charsmap", GgufType::u8, charsmap());
  if (!steps.empty()) builder.texts("mote.normalizer", steps);
  std::vector<std::string> tokens = {"<unk>",
                                     "a",
                                     "b",
                                     "ab",
                                     "bb",
                                     "bbb",
                                     "f",
                                     "\xe2\x96\x81",
                                     "\xe2\x96\x81"
                                     "b",
                                     "\xef\xbf\xbd",
                                     "\xe2\x96\x81\xe2\x96\x81",
                                     "\xc3\xa9"};
  std::vector<int32_t> types(tokens.size(), 1);
  types[0] = 2;
  const int32_t count = static_cast<int32_t>(tokens.size());
  add_tokens(&builder, std::move(tokens), std::move(types));
  add_frames(&builder, count, count + 1);
  return builder;
}

// What every text must give, whatever the vocabulary.
void check_text(const Tokenizer& tokenizer, std::string_view text, uint32_t flags) {
  const size_t bytes = tokenizer.scratch_bytes(text.size());
  void* scratch = std::aligned_alloc(64, bytes ? bytes : 64);
  std::vector<mote_token> tokens(text.size() * 6 + 16);
  std::vector<uint8_t> starts(tokens.size());
  size_t count = 0;
  const Status status = tokenizer.encode(text, flags, Arena(scratch, bytes), tokens.data(),
                                         tokens.size(), &count, {}, starts.data());
  std::free(scratch);
  const bool covers = !tokenizer.partitions();
  // A damaged file may make a text grow as it likes.
  if (covers && (status.code() == MOTE_ERROR_CAPACITY || status.code() == MOTE_ERROR_BUFFER))
    return;
  if (!status.ok()) report(last_error());
  CharacterStream stream;
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    if (starts[i] > 1) report("a flag is not 0 or 1");
    if (tokens[i].byte_end < tokens[i].byte_start || tokens[i].byte_end > text.size())
      report("a token covers what is no part of the text");
    if (!covers && tokens[i].byte_start != at) report("tokens do not partition the text");
    at = tokens[i].byte_end;
    std::string piece(tokenizer.longest_piece(), '\0');
    const size_t length =
        tokenizer.decode(tokens[i].id, i == 0, flags & 1, piece.data(), piece.size());
    if (length > piece.size()) report("a piece is longer than longest_piece()");
    std::string out(length * 3 + 12, '\0');
    const size_t characters = stream.push({piece.data(), length}, out.data());
    if (incomplete_utf8_tail({out.data(), characters}) != 0) report("part of a character came out");
  }
  if (at > text.size()) report("a token ends behind the text");
}

void check_file(const Bytes& bytes, std::string_view text) {
  // GGUF data is read in place: aligned, and not a byte more than there is.
  void* data = std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64);
  std::memcpy(data, bytes.data(), bytes.size());
  {
    Allocator allocator;
    GgufFile file;
    Tokenizer tokenizer;
    if (file.open(static_cast<const uint8_t*>(data), bytes.size(), "fuzz.gguf", allocator).ok() &&
        tokenizer.open(file, allocator, Log()).ok() && tokenizer.present())
      for (uint32_t flags = 0; flags < 4; ++flags) check_text(tokenizer, text, flags);
  }
  std::free(data);
}

}  // namespace
}  // namespace mote::test

// The first byte chooses a vocabulary, the second how many of the bytes that follow, three each,
// damage its file at random places; the rest is the text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mote::test;
  static const std::vector<Bytes> files = {
      byte_level("gpt-2").build(),
      byte_level("smollm").build(),
      byte_level("llama-bpe").build(),
      byte_level("qwen2").build(),
      byte_level("default").build(),
      sentencepiece(true, false).build(),
      sentencepiece(false, false).build(),
      sentencepiece(true, true).build(),
      wordpiece(true, true).build(),
      wordpiece(false, false).build(),
      unigram(true, {}, true).build(),
      unigram(true, {"nfkd", "precompiled"}, false).build(),
      unigram(false, {"replace", "a", "bab", "nfc", "collapse_spaces", "strip_right"}, true)
          .build(),
      unigram(false, {"nfkc", "strip_accents", "lowercase"}, false).build(),
      framed_byte_level(true, true).build(),
      framed_byte_level(false, false).build()};
  if (size < 2) return 0;
  Bytes file = files[data[0] % files.size()];
  size_t changes = data[1] % 16, at = 2;
  for (; changes > 0 && at + 3 <= size; --changes, at += 3)
    file[(data[at] | size_t{data[at + 1]} << 8) % file.size()] = data[at + 2];
  check_file(file, {reinterpret_cast<const char*>(data) + at, size - at});
  return 0;
}
