// A folder of goldens/tiny, converted by the tool: the ones in tests/data/tiny, or all of them
// where MOTE_SHARED_DIR names a folder with goldens.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/safetensors.h"

namespace mote::test {

inline std::string shell_word(const std::string& text) { return "'" + text + "'"; }
inline const std::string& tool_path() {
  static const std::string path = MOTE_BINARY_DIR "/tools/mote";
  return path;
}
// Where the tool is of another processor the build names an emulator.
inline std::string run_tool() { return MOTE_EMULATOR " " + shell_word(tool_path()); }

// max |a - b| over max |b|.
inline double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!std::isfinite(a[i])) return HUGE_VAL;
    difference = std::max(difference, std::fabs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
  }
  return difference / largest;
}

// Empty: not there.
inline std::string golden_folder(const std::string& name) {
  const char* shared = std::getenv("MOTE_SHARED_DIR");
  for (const std::string& base : {shared ? std::string(shared) + "/goldens/tiny/" : std::string(),
                                  std::string(MOTE_TEST_DATA "/tiny/")})
    if (!base.empty() && std::filesystem::exists(base + name + "/golden.safetensors"))
      return base + name;
  return "";
}

class TinyFolder : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = golden_folder(GetParam());
    if (folder_.empty())
      GTEST_SKIP() << "MOTE_SHARED_DIR names no folder with goldens/tiny/" << GetParam();
    if (!std::filesystem::exists(tool_path())) GTEST_SKIP() << "the command line tool is not built";
    file_ = testing::TempDir() + "mote_tiny_" + GetParam() + "_" + std::to_string(::getpid());
    convert("f32");
    golden_ = SafeTensors(folder_ + "/golden.safetensors");
    for (int64_t length : golden_["lengths"].longs())
      lengths_.push_back(static_cast<size_t>(length));
    const auto& ids = golden_["input_ids"];
    const std::vector<int32_t> all = ids.ints();
    width_ = static_cast<size_t>(ids.shape[1]);
    for (size_t s = 0; s < lengths_.size(); ++s)
      sequences_.emplace_back(all.begin() + static_cast<ptrdiff_t>(s * width_),
                              all.begin() + static_cast<ptrdiff_t>(s * width_ + lengths_[s]));
  }
  void TearDown() override {
    for (const char* ending : {".gguf", ".log", ".out"}) std::remove((file_ + ending).c_str());
  }
  void convert(const std::string& type) {
    run("convert " + shell_word(folder_) + " -o " + shell_word(file_ + ".gguf") + " --type " +
        type);
  }
  void run(const std::string& arguments) {
    const std::string command = run_tool() + " " + arguments + " 2>" + shell_word(file_ + ".log");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }

  std::string folder_, file_;
  SafeTensors golden_;
  size_t width_ = 0;
  std::vector<size_t> lengths_;
  std::vector<std::vector<int32_t>> sequences_;
};

inline std::string tiny_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace mote::test
