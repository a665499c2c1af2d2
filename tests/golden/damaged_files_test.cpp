// Damaged files, made from a small valid one: each is refused with a message that names what is
// wrong, and none ends in a signal (run it with AddressSanitizer: preset dev).
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <limits>
#include <set>

#include "tests/support/api.h"
#include "tests/support/guard_page.h"
#include "tests/support/tiny_model.h"

namespace mote::test {
namespace {

// A memory-mapped file's end is seldom a page's end, but damaged sizes must not lead beyond it
// anyway: the bytes end at a guard page, as nearly as the alignment allows.
mote_status open_bytes(const Bytes& bytes, mote_model** model) {
  GuardedBytes guarded(bytes.size(), (32 - bytes.size() % 32) % 32);
  if (!bytes.empty()) std::memcpy(guarded.data(), bytes.data(), bytes.size());
  const mote_model_options options = model_options();
  const mote_status status = mote_model_open_memory(guarded.data(), bytes.size(), &options, model);
  if (status == MOTE_OK) {
    mote_model_close(*model);
    *model = nullptr;
  }
  return status;
}

class DamagedFiles : public testing::Test {
 protected:
  DamagedFiles() : good_(TinyModel().builder()) {}

  // name: what the message has to name.
  void expect_refused(const Bytes& bytes, const std::string& what, const std::string& name) {
    ++cases_;
    mote_model* model = reinterpret_cast<mote_model*>(8);
    const mote_status status = open_bytes(bytes, &model);
    const std::string message = mote_last_error();
    EXPECT_TRUE(status == MOTE_ERROR_BAD_FILE || status == MOTE_ERROR_UNSUPPORTED)
        << what << ": status " << status << " " << message;
    EXPECT_EQ(model, nullptr) << what;
    EXPECT_NE(message.find(name), std::string::npos)
        << what << ": the message does not name " << name << ": " << message;
    EXPECT_NE(message.find("model in memory"), std::string::npos)
        << what << ": the message does not name the file: " << message;
    for (char c : message)
      EXPECT_FALSE(std::iscntrl(static_cast<unsigned char>(c))) << what << ": " << message;
  }
  template <class Damage>
  void expect_refused_after(const std::string& what, const std::string& name, Damage damage) {
    GgufBuilder bad = good_;
    damage(bad);
    expect_refused(bad.build(), what, name);
  }

  GgufBuilder good_;
  int cases_ = 0;
};

TEST_F(DamagedFiles, TheUndamagedOneOpens) {
  mote_model* model = nullptr;
  EXPECT_EQ(open_bytes(good_.build(), &model), MOTE_OK) << mote_last_error();
  good_.version = 2;
  EXPECT_EQ(open_bytes(good_.build(), &model), MOTE_OK) << mote_last_error();
}

TEST_F(DamagedFiles, CutShort) {
  size_t header = 0;
  const Bytes bytes = good_.build(&header);
  std::set<size_t> lengths;
  for (size_t n = 0; n < 80; ++n) lengths.insert(n);
  for (size_t n = 80; n < header; n += header / 97) lengths.insert(n);
  for (size_t n = header - 40; n < header + 40; ++n) lengths.insert(n);
  for (size_t n = header; n < bytes.size(); n += bytes.size() / 61) lengths.insert(n);
  lengths.insert(bytes.size() - 1);
  for (size_t n : lengths)
    expect_refused(Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n)),
                   "cut to " + std::to_string(n) + " bytes", n ? "" : "empty");
  EXPECT_GT(cases_, 250);
}

// The same through a mapped file.
TEST_F(DamagedFiles, CutShortOnDisk) {
  const Bytes bytes = good_.build();
  const std::string path = testing::TempDir() + "mote_damaged_files_test.gguf";
  for (size_t n : {size_t{0}, size_t{1}, size_t{23}, size_t{24}, size_t{4096}, bytes.size() / 2,
                   bytes.size() - 1}) {
    FILE* out = std::fopen(path.c_str(), "wb");
    ASSERT_NE(out, nullptr);
    ASSERT_EQ(std::fwrite(bytes.data(), 1, n, out), n);
    std::fclose(out);
    mote_model* model = nullptr;
    EXPECT_EQ(mote_model_open(path.c_str(), nullptr, &model), MOTE_ERROR_BAD_FILE) << n;
    EXPECT_EQ(model, nullptr);
    EXPECT_NE(std::string(mote_last_error()).find("mote_damaged_files_test.gguf"),
              std::string::npos)
        << mote_last_error();
  }
  std::remove(path.c_str());
}

