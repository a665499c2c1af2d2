#include "core/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/mapped_file.h"
#include "tests/core/gguf_bytes.h"

namespace mote {
namespace {

using test::GgufBytes;

class GgufTest : public testing::Test {
 protected:
  Status open(const GgufBytes& file) {
    bytes_ = file.bytes;
    return gguf_.open(bytes_.data(), bytes_.size(), "x.gguf", allocator_);
  }
  void expect_message(const Status& status, const std::string& message) {
    EXPECT_EQ(status.code(), MOTE_ERROR_BAD_FILE);
    EXPECT_EQ(std::string(last_error()), message);
  }

  Allocator allocator_;
  std::vector<uint8_t> bytes_;
  GgufFile gguf_;
};

TEST_F(GgufTest, ReadsWhatTheFileHolds) {
  for (const uint32_t version : {2u, 3u}) {
    ASSERT_TRUE(open(test::sample_file(version)).ok()) << last_error();
    EXPECT_EQ(gguf_.version(), version);
    EXPECT_EQ(gguf_.name(), "x.gguf");
    EXPECT_EQ(gguf_.alignment(), 32u);
    ASSERT_EQ(gguf_.keys().size(), 9u);
    EXPECT_EQ(gguf_.keys()[0].name, "general.architecture");
    EXPECT_EQ(gguf_.keys()[8].name, "scores");
    ASSERT_EQ(gguf_.tensors().size(), 2u);
    const Tensor* a = gguf_.find_tensor("a.weight");
    const Tensor* b = gguf_.find_tensor("b.weight");
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->format, Format::f32);
    EXPECT_EQ(a->dimensions, 2u);
    EXPECT_EQ(a->columns(), 8u);
    EXPECT_EQ(a->rows(), 2u);
    EXPECT_EQ(a->bytes, 64u);
    EXPECT_EQ(b->format, Format::q4_0);
    EXPECT_EQ(b->dimensions, 3u);
    EXPECT_EQ(b->values(), 128u);
    EXPECT_EQ(b->bytes, 72u);
    EXPECT_EQ(b->data, a->data + 64);
    EXPECT_EQ(b->data + 72, bytes_.data() + bytes_.size());
    EXPECT_EQ(gguf_.find_tensor("c.weight"), nullptr);
    EXPECT_EQ(gguf_.find_tensor(""), nullptr);
    EXPECT_EQ(gguf_.find("general"), nullptr);
  }
}

TEST_F(GgufTest, TypedAccess) {
  ASSERT_TRUE(open(test::sample_file()).ok());
  uint32_t number = 0;
  EXPECT_TRUE(gguf_.get_u32("llama.block_count", &number).ok());
  EXPECT_EQ(number, 2u);
  EXPECT_TRUE(gguf_.get_u32("absent", 77, &number).ok());
  EXPECT_EQ(number, 77u);
  float real = 0;
  EXPECT_TRUE(gguf_.get_f32("factor", &real).ok());
  EXPECT_EQ(real, 0.5f);
  EXPECT_TRUE(gguf_.get_f32("precise", &real).ok());
  EXPECT_EQ(real, 1e-5f);
  EXPECT_TRUE(gguf_.get_f32("small", &real).ok());
  EXPECT_EQ(real, -3.0f);
  EXPECT_TRUE(gguf_.get_f32("large", &real).ok());
  EXPECT_EQ(real, 0x1p40f);
  EXPECT_TRUE(gguf_.get_f32("absent", 2.5f, &real).ok());
  EXPECT_EQ(real, 2.5f);
  bool flag = false;
  EXPECT_TRUE(gguf_.get_bool("flag", false, &flag).ok());
  EXPECT_TRUE(flag);
  EXPECT_TRUE(gguf_.get_bool("absent", true, &flag).ok());
  EXPECT_TRUE(flag);
  std::string_view text;
  EXPECT_TRUE(gguf_.get_text("general.architecture", &text).ok());
  EXPECT_EQ(text, "llama");
  EXPECT_TRUE(gguf_.get_text("absent", "other", &text).ok());
  EXPECT_EQ(text, "other");
  const GgufKey* array = nullptr;
  EXPECT_TRUE(gguf_.get_array("tokens", GgufType::text, 3, &array).ok());
  EXPECT_TRUE(gguf_.get_array("tokens", GgufType::text, 0, &array).ok());
  EXPECT_EQ(array->bytes, 3u * 8 + 4);
  GgufTexts texts(*array);
  std::vector<std::string> seen;
  while (texts.next(&text)) seen.emplace_back(text);
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "", "ccc"}));
  EXPECT_FALSE(texts.next(&text));
  EXPECT_FALSE(GgufTexts().next(&text));
}

