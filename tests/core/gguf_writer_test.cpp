#include "core/gguf_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/mapped_file.h"
#include "tests/support/random.h"

namespace mote {
namespace {

class GgufWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "mote-write-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/out.gguf";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_, path_;
  Allocator allocator_;
};

// A process that is killed while it writes leaves nothing behind, where the file system can do
// that.
TEST_F(GgufWriterTest, KilledWhileWriting) {
  const int probe = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (probe < 0) GTEST_SKIP() << "the file system has no files without names";
  ::close(probe);
  const pid_t child = fork();
  if (child == 0) {
    OutputFile file(allocator_);
    const std::vector<uint8_t> bytes(1 << 20);
    if (file.create(path_.c_str()).ok() && file.write(bytes.data(), bytes.size()).ok())
      std::raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(files(), 0u);
}

#define EXPECT_OK(expression) EXPECT_TRUE((expression).ok()) << last_error()

void write_sample(GgufWriter& writer, const std::vector<uint8_t>& a,
                  const std::vector<uint8_t>& b) {
  EXPECT_OK(writer.add_text("general.architecture", "llama"));
  EXPECT_OK(writer.add_u32("u32", 7));
  EXPECT_OK(writer.add_i32("i32", -7));
  EXPECT_OK(writer.add_u64("u64", uint64_t{1} << 50));
  EXPECT_OK(writer.add_f32("f32", 1.5f));
  EXPECT_OK(writer.add_bool("bool", true));
  const std::string_view tokens[] = {"one", "", std::string_view("t\0o", 3)};
  EXPECT_OK(writer.add_texts("tokens", tokens, 3));
  EXPECT_OK(writer.add_texts("no tokens", nullptr, 0));
  const float scores[] = {0.5f, -1.0f};
  EXPECT_OK(writer.add_array("scores", GgufType::f32, scores, 2));
  const double precise = 1e-300;
  EXPECT_OK(writer.add_value("f64", GgufType::f64, &precise));
  EXPECT_OK(writer.add_tensor("a", Format::f32, {5, 3}));
  EXPECT_OK(writer.add_tensor("b", Format::q4_1, {64, 2, 1, 1}));
  EXPECT_OK(writer.append(a.data(), 7));
  EXPECT_OK(writer.append(a.data() + 7, a.size() - 7));
  EXPECT_OK(writer.append(nullptr, 0));
  EXPECT_OK(writer.append(b.data(), b.size()));
  EXPECT_OK(writer.finish());
}

void expect_sample(const GgufFile& gguf, const std::vector<uint8_t>& a,
                   const std::vector<uint8_t>& b) {
  EXPECT_EQ(gguf.version(), 3u);
  EXPECT_EQ(gguf.keys().size(), 10u);
  uint32_t u32 = 0;
  float f32 = 0;
  bool flag = false;
  std::string_view text;
  EXPECT_OK(gguf.get_text("general.architecture", &text));
  EXPECT_EQ(text, "llama");
  EXPECT_TRUE(gguf.get_u32("u32", &u32).ok() && u32 == 7);
  EXPECT_TRUE(gguf.get_f32("i32", &f32).ok() && f32 == -7.0f);
  EXPECT_TRUE(gguf.get_f32("f32", &f32).ok() && f32 == 1.5f);
  EXPECT_TRUE(gguf.get_bool("bool", false, &flag).ok() && flag);
  const GgufKey* key = nullptr;
  ASSERT_TRUE(gguf.get_array("tokens", GgufType::text, 3, &key).ok());
  GgufTexts texts(*key);
  EXPECT_TRUE(texts.next(&text) && text == "one");
  EXPECT_TRUE(texts.next(&text) && text.empty());
  EXPECT_TRUE(texts.next(&text) && text == std::string_view("t\0o", 3));
  ASSERT_TRUE(gguf.get_array("scores", GgufType::f32, 2, &key).ok());
  EXPECT_EQ(gguf.find("no tokens")->count, 0u);
  EXPECT_EQ(gguf.find("f64")->type, GgufType::f64);
  const Tensor *ta = gguf.find_tensor("a"), *tb = gguf.find_tensor("b");
  ASSERT_TRUE(ta && tb);
  EXPECT_EQ(ta->dimensions, 2u);
  EXPECT_EQ(tb->dimensions, 4u);
  EXPECT_EQ(std::vector<uint8_t>(ta->data, ta->data + ta->bytes), a);
  EXPECT_EQ(std::vector<uint8_t>(tb->data, tb->data + tb->bytes), b);
}

TEST_F(GgufWriterTest, ReadsBackFromFileAndMemory) {
  test::Random random;
  const std::vector<uint8_t> a = random.bytes(60), b = random.bytes(80);
  GgufWriter writer(allocator_);
  EXPECT_OK(writer.create(path_.c_str()));
  write_sample(writer, a, b);
  EXPECT_EQ(files(), 1u);
  MappedFile file;
  ASSERT_TRUE(file.open(path_.c_str(), 0, allocator_).ok());
  EXPECT_EQ(file.size() % 32, 0u);
  GgufFile gguf;
  ASSERT_TRUE(gguf.open(file.data(), file.size(), path_, allocator_).ok()) << last_error();
  expect_sample(gguf, a, b);

  GgufWriter in_memory(allocator_);
  EXPECT_OK(in_memory.create_in_memory());
  write_sample(in_memory, a, b);
  EXPECT_EQ(content(), std::string(reinterpret_cast<const char*>(in_memory.memory()),
                                   in_memory.memory_bytes()));
}

TEST_F(GgufWriterTest, CopiesKeysOfEveryType) {
  GgufWriter first(allocator_), second(allocator_);
  EXPECT_OK(first.create_in_memory());
  const uint64_t number = 0x8877665544332211;
  for (uint32_t i = 0; i <= 12; ++i) {
    const auto type = static_cast<GgufType>(i);
    if (type == GgufType::text || type == GgufType::array) continue;
    const uint64_t value = type == GgufType::boolean ? 1 : number;
    EXPECT_OK(first.add_value(std::string("value ") + type_name(type), type, &value));
    const uint64_t values[2] = {type == GgufType::boolean ? 0 : number, 0};
    EXPECT_OK(first.add_array(std::string("array ") + type_name(type), type, values, 2));
  }
  EXPECT_OK(first.add_text("text", "some text"));
  const std::string_view texts[] = {"x", "yy"};
  EXPECT_OK(first.add_texts("texts", texts, 2));
  EXPECT_OK(first.finish());
  GgufFile gguf;
  ASSERT_TRUE(gguf.open(first.memory(), first.memory_bytes(), "first", allocator_).ok())
      << last_error();
  EXPECT_OK(second.create_in_memory());
  for (const GgufKey& key : gguf.keys()) EXPECT_OK(second.copy_key(key));
  GgufKey alignment = gguf.keys()[0];
  alignment.name = "general.alignment";
  EXPECT_OK(second.copy_key(alignment));
  EXPECT_OK(second.finish());
  ASSERT_EQ(second.memory_bytes(), first.memory_bytes());
  EXPECT_EQ(std::memcmp(first.memory(), second.memory(), first.memory_bytes()), 0);
}

TEST_F(GgufWriterTest, AnUnfinishedFileNeverStays) {
  std::ofstream(path_) << "what was there before";
  {
    GgufWriter writer(allocator_);
    EXPECT_OK(writer.create(path_.c_str()));
    EXPECT_OK(writer.add_tensor("a", Format::f32, {1 << 20}));
    const std::vector<uint8_t> data(1 << 20);
    EXPECT_OK(writer.append(data.data(), data.size()));
    EXPECT_EQ(content(), "what was there before");
    EXPECT_EQ(writer.finish().code(), MOTE_ERROR_ARGUMENT);
    EXPECT_NE(std::string(last_error()).find("tensor a: expected 4194304 bytes, found 1048576"),
              std::string::npos)
        << last_error();
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(content(), "what was there before");
  GgufWriter writer(allocator_);
  EXPECT_OK(writer.create(path_.c_str()));
  EXPECT_OK(writer.finish());
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(content().substr(0, 4), "GGUF");
}

TEST_F(GgufWriterTest, ALinkStaysALink) {
  std::ofstream(path_) << "what was there before";
  const std::string link = path_ + ".link";
  std::filesystem::create_symlink(path_, link);
  GgufWriter writer(allocator_);
  EXPECT_OK(writer.create(link.c_str()));
  EXPECT_OK(writer.finish());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(content().substr(0, 4), "GGUF");
  EXPECT_EQ(writer.create("").code(), MOTE_ERROR_ARGUMENT);
}

TEST_F(GgufWriterTest, WhatOnlySomeMayReadStaysSo) {
  using std::filesystem::perms;
  const perms few = perms::owner_read | perms::owner_write | perms::group_read;
  std::ofstream(path_) << "before";
  std::filesystem::permissions(path_, few);
  GgufWriter writer(allocator_);
  EXPECT_OK(writer.create(path_.c_str()));
  EXPECT_OK(writer.finish());
  EXPECT_EQ(content().substr(0, 4), "GGUF");
  EXPECT_EQ(std::filesystem::status(path_).permissions(), few);
}

TEST_F(GgufWriterTest, TwoWritersOfOneNameDoNotMix) {
  GgufWriter first(allocator_), second(allocator_);
  EXPECT_OK(first.create(path_.c_str()));
  EXPECT_OK(second.create(path_.c_str()));
  EXPECT_OK(first.add_u32("k", 1));
  EXPECT_OK(second.add_text("k", "two"));
  EXPECT_OK(second.finish());
  EXPECT_OK(first.finish());
  EXPECT_EQ(files(), 1u);
}

TEST_F(GgufWriterTest, MemoryStaysSmallForALargeFile) {
  GgufWriter writer(allocator_);
  EXPECT_OK(writer.create(path_.c_str()));
  EXPECT_OK(writer.add_tensor("large", Format::f32, {1024, 4096}));
  std::vector<uint8_t> row(4096, 3);
  size_t most = 0;
  for (int i = 0; i < 4096; ++i) {
    EXPECT_OK(writer.append(row.data(), row.size()));
    most = std::max(most, allocator_.bytes_in_use());
  }
  EXPECT_OK(writer.finish());
  EXPECT_LT(most, size_t{1} << 20);
  EXPECT_GT(std::filesystem::file_size(path_), size_t{16} << 20);
}

TEST_F(GgufWriterTest, WrongUseIsAnArgumentError) {
  GgufWriter writer(allocator_);
  EXPECT_EQ(writer.add_u32("k", 1).code(), MOTE_ERROR_ARGUMENT) << "before create";
  EXPECT_EQ(writer.append("x", 1).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.finish().code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.create(nullptr).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_OK(writer.create_in_memory());
  EXPECT_OK(writer.add_u32("k", 1));
  EXPECT_EQ(writer.add_u32("k", 1).code(), MOTE_ERROR_ARGUMENT) << "twice";
  EXPECT_EQ(writer.add_u32("", 1).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.add_u32(std::string(65536, 'k'), 1).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.add_u32("general.alignment", 64).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.add_value("t", GgufType::text, "x").code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.add_array("t", GgufType::array, "x", 1).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.add_array("t", GgufType::u64, "x", UINT64_MAX / 4).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_OK(writer.add_tensor("w", Format::f32, {2}));
  EXPECT_EQ(writer.add_tensor("w", Format::f32, {2}).code(), MOTE_ERROR_ARGUMENT) << "twice";
  EXPECT_EQ(writer.add_tensor("v", Format::f32, {}).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.add_tensor("v", Format::f32, {1, 1, 1, 1, 1}).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.add_tensor("v", Format::f32, {2, 0}).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.add_tensor("v", Format::f32, {uint64_t{1} << 40, uint64_t{1} << 40}).code(),
            MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.add_tensor("v", Format::q4_0, {33}).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(writer.append("123456789", 9).code(), MOTE_ERROR_ARGUMENT)
      << "more than the tensor has";
  EXPECT_EQ(writer.add_u32("late", 1).code(), MOTE_ERROR_ARGUMENT) << "after data";
  EXPECT_OK(writer.append("12345678", 8));
  EXPECT_EQ(writer.append("x", 1).code(), MOTE_ERROR_ARGUMENT) << "after the last tensor";
  EXPECT_OK(writer.finish());
  EXPECT_EQ(writer.finish().code(), MOTE_ERROR_ARGUMENT) << "twice";
  GgufFile gguf;
  EXPECT_TRUE(gguf.open(writer.memory(), writer.memory_bytes(), "x", allocator_).ok())
      << last_error();
  EXPECT_EQ(gguf.keys().size(), 1u);
}

TEST_F(GgufWriterTest, PlacesThatCannotBeWritten) {
  GgufWriter writer(allocator_);
  EXPECT_EQ(writer.create((folder_ + "/no/such/folder.gguf").c_str()).code(), MOTE_ERROR_IO);
  EXPECT_NE(std::string(last_error()).find("/no/such/folder.gguf"), std::string::npos);
  EXPECT_EQ(writer.create(folder_.c_str()).code(), MOTE_ERROR_IO);
  EXPECT_EQ(writer.create("/dev/null").code(), MOTE_ERROR_IO);
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(writer.add_u32("k", 1).code(), MOTE_ERROR_ARGUMENT);
}

// A limit on the size of files stands in for a full disk: write() fails in the same way.
TEST_F(GgufWriterTest, FullDiskIsAStatusThatNamesTheFile) {
  std::ofstream(path_) << "before";
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 3 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  {
    GgufWriter writer(allocator_);
    EXPECT_OK(writer.create(path_.c_str()));
    EXPECT_OK(writer.add_tensor("a", Format::f32, {4 << 20}));
    const std::vector<uint8_t> piece(1 << 16);
    Status status;
    for (int i = 0; i < 256 && status.ok(); ++i) status = writer.append(piece.data(), piece.size());
    EXPECT_EQ(status.code(), MOTE_ERROR_IO);
    EXPECT_NE(std::string(last_error()).find(path_), std::string::npos) << last_error();
    EXPECT_FALSE(writer.append(piece.data(), piece.size()).ok());
    EXPECT_FALSE(writer.finish().ok());
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(content(), "before");
}

TEST_F(GgufWriterTest, NoMemoryLeavesNoFile) {
  struct Budget {
    int calls;
  } budget{};
  const mote_allocator functions = {
      &budget,
      [](void* user, size_t bytes, size_t) -> void* {
        return static_cast<Budget*>(user)->calls-- > 0 ? std::malloc(bytes) : nullptr;
      },
      [](void*, void* memory, size_t) { std::free(memory); }};
  Allocator allocator(&functions);
  bool finished = false;
  for (int calls = 0; !finished; ++calls) {
    ASSERT_LT(calls, 100);
    budget.calls = calls;
    GgufWriter writer(allocator);
    const std::string text(10000, 't');
    const auto all = [&]() -> Status {
      MOTE_TRY(writer.create(path_.c_str()));
      MOTE_TRY(writer.add_text("a", text));
      MOTE_TRY(writer.add_text("b", text));
      MOTE_TRY(writer.add_tensor("t", Format::f32, {2}));
      MOTE_TRY(writer.append("12345678", 8));
      return writer.finish();
    };
    const Status status = all();
    finished = status.ok();
    if (!finished) {
      EXPECT_EQ(status.code(), MOTE_ERROR_MEMORY) << last_error();
      EXPECT_FALSE(writer.finish().ok() && std::filesystem::file_size(path_) < 20000);
      writer.discard();
      if (files() != 0) std::filesystem::remove(path_);
    }
  }
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace mote
