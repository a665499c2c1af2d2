#include "models/text_sequence.h"

#include <algorithm>

namespace mote {
namespace {

Status check_length(const TextLengths& lengths, size_t max_tokens) {
  if (lengths.first > UINT32_MAX / 2 || lengths.second > UINT32_MAX / 2)
    return fail(MOTE_ERROR_ARGUMENT, "texts: expected less than 2147483648 tokens, found %zu",
                std::max(lengths.first, lengths.second));
  if (max_tokens == 0)
    return fail(MOTE_ERROR_ARGUMENT, "length: expected at least one token, found none");
  return kOk;
}

// Tokens that the frame leaves for texts.
size_t room_in(const Frame& frame, size_t max_tokens) {
  const size_t added = frame.added();
  return max_tokens > added ? max_tokens - added : 0;
}

Status no_room(const Frame& frame, size_t max_tokens) {
  return fail(MOTE_ERROR_ARGUMENT,
              "length: expected more than the %zu tokens that the model puts around a text, found "
              "%zu",
              frame.added(), max_tokens);
}

size_t second_of(const TextLengths& lengths) { return lengths.pair ? lengths.second : 0; }

}  // namespace

Status truncate(const Frame& frame, const TextLengths& lengths, size_t max_tokens,
                Truncation truncation, TextWindow* window, bool* truncated) {
  MOTE_TRY(check_length(lengths, max_tokens));
  const size_t room = room_in(frame, max_tokens);
  size_t first = lengths.first, second = second_of(lengths);
  if (frame.added() > max_tokens || (room == 0 && first + second > 0))
    return no_room(frame, max_tokens);
  *truncated = first + second > room;
  if (*truncated && truncation == Truncation::longest_first) {
    if (!lengths.pair) {
      first = room;
    } else {
      size_t &shorter = first <= second ? first : second,
             &longer = first <= second ? second : first;
      if (shorter <= room / 2) {
        longer = room - shorter;
      } else {
        shorter = room / 2;
        longer = room - shorter;
      }
    }
  } else if (*truncated) {
    const bool cuts_first = truncation == Truncation::only_first;
    if (!cuts_first && !lengths.pair)
      return fail(MOTE_ERROR_ARGUMENT, "truncation of the second text: there is none");
    size_t& cut = cuts_first ? first : second;
    const size_t other = cuts_first ? second : first;
    if (other >= room)
      return fail(MOTE_ERROR_ARGUMENT,
                  "the %s text is too long: expected less than %zu tokens, found %zu",
                  cuts_first ? "second" : "first", room, other);
    cut = room - other;
  }
  *window = TextWindow();
  window->end[0] = static_cast<uint32_t>(first);
  window->end[1] = static_cast<uint32_t>(second);
  return kOk;
}

Status TextWindows::open(const Frame& frame, const TextLengths& lengths, size_t max_tokens,
                         size_t stride, size_t windowed) {
  MOTE_TRY(check_length(lengths, max_tokens));
  lengths_[0] = lengths.first;
  lengths_[1] = second_of(lengths);
  windowed_ = windowed;
  const size_t spread = lengths_[windowed], other = lengths_[1 - windowed];
  const size_t room = room_in(frame, max_tokens);
  room_ = step_ = spread;
  count_ = 1;
  if (frame.added() <= max_tokens && spread + other <= room) return kOk;
  if (room == 0) return no_room(frame, max_tokens);
  if (other >= room || spread == 0)
    return fail(MOTE_ERROR_ARGUMENT,
                "question too long: expected less than %zu tokens beside the text, found %zu", room,
                other);
  room_ = room - other;
  if (stride >= room_)
    return fail(MOTE_ERROR_ARGUMENT,
                "stride: expected less than the %zu tokens of text in a window, found %zu", room_,
                stride);
  step_ = room_ - stride;
  count_ = 1 + (spread - room_ + step_ - 1) / step_;
  return kOk;
}

TextWindow TextWindows::window(size_t index) const {
  TextWindow window;
  const size_t begin = index * step_, other = 1 - windowed_;
  window.begin[windowed_] = static_cast<uint32_t>(begin);
  window.end[windowed_] = static_cast<uint32_t>(std::min(begin + room_, lengths_[windowed_]));
  window.end[other] = static_cast<uint32_t>(lengths_[other]);
  return window;
}

void write_sequence(const Frame& frame, const TextWindow& window, const mote_token* first,
                    const mote_token* second, int32_t* ids, uint8_t* type_ids) {
  size_t at = 0;
  const auto put = [&](int32_t id, uint8_t type) {
    ids[at] = id;
    if (type_ids) type_ids[at] = type;
    ++at;
  };
  for (size_t i = 0; i < frame.count; ++i) {
    const Frame::Part& part = frame.parts[i];
    if (part.id >= 0) {
      put(part.id, part.type);
      continue;
    }
    const size_t text = part.id == Frame::kFirst ? 0 : 1;
    const mote_token* tokens = text == 0 ? first : second;
    for (size_t token = window.begin[text]; token < window.end[text]; ++token)
      put(tokens[token].id, part.type);
  }
}

SequencePlace place_of(const Frame& frame, const TextWindow& window, size_t position) {
  for (size_t i = 0; i < frame.count; ++i) {
    if (frame.parts[i].id >= 0) {
      if (position-- == 0) break;
      continue;
    }
    const size_t text = frame.parts[i].id == Frame::kFirst ? 0 : 1;
    if (position < window.count(text))
      return {static_cast<int32_t>(text), window.begin[text] + static_cast<uint32_t>(position)};
    position -= window.count(text);
  }
  return {-1, 0};
}

size_t position_of(const Frame& frame, const TextWindow& window, size_t text) {
  size_t position = 0;
  for (size_t i = 0; i < frame.count; ++i) {
    const int32_t id = frame.parts[i].id;
    if (id == (text == 0 ? Frame::kFirst : Frame::kSecond)) break;
    position += id >= 0 ? 1 : window.count(id == Frame::kFirst ? 0 : 1);
  }
  return position;
}

}  // namespace mote
