// convert: what the settings of encoders become, in each style that published configs have, and
// which are refused. That the models compute what they should is golden/tiny_encoders_test.
#include <algorithm>

#include "tests/tools/checkpoint_support.h"

namespace mote::test {
namespace {

// A tiny case, or a skip where it is not there.
#define LOAD_CASE(checkpoint, name)                                                               \
  if (tiny_folder(name).empty()) GTEST_SKIP() << "MOTE_SHARED_DIR names no folder with " << name; \
  Checkpoint checkpoint = Checkpoint::load(name)

class Encoders : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_TOOL(); }

  ToolResult convert(const Checkpoint& checkpoint, const std::string& type = "f32") {
    std::filesystem::remove_all(folder_.path("checkpoint"));
    return run_tool({"convert", checkpoint.write(folder_), "-o", out(), "--type", type});
  }
  Json inspect(const Checkpoint& checkpoint, const std::string& type = "f32") {
    const ToolResult result = convert(checkpoint, type);
    EXPECT_EQ(result.status, 0) << result.err;
    return run_tool({"inspect", "-m", out(), "--json"}).json();
  }
  Json keys(const Checkpoint& checkpoint) { return inspect(checkpoint)["keys"]; }
  void expect_refused(const Checkpoint& checkpoint, const std::string& words) {
    std::filesystem::remove(out());
    expect_failure(convert(checkpoint), 1, words);
    EXPECT_FALSE(std::filesystem::exists(out()));
  }
  std::string out() const { return folder_.path("out.gguf"); }

  TemporaryFolder folder_;
};

std::string type_of(const Json& file, const std::string& name) {
  for (const Json& tensor : file["tensors"])
    if (tensor["name"] == name) return tensor["type"];
  return "none";
}

TEST_F(Encoders, DistilBertWithItsOwnSettings) {
  LOAD_CASE(checkpoint, "distilbert-question-answering");
  const Json found = keys(checkpoint);
  EXPECT_EQ(found["general.architecture"], "bert");
  EXPECT_EQ(found["bert.block_count"], 4);
  EXPECT_EQ(found["bert.embedding_length"], 32);
  EXPECT_EQ(found["bert.feed_forward_length"], 128);
  EXPECT_EQ(found["bert.attention.head_count"], 2);
  EXPECT_EQ(found["bert.attention.causal"], false);
  EXPECT_EQ(found["mote.task"], "answer");
  EXPECT_EQ(found["mote.head.activation"], "none");
  EXPECT_FALSE(found.contains("tokenizer.ggml.token_type_count"));
  EXPECT_FALSE(found.contains("bert.rope.freq_base"));
}

TEST_F(Encoders, HeadsSmallTablesAndNormsStayFloat) {
  LOAD_CASE(checkpoint, "albert-sequence-classification");
  const Json file = inspect(checkpoint, "q4_0");
  EXPECT_EQ(type_of(file, "token_embd.weight"), "q8_0");
  EXPECT_EQ(type_of(file, "blk.0.attn_q.weight"), "q4_0");
  for (const char* name :
       {"position_embd.weight", "token_types.weight", "token_embd_norm.weight", "cls.weight",
        "cls.output.weight", "cls.output.bias", "blk.0.attn_output_norm.weight"})
    EXPECT_EQ(type_of(file, name), "f32") << name;
  EXPECT_EQ(type_of(file, "blk.1.attn_q.weight"), "none");
}

TEST_F(Encoders, AlbertSharesLayersAndProjects) {
  LOAD_CASE(checkpoint, "albert-sequence-classification");
  const Json found = keys(checkpoint);
  EXPECT_EQ(found["albert.block_count"], 3);
  EXPECT_EQ(found["mote.layer_groups"], 1);
  EXPECT_EQ(found["mote.embedding_width"], 32);
  EXPECT_EQ(found["mote.activation"], "gelu_tanh");
  EXPECT_EQ(found["mote.task"], "classify");
  EXPECT_EQ(found["mote.head.activation"], "tanh");
  checkpoint.config["inner_group_num"] = 2;
  expect_refused(checkpoint, "inner_group_num: expected 1, found 2");
}

