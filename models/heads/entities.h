// Token classification: from logits of tokens to entities of the text, as Hugging Face's pipeline
// has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/arena.h"
#include "core/status.h"
#include "models/heads/code_points.h"
#include "mote.h"

namespace mote {

// Names of labels, by index.
struct LabelNames {
  const std::string_view* names = nullptr;
  size_t count = 0;
};

// One sequence over the text or a part of it.
struct TagWindow {
  const float* logits;       // [count][labels]
  const mote_token* tokens;  // [count] of the text, no frame
  const uint8_t* subwords;   // [count] 1: belongs to the word of the token before
  size_t count;
};

// Whether the pipeline takes a token for a part of the word before. piece: its text in the
// vocabulary with the prefix of such tokens ("##"); a tokenizer without one (has_prefix false) goes
// by the space in front of the token. unknown: the token is [UNK].
bool is_subword(std::string_view text, const mote_token& token, bool has_prefix,
                size_t piece_code_points, bool unknown);

// Gathers entities over windows:
// - A unit is a token (MOTE_GROUP_NONE, MOTE_GROUP_ENTITY) or a word of several. A word has the
//   best label of its first token (MOTE_GROUP_FIRST), of the token whose best label is the most
//   probable (MOTE_GROUP_MAX), or of the mean of its tokens' probabilities (MOTE_GROUP_AVERAGE).
// - But for MOTE_GROUP_NONE units of one kind make an entity, whose score is their mean: B-X begins
//   one, I-X and X go on with it after X and begin one otherwise. Where there is B-X, E-X and L-X
//   end one, S-X and U-X are one. Label "O" is none.
// - Of two entities of different windows that overlap the longer stays, or the one of higher score.
class EntityFinder {
 public:
  // labels: of the model. pending: entities of the windows that meet at a place of the text.
  void plan(Arena& arena, size_t labels, size_t pending);

  // The entities go to spans [capacity] by and by, in the order of their starts; those beyond it
  // are only counted. windows: how many there will be.
  void start(std::string_view text, LabelNames labels, uint32_t grouping, size_t windows,
             mote_span* spans, size_t capacity);
  // MOTE_ERROR_CAPACITY: more entities than it holds; MOTE_ERROR_BAD_FILE: a logit is not finite.
  Status add(const TagWindow& window);
  // How many there are.
  size_t finish();

 private:
  struct Unit {
    uint32_t byte_start, byte_end, label;
    float score;
  };
  struct Entity {
    uint32_t byte_start, byte_end, label, order;
    float score;
  };
  enum class Step : uint8_t { begins, continues };
  struct Tag {
    std::string_view name;  // of the entity: PER of B-PER
    Step step;
    bool ends;
  };

  Tag tag_of(uint32_t label) const;
  std::string_view shown_name(uint32_t label) const;
  bool token_probabilities(const float* logits);
  Status word_unit(const TagWindow& window, size_t first, size_t last, Unit* unit);
  Status add_unit(const Unit& unit);
  Status end_group();
  Status put(const Entity& entity);
  void settle(size_t byte);
  void merge(const Entity& entity);
  void give_out(const Entity& entity);

  float *row_ = nullptr, *sum_ = nullptr;  // [labels]
  Entity* pending_ = nullptr;
  size_t capacity_ = 0, held_ = 0;

  std::string_view text_;
  LabelNames labels_;
  uint32_t grouping_ = 0;
  bool several_ = false;  // windows
  mote_span* spans_ = nullptr;
  size_t room_ = 0, found_ = 0;
  uint32_t order_ = 0;

  Entity group_{};  // the entity that grows; score: the sum of its units
  Tag group_tag_{};
  size_t group_units_ = 0;

  Entity previous_{};  // of the merged ones, not given out yet
  bool has_previous_ = false;
  CodePointCounter points_{std::string_view()};
};

}  // namespace mote