TEST_F(DamagedFiles, Header) {
  for (const char* magic : {"GGUX", "\0\0\0\0", "FUGG", "ggml", "PK\x03\x04", "<htm"})
    expect_refused_after(std::string("magic ") + magic, "GGUF",
                         [&](GgufBuilder& b) { b.magic.assign(magic, 4); });
  for (uint32_t version : {0u, 1u, 4u, 0x03000000u, 0xffffffffu})
    expect_refused_after("version " + std::to_string(version), "version",
                         [&](GgufBuilder& b) { b.version = version; });
  const uint64_t keys = good_.keys.size(), tensors = good_.tensors.size();
  for (uint64_t count : {keys + 1, keys - 1, uint64_t{0}, uint64_t{1} << 32, uint64_t{1} << 63,
                         UINT64_MAX, UINT64_MAX / 8})
    expect_refused_after("key count " + std::to_string(count), "",
                         [&](GgufBuilder& b) { b.key_count = count; });
  for (uint64_t count : {tensors + 1, tensors - 1, uint64_t{1}, uint64_t{1} << 32,
                         uint64_t{1} << 63, UINT64_MAX, UINT64_MAX / 8})
    expect_refused_after("tensor count " + std::to_string(count), "tensor",
                         [&](GgufBuilder& b) { b.tensor_count = count; });
  Bytes tiny;  // one tensor with a dimension of zero, no keys
  for (char c : std::string("GGUF")) tiny.push_back(static_cast<uint8_t>(c));
  put<uint32_t>(&tiny, 3);
  put<uint64_t>(&tiny, 1);
  put<uint64_t>(&tiny, 0);
  put_text(&tiny, "t");
  put<uint32_t>(&tiny, 2);
  put<uint64_t>(&tiny, 1);
  put<uint64_t>(&tiny, 0);
  put<uint32_t>(&tiny, 0);
  put<uint64_t>(&tiny, 0);
  expect_refused(tiny, "a dimension of zero", "tensor t");
}

TEST_F(DamagedFiles, Alignment) {
  const auto damage = [&](const std::string& what, GgufType type, auto value) {
    expect_refused_after("alignment " + what, "general.alignment",
                         [&](GgufBuilder& b) { b.value("general.alignment", type, value); });
  };
  for (uint32_t bad : {0u, 1u, 3u, 33u, 0xffffffffu})
    damage(std::to_string(bad), GgufType::u32, bad);
  damage("as f32", GgufType::f32, 32.0f);
  damage("as u64", GgufType::u64, uint64_t{32});
  damage("as i8", GgufType::i8, int8_t{32});
  expect_refused_after("alignment as text", "general.alignment",
                       [](GgufBuilder& b) { b.text("general.alignment", "32"); });
  expect_refused_after("alignment 2^31", "",
                       [](GgufBuilder& b) { b.u32("general.alignment", 1u << 31); });
}

