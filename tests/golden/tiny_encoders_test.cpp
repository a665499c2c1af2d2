// Random encoders of PyTorch, converted by the tool: hidden states of every layer and the outputs
// of every head as in float32, in a batch and alone, the same bits in any company.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <string>

#include "models/encoder.h"
#include "models/session.h"
#include "tests/support/api.h"
#include "tests/support/tiny_folder.h"

namespace mote::test {
namespace {

// Everything that a pass gives, by name.
using Outputs = std::map<std::string, std::vector<float>>;

class TinyEncoders : public TinyFolder {
 protected:
  void SetUp() override {
    TinyFolder::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!golden_.has("token_type_ids")) return;
    const std::vector<int32_t> all = golden_["token_type_ids"].ints();
    for (size_t s = 0; s < lengths_.size(); ++s)
      types_.emplace_back(all.begin() + static_cast<ptrdiff_t>(s * width_),
                          all.begin() + static_cast<ptrdiff_t>(s * width_ + lengths_[s]));
  }

  Sequence sequence(size_t s) const {
    return {sequences_[s].data(), types_.empty() ? nullptr : types_[s].data(),
            static_cast<uint32_t>(sequences_[s].size())};
  }

  // One pass over these sequences.
  Outputs encode_all(const Model& model, mote_session* session,
                     const std::vector<size_t>& which) const {
    Outputs out;
    std::vector<Sequence> batch;
    size_t tokens = 0;
    for (size_t s : which) {
      batch.push_back(sequence(s));
      tokens += sequences_[s].size();
    }
    const Spec& spec = model_spec(model);
    struct Context {
      Outputs* out;
      size_t hidden;
    } context = {&out, spec.hidden};
    ForwardSink sink;
    sink.user = &context;
    sink.hidden = [](void* user, uint32_t index, size_t, size_t rows, const float* values) {
      auto* to = static_cast<Context*>(user);
      (*to->out)["hidden_states_" + std::to_string(index)].assign(values,
                                                                  values + rows * to->hidden);
    };
    EncoderOutputs outputs;
    const Status status = encode(session, batch.data(), batch.size(), sink, &outputs);
    EXPECT_TRUE(status.ok()) << last_error();
    const auto keep = [&](const char* name, const float* values, size_t rows, size_t width) {
      if (values) out[name].assign(values, values + rows * width);
    };
    keep("last_hidden_state", outputs.hidden, tokens, spec.hidden);
    keep("pooler_output", outputs.pooler_output, batch.size(), spec.hidden);
    keep("logits", outputs.sequence_logits, batch.size(), spec.head.labels);
    keep("logits", outputs.token_logits, tokens, spec.head.labels);
    if (spec.head.kind == HeadKind::masked_lm) masked_logits(session, tokens, &out["logits"]);
    if (spec.head.kind == HeadKind::answer) {
      for (size_t t = 0; t < tokens; ++t)
        for (size_t i = 0; i < 2; ++i)
          out[i == 0 ? "start_logits" : "end_logits"].push_back(out["logits"][2 * t + i]);
      out.erase("logits");
    }
    return out;
  }

  static void masked_logits(mote_session* session, size_t tokens, std::vector<float>* logits) {
    const size_t vocabulary = session->model->transformer.spec.vocabulary;
    for (uint32_t t = 0; t < tokens; ++t)
      session->team.run([&] {
        const float* row = session->transformer.masked_logits(session->team, &t, 1);
        logits->insert(logits->end(), row, row + vocabulary);
      });
  }

  // Outputs that the golden file has, one behind the other for the sequences.
  void compare(const Outputs& outputs, const std::string& what) const {
    size_t compared = 0;
    for (const auto& [name, values] : outputs)
      if (golden_.has(name)) {
        EXPECT_LE(relative_error(values, golden_.floats(name)), 1e-4) << what << ", " << name;
        ++compared;
      }
    size_t expected = 0;
    for (const char* name : {"logits", "start_logits", "end_logits", "last_hidden_state",
                             "pooler_output", "hidden_states_0", "hidden_states_1",
                             "hidden_states_2", "hidden_states_3", "hidden_states_4"})
      expected += golden_.has(name);
    EXPECT_GE(expected, 4u);
    EXPECT_EQ(compared, expected) << what;
  }

