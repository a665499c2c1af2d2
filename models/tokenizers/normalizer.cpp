#include "models/tokenizers/normalizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "core/utf8.h"
#include "models/tokenizers/characters.h"
#include "models/tokenizers/text_part.h"

namespace mote {
namespace {

constexpr char kSteps[] = "mote.normalizer";
constexpr size_t kSlack = 16;  // characters

}  // namespace

// The result of a step while it grows, with the upstream rule of where characters come from: one
// that takes a place (change <= 0) comes from the next character of the input and uses up -change
// more; one that is inserted (change > 0) comes from where the one before it does.
class Normalizer::Output {
 public:
  Output(NormalCharacter* in, size_t in_count, NormalCharacter* out, size_t capacity)
      : in_(in), out_(out), in_count_(in_count), capacity_(capacity) {}

  const NormalCharacter* in() const { return in_; }
  size_t in_count() const { return in_count_; }
  NormalCharacter* out() { return out_; }
  size_t count() const { return count_; }
  bool failed() const { return failed_; }

  // Until finish() the change stands in the place of the source.
  void put(uint32_t value, int32_t change) {
    if (count_ == capacity_)
      failed_ = true;
    else
      out_[count_++] = {value, static_cast<uint32_t>(change)};
  }
  // The last one uses up so many more of the input.
  void remove(size_t characters) {
    if (count_ > 0) change_at(count_ - 1, change(count_ - 1) - static_cast<int32_t>(characters));
  }
  // Keeps a character as it is; its source is known.
  void keep(const NormalCharacter& character) {
    if (count_ == capacity_)
      failed_ = true;
    else
      out_[count_++] = character;
  }
  int32_t change(size_t at) const { return static_cast<int32_t>(out_[at].source); }
  void change_at(size_t at, int32_t change) { out_[at].source = static_cast<uint32_t>(change); }

  void decompose(bool compatibility);
  void order_marks(size_t first);
  void compose();
  void resolve() {
    size_t next = 0;
    for (size_t i = 0; i < count_; ++i) {
      const int32_t change = this->change(i);
      const size_t from = change > 0 ? (next ? next - 1 : 0) : next;
      out_[i].source = in_[std::min(from, in_count_ - 1)].source;
      if (change <= 0) next += 1 + static_cast<size_t>(-static_cast<int64_t>(change));
    }
  }

