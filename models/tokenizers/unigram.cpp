#include "models/tokenizers/unigram.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/utf8.h"
#include "models/tokenizers/characters.h"
#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr char kScores[] = "tokenizer.ggml.scores";
constexpr char kPrefix[] = "mote.unigram.prefix";
constexpr uint32_t kMark = 0x2581;
constexpr std::string_view kMarkText = "\xe2\x96\x81";
constexpr double kUnknownPenalty = 10;  // below the least score of all, as upstream has it

void add_character(uint32_t value, TextHash* hash) {
  char bytes[4];
  const size_t length = write_utf8(value, bytes);
  hash->add({bytes, length});
}

}  // namespace

// Characters of a normalized text, with U+2581 in front where prefixed.
struct Unigram::Word {
  const NormalCharacter* characters;
  size_t count;  // without what is in front
  bool prefixed;
  std::string_view text;  // as given, for where a character ends
  size_t base;

  size_t size() const { return count + prefixed; }
  uint32_t value(size_t at) const {
    return prefixed ? (at ? characters[at - 1].value : kMark) : characters[at].value;
  }
  // What is in front comes from the first character.
  size_t source(size_t at) const {
    return characters[prefixed && at ? at - 1 : prefixed ? 0 : at].source;
  }
  size_t start(size_t at) const { return base + source(at); }
  size_t end(size_t at) const { return start(at) + read_utf8(text, source(at)).length; }
};

Status Unigram::Beginnings::allocate(Allocator& allocator, size_t entries) {
  uint32_t bits = 9;
  while (bits < 40 && (size_t{1} << bits) < entries * 8) ++bits;
  MOTE_TRY(bits_.allocate(allocator, (size_t{1} << bits) / 64, "index of beginnings of pieces"));
  std::memset(bits_.data(), 0, bits_.size() * sizeof(uint64_t));
  shift_ = 64 - bits;
  return kOk;
}

float Unigram::score(int32_t id) const {
  float score;
  std::memcpy(&score, scores_ + static_cast<size_t>(id) * sizeof score, sizeof score);
  return score;
}

// A text must not become a control token this way.
bool Unigram::is_piece(int32_t id) const {
  const TokenType type = vocabulary_->type(id);
  return type == TokenType::normal || type == TokenType::user_defined;
}

Status Unigram::read_scores(const GgufFile& file) {
  const GgufKey* key = nullptr;
  MOTE_TRY(file.get_array(kScores, GgufType::f32, vocabulary_->size(), &key));
  scores_ = key->data;
  double least = 0;
  for (size_t id = 0; id < vocabulary_->size(); ++id) {
    const float found = score(static_cast<int32_t>(id));
    if (!std::isfinite(found))
      return fail(MOTE_ERROR_BAD_FILE,
                  "%.*s: key %s: token %zu: expected a finite number, found %g",
                  static_cast<int>(file.name().size()), file.name().data(), kScores, id,
                  static_cast<double>(found));
    if (id == 0 || found < least) least = found;
  }
  unknown_score_ = least - kUnknownPenalty;
  return kOk;
}

Status Unigram::index_pieces(Allocator& allocator) {
  const int32_t size = static_cast<int32_t>(vocabulary_->size());
  size_t beginnings = 0;
  for (int32_t id = 0; id < size; ++id) {
    if (!is_piece(id)) continue;
    const std::string_view text = vocabulary_->text(id);
    size_t characters = 0;
    for (size_t at = 0; at < text.size(); ++characters) at += read_utf8(text, at).length;
    beginnings += characters;
    longest_ = std::max(longest_, characters);
  }
  MOTE_TRY(beginnings_.allocate(allocator, beginnings));
  for (int32_t id = 0; id < size; ++id) {
    if (!is_piece(id)) continue;
    const std::string_view text = vocabulary_->text(id);
    TextHash hash;
    for (size_t at = 0; at < text.size();) {
      const size_t length = read_utf8(text, at).length;
      hash.add(text_part(text, at, at + length));
      beginnings_.add(hash.value());
      at += length;
    }
  }
  while (ring_ < longest_ + 1) ring_ *= 2;
  return kOk;
}

Status Unigram::open(const GgufFile& file, const Vocabulary& vocabulary, int32_t unknown,
                     Allocator& allocator) {
  const int name_length = static_cast<int>(file.name().size());
  vocabulary_ = &vocabulary;
  unknown_ = unknown;
  if (unknown < 0)
    return fail(MOTE_ERROR_BAD_FILE,
                "%.*s: key tokenizer.ggml.unknown_token_id: expected the token of characters that "
                "have no piece, found none",
                name_length, file.name().data());
  MOTE_TRY(read_scores(file));
  MOTE_TRY(normalizer_.open(file));
  MOTE_TRY(file.get_bool("tokenizer.ggml.add_space_prefix", true, &prefix_));
  std::string_view prefix;
  MOTE_TRY(file.get_text(kPrefix, "always", &prefix));
  if (prefix != "always" && prefix != "first")
    return fail(MOTE_ERROR_BAD_FILE, "%.*s: key %s: expected always or first, found \"%.*s\"",
                name_length, file.name().data(), kPrefix, MOTE_SHOW(prefix));
  prefix_first_only_ = prefix == "first";
  MOTE_TRY(file.get_bool("mote.unigram.split_white_space", true, &splits_white_space_));
  MOTE_TRY(file.get_bool("mote.unigram.split_marks", true, &splits_marks_));
  return index_pieces(allocator);
}

