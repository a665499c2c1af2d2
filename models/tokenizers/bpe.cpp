#include "models/tokenizers/bpe.h"

#include "core/utf8.h"
#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr char kPre[] = "tokenizer.ggml.pre";
constexpr char kMerges[] = "tokenizer.ggml.merges";

// Bytes that are printable characters of Latin-1 stand for themselves, the others for U+0100 and
// on, in ascending order: the table of GPT-2.
constexpr bool is_printable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct ByteTable {
  uint16_t character[256];  // of each byte
  uint8_t byte[68];         // of U+0100 and on
};
constexpr ByteTable make_byte_table() {
  ByteTable table{};
  uint32_t others = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (is_printable(byte)) {
      table.character[byte] = static_cast<uint16_t>(byte);
    } else {
      table.byte[others] = static_cast<uint8_t>(byte);
      table.character[byte] = static_cast<uint16_t>(256 + others++);
    }
  }
  return table;
}
constexpr ByteTable kBytes = make_byte_table();

// -1: no byte is written so.
int32_t byte_of(uint32_t character) {
  if (character < 256) return is_printable(character) ? static_cast<int32_t>(character) : -1;
  return character < 256 + sizeof(kBytes.byte) ? kBytes.byte[character - 256] : -1;
}

// The bytes of a text in which each bad sequence is the bytes of U+FFFD.
class ByteReader {
 public:
  explicit ByteReader(std::string_view text) : text_(text) {}
  // start: the byte of the text that this one comes from.
  bool next(uint8_t* byte, size_t* start) {
    if (left_ == 0 && !open_character()) return false;
    --left_;
    *byte = static_cast<uint8_t>(valid_ ? text_[at_] : kReplacement[2 - left_]);
    *start = at_;
    // The replacement's bytes share those of the bad sequence; the last takes the rest.
    if (left_ == 0)
      at_ = end_;
    else if (at_ + 1 < end_)
      ++at_;
    return true;
  }

 private:
  static constexpr char kReplacement[] = "\xef\xbf\xbd";
  bool open_character() {
    if (at_ >= text_.size()) return false;
    if (static_cast<uint8_t>(text_[at_]) < 0x80) {
      valid_ = true;
      left_ = 1;
      end_ = at_ + 1;
      return true;
    }
    const CodePoint point = read_utf8(text_, at_);
    valid_ = point.valid;
    left_ = point.valid ? point.length : 3;
    end_ = at_ + point.length;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0, end_ = 0;
  uint32_t left_ = 0;  // bytes of this character
  bool valid_ = true;
};

// The UTF-8 of the character that a byte is written as: one or two bytes.
size_t write_byte(uint8_t byte, char* out) { return write_utf8(kBytes.character[byte], out); }

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
  return read_merges(file, allocator, log);
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

void Bpe::encode_piece(std::string_view piece, size_t base, SymbolMerger& merger,
                       TokenSink& sink) const {
  if (pre_tokenizer_->whole_words) {
    const int32_t id = find_word(piece);
    if (id >= 0) return sink.put(id, base);
  }
  uint8_t byte;
  size_t start, count = 0;
  for (ByteReader bytes(piece); bytes.next(&byte, &start);)
    if (byte_ids_[byte] >= 0) merger.set(count++, static_cast<uint32_t>(byte_ids_[byte]));
  merger.run(
      count, [&](size_t left, size_t right) { return rank(merger.id(left), merger.id(right)); },
      [&](size_t, size_t, uint32_t rank) { return static_cast<uint32_t>(merges_[rank].merged); });
  size_t symbol = 0, at = 0;
  for (ByteReader bytes(piece); bytes.next(&byte, &start);) {
    if (byte_ids_[byte] < 0) continue;
    if (at == symbol) {
      sink.put(static_cast<int32_t>(merger.id(symbol)), base + start);
      symbol += merger.length(symbol, count);
    }
    ++at;
  }
}

void Bpe::encode(std::string_view text, size_t base, SymbolMerger& merger, TokenSink& sink) const {
  std::string_view piece;
  for (PieceScanner pieces(pre_tokenizer_->pattern, text); pieces.next(&piece);)
    encode_piece(piece, base + static_cast<size_t>(piece.data() - text.data()), merger, sink);
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
