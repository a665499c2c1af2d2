// Files of encoders, complete or not, and what their sessions take.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/encoder.h"
#include "models/session.h"
#include "tests/support/api.h"
#include "tests/support/tiny_families.h"

namespace mote::test {
namespace {

using tiny_internal::small_bert_classifier;

// A classifier as other converters write it.
GgufBuilder foreign_classifier() {
  GgufBuilder builder = small_bert_classifier();
  for (const char* key : {"mote.task", "mote.head.activation", "bert.classifier.output_labels"})
    builder.remove_key(key);
  return builder;
}

struct Opened {
  explicit Opened(const GgufBuilder& builder) : bytes(builder.build()) {
    mote_model_options options = model_options();
    options.log_user = this;
    options.log = [](void* user, int32_t level, const char* message, size_t length) {
      if (level <= MOTE_LOG_WARNING)
        static_cast<Opened*>(user)->warnings += std::string(message, length) + "\n";
    };
    status = mote_model_open_memory(bytes.data(), bytes.size(), &options, &model);
    if (status != MOTE_OK) message = mote_last_error();
  }
  ~Opened() { mote_model_close(model); }

  uint32_t tasks() const {
    mote_model_info info = {};
    info.size = sizeof info;
    EXPECT_EQ(mote_model_describe(model, &info), MOTE_OK);
    return info.tasks & ~uint32_t(MOTE_TASK_TOKENIZE);
  }
  std::string label(uint32_t index) const {
    mote_text name = {};
    return mote_model_label(model, index, &name) == MOTE_OK ? std::string(name.data, name.length)
                                                            : "none";
  }

