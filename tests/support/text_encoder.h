// Small encoders that read texts: random weights, a WordPiece vocabulary of letters and a few
// words, and a head of each kind.
#pragma once

#include <string>
#include <vector>

#include "tests/support/tiny_families.h"

namespace mote::test {

enum class TextHead { embed, classify, entail, relevance, tag, answer, fill };

inline void use_wordpiece(GgufBuilder* builder) {
  for (const char* key :
       {"tokenizer.ggml.merges", "tokenizer.ggml.pre", "tokenizer.ggml.add_bos_token"})
    builder->remove_key(key);
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  std::vector<int32_t> types = {3, 2, 3, 3, 3};
  const std::string mark = "\xe2\x96\x81";  // in front of a piece that begins a word
  for (char c = 'a'; c <= 'z'; ++c) {
    tokens.push_back(mark + c);
    tokens.push_back(std::string(1, c));
  }
  for (char c = '0'; c <= '9'; ++c) {
    tokens.push_back(mark + c);
    tokens.push_back(std::string(1, c));
  }
  for (const char* word : {".", ",", "!", "?", "'", "-", ":", "the", "lamp", "in", "kitchen", "is",
                           "on", "off", "this", "example", "\xe4\xb8\xad", "\xf0\x9f\x98\x80"})
    tokens.push_back(mark + word);
  for (const char* part : {"ing", "er", "ed", "tion"}) tokens.push_back(part);
  types.resize(tokens.size(), 1);
  builder->text("tokenizer.ggml.model", "bert");
  builder->texts("tokenizer.ggml.tokens", tokens);
  builder->array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, types);
  builder->u32("tokenizer.ggml.unknown_token_id", 1);
  builder->u32("tokenizer.ggml.bos_token_id", 2);
  builder->u32("tokenizer.ggml.eos_token_id", 3);
  builder->u32("tokenizer.ggml.mask_token_id", 4);
  builder->boolean("tokenizer.ggml.normalizer.lowercase", true);
  builder->boolean("mote.wordpiece.clean_text", true);
  builder->boolean("mote.wordpiece.chinese_spaces", true);
  builder->u32("mote.wordpiece.max_characters", 100);
}

inline GgufBuilder text_encoder(TextHead head) {
  using namespace tiny_internal;
  GgufBuilder builder =
      head == TextHead::fill ? small_albert()
      : head == TextHead::classify || head == TextHead::entail || head == TextHead::relevance
          ? small_bert_classifier()
          : small_bert("bert");
  use_wordpiece(&builder);
  const auto labels = [&](const char* tensor, const std::vector<std::string>& names) {
    add_matrix(&builder, std::string(tensor) + ".weight", names.size(), kHidden);
    add_vector(&builder, std::string(tensor) + ".bias", names.size(), 0.0f);
    if (head != TextHead::answer) builder.texts("bert.classifier.output_labels", names);
  };
  if (head == TextHead::entail)
    builder.texts("bert.classifier.output_labels", {"contradiction", "neutral", "ENTAILMENT"});
  if (head == TextHead::relevance) {
    builder.remove_tensor("cls.output.weight");
    builder.remove_tensor("cls.output.bias");
    labels("cls.output", {"relevance"});
  }
  if (head == TextHead::tag) {
    builder.text("mote.task", "tag");
    labels("tag.output", {"O", "B-A", "I-A", "B-B", "I-B"});
  }
  if (head == TextHead::answer) {
    builder.text("mote.task", "answer");
    labels("qa.output", {"start", "end"});
  }
  return builder;
}

}  // namespace mote::test
