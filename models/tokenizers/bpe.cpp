#include "models/tokenizers/bpe.h"

#include <algorithm>

#include "core/utf8.h"
#include "models/tokenizers/byte_reader.h"
#include "models/tokenizers/characters.h"
#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr char kPre[] = "tokenizer.ggml.pre";
constexpr char kMerges[] = "tokenizer.ggml.merges";

uint64_t pair_hash(uint32_t left, uint32_t right) {
  return (uint64_t{left} << 32 | right) * 0xd6e8feb86659fd93u;
}

int shown(std::string_view text) { return static_cast<int>(text.size() < 64 ? text.size() : 64); }

}  // namespace

Status Bpe::open(const GgufFile& file, const Vocabulary& vocabulary, Allocator& allocator,
                 const Log& log) {
  vocabulary_ = &vocabulary;
  MOTE_TRY(read_pre_tokenizer(file, log));
  for (uint32_t byte = 0; byte < 256; ++byte) {
    char text[4];
    byte_ids_[byte] = vocabulary.find({text, write_byte(static_cast<uint8_t>(byte), text)});
  }
  MOTE_TRY(normalizer_.open(file));
  MOTE_TRY(file.get_bool("tokenizer.ggml.add_space_prefix", false, &space_prefix_));
  MOTE_TRY(file.get_bool("mote.bpe.trim_offsets", true, &trims_));
  return read_merges(file, allocator, log);
}

Status Bpe::default_frame(const GgufFile& file, bool* adds_bos, bool* frames) {
  std::string_view name;
  MOTE_TRY(file.get_text(kPre, "", &name));
  const PreTokenizer* known = find_pre_tokenizer(name);
  *adds_bos = known && known->adds_bos;
  *frames = known && known->frames;
  return kOk;
}

Status Bpe::read_pre_tokenizer(const GgufFile& file, const Log& log) {
  const int name_length = static_cast<int>(file.name().size());
  std::string_view name;
  MOTE_TRY(file.get_text(kPre, "", &name));
  if (name.empty()) {
    log.write(MOTE_LOG_WARNING,
              "%.*s: key %s is missing: texts are cut up by the pattern \"default\", which may not "
              "be the one that the "
              "model was trained with",
              name_length, file.name().data(), kPre);
    name = "default";
  }
  pre_tokenizer_ = find_pre_tokenizer(name);
  if (!pre_tokenizer_)
    return fail(MOTE_ERROR_UNSUPPORTED, "%.*s: key %s: \"%.*s\" is not a known pre-tokenizer",
                name_length, file.name().data(), kPre, shown(name), name.data());
  return kOk;
}

Status Bpe::read_merges(const GgufFile& file, Allocator& allocator, const Log& log) {
  const int name_length = static_cast<int>(file.name().size());
  const char* name = file.name().data();
  const GgufKey* key = nullptr;
  MOTE_TRY(file.get_array(kMerges, GgufType::text, 0, &key));
  if (key->count >= SymbolMerger::kNone / 2)
    return fail(MOTE_ERROR_BAD_FILE,
                "%.*s: key %s: expected less than 2147483647 merges, found %llu", name_length, name,
                kMerges, static_cast<unsigned long long>(key->count));
  const size_t count = static_cast<size_t>(key->count);
  MOTE_TRY(merges_.allocate(allocator, count, "merges"));
  MOTE_TRY(index_.allocate(allocator, count, "index of merges"));
  GgufTexts texts(*key);
  size_t strangers = 0;
  std::string_view first_stranger, text;
  for (size_t i = 0; i < count; ++i) {
    const size_t space = texts.next(&text) ? text.find(' ', 1) : std::string_view::npos;
    if (space == std::string_view::npos || space + 1 == text.size())
      return fail(
          MOTE_ERROR_BAD_FILE,
          "%.*s: key %s: merge %zu: expected two texts with a space between, found \"%.*s\"",
          name_length, name, kMerges, i, shown(text), text.data());
    const std::string_view left = text_part(text, 0, space),
                           right = text_part(text, space + 1, text.size());
    TextHash left_hash, right_hash;
    left_hash.add(left);
    right_hash.add(right);
    TextHash both_hash = left_hash;
    both_hash.add(right);
    Merge& merge = merges_[i];
    merge.left =
        vocabulary_->find(left_hash.value(), [&](std::string_view t) { return t == left; });
    merge.right =
        vocabulary_->find(right_hash.value(), [&](std::string_view t) { return t == right; });
    merge.merged = vocabulary_->find(both_hash.value(), [&](std::string_view t) {
      return t.size() == left.size() + right.size() && has_at(t, 0, left) &&
             has_at(t, left.size(), right);
    });
    if (merge.left < 0 || merge.right < 0 || merge.merged < 0) {
      if (strangers++ == 0) first_stranger = text;
      continue;
    }
    // Of equal merges the first counts, so what insert() finds does not matter.
    const uint32_t l = static_cast<uint32_t>(merge.left), r = static_cast<uint32_t>(merge.right);
    index_.insert(pair_hash(l, r), static_cast<uint32_t>(i), [&](uint32_t other) {
      return merges_[other].left == merge.left && merges_[other].right == merge.right;
    });
  }
  if (strangers)
    log.write(MOTE_LOG_WARNING,
              "%.*s: key %s: %zu of %zu merges are of texts that are no tokens and are left out; "
              "the first is \"%.*s\"",
              name_length, name, kMerges, strangers, count, shown(first_stranger),
              first_stranger.data());
  return kOk;
}