TEST_F(DamagedFiles, KeysAsTheFileFormatHasThem) {
  for (const GgufBuilder::Key& key : std::vector<GgufBuilder::Key>(good_.keys)) {
    for (uint32_t type : {13u, 255u, 0xffffffffu})
      expect_refused_after(key.name + " of type " + std::to_string(type), key.name,
                           [&](GgufBuilder& b) { b.key(key.name).type = type; });
    expect_refused_after(key.name + " twice", key.name,
                         [&](GgufBuilder& b) { b.keys.push_back(key); });
    // A text or array of this name whose length is beyond the file, or wraps.
    for (uint64_t length : {uint64_t{1} << 40, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 7}) {
      Bytes text, array;
      put(&text, length);
      expect_refused_after(key.name + " as a huge text", key.name,
                           [&](GgufBuilder& b) { b.set(key.name, GgufType::text, text); });
      for (GgufType element : {GgufType::u8, GgufType::text, GgufType::f64}) {
        array.clear();
        put(&array, static_cast<uint32_t>(element));
        put(&array, length);
        expect_refused_after(key.name + " as a huge array", key.name,
                             [&](GgufBuilder& b) { b.set(key.name, GgufType::array, array); });
      }
    }
    Bytes nested;
    put(&nested, static_cast<uint32_t>(GgufType::array));
    put<uint64_t>(&nested, 1);
    expect_refused_after(key.name + " as nested arrays", key.name,
                         [&](GgufBuilder& b) { b.set(key.name, GgufType::array, nested); });
    Bytes unknown;
    put<uint32_t>(&unknown, 77);
    put<uint64_t>(&unknown, 1);
    expect_refused_after(key.name + " as an array of an unknown type", key.name,
                         [&](GgufBuilder& b) { b.set(key.name, GgufType::array, unknown); });
  }
  expect_refused_after("an empty key", "key", [](GgufBuilder& b) { b.u32("", 1); });
  expect_refused_after("a key of 70000 bytes", "key",
                       [](GgufBuilder& b) { b.u32(std::string(70000, 'k'), 1); });
  expect_refused_after("a bool of 2", "odd.bool",
                       [](GgufBuilder& b) { b.value<uint8_t>("odd.bool", GgufType::boolean, 2); });
}

TEST_F(DamagedFiles, MissingKeys) {
  for (const char* name :
       {"general.architecture", "llama.block_count", "llama.context_length",
        "llama.embedding_length", "llama.feed_forward_length", "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon", "tokenizer.ggml.tokens", "tokenizer.ggml.merges"})
    expect_refused_after(std::string(name) + " is missing", name,
                         [&](GgufBuilder& b) { b.remove_key(name); });
}

TEST_F(DamagedFiles, NumbersThatCannotBe) {
  for (const char* name :
       {"llama.block_count", "llama.context_length", "llama.embedding_length",
        "llama.feed_forward_length", "llama.attention.head_count", "llama.attention.head_count_kv",
        "llama.rope.dimension_count", "llama.vocab_size"}) {
    expect_refused_after(std::string(name) + " 0", name, [&](GgufBuilder& b) { b.u32(name, 0); });
    expect_refused_after(std::string(name) + " 2^32 - 1", name,
                         [&](GgufBuilder& b) { b.u32(name, 0xffffffff); });
    expect_refused_after(std::string(name) + " 2^31", name,
                         [&](GgufBuilder& b) { b.u32(name, 1u << 31); });
    expect_refused_after(std::string(name) + " -1", name,
                         [&](GgufBuilder& b) { b.value<int32_t>(name, GgufType::i32, -1); });
    expect_refused_after(std::string(name) + " 2^40", name, [&](GgufBuilder& b) {
      b.value<uint64_t>(name, GgufType::u64, uint64_t{1} << 40);
    });
    expect_refused_after(std::string(name) + " as text", name,
                         [&](GgufBuilder& b) { b.text(name, "3"); });
    expect_refused_after(std::string(name) + " as f32", name,
                         [&](GgufBuilder& b) { b.f32(name, 3.0f); });
    expect_refused_after(std::string(name) + " as bool", name,
                         [&](GgufBuilder& b) { b.boolean(name, true); });
    expect_refused_after(std::string(name) + " as array", name, [&](GgufBuilder& b) {
      b.array<uint32_t>(name, GgufType::u32, {1, 2, 3});
    });
  }
  for (const char* name : {"llama.rope.freq_base", "llama.attention.layer_norm_rms_epsilon"}) {
    for (float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1.0f})
      expect_refused_after(std::string(name) + " " + std::to_string(bad), name,
                           [&](GgufBuilder& b) { b.f32(name, bad); });
    expect_refused_after(std::string(name) + " as text", name,
                         [&](GgufBuilder& b) { b.text(name, "1"); });
  }
  expect_refused_after("frequency base 0", "llama.rope.freq_base",
                       [](GgufBuilder& b) { b.f32("llama.rope.freq_base", 0.0f); });
}