TEST_F(Encoders, LabelsAndProblem) {
  LOAD_CASE(checkpoint, "albert-sequence-classification");
  EXPECT_EQ(inspect(checkpoint)["labels"], Json({"negative", "neutral", "positive"}));
  checkpoint.config["problem_type"] = "multi_label_classification";
  EXPECT_EQ(keys(checkpoint)["mote.head.problem"], "multi_label_classification");
  checkpoint.config["problem_type"] = "ranking";
  expect_refused(checkpoint, "problem_type: expected single_label_classification");
  checkpoint.config.erase("problem_type");
  checkpoint.config["id2label"] = {{"0", "a"}, {"1", "b"}};
  expect_refused(checkpoint, "classifier.weight: expected F32 [2, 64] by config.json");
  checkpoint.config["id2label"] = {{"0", "a"}, {"1", "b"}, {"3", "c"}};
  expect_refused(checkpoint, "there is none for 2");
  checkpoint.config.erase("id2label");
  checkpoint.config["num_labels"] = 3;
  EXPECT_EQ(inspect(checkpoint)["labels"], Json({"LABEL_0", "LABEL_1", "LABEL_2"}));
}

// The same file from a config of transformers 4 as from one of 5.
TEST_F(Encoders, ModernBertInBothStyles) {
  LOAD_CASE(checkpoint, "modernbert-token-classification");
  const Json now = keys(checkpoint);
  EXPECT_EQ(now["modern-bert.attention.sliding_window"], 16);
  EXPECT_EQ(now["modern-bert.rope.freq_base"], 160000.0);
  EXPECT_EQ(now["modern-bert.rope.freq_base_swa"], 10000.0);
  EXPECT_EQ(now["mote.head.activation"], "gelu");
  EXPECT_EQ(now["mote.task"], "tag");
  for (const char* key : {"rope_parameters", "layer_types"}) checkpoint.config.erase(key);
  checkpoint.config["global_rope_theta"] = 160000.0;
  checkpoint.config["local_rope_theta"] = 10000.0;
  checkpoint.config["global_attn_every_n_layers"] = 3;
  EXPECT_EQ(keys(checkpoint), now);
  checkpoint.config["global_attn_every_n_layers"] = 2;
  EXPECT_EQ(keys(checkpoint)["modern-bert.attention.sliding_window_pattern"], 2);
  checkpoint.config["attention_bias"] = true;
  expect_refused(checkpoint, "attention_bias: expected false, found true");
}

TEST_F(Encoders, NomicBertInBothStyles) {
  LOAD_CASE(checkpoint, "nomic-bert-embedding");
  const Json now = keys(checkpoint);
  EXPECT_EQ(now["nomic-bert.rope.freq_base"], 1000.0);
  const Json given = checkpoint.config;
  checkpoint.config = {{"architectures", given["architectures"]},
                       {"activation_function", "swiglu"},
                       {"n_embd", given["hidden_size"]},
                       {"n_head", given["num_attention_heads"]},
                       {"n_inner", given["intermediate_size"]},
                       {"n_layer", given["num_hidden_layers"]},
                       {"n_positions", given["max_position_embeddings"]},
                       {"layer_norm_epsilon", given["layer_norm_eps"]},
                       {"rotary_emb_base", 1000},
                       {"rotary_emb_fraction", 1.0},
                       {"type_vocab_size", 2},
                       {"vocab_size", 300},
                       {"prenorm", false},
                       {"qkv_proj_bias", false}};
  EXPECT_EQ(keys(checkpoint), now);
  checkpoint.config["max_trained_positions"] = 40;
  EXPECT_EQ(keys(checkpoint)["nomic-bert.context_length"], 40);
  checkpoint.config["prenorm"] = true;
  expect_refused(checkpoint, "prenorm: expected false, found true");
}

// Rows before the first position are never read, and not in the file.
TEST_F(Encoders, PositionsBehindThePadding) {
  LOAD_CASE(checkpoint, "mpnet-embedding");
  const Json file = inspect(checkpoint);
  EXPECT_EQ(file["keys"]["mpnet.context_length"], 46);
  EXPECT_EQ(file["keys"]["mpnet.attention.relative_buckets_count"], 32);
  for (const Json& tensor : file["tensors"]) {
    if (tensor["name"] != "position_embd.weight") continue;
    EXPECT_EQ(tensor["shape"], Json({64, 46}));
  }
}