  // The same bits behind others, and in other places of the batch.
  void check_company(const Model& model, const Outputs& straight) const {
    Session session(model, options(40, 256, 2));
    const std::vector<size_t> order = {2, 0, 3, 1, 3, 0, 2};
    const Outputs mixed = encode_all(model, session, order);
    std::vector<size_t> starts = {0};
    for (size_t length : lengths_) starts.push_back(starts.back() + length);
    for (const auto& [name, values] : straight) {
      const bool by_token = values.size() % starts.back() == 0;
      const size_t width = values.size() / (by_token ? starts.back() : lengths_.size());
      size_t at = 0;
      for (size_t s : order) {
        const size_t rows = by_token ? lengths_[s] : 1, from = by_token ? starts[s] : s;
        ASSERT_LE((at + rows) * width, mixed.at(name).size()) << name;
        EXPECT_EQ(std::memcmp(mixed.at(name).data() + at * width, values.data() + from * width,
                              rows * width * sizeof(float)),
                  0)
            << name << " of sequence " << s;
        at += rows;
      }
      EXPECT_EQ(mixed.at(name).size(), at * width) << name;
    }
  }

  static SessionOptions options(uint32_t capacity, uint32_t batch, uint32_t threads) {
    return SessionOptions(capacity, batch, threads);
  }

  std::vector<size_t> all_sequences() const {
    std::vector<size_t> which(sequences_.size());
    for (size_t s = 0; s < which.size(); ++s) which[s] = s;
    return which;
  }

  std::vector<std::vector<uint8_t>> types_;
};

TEST_P(TinyEncoders, LayersAndOutputs) {
  const Model model(file_ + ".gguf");
  ASSERT_NE(model.get(), nullptr);
  Outputs together;
  for (uint32_t threads : {1u, 2u, 3u}) {
    Session session(model, options(40, 80, threads));
    const Outputs outputs = encode_all(model, session, all_sequences());
    compare(outputs, std::to_string(threads) + " threads");
    if (threads == 1)
      together = outputs;
    else
      EXPECT_TRUE(outputs == together) << "other bits with " << threads << " threads";
  }
  Session session(model, options(40, 80, 2));
  Outputs alone;
  for (size_t s = 0; s < sequences_.size(); ++s)
    for (const auto& [name, values] : encode_all(model, session, {s}))
      alone[name].insert(alone[name].end(), values.begin(), values.end());
  EXPECT_TRUE(alone == together) << "other bits alone than in a batch";
  check_company(model, together);
}

// The tool's dump has the names and the packing of the golden file, and compare finds it equal.
TEST_P(TinyEncoders, DumpAndCompare) {
  const std::string golden = shell_word(folder_ + "/golden.safetensors");
  const std::string model = " -m " + shell_word(file_ + ".gguf");
  run("dump" + model + " --input " + golden + " --hidden-states --chunk 20 -o " +
      shell_word(file_ + ".out"));
  const SafeTensors dump(file_ + ".out");
  for (const auto& [name, tensor] : golden_.all()) {
    if (name == "input_ids" || name == "attention_mask" || name == "token_type_ids") continue;
    ASSERT_TRUE(dump.has(name)) << name;
    EXPECT_EQ(dump[name].shape, tensor.shape) << name;
    if (name == "lengths") continue;
    EXPECT_LE(relative_error(dump.floats(name), golden_.floats(name)), 1e-4) << name;
  }
  run("compare" + model + " --reference " + golden + " --tolerance 1e-4 >" +
      shell_word(file_ + ".log"));
}

// Weights of other formats: close. (Wide random weights make every rounding count.)
TEST_P(TinyEncoders, OtherFormats) {
  for (const auto& [type, tolerance] :
       {std::pair("f16", 4e-3), std::pair("bf16", 4e-2), std::pair("q8_0", 0.15)}) {
    convert(type);
    const Model model(file_ + ".gguf");
    ASSERT_NE(model.get(), nullptr);
    Session session(model, options(40, 80, 2));
    const Outputs outputs = encode_all(model, session, all_sequences());
    for (const auto& [name, values] : outputs) {
      if (!golden_.has(name)) continue;
      EXPECT_LE(relative_error(values, golden_.floats(name)), tolerance) << type << ", " << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Bert, TinyEncoders,
    testing::Values("bert-embedding", "bert-sequence-classification", "bert-multilabel",
                    "bert-token-classification", "bert-question-answering", "bert-masked-lm",
                    "distilbert-sequence-classification", "distilbert-question-answering",
                    "roberta-sequence-classification", "xlm-roberta-token-classification"),
    tiny_name);
INSTANTIATE_TEST_SUITE_P(Relatives, TinyEncoders,
                         testing::Values("electra-sequence-classification", "mpnet-embedding",
                                         "albert-sequence-classification", "nomic-bert-embedding",
                                         "modernbert-sequence-classification",
                                         "modernbert-token-classification"),
                         tiny_name);

}  // namespace
}  // namespace mote::test