TEST_F(DamagedFiles, NumbersThatDoNotFitEachOther) {
  const auto refuse = [&](const char* key, uint32_t value, const std::string& name) {
    expect_refused_after(std::string(key) + " " + std::to_string(value), name,
                         [&](GgufBuilder& b) { b.u32(key, value); });
  };
  refuse("llama.block_count", 4, "blk.3.");
  refuse("llama.embedding_length", 64, "");
  refuse("llama.embedding_length", 128, "");
  refuse("llama.feed_forward_length", 128, "blk.0.ffn_");
  refuse("llama.feed_forward_length", 192, "blk.0.ffn_");
  refuse("llama.attention.head_count", 5, "head_count");
  refuse("llama.attention.head_count", 3, "");
  refuse("llama.attention.head_count", 12, "");
  refuse("llama.attention.head_count_kv", 4, "head_count_kv");
  refuse("llama.attention.head_count_kv", 7, "head_count_kv");
  refuse("llama.attention.head_count_kv", 3, "blk.0.attn_k");
  refuse("llama.attention.head_count_kv", 1, "blk.0.attn_k");
  refuse("llama.rope.dimension_count", 15, "rope.dimension_count");
  refuse("llama.rope.dimension_count", 18, "rope.dimension_count");
  refuse("llama.vocab_size", 299, "token");
  refuse("llama.vocab_size", 301, "token_embd.weight");
  refuse("llama.attention.key_length", 32, "");
  refuse("llama.attention.value_length", 8, "value_length");
  refuse("llama.expert_count", 8, "expert_count");
}

TEST_F(DamagedFiles, UnknownThings) {
  const auto refuse = [&](const char* key, const char* text) {
    expect_refused_after(std::string(key) + " " + text, *text ? text : key,
                         [&](GgufBuilder& b) { b.text(key, text); });
  };
  for (const char* name : {"gpt9", "LLAMA", "llama2", ""}) refuse("general.architecture", name);
  expect_refused_after("architecture as number", "general.architecture",
                       [](GgufBuilder& b) { b.u32("general.architecture", 1); });
  for (const char* name : {"xyz", "GPT2"}) refuse("tokenizer.ggml.model", name);
  for (const char* name : {"no-such-pattern", "SMOLLM"}) refuse("tokenizer.ggml.pre", name);
  for (const char* name : {"quadratic", "longrope-2"})
    expect_refused_after(std::string("scaling ") + name, name, [&](GgufBuilder& b) {
      b.text("llama.rope.scaling.type", name);
      b.f32("llama.rope.scaling.factor", 2.0f);
    });
  for (uint32_t format : {4u, 5u, 33u, 36u, 1000u, 0xffffffffu})
    expect_refused_after(
        "tensor type " + std::to_string(format), "blk.1.attn_q.weight",
        [&](GgufBuilder& b) { b.find_tensor("blk.1.attn_q.weight").format = format; });
}

