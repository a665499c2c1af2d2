// There is one forward pass: what generate chose from, what append returns, what score used and
// what the developer tools see are the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/support/forward_rows.h"
#include "tests/support/tiny_model.h"

namespace mote::test {
namespace {

struct Choices {
  std::vector<std::vector<float>> logits;
};

void check_model(const Model& model, const std::vector<int32_t>& prompt, uint32_t new_tokens) {
  const uint32_t capacity = static_cast<uint32_t>(prompt.size()) + new_tokens + 4;
  Choices choices;
  std::vector<int32_t> ids(new_tokens);
  Session session(model, SessionOptions(capacity, 16, 2));
  GenerateOptions options(new_tokens);
  options.flags = MOTE_GENERATE_IGNORE_END;
  options.ids = ids.data();
  options.ids_capacity = ids.size();
  options.user = &choices;
  options.on_logits = [](void* user, float* logits, size_t count) {
    static_cast<Choices*>(user)->logits.emplace_back(logits, logits + count);
    return 0;
  };
  const mote_prompt given = prompt_of(prompt);
  mote_generate_result result{};
  result.size = sizeof result;
  ASSERT_EQ(mote_generate(session, &given, &options, &result), MOTE_OK) << mote_last_error();
  ASSERT_EQ(result.generated_tokens, new_tokens);
  ASSERT_EQ(choices.logits.size(), new_tokens);

  std::vector<int32_t> all = prompt;
  all.insert(all.end(), ids.begin(), ids.end());
  Session second(model, SessionOptions(capacity, 64, 1));
  const Rows rows = forward_rows(model, second, all.data(), all.size());
  const size_t vocabulary = rows.vocabulary;
  const auto row = [&](size_t position) { return rows.logits.data() + position * vocabulary; };
  for (uint32_t i = 0; i < new_tokens; ++i) {
    ASSERT_EQ(choices.logits[i].size(), vocabulary);
    EXPECT_EQ(std::memcmp(choices.logits[i].data(), row(prompt.size() - 1 + i),
                          vocabulary * sizeof(float)),
              0)
        << "choice " << i;
  }

  // One token at a time, from a third session.
  Session third(model, SessionOptions(capacity, 5, 1));
  const float* logits = nullptr;
  for (size_t at = 0, step = 1; at < all.size(); at += step, step = step % 7 + 1) {
    const size_t count = std::min(step, all.size() - at);
    ASSERT_EQ(mote_session_append(third, all.data() + at, count, 0, &logits), MOTE_OK)
        << mote_last_error();
    ASSERT_NE(logits, nullptr);
    EXPECT_EQ(std::memcmp(logits, row(at + count - 1), vocabulary * sizeof(float)), 0) << at;
  }

  std::vector<float> nll(all.size(), -1.0f);
  ASSERT_EQ(mote_score(third, all.data(), all.size(), nll.data()), MOTE_OK) << mote_last_error();
  const Kernels* kernels = select_kernels(chosen_isa());
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const float expected = kernels->log_sum_exp(row(i), vocabulary) - row(i)[all[i + 1]];
    EXPECT_EQ(nll[i], expected) << i;
    double sum = 0, most = row(i)[0];
    for (size_t v = 0; v < vocabulary; ++v) most = std::max<double>(most, row(i)[v]);
    for (size_t v = 0; v < vocabulary; ++v) sum += std::exp(row(i)[v] - most);
    EXPECT_NEAR(nll[i], std::log(sum) + most - row(i)[all[i + 1]], 1e-4) << i;
  }
  EXPECT_EQ(nll.back(), -1.0f);
}

TEST(OneForward, TinyModel) {
  const AlignedBytes bytes(TinyModel().bytes());
  const Model model(bytes);
  std::vector<int32_t> prompt;
  for (int i = 0; i < 77; ++i) prompt.push_back((i * 37 + 5) % 300);
  check_model(model, prompt, 70);
  check_model(model, {5}, 3);
}

TEST(OneForward, UntiedModel) {
  TinyModel tiny;
  tiny.tied = false;
  const AlignedBytes bytes(tiny.bytes());
  check_model(Model(bytes), {9, 8, 7, 250}, 12);
}

TEST(OneForward, SmolLm2) {
  const char* models = std::getenv("MOTE_MODELS_DIR");
  if (!models) GTEST_SKIP() << "MOTE_MODELS_DIR is not set: it names a folder with SmolLM2";
  const Model model(std::string(models) + "/SmolLM2-135M-Instruct.Q4_1.gguf");
  ASSERT_NE(model.get(), nullptr);
  std::vector<int32_t> prompt;
  {
    Session session(model, SessionOptions(512, 64, 1));
    prompt = tokenize(
        session,
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
        MOTE_TOKENIZE_SPECIAL);
  }
  check_model(model, prompt, 24);
}

// Hidden states: as many as layers + 1, of every position, and the head's product of the last gives
// the logits.
TEST(OneForward, HiddenStatesLeadToTheLogits) {
  TinyModel tiny;
  tiny.embedding = Format::f32;
  const AlignedBytes bytes(tiny.bytes());
  const Model model(bytes);
  Session session(model, SessionOptions(64, 8, 2));
  const std::vector<int32_t> ids = {3, 50, 120, 44, 45, 46, 299, 0, 1, 2, 77};
  const Rows rows = forward_rows(model, session, ids.data(), ids.size(), 4, true);
  ASSERT_EQ(rows.hidden.size(), tiny.layers + 1);
  for (const auto& [index, states] : rows.hidden)
    EXPECT_EQ(states.size(), ids.size() * tiny.hidden) << index;
  const auto* embedding =
      reinterpret_cast<const float*>(model_file(model).find_tensor("token_embd.weight")->data);
  for (size_t t = 0; t < ids.size(); ++t) {
    const float* last = rows.hidden.at(tiny.layers).data() + t * tiny.hidden;
    const float* first = rows.hidden.at(0).data() + t * tiny.hidden;
    for (uint32_t c = 0; c < tiny.hidden; ++c)
      EXPECT_EQ(first[c], embedding[ids[t] * tiny.hidden + c]);
    for (size_t v = 0; v < rows.vocabulary; v += 13) {
      double sum = 0, magnitude = 0;
      for (uint32_t c = 0; c < tiny.hidden; ++c) {
        sum += static_cast<double>(last[c]) * embedding[v * tiny.hidden + c];
        magnitude += std::fabs(static_cast<double>(last[c]) * embedding[v * tiny.hidden + c]);
      }
      EXPECT_NEAR(rows.logits[t * rows.vocabulary + v], sum, magnitude * 1e-5);
    }
  }
}

}  // namespace
}  // namespace mote::test