TEST_F(GgufTest, WrongTypesNameFileKeyExpectedAndFound) {
  ASSERT_TRUE(open(test::sample_file()).ok());
  uint32_t number = 5;
  float real = 5;
  bool flag = true;
  std::string_view text = "before";
  const GgufKey* array = nullptr;
  expect_message(gguf_.get_u32("absent", &number), "x.gguf: key absent is missing");
  expect_message(gguf_.get_u32("factor", &number),
                 "x.gguf: key factor: expected an integer, found f32");
  expect_message(gguf_.get_u32("flag", &number),
                 "x.gguf: key flag: expected an integer, found bool");
  expect_message(gguf_.get_u32("tokens", 1, &number),
                 "x.gguf: key tokens: expected an integer, found array of text");
  expect_message(gguf_.get_u32("small", &number),
                 "x.gguf: key small: expected an integer from 0 to 4294967295, found -3");
  expect_message(
      gguf_.get_u32("large", &number),
      "x.gguf: key large: expected an integer from 0 to 4294967295, found 1099511627776");
  expect_message(gguf_.get_f32("general.architecture", 1.0f, &real),
                 "x.gguf: key general.architecture: expected a number, found text");
  expect_message(gguf_.get_bool("small", false, &flag),
                 "x.gguf: key small: expected bool, found i8");
  expect_message(gguf_.get_text("large", &text), "x.gguf: key large: expected text, found u64");
  expect_message(gguf_.get_array("tokens", GgufType::f32, 3, &array),
                 "x.gguf: key tokens: expected array of f32, found array of text");
  expect_message(gguf_.get_array("flag", GgufType::boolean, 1, &array),
                 "x.gguf: key flag: expected array of bool, found bool");
  expect_message(gguf_.get_array("scores", GgufType::f32, 3, &array),
                 "x.gguf: key scores: expected 3 elements, found 2");
  EXPECT_EQ(number, 5u);
  EXPECT_EQ(real, 5.0f);
  EXPECT_EQ(text, "before");
  EXPECT_EQ(array, nullptr);
}

TEST_F(GgufTest, EveryIntegerTypeAtItsLimits) {
  GgufBytes file;
  file.header(0, 12);
  file.key("u8", 0).put<uint8_t>("", 255);
  file.key("i8", 1).put<int8_t>("", -128);
  file.key("u16", 2).put<uint16_t>("", 65535);
  file.key("i16", 3).put<int16_t>("", -32768);
  file.key("u32", 4).put<uint32_t>("", 4294967295u);
  file.key("i32", 5).put<int32_t>("", INT32_MIN);
  file.key("u64", 10).put<uint64_t>("", UINT64_MAX);
  file.key("i64", 11).put<int64_t>("", INT64_MIN);
  file.key("i64 fits", 11).put<int64_t>("", 4294967295);
  file.key("nan", 6).put<float>("", std::numeric_limits<float>::quiet_NaN());
  file.key("infinite", 6).put<float>("", -std::numeric_limits<float>::infinity());
  file.key("too large", 12).put<double>("", 1e39);
  ASSERT_TRUE(open(file).ok()) << last_error();
  uint32_t number = 0;
  EXPECT_TRUE(gguf_.get_u32("u8", &number).ok() && number == 255);
  EXPECT_TRUE(gguf_.get_u32("u16", &number).ok() && number == 65535);
  EXPECT_TRUE(gguf_.get_u32("u32", &number).ok() && number == 4294967295u);
  EXPECT_TRUE(gguf_.get_u32("i64 fits", &number).ok() && number == 4294967295u);
  EXPECT_FALSE(gguf_.get_u32("i8", &number).ok());
  EXPECT_FALSE(gguf_.get_u32("i16", &number).ok());
  EXPECT_FALSE(gguf_.get_u32("i32", &number).ok());
  EXPECT_FALSE(gguf_.get_u32("u64", &number).ok());
  EXPECT_NE(std::string(last_error()).find("found 18446744073709551615"), std::string::npos);
  EXPECT_FALSE(gguf_.get_u32("i64", &number).ok());
  EXPECT_NE(std::string(last_error()).find("found -9223372036854775808"), std::string::npos);
  float real = 0;
  EXPECT_TRUE(gguf_.get_f32("i64", &real).ok() && real == -0x1p63f);
  EXPECT_TRUE(gguf_.get_f32("u64", &real).ok() && real == 0x1p64f);
  EXPECT_FALSE(gguf_.get_f32("nan", &real).ok());
  EXPECT_FALSE(gguf_.get_f32("infinite", &real).ok());
  EXPECT_FALSE(gguf_.get_f32("too large", &real).ok());
}

TEST_F(GgufTest, AlignmentOfTheFileCounts) {
  for (const uint32_t alignment : {8u, 16u, 64u, 4096u}) {
    GgufBytes file;
    file.header(2, 1).key_u32("general.alignment", alignment);
    const uint64_t second = (16 + alignment - 1) / alignment * alignment;
    file.tensor("a", {4}, 0, 0).tensor("b", {4}, 0, second).align(alignment).data(second + 16);
    ASSERT_TRUE(open(file).ok()) << alignment << " " << last_error();
    EXPECT_EQ(gguf_.alignment(), alignment);
    EXPECT_EQ(gguf_.find_tensor("b")->data + 16, bytes_.data() + bytes_.size());
    EXPECT_EQ(static_cast<uint64_t>(gguf_.find_tensor("a")->data - bytes_.data()) % alignment, 0u);
  }
}

