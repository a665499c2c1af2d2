// Generations whose tokens are decided by the test: on_logits masks all but the next one of a
// script.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/api.h"
#include "tests/support/random.h"
#include "tests/support/tiny_model.h"

namespace mote::test {

struct Scripted {
  std::vector<int32_t> script;
  size_t at = 0;
  std::string text;
  std::vector<std::string> pieces;
  std::function<int(std::string_view)> on_text;  // after the text is noted
  std::function<int(size_t at)> on_logits;       // before the choice
  std::function<void(size_t, size_t)> on_progress;
  mote_status status = MOTE_OK;
  mote_generate_result result{};
  std::vector<int32_t> ids;

  // Behind the script's end the model ends its turn.
  void run(mote_session* session, const mote_prompt& prompt,
           mote_generate_options options = GenerateOptions()) {
    ids.assign(script.size() + 8, -1);
    result = {};
    result.size = sizeof result;
    at = 0;
    text.clear();
    pieces.clear();
    options.user = this;
    options.ids = ids.data();
    options.ids_capacity = ids.size();
    options.on_text = [](void* user, const char* data, size_t length) {
      auto* self = static_cast<Scripted*>(user);
      self->text.append(data, length);
      self->pieces.emplace_back(data, length);
      return self->on_text ? self->on_text({data, length}) : 0;
    };
    options.on_logits = [](void* user, float* logits, size_t count) {
      auto* self = static_cast<Scripted*>(user);
      if (self->on_logits) {
        const int stop = self->on_logits(self->at);
        if (stop) return stop;
      }
      const int32_t next =
          self->at < self->script.size() ? self->script[self->at] : TinyModel::kEndOfTurn;
      ++self->at;
      for (size_t i = 0; i < count; ++i)
        if (static_cast<int32_t>(i) != next) logits[i] = -HUGE_VALF;
      return 0;
    };
    if (on_progress)
      options.on_progress = [](void* user, size_t done, size_t total) {
        static_cast<Scripted*>(user)->on_progress(done, total);
      };
    status = mote_generate(session, &prompt, &options, &result);
    ids.resize(result.generated_tokens);
  }
};

// One token per byte.
inline std::vector<int32_t> byte_script(std::string_view text) {
  std::vector<int32_t> ids;
  for (char c : text) ids.push_back(TinyModel::byte_token(static_cast<uint8_t>(c)));
  return ids;
}

// Tokens of a text in random pieces: any token whose bytes come next may be chosen.
inline std::vector<int32_t> random_script(std::string_view text, Random& random) {
  static const std::vector<std::string> pieces = [] {
    std::vector<std::string> list;
    for (const std::string& merge : TinyModel::merges()) {
      // Back from the alphabet of GPT-2 to bytes; what the tiny model's merges use of it.
      std::string bytes;
      for (size_t i = 0; i < merge.size();) {
        const auto lead = static_cast<uint8_t>(merge[i]);
        if (merge[i] == ' ') {
          ++i;
        } else if (lead < 0x80) {
          bytes += merge[i++];
        } else {
          const uint32_t code = (lead & 31u) << 6 | (static_cast<uint8_t>(merge[i + 1]) & 63u);
          const auto alphabet = tiny_internal::byte_alphabet();
          for (uint32_t b = 0; b < 256; ++b)
            if (alphabet[b] == code) bytes += static_cast<char>(b);
          i += 2;
        }
      }
      list.push_back(bytes);
    }
    return list;
  }();
  std::vector<int32_t> ids;
  while (!text.empty()) {
    std::vector<int32_t> choices = {TinyModel::byte_token(static_cast<uint8_t>(text[0]))};
    std::vector<size_t> lengths = {1};
    for (size_t i = 0; i < pieces.size(); ++i)
      if (text.substr(0, pieces[i].size()) == pieces[i]) {
        choices.push_back(static_cast<int32_t>(TinyModel::kFirstByte + 256 + i));
        lengths.push_back(pieces[i].size());
      }
    const uint32_t pick = random.below(static_cast<uint32_t>(choices.size()));
    ids.push_back(choices[pick]);
    text.remove_prefix(lengths[pick]);
  }
  return ids;
}

}  // namespace mote::test