uint32_t Bpe::rank(uint32_t left, uint32_t right) const {
  const int32_t found = index_.find(pair_hash(left, right), [&](uint32_t i) {
    return merges_[i].left == static_cast<int32_t>(left) &&
           merges_[i].right == static_cast<int32_t>(right);
  });
  return static_cast<uint32_t>(found);  // -1 is kNone
}

// The normal token that is a whole piece, or -1: a text must not become a control token this way.
int32_t Bpe::find_word(std::string_view piece) const {
  if (piece.size() > vocabulary_->longest()) return -1;
  TextHash hash;
  uint8_t byte;
  size_t start;
  char text[4];
  for (ByteReader bytes(piece); bytes.next(&byte, &start);)
    hash.add({text, write_byte(byte, text)});
  const int32_t id = vocabulary_->find(hash.value(), [&](std::string_view stored) {
    size_t at = 0;
    for (ByteReader bytes(piece); bytes.next(&byte, &start);) {
      const size_t length = write_byte(byte, text);
      if (!has_at(stored, at, {text, length})) return false;
      at += length;
    }
    return at == stored.size();
  });
  return id >= 0 && vocabulary_->type(id) == TokenType::normal ? id : -1;
}

// The text that is cut into pieces: the caller's own, or one made of it.
struct Bpe::Source {
  const NormalCharacter* characters;  // null: it is the text as given
  bool prefixed;                      // a space stands in front of these
  std::string_view given;
  size_t base;
};

// Of a piece: where it begins.
struct Bpe::Place {
  size_t byte, character;
};

void Bpe::plan(Arena& arena, size_t text_bytes, Scratch* scratch) const {
  *scratch = {};
  size_t bytes = 0;
  if (__builtin_mul_overflow(text_bytes, size_t{3}, &bytes)) bytes = SIZE_MAX;
  if (!normalizer_.empty() || space_prefix_) {
    if (__builtin_mul_overflow(text_bytes, normalizer_.longest_result(1), &bytes) ||
        bytes == SIZE_MAX)
      bytes = SIZE_MAX - 1;
    ++bytes;  // the space
    normalizer_.plan(arena, text_bytes, &scratch->normal);
    scratch->room = bytes;
    scratch->text = arena.take<char>(bytes);
  }
  scratch->merger.plan(arena, bytes);
}

// Tokens of a piece; returns how many characters it has.
size_t Bpe::encode_piece(std::string_view piece, const Source& source, const Place& place,
                         SymbolMerger& merger, TokenSink& sink) const {
  sink.begin_word();
  uint8_t byte;
  size_t start, count = 0;
  ByteReader reader(piece);
  while (reader.next(&byte, &start))
    if (byte_ids_[byte] >= 0) merger.set(count++, static_cast<uint32_t>(byte_ids_[byte]));
  const size_t characters = reader.character() + 1;
  const int32_t word = pre_tokenizer_->whole_words ? find_word(piece) : -1;
  if (word < 0)
    merger.run(
        count, [&](size_t left, size_t right) { return rank(merger.id(left), merger.id(right)); },
        [&](size_t, size_t, uint32_t rank) { return static_cast<uint32_t>(merges_[rank].merged); });

  // Where the last read byte's character lies in the text as given.
  const auto given_range = [&](const ByteReader& at, size_t* begin, size_t* end) {
    if (!source.characters) {
      *begin = source.base + place.byte + at.character_start();
      *end = source.base + place.byte + at.character_end();
      return;
    }
    size_t index = place.character + at.character();
    if (source.prefixed && index > 0) --index;  // the space shares the first one's place
    const size_t from = source.characters[index].source;
    *begin = source.base + from;
    *end = *begin + read_utf8(source.given, from).length;
  };
  const auto step_over = [&](size_t at) {
    return at + read_utf8(source.given, at - source.base).length;
  };
  const auto step_back = [&](size_t at, size_t from) {
    do --at;
    while (at > from && (static_cast<uint8_t>(source.given[at - source.base]) & 0xc0) == 0x80);
    return at;
  };
  size_t symbol = 0, length = 0, at = 0, begin = 0, end = 0, leading = 0, trailing = 0;
  for (ByteReader bytes(piece); bytes.next(&byte, &start);) {
    if (byte_ids_[byte] < 0 && word < 0) continue;
    const int32_t id = word >= 0 ? word : static_cast<int32_t>(merger.id(symbol));
    if (at == symbol) {
      length = word >= 0 ? SIZE_MAX : merger.length(symbol, count);
      given_range(bytes, &begin, &end);
      leading = trailing = 0;
      if (!covers_) {
        const size_t inside = start - bytes.character_start();
        sink.put(id, begin + (inside < end - begin ? inside : end - begin - 1));
        if (word >= 0) return characters;
      }
    }
    trailing = byte == ' ' ? trailing + 1 : 0;
    if (byte == ' ' && leading == at - symbol) ++leading;
    ++at;
    const bool is_last = word >= 0 ? bytes.done() : at == symbol + length;
    if (!is_last) continue;
    if (covers_) {
      size_t last = 0;
      given_range(bytes, &last, &end);
      // Trimmed as upstream does it: characters of the text as given, one for each space of the
      // token, except for a single space at the beginning, which may be the one put in front.
      if (trims_) {
        if (space_prefix_ && begin == 0 && leading == 1) leading = 0;
        for (; leading > 0 && begin < end; --leading) begin = step_over(begin);
        for (; trailing > 0 && end > begin; --trailing) end = step_back(end, begin);
      }
      sink.put_range(id, begin, end);
    }
    symbol = at;
  }
  return characters;
}