void Unigram::plan(Arena& arena, size_t text_bytes, Scratch* scratch) const {
  normalizer_.plan(arena, text_bytes, &scratch->normal);
  scratch->scores = arena.take<double>(ring_);
}

Status Unigram::encode(std::string_view text, size_t base, Scratch& scratch,
                       TokenSink& sink) const {
  size_t count = 0;
  if (!normalizer_.run(text, scratch.normal, &count))
    return fail(MOTE_ERROR_CAPACITY,
                "text: its %zu bytes become more than %zu characters when normalized", text.size(),
                scratch.normal.capacity);
  NormalCharacter* const characters = scratch.normal.characters;
  // Of the word that begins with this character.
  const auto prefixes = [&](const NormalCharacter& first) {
    return prefix_ && (!prefix_first_only_ || base + first.source == 0) && first.value != kMark;
  };
  if (!splits_white_space_) {
    for (size_t i = 0; i < count; ++i)
      if (characters[i].value == ' ') characters[i].value = kMark;
    if (count > 0)
      encode_words({characters, count, prefixes(characters[0]), text, base}, scratch, sink);
    return kOk;
  }
  for (size_t at = 0; at < count;) {
    size_t end = at;
    while (end < count && !is_white_space(characters[end].value)) ++end;
    if (end > at)
      encode_words({characters + at, end - at, prefixes(characters[at]), text, base}, scratch,
                   sink);
    at = end + 1;
  }
  return kOk;
}

// Cuts before each U+2581.
void Unigram::encode_words(const Word& words, Scratch& scratch, TokenSink& sink) const {
  size_t begin = 0;
  for (size_t end = 1; end <= words.count; ++end) {
    if (end < words.count && !(splits_marks_ && words.characters[end].value == kMark)) continue;
    encode_word({words.characters + begin, end - begin, words.prefixed && begin == 0, words.text,
                 words.base},
                scratch, sink);
    begin = end;
  }
}

// Ways over one more piece, from a place that has one.
void Unigram::extend(const Word& word, size_t at, Scratch& scratch) const {
  // Of the place behind i characters: the piece that leads there, and where it begins.
  NormalCharacter* const ways = scratch.normal.other;
  double* const scores = scratch.scores;
  const size_t mask = ring_ - 1;
  const auto offer = [&](size_t end, int32_t id, double score) {
    if (ways[end].value != UINT32_MAX && score <= scores[end & mask]) return;
    ways[end] = {static_cast<uint32_t>(id), static_cast<uint32_t>(at)};
    scores[end & mask] = score;
  };
  const double so_far = scores[at & mask];
  const size_t most = std::min(word.size(), at + longest_);
  bool has_single = false;
  TextHash hash;
  for (size_t end = at; end < most;) {
    add_character(word.value(end), &hash);
    ++end;
    if (!beginnings_.has(hash.value())) break;
    const int32_t id = vocabulary_->find(hash.value(), [&](std::string_view stored) {
      size_t i = at, byte = 0;
      for (; i < end && byte < stored.size(); ++i) {
        const CodePoint point = read_utf8(stored, byte);
        if (point.value != word.value(i) || !point.valid) return false;
        byte += point.length;
      }
      return i == end && byte == stored.size();
    });
    if (id < 0 || !is_piece(id)) continue;
    offer(end, id, static_cast<double>(score(id)) + so_far);
    has_single |= end == at + 1;
  }
  if (!has_single) offer(at + 1, unknown_, unknown_score_ + so_far);
}

void Unigram::encode_word(const Word& word, Scratch& scratch, TokenSink& sink) const {
  NormalCharacter* const ways = scratch.normal.other;
  const size_t size = word.size();
  for (size_t i = 0; i <= size; ++i) ways[i].value = UINT32_MAX;
  scratch.scores[0] = 0;
  for (size_t at = 0; at < size; ++at) extend(word, at, scratch);
  // Turn the best way round: afterwards ways[i] is the piece that begins at i, and where it ends.
  NormalCharacter last = ways[size];
  for (size_t end = size; end > 0;) {
    const size_t begin = last.source;
    const NormalCharacter piece = {last.value, static_cast<uint32_t>(end)};
    last = ways[begin];
    ways[begin] = piece;
    end = begin;
  }
  sink.begin_word();
  for (size_t begin = 0; begin < size;) {
    const int32_t id = static_cast<int32_t>(ways[begin].value);
    size_t end = ways[begin].source;
    while (id == unknown_ && end < size && static_cast<int32_t>(ways[end].value) == unknown_)
      end = ways[end].source;
    sink.put_range(id, word.start(begin), word.end(end - 1));
    begin = end;
  }
}

size_t Unigram::decode(int32_t id, bool first, char* out, size_t capacity) const {
  const std::string_view text = vocabulary_->text(id);
  size_t length = 0;
  for (size_t at = 0; at < text.size();) {
    const bool space = has_at(text, at, kMarkText);
    if (!space || at > 0 || !first || !prefix_) {
      if (length < capacity) out[length] = space ? ' ' : text[at];
      ++length;
    }
    at += space ? kMarkText.size() : 1;
  }
  return length;
}

}  // namespace mote