TEST_F(Encoders, OldNamesOfNorms) {
  LOAD_CASE(checkpoint, "bert-masked-lm");
  const Json file = inspect(checkpoint);
  const std::string bytes = read_all(out());
  std::map<std::string, SafeTensor> renamed;
  for (const auto& [given, tensor] : checkpoint.tensors) {
    std::string name = given;
    for (const auto& [now, then] :
         {std::pair<std::string, std::string>("LayerNorm.weight", "LayerNorm.gamma"),
          {"LayerNorm.bias", "LayerNorm.beta"}})
      if (const size_t at = name.find(now); at != std::string::npos)
        name.replace(at, now.size(), then);
    renamed[name] = tensor;
  }
  checkpoint.tensors = renamed;
  // What pre-training leaves in such files.
  checkpoint.tensors["cls.seq_relationship.weight"] =
      renamed["cls.predictions.transform.dense.weight"];
  checkpoint.tensors["cls.predictions.decoder.weight"] =
      renamed["bert.embeddings.word_embeddings.weight"];
  ASSERT_EQ(convert(checkpoint).status, 0);
  EXPECT_EQ(read_all(out()), bytes);
  EXPECT_EQ(file["keys"]["mote.task"], "masked_lm");
  checkpoint.tensors["surprise"] = renamed["cls.predictions.bias"];
  expect_refused(checkpoint, "tensors that config.json does not account for: surprise");
}

TEST_F(Encoders, SentenceTransformersSettings) {
  LOAD_CASE(checkpoint, "mpnet-embedding");
  EXPECT_EQ(keys(checkpoint)["mpnet.pooling_type"], 1);
  Json modules = Json::array();
  const auto add = [&](const std::string& type, const std::string& path) {
    modules.push_back({{"idx", modules.size()},
                       {"name", std::to_string(modules.size())},
                       {"path", path},
                       {"type", "sentence_transformers.models." + type}});
  };
  add("Transformer", "");
  add("Pooling", "1_Pooling");
  add("Normalize", "2_Normalize");
  const auto with_pooling = [&](const Json& pooling) {
    checkpoint.files["modules.json"] = modules.dump();
    checkpoint.files["1_Pooling/config.json"] = pooling.dump();
    return checkpoint;
  };
  checkpoint.files["sentence_bert_config.json"] = R"({"max_seq_length": 32})";
  Json found = keys(with_pooling({{"pooling_mode_cls_token", true}}));
  EXPECT_EQ(found["mpnet.pooling_type"], 2);
  EXPECT_EQ(found["mote.normalize"], true);
  EXPECT_EQ(found["mote.max_tokens"], 32);
  // Such folders keep the class that they were made from, and no head.
  checkpoint.config["architectures"] = {"MPNetForMaskedLM"};
  EXPECT_EQ(keys(with_pooling({{"pooling_mode_cls_token", true}})), found);
  EXPECT_EQ(keys(with_pooling({{"pooling_mode", "lasttoken"}}))["mpnet.pooling_type"], 3);
  EXPECT_EQ(keys(with_pooling({{"pooling_mode_max_tokens", true}}))["mote.pooling"], "max");
  expect_refused(with_pooling({{"pooling_mode_mean_sqrt_len_tokens", true}}),
                 "pooling_mode_mean_sqrt_len_tokens");
  expect_refused(
      with_pooling({{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", true}}),
      "expected one pooling only");
  add("Dense", "3_Dense");
  expect_refused(with_pooling({{"pooling_mode_cls_token", true}}),
                 "expected Transformer, Pooling or Normalize, found Dense");
}

TEST_F(Encoders, WhatIsMissingIsNamed) {
  LOAD_CASE(checkpoint, "albert-sequence-classification");
  Checkpoint without = checkpoint;
  without.tensors.erase("albert.pooler.weight");
  expect_refused(without, "missing tensors: albert.pooler.weight");
  without = checkpoint;
  without.config["architectures"] = {"AlbertForMultipleChoice"};
  expect_refused(without, "AlbertForSequenceClassification");
  without = checkpoint;
  without.config["hidden_act"] = "mish";
  expect_refused(without, "hidden_act: expected gelu");
}

}  // namespace
}  // namespace mote::test
