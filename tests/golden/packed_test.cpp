// A packed file computes what the native one computes: the same bits, for any format, instruction
// set, threads and chunks. Rows that fill no tile and fused matrices are part of it.
#include <gtest/gtest.h>

#include "quant/packed.h"
#include "tests/support/forward_rows.h"
#include "tests/support/random.h"
#include "tests/support/tiny_model.h"

namespace mote::test {
namespace {

// Every matrix whose format has a packed form.
void pack_all(GgufBuilder* file) {
  for (GgufBuilder::TensorEntry& tensor : file->tensors) {
    const auto native = static_cast<Format>(tensor.format);
    const Format packed = packed_format(native);
    if (packed == native || tensor.shape.size() < 2) continue;
    const Bytes from = tensor.data;
    quant::pack(packed, from.data(), tensor.shape[1], tensor.shape[0], tensor.data.data());
    tensor.format = static_cast<uint32_t>(packed);
  }
}

std::vector<uint64_t> logit_hashes(const Model& model, uint32_t threads, uint32_t chunk) {
  Random random(7);
  std::vector<int32_t> ids(20);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(300));
  Session session(model, SessionOptions(64, chunk, threads));
  return forward_rows(model, session, ids.data(), ids.size(), 0, false, false).hashes;
}

class Packed : public testing::TestWithParam<std::string> {};

void expect_same(const GgufBuilder& native, const std::string& isa) {
  GgufBuilder packed = native;
  pack_all(&packed);
  const AlignedBytes native_bytes(native.build()), packed_bytes(packed.build());
  ASSERT_NE(std::memcmp(native_bytes.data(), packed_bytes.data(), native_bytes.size()), 0);
  const Model native_model(native_bytes, isa.c_str()), packed_model(packed_bytes, isa.c_str());
  ASSERT_NE(packed_model.get(), nullptr) << mote_last_error();
  const std::vector<uint64_t> expected = logit_hashes(native_model, 1, 64);
  ASSERT_EQ(expected.size(), 20u);
  for (const uint32_t chunk : {1u, 3u, 64u})
    EXPECT_EQ(logit_hashes(packed_model, chunk % 3 + 1, chunk), expected) << "chunks of " << chunk;
}

TEST_P(Packed, SameBitsAsNative) {
  for (const Format format : {Format::q4_0, Format::q4_1, Format::q5_0, Format::q5_1, Format::q8_0,
                              Format::iq4_nl, Format::q8_row}) {
    SCOPED_TRACE(format_info(format).name);
    TinyModel tiny;
    tiny.layers = 1, tiny.feed_forward = 96 + 32, tiny.matrices = tiny.embedding = format;
    ASSERT_NE(TinyModel::tokens().size() % quant::kPackedRows, 0u);  // rows behind the last tile
    expect_same(tiny.builder(), GetParam());
  }
}

TEST_P(Packed, SameBitsAsNativeInBlocksOf256) {
  for (const Format format : {Format::q3_k, Format::q6_k}) {  // a model of 256 columns takes long
    SCOPED_TRACE(format_info(format).name);
    TinyModel tiny;
    tiny.layers = 1, tiny.hidden = 256, tiny.heads = 4, tiny.head_dim = 64;
    tiny.feed_forward = 256, tiny.matrices = tiny.embedding = format;
    expect_same(tiny.builder(), GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Packed, testing::ValuesIn(isas_here()),
                         [](const auto& info) { return info.param; });

// gate and up above each other, as some files have them; queries, keys and values too.
GgufBuilder fused(uint32_t kv_heads, uint32_t head_dim) {
  TinyModel tiny;
  tiny.layers = 1, tiny.heads = 96 / head_dim, tiny.kv_heads = kv_heads, tiny.head_dim = head_dim;
  GgufBuilder file = tiny.builder();
  const auto join = [&](const std::string& name, const std::vector<std::string>& parts) {
    GgufBuilder::TensorEntry whole = file.find_tensor("blk.0." + parts[0] + ".weight");
    whole.name = "blk.0." + name + ".weight";
    for (size_t i = 0; i < parts.size(); ++i) {
      const GgufBuilder::TensorEntry part = file.find_tensor("blk.0." + parts[i] + ".weight");
      if (i > 0) {
        whole.shape[1] += part.shape[1];
        whole.data.insert(whole.data.end(), part.data.begin(), part.data.end());
      }
      file.remove_tensor(part.name);
    }
    file.tensors.push_back(whole);
  };
  join("attn_qkv", {"attn_q", "attn_k", "attn_v"});
  join("ffn_up", {"ffn_gate", "ffn_up"});
  return file;
}

TEST(PackedFused, SameBitsAsNative) { expect_same(fused(2, 16), isas_here().front()); }

TEST(PackedFused, PartsThatAreNoWholeTilesAreRefused) {
  GgufBuilder file = fused(1, 24);  // 24 rows of keys
  const AlignedBytes native(file.build());
  EXPECT_NE(Model(native).get(), nullptr);
  pack_all(&file);
  const AlignedBytes packed(file.build());
  const mote_model_options options = model_options(chosen_isa());
  mote_model* model = nullptr;
  EXPECT_EQ(mote_model_open_memory(packed.data(), packed.size(), &options, &model),
            MOTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(model, nullptr);
  EXPECT_NE(std::string(mote_last_error()).find("blk.0.attn_qkv.weight: q4_1_packed"),
            std::string::npos)
      << mote_last_error();
}

}  // namespace
}  // namespace mote::test