TEST_F(GgufTest, AFileWithoutTensorsNeedsNoPadding) {
  GgufBytes file;
  file.header(0, 1).key_u32("k", 1);
  EXPECT_TRUE(open(file).ok()) << last_error();
  GgufBytes empty;
  empty.header(0, 0);
  EXPECT_TRUE(open(empty).ok()) << last_error();
  EXPECT_EQ(gguf_.find("k"), nullptr);
}

TEST_F(GgufTest, TensorsMayStandInAnyOrderWithGaps) {
  GgufBytes file;
  file.header(3, 0)
      .tensor("c", {8}, 0, 128)
      .tensor("a", {8}, 0, 0)
      .tensor("b", {8}, 0, 64)
      .align()
      .data(160);
  ASSERT_TRUE(open(file).ok()) << last_error();
  EXPECT_EQ(gguf_.tensors()[0].name, "c");
  EXPECT_EQ(gguf_.find_tensor("c")->data, gguf_.find_tensor("a")->data + 128);
}

TEST_F(GgufTest, ManyKeysAndTensors) {
  GgufBytes file;
  const int count = 3000;
  file.header(count, count);
  for (int i = 0; i < count; ++i) file.key_u32("key." + std::to_string(i * 7919 % count), i);
  for (int i = 0; i < count; ++i)
    file.tensor("t." + std::to_string(i * 7907 % count), {8}, 0, i * 32);
  file.align().data(count * 32);
  ASSERT_TRUE(open(file).ok()) << last_error();
  for (int i = 0; i < count; ++i) {
    uint32_t value = 0;
    ASSERT_TRUE(gguf_.get_u32("key." + std::to_string(i * 7919 % count), &value).ok());
    ASSERT_EQ(value, static_cast<uint32_t>(i));
    ASSERT_EQ(gguf_.find_tensor("t." + std::to_string(i * 7907 % count)), &gguf_.tensors()[i]);
  }
}

TEST_F(GgufTest, OpenedAgainForgetsTheFirst) {
  ASSERT_TRUE(open(test::sample_file()).ok());
  GgufBytes file;
  file.header(0, 0);
  ASSERT_TRUE(open(file).ok());
  EXPECT_EQ(gguf_.keys().size(), 0u);
  EXPECT_EQ(gguf_.find_tensor("a.weight"), nullptr);
  gguf_ = GgufFile();
  EXPECT_EQ(allocator_.bytes_in_use(), 0u);
}

TEST_F(GgufTest, NoMemoryIsAStatusWhereverItHappens) {
  struct Budget {
    int calls;
  } budget{};
  const mote_allocator functions = {
      &budget,
      [](void* user, size_t bytes, size_t) -> void* {
        return static_cast<Budget*>(user)->calls-- > 0 ? std::malloc(bytes) : nullptr;
      },
      [](void*, void* memory, size_t) { std::free(memory); }};
  const GgufBytes file = test::sample_file();
  int failures = 0;
  for (int calls = 0;; ++calls) {
    budget.calls = calls;
    Allocator allocator(&functions);
    GgufFile gguf;
    const Status status = gguf.open(file.bytes.data(), file.bytes.size(), "x", allocator);
    if (status.ok()) break;
    EXPECT_EQ(status.code(), MOTE_ERROR_MEMORY);
    EXPECT_EQ(allocator.bytes_in_use(), 0u);
    ++failures;
  }
  EXPECT_GE(failures, 4);
}

TEST(GgufModels, RealFilesOpen) {
  const char* folder = std::getenv("MOTE_MODELS_DIR");
  if (!folder) GTEST_SKIP() << "MOTE_MODELS_DIR is not set";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    Allocator allocator;
    MappedFile file;
    ASSERT_TRUE(file.open(entry.path().c_str(), 0, allocator).ok()) << last_error();
    GgufFile gguf;
    ASSERT_TRUE(gguf.open(file.data(), file.size(), entry.path().native(), allocator).ok())
        << last_error();
    EXPECT_GT(gguf.tensors().size(), 0u);
    const GgufKey* tokens = nullptr;
    ASSERT_TRUE(gguf.get_array("tokenizer.ggml.tokens", GgufType::text, 0, &tokens).ok())
        << last_error();
    uint64_t count = 0;
    GgufTexts texts(*tokens);
    for (std::string_view text; texts.next(&text);) ++count;
    EXPECT_EQ(count, tokens->count);
    ++files;
  }
  if (files == 0) GTEST_SKIP() << "MOTE_MODELS_DIR holds no .gguf file";
}

}  // namespace
}  // namespace mote
