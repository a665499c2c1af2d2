// Guesses the next tokens of a text without a second model: what followed the same tokens before.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mote {

// Prompt look-up decoding (Saxena, 2023): of the places where the text's last tokens stood before,
// the one where most of them agree (the latest of equal ones) says what follows. How often a guess
// is right is learned for each length of that agreement from every token that is chosen, drafted or
// not, and what a token more costs from the time of the passes: a draft is as long as promises most
// tokens per time, so a text that repeats nothing is left alone and one that begins to repeat
// something is noticed. Needs no memory but this; a look-up reads each token of the text once.
class Drafter {
 public:
  // most: tokens of a draft; 0: none, ever. always: as many, whatever was learned. Forgets that.
  void start(size_t most, bool always);
  // Writes up to min(most, room) tokens behind tokens[0, count); returns how many.
  size_t draft(int32_t* tokens, size_t count, size_t room);
  // `chosen` follows tokens[0, count), be it drafted or not.
  void learn(const int32_t* tokens, size_t count, int32_t chosen);
  // What a pass over the last token and a draft took.
  void measure(size_t drafted, uint64_t nanoseconds);

 private:
  static constexpr size_t kLongest = 8;  // tokens that are compared

  // The guess is tokens[place]; the `agreeing` tokens in front of it are the text's last ones.
  struct Match {
    size_t place = 0, agreeing = 0;
  };
  static Match find(const int32_t* tokens, size_t count);
  const Match& match(const int32_t* tokens, size_t count);
  size_t best_length(size_t agreeing, size_t most) const;

  size_t most_ = 0;
  bool always_ = false;
  Match match_;
  size_t matched_count_ = 0;    // of the text that match_ belongs to; 0: none
  float right_[kLongest] = {};  // [agreeing - 1] how likely the guess is right
  double pass_ = 0;             // nanoseconds of a pass without a draft
  double extra_ = 0;            // what each token of a draft adds to it, as a part of it
};

}  // namespace mote
