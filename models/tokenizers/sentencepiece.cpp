#include "models/tokenizers/sentencepiece.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/utf8.h"
#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr char kScores[] = "tokenizer.ggml.scores";
constexpr std::string_view kSpace = "\xe2\x96\x81";        // U+2581
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// A whole number that is less for a higher score, and never SymbolMerger::kNone.
uint32_t rank_of(float score) {
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof bits);
  return ~(bits & 0x80000000u ? ~bits : bits | 0x80000000u);
}

}  // namespace

Status SentencePiece::open(const GgufFile& file, const Vocabulary& vocabulary, int32_t unknown) {
  vocabulary_ = &vocabulary;
  unknown_ = unknown;
  const GgufKey* key = nullptr;
  MOTE_TRY(file.get_array(kScores, GgufType::f32, vocabulary.size(), &key));
  scores_ = key->data;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    float score;
    std::memcpy(&score, scores_ + id * sizeof score, sizeof score);
    if (std::isnan(score))
      return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %s: token %zu: expected a number, found NaN",
                  static_cast<int>(file.name().size()), file.name().data(), kScores, id);
  }
  MOTE_TRY(file.get_bool("tokenizer.ggml.add_space_prefix", true, &space_prefix_));
  MOTE_TRY(file.get_bool("tokenizer.ggml.remove_extra_whitespaces", false, &remove_extra_spaces_));
  for (uint32_t byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    const int32_t id = vocabulary.find(text);
    byte_ids_[byte] = id >= 0 && vocabulary.type(id) == TokenType::byte ? id : -1;
  }
  return kOk;
}

void SentencePiece::plan(Arena& arena, size_t text_bytes, Scratch* scratch) {
  const size_t symbols = text_bytes + 1;  // and the space in front
  scratch->merger.plan(arena, symbols);
  scratch->text = arena.take<char>(symbols * kSpace.size());
  scratch->ends = arena.take<uint32_t>(symbols + 1);
  scratch->sources = arena.take<uint32_t>(symbols);
}

// Fills scratch with the characters of text; returns how many.
size_t SentencePiece::normalize(std::string_view text, Scratch& scratch) const {
  size_t count = 0, length = 0;
  scratch.ends[0] = 0;
  const auto put = [&](std::string_view symbol, size_t source) {
    std::memcpy(scratch.text + length, symbol.data(), symbol.size());
    length += symbol.size();
    scratch.sources[count++] = static_cast<uint32_t>(source);
    scratch.ends[count] = static_cast<uint32_t>(length);
  };
  bool after_space = remove_extra_spaces_;  // drop spaces until something else comes
  if (space_prefix_) put(kSpace, 0);
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_utf8(text, at);
    const std::string_view character = text_part(text, at, at + point.length);
    if (character == " " || character == kSpace) {
      if (!after_space) put(kSpace, at);
      after_space = remove_extra_spaces_;
    } else {
      put(point.valid ? character : kReplacement, at);
      after_space = false;
    }
    at += point.length;
  }
  if (remove_extra_spaces_ && after_space && count > 0) --count;  // trailing, or nothing but spaces
  return count;
}

// -1: none that merges may make; user-defined tokens were found before, their scores mean nothing.
int32_t SentencePiece::find(std::string_view text) const {
  if (text.size() > vocabulary_->longest()) return -1;
  const int32_t id = vocabulary_->find(text);
  if (id < 0) return -1;
  const TokenType type = vocabulary_->type(id);
  return type == TokenType::normal || type == TokenType::unused ? id : -1;
}

void SentencePiece::put_bytes(std::string_view symbol, size_t source, TokenSink& sink) const {
  for (char byte : symbol)
    if (byte_ids_[static_cast<uint8_t>(byte)] < 0) {
      if (unknown_ >= 0) sink.put(unknown_, source);
      return;
    }
  for (size_t i = 0; i < symbol.size(); ++i)
    sink.put(byte_ids_[static_cast<uint8_t>(symbol[i])], source);
}

void SentencePiece::encode(std::string_view text, size_t base, Scratch& scratch,
                           TokenSink& sink) const {
  if (text.empty()) return;
  sink.begin_word();  // it has no pre-tokenizer: all of it is one
  const size_t count = normalize(text, scratch);
  SymbolMerger& merger = scratch.merger;
  const uint32_t* ends = scratch.ends;
  const auto symbol = [&](size_t from, size_t end) {
    return std::string_view(scratch.text + ends[from], ends[end] - ends[from]);
  };
  for (size_t i = 0; i < count; ++i) {
    const int32_t id = find(symbol(i, i + 1));
    merger.set(i, id >= 0 ? static_cast<uint32_t>(id) : SymbolMerger::kUnknown);
  }
  const auto pair = [&](size_t left, size_t right) {
    return find(symbol(left, right + merger.length(right, count)));
  };
  merger.run(
      count,
      [&](size_t left, size_t right) {
        const int32_t id = pair(left, right);
        if (id < 0) return SymbolMerger::kNone;
        float score;
        std::memcpy(&score, scores_ + static_cast<size_t>(id) * sizeof score, sizeof score);
        return rank_of(score);
      },
      [&](size_t left, size_t right, uint32_t) {
        return static_cast<uint32_t>(pair(left, right));
      });
  for (size_t at = 0; at < count;) {
    const size_t length = merger.length(at, count), source = base + scratch.sources[at];
    if (merger.id(at) != SymbolMerger::kUnknown)
      sink.put(static_cast<int32_t>(merger.id(at)), source);
    else
      put_bytes(symbol(at, at + length), source, sink);
    at += length;
  }
}

size_t SentencePiece::decode(int32_t id, bool first, char* out, size_t capacity) const {
  const std::string_view text = vocabulary_->text(id);
  if (vocabulary_->type(id) == TokenType::byte) {
    uint32_t byte = 0;
    for (size_t i = 3; i < 5 && i < text.size(); ++i) {
      const char digit = text[i];
      byte =
          byte * 16 + static_cast<uint32_t>(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    if (capacity > 0) out[0] = static_cast<char>(byte);
    return 1;
  }
  size_t length = 0;
  for (size_t at = 0; at < text.size();) {
    const bool space = has_at(text, at, kSpace);
    const bool dropped = space && at == 0 && first && space_prefix_;
    if (!dropped) {
      if (length < capacity) out[length] = space ? ' ' : text[at];
      ++length;
    }
    at += space ? kSpace.size() : 1;
  }
  return length;
}

}  // namespace mote