  AlignedBytes bytes;
  mote_model* model = nullptr;
  mote_status status;
  std::string message, warnings;
};

TEST(EncoderFiles, LabelsAndTasks) {
  const Opened file(small_bert_classifier());
  ASSERT_EQ(file.status, MOTE_OK) << file.message;
  EXPECT_EQ(file.warnings, "");
  EXPECT_EQ(file.tasks(), uint32_t(MOTE_TASK_EMBED | MOTE_TASK_CLASSIFY));
  EXPECT_EQ(file.label(0), "no");
  EXPECT_EQ(file.label(2), "yes");
  EXPECT_EQ(file.label(3), "none");
  EXPECT_NE(std::string(mote_last_error()).find("expected 0..2, found 3"), std::string::npos);
}

// Without a word on the task: what the tensors say, and a warning of what they do not.
TEST(EncoderFiles, OfOtherConverters) {
  const Opened file(foreign_classifier());
  ASSERT_EQ(file.status, MOTE_OK) << file.message;
  EXPECT_EQ(file.tasks(), uint32_t(MOTE_TASK_EMBED | MOTE_TASK_CLASSIFY));
  EXPECT_NE(file.warnings.find("mote.head.activation is missing"), std::string::npos)
      << file.warnings;
  EXPECT_NE(file.warnings.find("bert.classifier.output_labels is missing"), std::string::npos)
      << file.warnings;
  EXPECT_EQ(file.label(1), "LABEL_1");

  GgufBuilder embedding = foreign_classifier();
  for (const char* name : {"cls.weight", "cls.bias", "cls.output.weight", "cls.output.bias"})
    embedding.remove_tensor(name);
  embedding.u32("bert.pooling_type", 2);
  const Opened plain(embedding);
  ASSERT_EQ(plain.status, MOTE_OK) << plain.message;
  EXPECT_EQ(plain.warnings, "");
  EXPECT_EQ(plain.tasks(), uint32_t(MOTE_TASK_EMBED));
  EXPECT_EQ(model_spec(plain.model).pooling, Pooling::cls);
}

// A DistilBERT of another converter: it has no table of token types and says that there is one.
TEST(EncoderFiles, WithoutTokenTypes) {
  GgufBuilder builder = small_bert_classifier();
  builder.remove_tensor("token_types.weight");
  builder.u32("tokenizer.ggml.token_type_count", 1);
  EXPECT_EQ(Opened(builder).status, MOTE_OK);
  builder.remove_key("tokenizer.ggml.token_type_count");
  EXPECT_EQ(Opened(builder).status, MOTE_OK);
  builder.u32("tokenizer.ggml.token_type_count", 2);
  const Opened lacking(builder);
  EXPECT_EQ(lacking.status, MOTE_ERROR_BAD_FILE);
  EXPECT_NE(lacking.message.find("token_types.weight is missing"), std::string::npos);
}

// The product of a row of q8_row is one sum of integers, which has room for so many columns.
TEST(EncoderFiles, RowsOfOneScaleMayBeTooLong) {
  for (const uint32_t columns : {65536u, 65568u}) {
    TinyModel tiny;
    tiny.layers = 1, tiny.hidden = 32, tiny.heads = tiny.kv_heads = 1, tiny.head_dim = 32;
    tiny.feed_forward = columns, tiny.matrices = Format::q8_row;
    const Opened file(tiny.builder());
    if (columns == 65536) {
      EXPECT_EQ(file.status, MOTE_OK) << file.message;
      continue;
    }
    EXPECT_EQ(file.status, MOTE_ERROR_UNSUPPORTED);
    EXPECT_NE(file.message.find("ffn_down.weight: q8_row: expected at most 65536 columns, found "
                                "65568"),
              std::string::npos)
        << file.message;
  }
}

// Each tensor that an architecture has counts: without it a file would give other results.
TEST(EncoderFiles, NoTensorIsMissedUnnoticed) {
  for (const TinyFamily& family : tiny_families()) {
    const GgufBuilder good = family.build();
    for (const GgufBuilder::TensorEntry& tensor : good.tensors) {
      if (tensor.name == "output.weight") continue;  // a file without it shares the embedding
      GgufBuilder builder = good;
      builder.remove_tensor(tensor.name);
      const Opened file(builder);
      EXPECT_NE(file.status, MOTE_OK) << family.name << " without " << tensor.name;
      // Of matrices in one the first is told.
      EXPECT_NE(file.message.find(" is missing"), std::string::npos) << file.message;
    }
  }
}

// What an architecture may have it has in all layers, and all of it.
TEST(EncoderFiles, OptionalTensorsAreThereTogether) {
  const auto with_biases = [](bool all) {
    GgufBuilder builder = tiny_internal::small_modern_bert();
    tiny_internal::add_vectors(&builder, "ffn_norm.bias", 32, 0.0f);
    tiny_internal::add_vector(&builder, "blk.1.attn_norm.bias", 32, 0.0f);
    if (!all) builder.remove_tensor("blk.0.ffn_norm.bias");
    return builder;
  };
  EXPECT_EQ(Opened(with_biases(true)).status, MOTE_OK);
  const Opened file(with_biases(false));
  EXPECT_EQ(file.status, MOTE_ERROR_BAD_FILE);
  EXPECT_NE(file.message.find("tensor blk.0.ffn_norm.bias is missing"), std::string::npos)
      << file.message;
}

TEST(EncoderFiles, LocalRotaryBase) {
  for (float base : {0.0f, -1.0f, 1.0f}) {
    GgufBuilder builder = tiny_internal::small_modern_bert();
    builder.f32("modern-bert.rope.freq_base_swa", base);
    const Opened file(builder);
    EXPECT_EQ(file.status, MOTE_ERROR_BAD_FILE);
    EXPECT_NE(file.message.find("rope.freq_base_swa: expected more than 1"), std::string::npos)
        << file.message;
  }
}

TEST(EncoderFiles, WhatIsMissingOrWrongIsNamed) {
  struct Case {
    const char* words;
    void (*change)(GgufBuilder&);
  };
  const Case cases[] = {
      {"tensor cls.weight is missing", [](GgufBuilder& b) { b.remove_tensor("cls.weight"); }},
      {"tensor cls.output.weight is missing",
       [](GgufBuilder& b) { b.remove_tensor("cls.output.weight"); }},
      {"tensor position_embd.weight is missing",
       [](GgufBuilder& b) { b.remove_tensor("position_embd.weight"); }},
      {"tensor token_embd_norm.weight is missing",
       [](GgufBuilder& b) { b.remove_tensor("token_embd_norm.weight"); }},
      {"tensor blk.1.layer_output_norm.weight is missing",
       [](GgufBuilder& b) { b.remove_tensor("blk.1.layer_output_norm.weight"); }},
      {"tensor position_embd.weight: expected shape [32, 64]",
       [](GgufBuilder& b) { b.u32("bert.context_length", 64); }},
      {"bert.classifier.output_labels",
       [](GgufBuilder& b) {
         b.texts("bert.classifier.output_labels", {"no", "yes"});
       }},
      {"key mote.task: expected one of embed, classify, tag, answer, masked_lm, found \"poem\"",
       [](GgufBuilder& b) { b.text("mote.task", "poem"); }},
      {"key mote.head.activation is missing",
       [](GgufBuilder& b) { b.remove_key("mote.head.activation"); }},
      {"token_types.weight: expected 3 rows",
       [](GgufBuilder& b) { b.u32("tokenizer.ggml.token_type_count", 3); }},
      {"key mote.head.activation: expected one of",
       [](GgufBuilder& b) { b.text("mote.head.activation", "swish"); }},
      {"tensor tag.output.weight is missing", [](GgufBuilder& b) { b.text("mote.task", "tag"); }},
      {"tensor qa.output.weight is missing", [](GgufBuilder& b) { b.text("mote.task", "answer"); }},
      {"key mote.max_tokens: expected 1..128",
       [](GgufBuilder& b) { b.u32("mote.max_tokens", 129); }},
      {"key mote.embedding_width", [](GgufBuilder& b) { b.u32("mote.embedding_width", 0); }},
  };
  for (const Case& each : cases) {
    GgufBuilder builder = small_bert_classifier();
    each.change(builder);
    const Opened file(builder);
    EXPECT_NE(file.status, MOTE_OK) << each.words;
    EXPECT_NE(file.message.find(each.words), std::string::npos) << file.message;
  }
  GgufBuilder pooler = foreign_classifier();
  pooler.remove_tensor("cls.weight");
  EXPECT_NE(Opened(pooler).message.find("the pooler before the classifier"), std::string::npos);
}

TEST(EncoderFiles, SessionSizes) {
  GgufBuilder builder = small_bert_classifier();
  builder.u32("mote.max_tokens", 100);
  const AlignedBytes bytes(builder.build());
  const Model model(bytes);
  const auto sizes = [&](uint32_t capacity, uint32_t batch) {
    Session session(model, SessionOptions(capacity, batch, 1));
    return std::pair(session.get()->sizes.capacity, session.get()->sizes.batch_tokens);
  };
  EXPECT_EQ(sizes(0, 0), std::pair(size_t{100}, size_t{256}));
  EXPECT_EQ(sizes(0, 16), std::pair(size_t{100}, size_t{100}));
  EXPECT_EQ(sizes(128, 0), std::pair(size_t{128}, size_t{256}));
  EXPECT_EQ(sizes(8, 16), std::pair(size_t{8}, size_t{16}));
  EXPECT_EQ(sizes(8, 4000), std::pair(size_t{8}, size_t{4000}));
  const SessionOptions options(129, 0, 1);
  size_t needed = 0;
  EXPECT_EQ(mote_session_size(model, &options, &needed), MOTE_ERROR_CONTEXT);
}

TEST(EncoderFiles, SequencesThatDoNotFit) {
  const AlignedBytes bytes(small_bert_classifier().build());
  const Model model(bytes);
  Session session(model, SessionOptions(8, 12, 1));
  const std::vector<int32_t> ids(13, 5), foreign = {0, -1, 300000};
  const std::vector<uint8_t> types = {0, 1, 2};
  const auto encoded = [&](const std::vector<Sequence>& sequences) {
    EncoderOutputs outputs;
    return encode(session, sequences.data(), sequences.size(), {}, &outputs).code();
  };
  EXPECT_EQ(encoded({{ids.data(), nullptr, 8}, {ids.data(), nullptr, 4}}), MOTE_OK);
  EXPECT_EQ(encoded({{ids.data(), nullptr, 9}}), MOTE_ERROR_CAPACITY);
  EXPECT_EQ(encoded({{ids.data(), nullptr, 8}, {ids.data(), nullptr, 5}}), MOTE_ERROR_CAPACITY);
  EXPECT_EQ(encoded({{ids.data(), nullptr, 0}}), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(encoded({{foreign.data(), nullptr, 2}}), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(encoded({{foreign.data() + 2, nullptr, 1}}), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(encoded({{ids.data(), types.data(), 2}}), MOTE_OK);
  EXPECT_EQ(encoded({{ids.data(), types.data(), 3}}), MOTE_ERROR_ARGUMENT);
}

TEST(EncoderFiles, AnEncoderGeneratesNothingAndAGeneratorEncodesNothing) {
  const AlignedBytes bytes(small_bert_classifier().build());
  const Model model(bytes);
  Session session(model, SessionOptions(8, 8, 1));
  const int32_t ids[] = {1, 2, 3};
  float nll[2];
  size_t state = 0;
  EXPECT_EQ(mote_session_append(session, ids, 3, 0, nullptr), MOTE_ERROR_TASK);
  EXPECT_EQ(mote_score(session, ids, 3, nll), MOTE_ERROR_TASK);
  EXPECT_EQ(mote_session_save(session, nullptr, 0, &state), MOTE_ERROR_TASK);
  const Generation got = generate(session, prompt_of({1, 2, 3}), GenerateOptions(1));
  EXPECT_EQ(got.status, MOTE_ERROR_TASK);

  const AlignedBytes other(TinyModel().bytes());
  const Model generator(other);
  Session its(generator, SessionOptions(8, 8, 1));
  const Sequence sequence = {ids, nullptr, 3};
  EncoderOutputs outputs;
  EXPECT_EQ(encode(its, &sequence, 1, {}, &outputs).code(), MOTE_ERROR_TASK);
}

}  // namespace
}  // namespace mote::test