 private:
  const NormalCharacter* in_;
  NormalCharacter* out_;
  size_t in_count_, capacity_, count_ = 0;
  bool failed_ = false;
};

// Decomposition in canonical order.
void Normalizer::Output::decompose(bool compatibility) {
  size_t marks = 0;  // start of the run of marks at the end
  for (size_t i = 0; i < in_count_; ++i) {
    uint32_t parts[kMaxDecomposed];
    const size_t count = mote::decompose(in_[i].value, compatibility, parts);
    for (size_t j = 0; j < count; ++j) {
      if (combining_class(parts[j]) == 0) {
        order_marks(marks);
        marks = count_ + 1;
      }
      put(parts[j], j ? 1 : 0);
    }
  }
  order_marks(marks);
}

// Sorts the marks from `first` on by their class; those of one class stay as they are.
void Normalizer::Output::order_marks(size_t first) {
  const auto before = [](const NormalCharacter& a, const NormalCharacter& b) {
    const uint8_t left = combining_class(a.value), right = combining_class(b.value);
    return left != right ? left < right : a.source < b.source;
  };
  if (count_ < first + 2) return;
  // A change is 0 or 1 here: the place goes in front of it, so that no two are equal.
  for (size_t i = first; i < count_; ++i) out_[i].source |= static_cast<uint32_t>(i - first) << 1;
  if (!std::is_sorted(out_ + first, out_ + count_, before))
    std::sort(out_ + first, out_ + count_, before);
  for (size_t i = first; i < count_; ++i) out_[i].source &= 1;
}

// Canonical composition of what decompose() made.
void Normalizer::Output::compose() {
  constexpr size_t kNone = SIZE_MAX;
  size_t write = 0, starter = kNone;
  int32_t last_class = -1;  // of what was kept behind the starter; -1: nothing
  for (size_t read = 0; read < count_; ++read) {
    const NormalCharacter next = out_[read];
    const int32_t order = combining_class(next.value);
    if (starter != kNone && last_class < order) {
      const uint32_t both = mote::compose(out_[starter].value, next.value);
      if (both) {
        out_[starter].value = both;
        change_at(starter, change(starter) + static_cast<int32_t>(next.source) - 1);
        continue;
      }
    }
    if (order == 0) {
      starter = write;
      last_class = -1;
    } else if (starter != kNone) {
      last_class = order;
    }
    out_[write++] = next;
  }
  count_ = write;
}

Status Normalizer::open(const GgufFile& file) {
  MOTE_TRY(charsmap_.open(file));
  if (file.find(kSteps))
    MOTE_TRY(read_steps(file));
  else if (charsmap_.present())
    steps_[step_count_++] = {StepKind::precompiled, {}, {}};
  for (size_t i = 0; i < step_count_; ++i) {
    const Step& step = steps_[i];
    size_t half = 2, bytes = 3;
    switch (step.kind) {
      case StepKind::nfc:
      case StepKind::nfd:
        half = 3;
        break;
      case StepKind::nfkc:
      case StepKind::nfkd:
        half = 12;
        bytes = 11;
        break;
      case StepKind::precompiled:
        half = 2 * charsmap_.growth();
        bytes = 4 * charsmap_.growth();
        break;
      case StepKind::replace:
        bytes = 1 + step.to.size() / step.from.size();
        half = 2 * bytes;
        break;
      default:
        break;
    }
    half_growth_ = std::max(half_growth_, half);
    byte_growth_ = std::max(byte_growth_, bytes);
  }
  return kOk;
}

Status Normalizer::read_steps(const GgufFile& file) {
  struct Name {
    const char* name;
    StepKind kind;
  };
  constexpr Name kNames[] = {{"nfc", StepKind::nfc},
                             {"nfd", StepKind::nfd},
                             {"nfkc", StepKind::nfkc},
                             {"nfkd", StepKind::nfkd},
                             {"lowercase", StepKind::lowercase},
                             {"strip_accents", StepKind::strip_accents},
                             {"strip_left", StepKind::strip_left},
                             {"strip_right", StepKind::strip_right},
                             {"collapse_spaces", StepKind::collapse_spaces},
                             {"precompiled", StepKind::precompiled},
                             {"replace", StepKind::replace}};
  const int name_length = static_cast<int>(file.name().size());
  const GgufKey* key = nullptr;
  MOTE_TRY(file.get_array(kSteps, GgufType::text, 0, &key));
  GgufTexts texts(*key);
  for (std::string_view text; texts.next(&text);) {
    const Name* found = std::find_if(std::begin(kNames), std::end(kNames),
                                     [&](const Name& known) { return text == known.name; });
    if (found == std::end(kNames))
      return fail(MOTE_ERROR_UNSUPPORTED, "%.*s: key %s: \"%.*s\" is not a known step", name_length,
                  file.name().data(), kSteps, MOTE_SHOW(text));
    if (step_count_ == kMaxSteps)
      return fail(MOTE_ERROR_UNSUPPORTED, "%.*s: key %s: expected at most %zu steps", name_length,
                  file.name().data(), kSteps, kMaxSteps);
    Step& step = steps_[step_count_++];
    step.kind = found->kind;
    if (step.kind == StepKind::precompiled && !charsmap_.present())
      return fail(MOTE_ERROR_BAD_FILE,
                  "%.*s: key %s: a step is \"precompiled\", but there is no map", name_length,
                  file.name().data(), kSteps);
    if (step.kind != StepKind::replace) continue;
    if (!texts.next(&step.from) || step.from.empty() || !texts.next(&step.to) ||
        step.to.size() > 64 * step.from.size())
      return fail(MOTE_ERROR_BAD_FILE,
                  "%.*s: key %s: expected a text and its replacement behind \"replace\"",
                  name_length, file.name().data(), kSteps);
  }
  return kOk;
}

void Normalizer::plan(Arena& arena, size_t text_bytes, Scratch* scratch) const {
  size_t twice = 0;
  if (__builtin_mul_overflow(text_bytes, half_growth_, &twice) || twice > SIZE_MAX - 4 * kSlack)
    twice = SIZE_MAX - 4 * kSlack;
  scratch->capacity = twice / 2 + 1 + kSlack;
  scratch->characters = arena.take<NormalCharacter>(scratch->capacity);
  scratch->other = arena.take<NormalCharacter>(scratch->capacity);
}

// Each grapheme of less than six bytes, else each of its characters, becomes what the map says for
// the shortest key that it begins with: as upstream does it.
void Normalizer::run_charsmap(Output& out) const {
  const NormalCharacter* in = out.in();
  const size_t count = out.in_count();
  const auto replace = [&](size_t characters, std::string_view by) {
    size_t made = 0;
    for (size_t at = 0; at < by.size(); ++made) {
      const CodePoint point = read_utf8(by, at);
      out.put(point.value, made < characters ? 0 : 1);
      at += point.length;
    }
    if (made < characters) out.remove(characters - made);
  };
  utf8proc_int32_t state = 0;
  for (size_t at = 0; at < count;) {
    char text[8];
    size_t end = at, bytes = 0;  // of the grapheme; bytes stops at six
    do {
      if (bytes < 6) {
        char character[4];
        const size_t length = write_utf8(in[end].value, character);
        if (bytes + length < 6) std::copy_n(character, length, text + bytes);
        bytes += length;
      }
      ++end;
    } while (end < count && !utf8proc_grapheme_break_stateful(
                                static_cast<utf8proc_int32_t>(in[end - 1].value),
                                static_cast<utf8proc_int32_t>(in[end].value), &state));
    std::string_view by;
    if (bytes < 6 && charsmap_.find({text, bytes}, &by)) {
      replace(end - at, by);
      at = end;
      continue;
    }
    for (; at < end; ++at) {
      const size_t length = write_utf8(in[at].value, text);
      if (charsmap_.find({text, length}, &by))
        replace(1, by);
      else
        out.put(in[at].value, 0);
    }
  }
  out.resolve();
}

void Normalizer::run_step(const Step& step, Output& out) const {
  const NormalCharacter* in = out.in();
  const size_t count = out.in_count();
  switch (step.kind) {
    case StepKind::nfc:
    case StepKind::nfd:
    case StepKind::nfkc:
    case StepKind::nfkd:
      out.decompose(step.kind == StepKind::nfkc || step.kind == StepKind::nfkd);
      if (step.kind == StepKind::nfc || step.kind == StepKind::nfkc) out.compose();
      return out.resolve();
    case StepKind::lowercase:
      for (size_t i = 0; i < count; ++i) {
        uint32_t lower[kMaxLower];
        const size_t made = to_lower(in[i].value, lower);
        for (size_t j = 0; j < made; ++j) out.keep({lower[j], in[i].source});
      }
      return;
    case StepKind::strip_accents:
      for (size_t i = 0; i < count; ++i)
        if (!is_mark(in[i].value)) out.keep(in[i]);
      return;
    case StepKind::strip_left:
    case StepKind::strip_right: {
      size_t first = 0, last = count;
      if (step.kind == StepKind::strip_left)
        while (first < last && is_white_space(in[first].value)) ++first;
      else
        while (first < last && is_white_space(in[last - 1].value)) --last;
      for (size_t i = first; i < last; ++i) out.keep(in[i]);
      return;
    }
    case StepKind::collapse_spaces:  // one space, from the last of them
      for (size_t i = 0; i < count; ++i)
        if (in[i].value != ' ' || i + 1 == count || in[i + 1].value != ' ') out.keep(in[i]);
      return;
    case StepKind::precompiled:
      return run_charsmap(out);
    case StepKind::replace:
      for (size_t i = 0; i < count;) {
        size_t end = i, matched = 0;
        while (end < count && matched < step.from.size()) {
          const CodePoint point = read_utf8(step.from, matched);
          if (point.value != in[end].value) break;
          matched += point.length;
          ++end;
        }
        if (matched < step.from.size()) {
          out.keep(in[i++]);
          continue;
        }
        for (size_t at = 0; at < step.to.size();) {
          const CodePoint point = read_utf8(step.to, at);
          out.keep({point.value, in[end - 1].source});
          at += point.length;
        }
        i = end;
      }
      return;
  }
}

bool Normalizer::run(std::string_view text, Scratch& scratch, size_t* count) const {
  *count = 0;
  for (size_t at = 0; at < text.size(); ++*count) {
    const CodePoint point = read_utf8(text, at);
    if (*count == scratch.capacity) return false;
    scratch.characters[*count] = {point.value, static_cast<uint32_t>(at)};
    at += point.length;
  }
  for (size_t i = 0; i<step_count_&& * count> 0; ++i) {
    Output out(scratch.characters, *count, scratch.other, scratch.capacity);
    run_step(steps_[i], out);
    if (out.failed()) return false;
    *count = out.count();
    std::swap(scratch.characters, scratch.other);
  }
  return true;
}

}  // namespace mote
