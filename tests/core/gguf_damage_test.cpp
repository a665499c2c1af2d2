// Damaged GGUF files: each is refused with a message that names the thing, or is harmless.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "core/gguf.h"
#include "tests/core/gguf_bytes.h"
#include "tests/support/guard_page.h"
#include "tests/support/random.h"

namespace mote {
namespace {

using test::GgufBytes;

// Reads all that an open file promises.
uint64_t touch(const GgufFile& gguf) {
  uint64_t sum = 0;
  const auto add = [&](const uint8_t* data, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i) sum += data[i];
  };
  for (const GgufKey& key : gguf.keys()) {
    add(key.data, key.bytes);
    if (key.type == GgufType::array && key.element == GgufType::text) {
      GgufTexts texts(key);
      for (std::string_view text; texts.next(&text);)
        add(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    }
    EXPECT_EQ(gguf.find(key.name), &key);
  }
  for (const Tensor& tensor : gguf.tensors()) {
    add(tensor.data, tensor.bytes);
    EXPECT_EQ(tensor.bytes, row_bytes(tensor.format, tensor.columns()) * tensor.rows());
    EXPECT_EQ(gguf.find_tensor(tensor.name), &tensor);
  }
  return sum;
}

// Opens a copy that ends at a page that must not be read, touches all of it, and counts memory.
struct Opened {
  mote_status code;
  std::string message;
  size_t most_memory;
};
struct Peak {
  size_t now = 0, most = 0;
};

Opened open(const std::vector<uint8_t>& bytes) {
  test::GuardedBytes copy(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  Peak peak;
  const mote_allocator functions = {&peak,
                                    [](void* user, size_t size, size_t) {
                                      auto* p = static_cast<Peak*>(user);
                                      p->now += size;
                                      p->most = std::max(p->most, p->now);
                                      return std::malloc(size);
                                    },
                                    [](void* user, void* memory, size_t size) {
                                      static_cast<Peak*>(user)->now -= size;
                                      std::free(memory);
                                    }};
  Allocator allocator(&functions);
  clear_error();
  Opened opened{};
  {
    GgufFile gguf;
    const Status status = gguf.open(copy.data(), copy.size(), "x.gguf", allocator);
    opened.code = status.code();
    opened.message = last_error();
    if (status.ok()) {
      touch(gguf);
    } else {
      EXPECT_EQ(opened.message.rfind("x.gguf: ", 0), 0u) << opened.message;
      EXPECT_GT(opened.message.size(), 15u);
      EXPECT_EQ(gguf.keys().size() + gguf.tensors().size(), 0u);
      EXPECT_EQ(gguf.find("general.architecture"), nullptr);
    }
  }
  EXPECT_EQ(peak.now, 0u);
  opened.most_memory = peak.most;
  return opened;
}

TEST(GgufDamage, CutShortAtEveryByte) {
  for (const uint32_t version : {2u, 3u}) {
    const GgufBytes file = test::sample_file(version);
    for (size_t length = 0; length < file.bytes.size(); ++length) {
      const Opened opened =
          open({file.bytes.begin(), file.bytes.begin() + static_cast<long>(length)});
      EXPECT_EQ(opened.code, MOTE_ERROR_BAD_FILE) << length;
      EXPECT_TRUE(opened.message.find("cut short") != std::string::npos ||
                  opened.message.find("more than the") != std::string::npos)
          << length << ": " << opened.message;
    }
    EXPECT_EQ(open(file.bytes).code, MOTE_OK);
  }
}

TEST(GgufDamage, EveryFieldWithEveryExtreme) {
  const GgufBytes file = test::sample_file();
  const uint64_t values[] = {0, 1, 2, 3, 5, 9, 13, 0x7f, 0xff, 0xffff, 0x10000, 0x7fffffff,
                             0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
                             0x8000000000000000,
                             // wrap around when 8, the position or a multiple of 4 or 18 is added
                             0xffffffffffffffff, 0xfffffffffffffff8, 0xffffffffffffff00,
                             0x4000000000000000, 0x0e38e38e38e38e39, 0x2000000000000001};
  int refused = 0, tried = 0;
  for (const test::Field& field : file.fields) {
    uint64_t original = 0;
    std::memcpy(&original, &file.bytes[field.at], field.bytes);
    std::vector<uint64_t> all(std::begin(values), std::end(values));
    for (const uint64_t step : {1, 8, 32})
      all.insert(all.end(), {original + step, original - step});
    for (const uint64_t value : all) {
      std::vector<uint8_t> bytes = file.bytes;
      std::memcpy(&bytes[field.at], &value, field.bytes);
      SCOPED_TRACE(field.label + " = " + std::to_string(value));
      const Opened opened = open(bytes);
      EXPECT_TRUE(opened.code == MOTE_OK || opened.code == MOTE_ERROR_BAD_FILE ||
                  opened.code == MOTE_ERROR_UNSUPPORTED)
          << opened.code;
      EXPECT_LT(opened.most_memory, 100'000u);
      refused += opened.code != MOTE_OK;
      ++tried;
    }
  }
  EXPECT_GT(tried, 1000);
  EXPECT_GT(refused, tried / 2);
}

TEST(GgufDamage, RandomBytes) {
  const GgufBytes file = test::sample_file();
  test::Random random(3);
  for (int round = 0; round < 5000; ++round) {
    std::vector<uint8_t> bytes = file.bytes;
    const uint32_t changes = 1 + random.below(4);
    for (uint32_t i = 0; i < changes; ++i)
      bytes[random.below(static_cast<uint32_t>(bytes.size()))] =
          static_cast<uint8_t>(random.bits());
    open(bytes);
  }
  for (int round = 0; round < 1000; ++round) {
    std::vector<uint8_t> bytes = random.bytes(random.below(200));
    const char start[] = "GGUF\3\0\0\0";
    for (size_t i = 0; i < bytes.size() && i < 8; ++i) bytes[i] = static_cast<uint8_t>(start[i]);
    open(bytes);
  }
}

// One file with one fault each, and what its message must say.
struct Case {
  std::string name;
  mote_status code;
  std::vector<std::string> parts;
  std::function<void(GgufBytes&)> build;
};

std::vector<uint8_t> of_text(const std::string& text) { return {text.begin(), text.end()}; }

GgufBytes& one_tensor(GgufBytes& f, const std::vector<uint64_t>& shape, uint32_t format,
                      uint64_t offset, size_t data) {
  return f.header(1, 0).tensor("blk.0.ffn_up.weight", shape, format, offset).align().data(data);
}

const std::vector<Case>& cases() {
  constexpr mote_status bad = MOTE_ERROR_BAD_FILE, unsupported = MOTE_ERROR_UNSUPPORTED;
  static const std::string tensor = "tensor blk.0.ffn_up.weight";
  constexpr uint64_t most = UINT64_MAX;
  static const std::vector<Case> all = {
      {"empty", bad, {"magic"}, [](GgufBytes&) {}},
      {"zeros",
       bad,
       {"not a GGUF file", "00 00 00 00"},
       [](GgufBytes& f) { f.bytes.resize(4096); }},
      {"lower case magic",
       bad,
       {"not a GGUF file"},
       [](GgufBytes& f) { f.bytes = of_text("gguf\3\1\1\1"); }},
      {"ggml", bad, {"before GGUF"}, [](GgufBytes& f) { f.bytes = of_text("lmgg............"); }},
      {"ggjt", bad, {"before GGUF"}, [](GgufBytes& f) { f.bytes = of_text("tjgg............"); }},
      {"lfs pointer",
       bad,
       {"Git LFS"},
       [](GgufBytes& f) { f.bytes = of_text("version https://git-lfs.github.com/spec/v1\n"); }},
      {"zip", bad, {"zip archive"}, [](GgufBytes& f) { f.bytes = of_text("PK\3\4...."); }},
      {"web page", bad, {"web page"}, [](GgufBytes& f) { f.bytes = of_text("<!DOCTYPE html>"); }},
      {"big-endian magic",
       unsupported,
       {"big-endian"},
       [](GgufBytes& f) {
         f.header(0, 0);
         std::swap(f.bytes[0], f.bytes[3]), std::swap(f.bytes[1], f.bytes[2]);
       }},
      {"big-endian version",
       unsupported,
       {"big-endian", "version 3"},
       [](GgufBytes& f) { f.header(0, 0, 0x03000000); }},
      {"big-endian version 1",
       unsupported,
       {"big-endian"},
       [](GgufBytes& f) { f.header(0, 0, 0x01000000); }},
      {"version 0", bad, {"version", "found 0"}, [](GgufBytes& f) { f.header(0, 0, 0); }},
      {"version 1",
       unsupported,
       {"version", "expected 2 or 3", "found 1"},
       [](GgufBytes& f) { f.header(0, 0, 1); }},
      {"version 4", unsupported, {"version", "found 4"}, [](GgufBytes& f) { f.header(0, 0, 4); }},
      {"key count huge",
       bad,
       {"number of keys", "18446744073709551615"},
       [](GgufBytes& f) { f.header(0, most).key_u32("k", 1); }},
      {"key count one too many",
       bad,
       {"number of keys"},
       [](GgufBytes& f) { f.header(0, 2).key_u32("k", 1); }},
      {"key count wraps by 14",
       bad,
       {"number of keys"},
       [](GgufBytes& f) { f.header(0, most / 14 + 2).key_u32("k", 1); }},
      {"tensor count huge", bad, {"number of tensors"}, [](GgufBytes& f) { f.header(most, 0); }},
      {"tensor count plausible then not",
       bad,
       {"number of tensors"},
       [](GgufBytes& f) { f.header(2, 1).key_text("k", std::string(100, 'x')); }},
      {"empty key name",
       bad,
       {"key name 0", "found 0"},
       [](GgufBytes& f) { f.header(0, 1).key_u32("", 1); }},
      {"long key name",
       bad,
       {"key name 0", "65535", "65536"},
       [](GgufBytes& f) { f.header(0, 1).key_u32(std::string(65536, 'k'), 1); }},
      {"key name length huge",
       bad,
       {"key name", "18446744073709551615"},
       [](GgufBytes& f) { f.header(0, 1).u64("", most).u64("", 0); }},
      {"key name length wraps",
       bad,
       {"key name"},
       [](GgufBytes& f) { f.header(0, 1).u64("", most - 31).u64("", 0); }},
      {"key type 13",
       bad,
       {"key k", "found 13"},
       [](GgufBytes& f) { f.header(0, 1).key("k", 13).u64("", 0); }},
      {"key type huge",
       bad,
       {"key k", "4294967295"},
       [](GgufBytes& f) { f.header(0, 1).key("k", UINT32_MAX).u64("", 0); }},
      {"bool of 2",
       bad,
       {"key flag", "bool", "found 2"},
       [](GgufBytes& f) { f.header(0, 1).key("flag", 7).put<uint8_t>("", 2); }},
      {"array of bool with 255",
       bad,
       {"key flags", "bool", "found 255"},
       [](GgufBytes& f) {
         f.header(0, 1).array("flags", 7, 2).put<uint8_t>("", 1).put<uint8_t>("", 255);
       }},
      {"text length huge",
       bad,
       {"text of key k"},
       [](GgufBytes& f) { f.header(0, 1).key("k", 8).u64("", most); }},
      {"array of arrays",
       unsupported,
       {"key k", "arrays of arrays"},
       [](GgufBytes& f) { f.header(0, 1).array("k", 9, 1).u32("", 4).u64("", 0); }},
      {"array of unknown",
       bad,
       {"key k", "found 99"},
       [](GgufBytes& f) { f.header(0, 1).array("k", 99, 0); }},
      {"array count huge",
       bad,
       {"array of key k"},
       [](GgufBytes& f) { f.header(0, 1).array("k", 4, most); }},
      {"array count wraps by 4",
       bad,
       {"array of key k"},
       [](GgufBytes& f) { f.header(0, 1).array("k", 4, uint64_t{1} << 62); }},
      {"array count wraps by 8",
       bad,
       {"array of key k"},
       [](GgufBytes& f) { f.header(0, 1).array("k", 10, (uint64_t{1} << 61) + 1).u64("", 0); }},
      {"array of text count huge",
       bad,
       {"array of key k"},
       [](GgufBytes& f) { f.header(0, 1).array("k", 8, most).u64("", 0); }},
      {"text in array too long",
       bad,
       {"a text in key k"},
       [](GgufBytes& f) { f.header(0, 1).array("k", 8, 1).u64("", 1); }},
      {"text in array wraps",
       bad,
       {"a text in key k"},
       [](GgufBytes& f) { f.header(0, 1).array("k", 8, 1).u64("", most - 3); }},
      {"key twice",
       bad,
       {"key k occurs twice"},
       [](GgufBytes& f) { f.header(0, 3).key_u32("k", 1).key_u32("j", 1).key_u32("k", 1); }},
      {"key twice with other type",
       bad,
       {"key k occurs twice"},
       [](GgufBytes& f) { f.header(0, 2).key_u32("k", 1).key_text("k", ""); }},
      {"alignment 0",
       bad,
       {"general.alignment", "found 0"},
       [](GgufBytes& f) { f.header(0, 1).key_u32("general.alignment", 0); }},
      {"alignment 1",
       bad,
       {"general.alignment", "found 1"},
       [](GgufBytes& f) { f.header(0, 1).key_u32("general.alignment", 1); }},
      {"alignment 3",
       bad,
       {"general.alignment", "found 3"},
       [](GgufBytes& f) { f.header(0, 1).key_u32("general.alignment", 3); }},
      {"alignment 48",
       bad,
       {"general.alignment", "found 48"},
       [](GgufBytes& f) { f.header(0, 1).key_u32("general.alignment", 48); }},
      {"alignment 2^31",
       bad,
       {"tensor data should begin at byte 2147483648"},
       [](GgufBytes& f) {
         f.header(1, 1).key_u32("general.alignment", 1u << 31).tensor("t", {8}, 0, 0).data(64);
       }},
      {"alignment 2^32-1",
       bad,
       {"general.alignment"},
       [](GgufBytes& f) { f.header(0, 1).key_u32("general.alignment", UINT32_MAX); }},
      {"alignment as text",
       bad,
       {"general.alignment", "expected u32", "found text"},
       [](GgufBytes& f) { f.header(0, 1).key_text("general.alignment", "32"); }},
      {"alignment as float",
       bad,
       {"general.alignment", "expected u32", "found f32"},
       [](GgufBytes& f) { f.header(0, 1).key("general.alignment", 6).put<float>("", 32.0f); }},
      {"alignment as u64",
       bad,
       {"general.alignment", "expected u32", "found u64"},
       [](GgufBytes& f) { f.header(0, 1).key("general.alignment", 10).u64("", 32); }},
      {"alignment as array",
       bad,
       {"general.alignment", "expected u32", "found array of u32"},
       [](GgufBytes& f) { f.header(0, 1).array("general.alignment", 4, 1).u32("", 32); }},
      {"tensor name empty",
       bad,
       {"tensor name 0"},
       [](GgufBytes& f) { f.header(1, 0).tensor("", {8}, 0, 0).align().data(32); }},
      {"tensor name length huge",
       bad,
       {"tensor name"},
       [](GgufBytes& f) { f.header(1, 0).u64("", most).data(100); }},
      {"tensor twice",
       bad,
       {"tensor t occurs twice"},
       [](GgufBytes& f) {
         f.header(2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).align().data(64);
       }},
      {"no dimensions",
       bad,
       {tensor, "1 to 4 dimensions", "found 0"},
       [](GgufBytes& f) { one_tensor(f, {}, 0, 0, 64); }},
      {"5 dimensions",
       bad,
       {tensor, "found 5"},
       [](GgufBytes& f) {
         one_tensor(f, {1, 1, 1, 1, 1}, 0, 0, 64);
       }},
      {"2^32-1 dimensions",
       bad,
       {"tensor t", "4294967295"},
       [](GgufBytes& f) { f.header(1, 0).text("", "t").u32("", UINT32_MAX).data(64); }},
      {"dimension 0",
       bad,
       {tensor, "dimension 0 is 0"},
       [](GgufBytes& f) {
         one_tensor(f, {0, 4}, 0, 0, 64);
       }},
      {"second dimension 0",
       bad,
       {"tensor t", "dimension 1 is 0"},
       [](GgufBytes& f) {
         f.header(1, 0).tensor("t", {1, 0}, 0, 0);
       }},  // 65 bytes in all
      {"dimensions wrap to 0",
       bad,
       {tensor, "dimension 1"},
       [](GgufBytes& f) {
         one_tensor(f, {uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0, 64);
       }},
      {"dimensions wrap to small",
       bad,
       {tensor, "dimension 3"},
       [](GgufBytes& f) {
         one_tensor(f, {8, 1, 3, 0xaaaaaaaaaaaaaab}, 0, 0, 64);
       }},
      {"dimension -1",
       bad,
       {tensor, "18446744073709551615"},
       [](GgufBytes& f) { one_tensor(f, {most}, 0, 0, 64); }},
      {"bytes wrap",
       bad,
       {tensor, "2^64 bytes"},
       [](GgufBytes& f) { one_tensor(f, {uint64_t{1} << 62}, 0, 0, 64); }},
      {"bytes wrap to small",
       bad,
       {tensor, "2^64 bytes"},
       [](GgufBytes& f) { one_tensor(f, {(uint64_t{1} << 61) + 8}, 27, 0, 64); }},
      {"type 4",
       unsupported,
       {tensor, "type 4"},
       [](GgufBytes& f) { one_tensor(f, {32}, 4, 0, 64); }},
      {"type 777",
       unsupported,
       {tensor, "type 777"},
       [](GgufBytes& f) { one_tensor(f, {32}, 777, 0, 64); }},
      {"type -1",
       unsupported,
       {tensor, "4294967295"},
       [](GgufBytes& f) { one_tensor(f, {32}, UINT32_MAX, 0, 64); }},
      {"rows not whole blocks",
       bad,
       {tensor, "q4_0 blocks of 32", "rows of 48"},
       [](GgufBytes& f) {
         one_tensor(f, {48, 2}, 2, 0, 64);
       }},
      {"rows not whole super-blocks",
       bad,
       {tensor, "q4_k blocks of 256", "rows of 128"},
       [](GgufBytes& f) {
         one_tensor(f, {128, 2}, 12, 0, 288);
       }},
      {"offset not aligned",
       bad,
       {tensor, "multiple of 32", "found 8"},
       [](GgufBytes& f) { one_tensor(f, {8}, 0, 8, 64); }},
      {"offset behind the end",
       bad,
       {tensor, "offset 64"},
       [](GgufBytes& f) { one_tensor(f, {8}, 0, 64, 64); }},
      {"offset huge",
       bad,
       {tensor, "18446744073709551584"},
       [](GgufBytes& f) { one_tensor(f, {8}, 0, most - 31, 64); }},
      {"data one byte short",
       bad,
       {tensor, "cut short"},
       [](GgufBytes& f) {
         one_tensor(f, {8, 2}, 0, 0, 63);
       }},
      {"no data", bad, {tensor, "cut short"}, [](GgufBytes& f) { one_tensor(f, {8}, 0, 0, 0); }},
      {"end within the padding",
       bad,
       {"tensor data should begin"},
       [](GgufBytes& f) { f.header(1, 0).tensor("t", {8}, 0, 0); }},
      {"overlap by all",
       bad,
       {"tensors a and b overlap"},
       [](GgufBytes& f) {
         f.header(2, 0).tensor("a", {8}, 0, 0).tensor("b", {8}, 0, 0).align().data(64);
       }},
      {"overlap by the end",
       bad,
       {"tensors b and a overlap"},
       [](GgufBytes& f) {
         f.header(2, 0).tensor("a", {8}, 0, 32).tensor("b", {9}, 0, 0).align().data(96);
       }},
      {"overlap inside",
       bad,
       {"tensors a and b overlap"},
       [](GgufBytes& f) {
         f.header(2, 0).tensor("a", {64}, 0, 0).tensor("b", {8}, 0, 96).align().data(256);
       }},
      {"hostile key name",
       bad,
       {"key \\x1b[2Jx\\xff", "found 13"},
       [](GgufBytes& f) { f.header(0, 1).key("\x1b[2Jx\xff", 13); }},
      {"hostile tensor name",
       unsupported,
       {"tensor a\\x0ab", "type 99"},
       [](GgufBytes& f) { f.header(1, 0).tensor("a\nb", {8}, 99, 0).align().data(64); }},
  };
  return all;
}

TEST(GgufDamage, EachFaultIsNamed) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    GgufBytes file;
    c.build(file);
    const Opened opened = open(file.bytes);
    EXPECT_EQ(opened.code, c.code) << opened.message;
    for (const std::string& part : c.parts)
      EXPECT_NE(opened.message.find(part), std::string::npos)
          << part << " is not in: " << opened.message;
    EXPECT_LT(opened.most_memory, 100'000u);
  }
  EXPECT_GE(cases().size(), 70u);
}

// A large file of zeros with large counts: what is allocated follows what was really read.
TEST(GgufDamage, HugeCountsTakeLittleMemory) {
  for (const bool keys : {false, true}) {
    GgufBytes file;
    file.header(keys ? 0 : 200'000, keys ? 500'000 : 0);
    file.bytes.resize(8 << 20);
    const Opened opened = open(file.bytes);
    EXPECT_EQ(opened.code, MOTE_ERROR_BAD_FILE);
    EXPECT_LT(opened.most_memory, 100'000u);
  }
}

TEST(GgufDamage, LongNamesAreCutInMessages) {
  GgufBytes file;
  file.header(0, 1).key(std::string(60'000, 'n'), 13).u64("", 0);
  const Opened opened = open(file.bytes);
  EXPECT_LT(opened.message.size(), 400u);
  EXPECT_NE(opened.message.find("found 13"), std::string::npos);
}

}  // namespace
}  // namespace mote
