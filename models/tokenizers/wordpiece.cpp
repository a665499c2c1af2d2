#include "models/tokenizers/wordpiece.h"

#include <algorithm>
#include <cstring>

#include "core/utf8.h"
#include "models/tokenizers/characters.h"
#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr std::string_view kMark = "\xe2\x96\x81";
constexpr uint32_t kMarkValue = 0x2581;

// What the upstream decoder writes without the space in front.
constexpr std::string_view kGluedTexts[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += read_utf8(text, at).length) ++count;
  return count;
}

}  // namespace

Status WordPiece::open(const GgufFile& file, const Vocabulary& vocabulary, int32_t unknown,
                       const Log& log) {
  constexpr char kLowercase[] = "tokenizer.ggml.normalizer.lowercase";
  constexpr char kStrip[] = "tokenizer.ggml.normalizer.strip_accents";
  constexpr char kClean[] = "mote.wordpiece.clean_text";
  constexpr char kChinese[] = "mote.wordpiece.chinese_spaces";
  constexpr char kMax[] = "mote.wordpiece.max_characters";
  const int name_length = static_cast<int>(file.name().size());
  vocabulary_ = &vocabulary;
  unknown_ = unknown;
  if (unknown < 0)
    return fail(MOTE_ERROR_BAD_FILE,
                "%.*s: key tokenizer.ggml.unknown_token_id: expected the token of words that have "
                "no pieces, found none",
                name_length, file.name().data());
  MOTE_TRY(file.get_bool(kLowercase, true, &lowercase_));
  MOTE_TRY(file.get_bool(kStrip, lowercase_, &strips_accents_));
  MOTE_TRY(file.get_bool(kClean, true, &cleans_));
  MOTE_TRY(file.get_bool(kChinese, true, &spaces_chinese_));
  MOTE_TRY(file.get_u32(kMax, 100, &max_characters_));
  for (const char* key : {kLowercase, kClean, kChinese, kMax})
    if (!file.find(key)) {
      log.write(MOTE_LOG_WARNING,
                "%.*s: key %s is missing: texts are normalized as by the uncased BERT where keys "
                "do not say otherwise",
                name_length, file.name().data(), key);
      break;
    }
  for (uint8_t c = 0; c < 128; ++c) {
    const bool is_cleaned_space = c == '\t' || c == '\n' || c == '\r' || c == ' ';
    const bool is_control = c < 0x20 || c == 0x7f;
    ascii_class_[c] = is_bert_punctuation(c)                                ? kPunctuation
                      : is_cleaned_space || (!cleans_ && is_white_space(c)) ? kSpace
                      : cleans_ && is_control                               ? kDeleted
                                                                            : kLetter;
    ascii_[c] = lowercase_ && c >= 'A' && c <= 'Z' ? static_cast<uint8_t>(c | 0x20) : c;
  }
  return kOk;
}

void WordPiece::plan(Arena& arena, size_t text_bytes, Scratch* scratch) const {
  // Two bytes are three characters at most (U+0390 decomposed).
  const size_t most = text_bytes + text_bytes / 2 + 1;
  scratch->capacity = std::min<size_t>(max_characters_, most);
  scratch->values = arena.take<uint32_t>(scratch->capacity);
  scratch->starts = arena.take<uint32_t>(scratch->capacity);
  scratch->ends = arena.take<uint32_t>(scratch->capacity);
  scratch->hashes = arena.take<uint64_t>(scratch->capacity);
  scratch->text = arena.take<char>(4, scratch->capacity);
  scratch->bytes = arena.take<uint32_t>(scratch->capacity);
  scratch->ids = arena.take<int32_t>(scratch->capacity);
  scratch->firsts = arena.take<uint32_t>(scratch->capacity);
}

// Collects the characters of a word and gives its pieces out.
class WordPiece::Word {
 public:
  Word(const WordPiece& model, Scratch& scratch, TokenSink& sink)
      : model_(model), word_(scratch), sink_(sink) {}

  void add(uint32_t value, size_t start, size_t end) {
    if (count_ == 0) start_ = start;
    end_ = end;
    if (count_ < word_.capacity) {
      word_.values[count_] = value;
      word_.starts[count_] = static_cast<uint32_t>(start);
      word_.ends[count_] = static_cast<uint32_t>(end);
    }
    ++count_;
  }
  // The same for a mark, which canonical order may put before others.
  void add_mark(uint32_t value, uint8_t order, size_t start, size_t end) {
    size_t at = count_;
    add(value, start, end);
    if (at >= word_.capacity) return;
    for (; at > 0 && combining_class(word_.values[at - 1]) > order; --at)
      word_.values[at] = word_.values[at - 1];
    word_.values[at] = value;
  }
  void finish() {
    if (count_ == 0) return;
    sink_.begin_word();
    if (count_ > model_.max_characters_ || !find_pieces()) {
      sink_.put_range(model_.unknown_, start_, end_);
    } else {
      for (size_t i = 0; i < pieces_; ++i) {
        const size_t next = i + 1 < pieces_ ? word_.firsts[i + 1] : count_;
        sink_.put_range(word_.ids[i], word_.starts[word_.firsts[i]], word_.ends[next - 1]);
      }
    }
    count_ = 0;
  }