TEST_F(DamagedFiles, Vocabulary) {
  const std::vector<std::string> tokens = TinyModel::tokens();
  const auto refuse = [&](const std::string& what, const std::string& name, auto damage) {
    expect_refused_after(what, name, damage);
  };
  refuse("tokens as bytes", "tokenizer.ggml.tokens", [&](GgufBuilder& b) {
    b.array<uint8_t>("tokenizer.ggml.tokens", GgufType::u8,
                     std::vector<uint8_t>(tokens.size(), 65));
  });
  refuse("no tokens", "tokenizer.ggml.tokens",
         [](GgufBuilder& b) { b.texts("tokenizer.ggml.tokens", {}); });
  refuse("tokens as one text", "tokenizer.ggml.tokens",
         [](GgufBuilder& b) { b.text("tokenizer.ggml.tokens", "abc"); });
  refuse("too many tokens", "token", [&](GgufBuilder& b) {
    auto more = tokens;
    more.push_back("more");
    b.texts("tokenizer.ggml.tokens", more);
  });
  refuse("types too few", "tokenizer.ggml.token_type", [&](GgufBuilder& b) {
    b.array<int32_t>("tokenizer.ggml.token_type", GgufType::i32,
                     std::vector<int32_t>(tokens.size() - 1, 1));
  });
  refuse("types too many", "tokenizer.ggml.token_type", [&](GgufBuilder& b) {
    b.array<int32_t>("tokenizer.ggml.token_type", GgufType::i32,
                     std::vector<int32_t>(tokens.size() + 1, 1));
  });
  refuse("types of bytes", "tokenizer.ggml.token_type", [&](GgufBuilder& b) {
    b.array<uint8_t>("tokenizer.ggml.token_type", GgufType::u8,
                     std::vector<uint8_t>(tokens.size(), 1));
  });
  refuse("types of floats", "tokenizer.ggml.token_type", [&](GgufBuilder& b) {
    b.array<float>("tokenizer.ggml.token_type", GgufType::f32,
                   std::vector<float>(tokens.size(), 1.0f));
  });
  refuse("merges as numbers", "tokenizer.ggml.merges", [](GgufBuilder& b) {
    b.array<int32_t>("tokenizer.ggml.merges", GgufType::i32, {1, 2});
  });
  for (const char* merge : {"ab", "", "a"})
    refuse(std::string("merge ") + merge, "tokenizer.ggml.merges", [&](GgufBuilder& b) {
      b.texts("tokenizer.ggml.merges", {"h e", merge});
    });
  for (const char* name : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}) {
    refuse(std::string(name) + " too large", name, [&](GgufBuilder& b) { b.u32(name, 300); });
    refuse(std::string(name) + " huge", name, [&](GgufBuilder& b) { b.u32(name, 0xfffffffe); });
    refuse(std::string(name) + " as text", name, [&](GgufBuilder& b) { b.text(name, "1"); });
  }
  refuse("add_bos as text", "tokenizer.ggml.add_bos_token",
         [](GgufBuilder& b) { b.text("tokenizer.ggml.add_bos_token", "yes"); });
}

// Merges of texts that are no tokens can do no harm; the log names them.
TEST_F(DamagedFiles, MergesOfStrangersAreWarnedOf) {
  for (const char* merge : {"a b c", "q x"}) {
    GgufBuilder odd = good_;
    odd.texts("tokenizer.ggml.merges", {"h e", merge});
    const AlignedBytes bytes(odd.build());
    std::string log;
    mote_model_options options = model_options();
    options.log_user = &log;
    options.log = [](void* user, int32_t level, const char* message, size_t length) {
      if (level == MOTE_LOG_WARNING) static_cast<std::string*>(user)->append(message, length);
    };
    mote_model* model = nullptr;
    EXPECT_EQ(mote_model_open_memory(bytes.data(), bytes.size(), &options, &model), MOTE_OK)
        << mote_last_error();
    mote_model_close(model);
    EXPECT_NE(log.find("tokenizer.ggml.merges"), std::string::npos) << log;
    EXPECT_NE(log.find(merge), std::string::npos) << log;
  }
}

