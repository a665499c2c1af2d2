#include "core/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace mote {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "mote-map-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  void expect_error(const std::string& name, mote_status code, const std::string& part) {
    MappedFile file;
    for (const uint32_t flags : {0u, uint32_t{MOTE_MODEL_READ}}) {
      EXPECT_EQ(file.open(path(name).c_str(), flags, allocator_).code(), code) << name;
      EXPECT_NE(std::string(last_error()).find(path(name)), std::string::npos) << last_error();
      EXPECT_NE(std::string(last_error()).find(part), std::string::npos) << last_error();
      EXPECT_EQ(file.data(), nullptr);
      EXPECT_EQ(file.size(), 0u);
    }
  }

  std::string folder_;
  Allocator allocator_;
};

TEST_F(MappedFileTest, AllWaysGiveTheSameBytes) {
  std::string content(300'001, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 + i / 256);
  const std::string name = write("model", content);
  for (const uint32_t flags :
       {0, int{MOTE_MODEL_READ}, int{MOTE_MODEL_PREFETCH}, MOTE_MODEL_READ | MOTE_MODEL_PREFETCH}) {
    MappedFile file;
    ASSERT_TRUE(file.open(name.c_str(), flags, allocator_).ok()) << last_error();
    ASSERT_EQ(file.size(), content.size());
    EXPECT_EQ(std::memcmp(file.data(), content.data(), content.size()), 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file.data()) % 64, 0u);
    EXPECT_EQ(allocator_.bytes_in_use(), flags & MOTE_MODEL_READ ? content.size() : 0);
    file.close();
    EXPECT_EQ(file.data(), nullptr);
    EXPECT_EQ(allocator_.bytes_in_use(), 0u);
  }
}

TEST_F(MappedFileTest, OpeningAgainClosesTheFirst) {
  MappedFile file;
  ASSERT_TRUE(file.open(write("a", "first").c_str(), MOTE_MODEL_READ, allocator_).ok());
  ASSERT_TRUE(file.open(write("b", "second!").c_str(), MOTE_MODEL_READ, allocator_).ok());
  EXPECT_EQ(file.size(), 7u);
  EXPECT_EQ(allocator_.bytes_in_use(), 7u);
  EXPECT_FALSE(file.open(path("none").c_str(), 0, allocator_).ok());
  EXPECT_EQ(allocator_.bytes_in_use(), 0u);
}

TEST_F(MappedFileTest, WhatIsNoFileIsSaidSo) {
  expect_error("missing", MOTE_ERROR_IO, "cannot open");
  write("empty", "");
  expect_error("empty", MOTE_ERROR_BAD_FILE, "empty");
  std::filesystem::create_directory(path("folder"));
  expect_error("folder", MOTE_ERROR_IO, "a directory");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_error("pipe", MOTE_ERROR_IO, "a pipe");  // and does not wait for a writer
  std::filesystem::create_symlink("/dev/null", path("device"));
  expect_error("device", MOTE_ERROR_IO, "a device");
  std::filesystem::create_symlink("/dev/zero", path("zeros"));
  expect_error("zeros", MOTE_ERROR_IO, "a device");
}

TEST_F(MappedFileTest, BadArguments) {
  MappedFile file;
  EXPECT_EQ(file.open(nullptr, 0, allocator_).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(file.open(write("a", "x").c_str(), 8, allocator_).code(), MOTE_ERROR_ARGUMENT);
  EXPECT_EQ(file.open_memory(nullptr, 10).code(), MOTE_ERROR_ARGUMENT);
}

TEST_F(MappedFileTest, AFileThatVanishesStaysReadable) {
  const std::string name = write("a", std::string(10000, 'z'));
  MappedFile file;
  ASSERT_TRUE(file.open(name.c_str(), 0, allocator_).ok());
  std::filesystem::remove(name);
  EXPECT_EQ(file.data()[9999], 'z');
}

TEST_F(MappedFileTest, NoMemoryIsAnError) {
  const mote_allocator nothing = {nullptr, [](void*, size_t, size_t) -> void* { return nullptr; },
                                  [](void*, void*, size_t) {}};
  Allocator allocator(&nothing);
  MappedFile file;
  const std::string name = write("a", "some bytes");
  EXPECT_EQ(file.open(name.c_str(), MOTE_MODEL_READ, allocator).code(), MOTE_ERROR_MEMORY);
  EXPECT_NE(std::string(last_error()).find(name), std::string::npos);
  EXPECT_TRUE(file.open(name.c_str(), 0, allocator).ok());
}

TEST_F(MappedFileTest, LocksOrSaysThatItMayNot) {
  const std::string name = write("a", std::string(100000, 'l'));
  for (const uint32_t flags : {int{MOTE_MODEL_LOCK}, MOTE_MODEL_LOCK | MOTE_MODEL_READ}) {
    MappedFile file;
    const Status status = file.open(name.c_str(), flags, allocator_);
    if (status.ok()) {
      EXPECT_EQ(file.data()[99999], 'l');
    } else {
      EXPECT_EQ(status.code(), MOTE_ERROR_IO);
      EXPECT_NE(std::string(last_error()).find("cannot lock"), std::string::npos);
      EXPECT_EQ(file.data(), nullptr);
    }
  }
  if (geteuid() == 0) return;  // root may lock what it likes
  rlimit before, none = {0, 0};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  none.rlim_max = before.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
  MappedFile file;
  EXPECT_EQ(file.open(name.c_str(), MOTE_MODEL_LOCK, allocator_).code(), MOTE_ERROR_IO);
  setrlimit(RLIMIT_MEMLOCK, &before);
}

TEST_F(MappedFileTest, CallersMemoryMustBeAligned) {
  alignas(64) static const uint8_t block[256] = {1, 2, 3};
  MappedFile file;
  for (size_t offset = 0; offset < 64; ++offset) {
    const Status status = file.open_memory(block + offset, 64);
    EXPECT_EQ(status.ok(), offset % 32 == 0) << offset;
    if (status.ok()) {
      EXPECT_EQ(file.data(), block + offset);
      EXPECT_EQ(file.size(), 64u);
    } else {
      EXPECT_EQ(status.code(), MOTE_ERROR_ARGUMENT);
      EXPECT_NE(std::string(last_error()).find("multiple of 32"), std::string::npos);
    }
  }
  EXPECT_EQ(file.open_memory(block, 0).code(), MOTE_ERROR_BAD_FILE);
}

}  // namespace
}  // namespace mote