 private:
  void write_text() {
    size_t bytes = 0;
    for (size_t i = 0; i < count_; ++i) {
      const uint32_t value = word_.values[i];
      if (value < 0x80)
        word_.text[bytes++] = static_cast<char>(value);
      else
        bytes += write_utf8(value, word_.text + bytes);
      word_.bytes[i] = static_cast<uint32_t>(bytes);
    }
  }
  // The longest piece of the characters from `first` on; *end is behind it. -1: there is none.
  int32_t longest_piece(size_t first, size_t* end) {
    const size_t begin = first ? word_.bytes[first - 1] : 0;
    const std::string_view mark = first ? std::string_view("") : kMark;
    // A mark of the text's own must not pass for one that begins a word.
    if (first && word_.values[first] == kMarkValue) return -1;
    const size_t most = model_.vocabulary_->longest();
    TextHash hash;
    hash.add(mark);
    size_t last = first;
    for (size_t at = begin; last < count_ && word_.bytes[last] - begin + mark.size() <= most;
         ++last) {
      for (; at < word_.bytes[last]; ++at) hash.add(static_cast<uint8_t>(word_.text[at]));
      word_.hashes[last] = hash.value();
    }
    for (; last > first; --last) {
      const std::string_view part(word_.text + begin, word_.bytes[last - 1] - begin);
      const int32_t id = model_.vocabulary_->find(word_.hashes[last - 1], [&](std::string_view t) {
        return t.size() == mark.size() + part.size() && has_at(t, 0, mark) &&
               has_at(t, mark.size(), part);
      });
      if (id < 0 || model_.vocabulary_->type(id) != TokenType::normal) continue;
      *end = last;
      return id;
    }
    return -1;
  }
  bool find_pieces() {
    write_text();
    pieces_ = 0;
    for (size_t at = 0; at < count_;) {
      size_t end = at;
      const int32_t id = longest_piece(at, &end);
      if (id < 0) return false;
      word_.ids[pieces_] = id;
      word_.firsts[pieces_++] = static_cast<uint32_t>(at);
      at = end;
    }
    return true;
  }

  const WordPiece& model_;
  Scratch& word_;
  TokenSink& sink_;
  size_t count_ = 0, pieces_ = 0;
  size_t start_ = 0, end_ = 0;
};

// A character after cleaning and decomposition.
void WordPiece::add_normalized(uint32_t value, size_t start, size_t end, Word& word) const {
  uint32_t lower[kMaxLower] = {value};
  const size_t count = lowercase_ ? to_lower(value, lower) : 1;
  for (size_t i = 0; i < count; ++i) {
    if (is_white_space(lower[i])) {
      word.finish();
    } else if (is_bert_punctuation(lower[i])) {
      word.finish();
      word.add(lower[i], start, end);
      word.finish();
    } else if (const uint8_t order = strips_accents_ ? combining_class(lower[i]) : 0) {
      word.add_mark(lower[i], order, start, end);
    } else {
      word.add(lower[i], start, end);
    }
  }
}

void WordPiece::add_character(uint32_t value, size_t start, size_t end, Word& word) const {
  if (cleans_ && (value == 0xfffd || is_control_or_private(value))) return;
  const bool stands_alone = spaces_chinese_ && is_bert_ideograph(value);
  if (stands_alone) word.finish();
  if (strips_accents_) {
    uint32_t parts[kMaxDecomposed];
    const size_t count = decompose(value, false, parts);
    for (size_t i = 0; i < count; ++i)
      if (!is_nonspacing_mark(parts[i])) add_normalized(parts[i], start, end, word);
  } else {
    add_normalized(value, start, end, word);
  }
  if (stands_alone) word.finish();
}

void WordPiece::encode(std::string_view text, size_t base, Scratch& scratch,
                       TokenSink& sink) const {
  Word word(*this, scratch, sink);
  for (size_t at = 0; at < text.size();) {
    const uint8_t byte = static_cast<uint8_t>(text[at]);
    if (byte >= 0x80) {
      const CodePoint point = read_utf8(text, at);
      add_character(point.value, base + at, base + at + point.length, word);
      at += point.length;
      continue;
    }
    const AsciiClass kind = ascii_class_[byte];
    if (kind == kSpace || kind == kPunctuation) word.finish();
    if (kind == kLetter || kind == kPunctuation) word.add(ascii_[byte], base + at, base + at + 1);
    if (kind == kPunctuation) word.finish();
    ++at;
  }
  word.finish();
}

// Files of older converters have names like [unused7] as they are.
bool WordPiece::begins_word(int32_t id) const {
  const std::string_view text = vocabulary_->text(id);
  return vocabulary_->type(id) != TokenType::normal || has_at(text, 0, kMark) ||
         (text.size() > 2 && text.front() == '[' && text.back() == ']');
}

size_t WordPiece::decode(int32_t id, bool first, char* out, size_t capacity) const {
  std::string_view text = vocabulary_->text(id);
  size_t length = 0;
  if (begins_word(id)) {
    if (has_at(text, 0, kMark)) text = text_part(text, kMark.size(), text.size());
    const bool glued = std::any_of(std::begin(kGluedTexts), std::end(kGluedTexts),
                                   [&](std::string_view glue) { return has_at(text, 0, glue); });
    if (!first && !glued) {
      if (capacity > 0) out[0] = ' ';
      length = 1;
    }
  }
  for (char byte : text) {
    if (length < capacity) out[length] = byte;
    ++length;
  }
  return length;
}

size_t WordPiece::piece_characters(int32_t id) const {
  const std::string_view text = vocabulary_->text(id);
  if (!begins_word(id)) return count_characters(text) + 2;
  return count_characters(text) - (has_at(text, 0, kMark) ? 1 : 0);
}

}  // namespace mote
