// What architectures' readers refuse: files that would compute something else than their model.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/api.h"
#include "tests/support/gguf_builder.h"

namespace mote::test {
namespace {

// The keys of a decoder, and one tensor so that they are read.
GgufBuilder decoder(const std::string& architecture) {
  GgufBuilder out;
  out.text("general.architecture", architecture);
  const std::string prefix = architecture + ".";
  for (const auto& [key, value] : {std::pair<const char*, uint32_t>{"block_count", 4},
                                   {"context_length", 64},
                                   {"embedding_length", 32},
                                   {"feed_forward_length", 32},
                                   {"attention.head_count", 2},
                                   {"vocab_size", 8}})
    out.u32(prefix + key, value);
  out.f32(prefix + "attention.layer_norm_rms_epsilon", 1e-5f);
  out.f32(prefix + "attention.layer_norm_epsilon", 1e-5f);
  out.tensor("token_embd.weight", {32, 8}, Format::f32, std::vector<float>(32 * 8));
  return out;
}

std::string refusal(const GgufBuilder& builder) {
  const AlignedBytes bytes(builder.build());
  const mote_model_options options = model_options();
  mote_model* model = nullptr;
  EXPECT_NE(mote_model_open_memory(bytes.data(), bytes.size(), &options, &model), MOTE_OK);
  EXPECT_EQ(model, nullptr);
  return mote_last_error();
}

struct Refused {
  const char* architecture;
  std::function<void(GgufBuilder&)> change;
  const char* words;
};

TEST(Architectures, RefuseWhatTheyCannotCompute) {
  const Refused cases[] = {
      {"olmo2", [](GgufBuilder& b) { b.u32("olmo2.attention.sliding_window", 4096); },
       "key olmo2.attention.sliding_window: expected 0, found 4096 (OLMo 3)"},
      {"smollm3",
       [](GgufBuilder& b) {
         b.array<uint8_t>("mote.rope.layers", GgufType::boolean, {1, 0, 1});
       },
       "mote.rope.layers"},
      {"smollm3", [](GgufBuilder& b) { b.u32("mote.rope.layers", 4); }, "mote.rope.layers"},
      {"granite", [](GgufBuilder& b) { b.f32("granite.logit_scale", 0.0f); },
       "key granite.logit_scale: expected another number than 0"},
      {"gemma3",
       [](GgufBuilder& b) {
         b.array<uint8_t>("gemma3.attention.sliding_window_pattern", GgufType::boolean, {1, 0});
       },
       "gemma3.attention.sliding_window_pattern"},
      {"phi3",
       [](GgufBuilder& b) {
         b.tensor("rope_factors_long.weight", {8}, Format::f32, std::vector<float>(8, 1.0f));
       },
       "tensor rope_factors_long.weight"},
      {"stablelm",
       [](GgufBuilder& b) {
         b.tensor("blk.0.attn_q_norm.weight", {16}, Format::f32, std::vector<float>(16, 1.0f));
       },
       "tensor blk.0.attn_q_norm.weight"},
  };
  for (const Refused& refused : cases) {
    GgufBuilder builder = decoder(refused.architecture);
    // Without the change the reader is content, and what is missed is a tensor.
    EXPECT_NE(refusal(builder).find(" is missing"), std::string::npos) << refusal(builder);
    refused.change(builder);
    EXPECT_NE(refusal(builder).find(refused.words), std::string::npos) << refusal(builder);
  }
}

}  // namespace
}  // namespace mote::test