void Bpe::encode_pieces(std::string_view text, const Source& source, SymbolMerger& merger,
                        TokenSink& sink) const {
  std::string_view piece;
  Place place = {0, 0};
  for (PieceScanner pieces(pre_tokenizer_->pattern, text); pieces.next(&piece);) {
    place.byte = static_cast<size_t>(piece.data() - text.data());
    place.character += encode_piece(piece, source, place, merger, sink);
  }
}

// Whether what is cut up is not the text itself.
bool Bpe::needs_rewriting(std::string_view text) const {
  if (space_prefix_ && text[0] != ' ') return true;
  if (normalizer_.empty()) return false;
  if (!normalizer_.only_nfc()) return true;
  for (char byte : text)
    if (static_cast<uint8_t>(byte) >= 0xcc) return true;  // U+0300 begins with it
  return false;
}

Status Bpe::encode(std::string_view text, size_t base, Scratch& scratch, TokenSink& sink) const {
  if (text.empty()) return kOk;
  if (!needs_rewriting(text)) {
    encode_pieces(text, {nullptr, false, text, base}, scratch.merger, sink);
    return kOk;
  }
  size_t count = 0, length = 0;
  bool fits = normalizer_.run(text, scratch.normal, &count);
  const NormalCharacter* const characters = scratch.normal.characters;
  const bool prefixed = space_prefix_ && count > 0 && characters[0].value != ' ';
  if (prefixed) scratch.text[length++] = ' ';
  for (size_t i = 0; fits && i < count; ++i) {
    char character[4];
    const size_t bytes = write_utf8(characters[i].value, character);
    fits = bytes <= scratch.room - length;
    for (size_t j = 0; fits && j < bytes; ++j) scratch.text[length++] = character[j];
  }
  if (!fits)
    return fail(MOTE_ERROR_CAPACITY,
                "text: its %zu bytes become more than %zu characters when normalized", text.size(),
                scratch.normal.capacity);
  encode_pieces({scratch.text, length}, {characters, prefixed, text, base}, scratch.merger, sink);
  return kOk;
}

void Bpe::trim_special(std::string_view text, size_t* start, size_t* end) const {
  if (!trims_) return;
  const std::string_view covered = text_part(text, *start, *end);
  size_t leading = 0, trailing = 0, spaces = 0;  // bytes, bytes, leading characters
  for (size_t at = 0; at < covered.size();) {
    const CodePoint point = read_utf8(covered, at);
    at += point.length;
    trailing = is_white_space(point.value) ? trailing + point.length : 0;
    if (trailing < at) continue;
    leading = at;
    ++spaces;
  }
  if (!(space_prefix_ && *start == 0 && spaces == 1)) *start += leading;
  *end = std::max(*end - trailing, *start);
}

size_t Bpe::decode(int32_t id, char* out, size_t capacity) const {
  const std::string_view text = vocabulary_->text(id);
  size_t length = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_utf8(text, at);
    const int32_t byte = point.valid ? byte_of(point.value) : -1;
    if (byte < 0) {  // not written in bytes: a token added as plain text
      for (length = 0; length < text.size(); ++length)
        if (length < capacity) out[length] = text[length];
      return length;
    }
    if (length < capacity) out[length] = static_cast<char>(byte);
    ++length;
    at += point.length;
  }
  return length;
}

}  // namespace mote