TEST_F(DamagedFiles, Tensors) {
  const auto all = good_.tensors;
  for (const GgufBuilder::TensorEntry& tensor : all) {
    const auto refuse = [&](const std::string& what, auto damage) {
      expect_refused_after(tensor.name + ": " + what, tensor.name,
                           [&](GgufBuilder& b) { damage(b, b.find_tensor(tensor.name)); });
    };
    using Entry = GgufBuilder::TensorEntry;
    refuse("missing", [&](GgufBuilder& b, Entry&) { b.remove_tensor(tensor.name); });
    refuse("twice", [&](GgufBuilder& b, Entry&) { b.tensors.push_back(tensor); });
    for (uint32_t n : {0u, 5u, 0xffffffffu})
      refuse("dimensions " + std::to_string(n), [&](GgufBuilder&, Entry& t) { t.dimensions = n; });
    for (uint64_t size :
         {uint64_t{0}, uint64_t{1} << 62, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 31})
      refuse("first dimension " + std::to_string(size),
             [&](GgufBuilder&, Entry& t) { t.shape[0] = size; });
    refuse("a wrapping product of dimensions", [](GgufBuilder&, Entry& t) {
      t.shape = {uint64_t{1} << 33, uint64_t{1} << 33, 2};
    });
    refuse("a product that wraps to the right size", [](GgufBuilder&, Entry& t) {
      t.shape = {t.shape[0], uint64_t{1} << 32, uint64_t{1} << 32};
    });
    refuse("one block less in a row", [](GgufBuilder&, Entry& t) { t.shape[0] -= 32; });
    refuse("a part of a block in a row, or one value less",
           [](GgufBuilder&, Entry& t) { t.shape[0] -= 1; });
    if (tensor.shape.size() == 2) {
      refuse("a row less", [](GgufBuilder&, Entry& t) { t.shape[1] -= 1; });
      refuse("a third dimension", [](GgufBuilder&, Entry& t) {
        t.shape = {t.shape[0], t.shape[1] / 2, 2};
      });
      refuse("turned", [](GgufBuilder&, Entry& t) {
        t.shape = {t.shape[1] / 32 * 32, t.shape[0] / 2};
        if (t.shape[0] == 96) t.shape[1] = 47;
      });
      refuse("a format without kernels",
             [](GgufBuilder&, Entry& t) { t.format = static_cast<uint32_t>(Format::i8); });
    } else {
      refuse("a norm in float16",
             [](GgufBuilder&, Entry& t) { t.format = static_cast<uint32_t>(Format::f16); });
    }
    refuse("misplaced by one", [](GgufBuilder&, Entry& t) { t.offset = 1; });
    for (uint64_t offset : {uint64_t{1} << 40, UINT64_MAX - 31, UINT64_MAX - 63, uint64_t{1} << 63})
      refuse("offset " + std::to_string(offset),
             [&](GgufBuilder&, Entry& t) { t.offset = offset; });
    if (&tensor != &all[0]) refuse("over the first", [](GgufBuilder&, Entry& t) { t.offset = 0; });
    expect_refused_after(tensor.name + ": huge name", "tensor", [&](GgufBuilder& b) {
      b.find_tensor(tensor.name).name_length = UINT64_MAX - 3;
    });
  }
  EXPECT_GT(cases_, 300);
}

// Whatever a byte becomes: an error, or a model that computes something.
TEST_F(DamagedFiles, RandomBytesNeverCrash) {
  size_t header = 0;
  const Bytes good = good_.build(&header);
  Random random(5);
  int refused = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    Bytes bytes = good;
    for (int i = random.between(1, 4); i > 0; --i) {
      const size_t at = trial % 10 == 0 ? random.below(static_cast<uint32_t>(bytes.size()))
                                        : random.below(static_cast<uint32_t>(header));
      bytes[at] = static_cast<uint8_t>(trial % 3 ? random.bits() : (random.bits() & 1 ? 0xff : 0));
    }
    const AlignedBytes aligned(bytes);
    mote_model* model = nullptr;
    const mote_model_options options = model_options();
    if (mote_model_open_memory(aligned.data(), aligned.size(), &options, &model) != MOTE_OK) {
      ++refused;
      EXPECT_EQ(model, nullptr);
      EXPECT_STRNE(mote_last_error(), "");
      continue;
    }
    mote_session* session = nullptr;
    const SessionOptions sizes(48, 16, 1);
    if (mote_session_create(model, &sizes, nullptr, 0, &session) == MOTE_OK) {
      const mote_message message = {text_of("user"), text_of("the caf\xc3\xa9 \xff 12")};
      mote_prompt prompt{};
      prompt.messages = &message;
      prompt.message_count = 1;
      generate(session, prompt, GenerateOptions(4));
      generate(session, prompt_of("hello the"), GenerateOptions(4));
      mote_session_destroy(session);
    }
    mote_model_close(model);
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace mote::test
