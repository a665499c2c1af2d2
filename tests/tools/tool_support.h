// Runs the built tool as its users do, and makes what its tests need: folders, models.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mote::test {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

// The tool's path; empty where it is not built.
std::string tool_path();
#define SKIP_WITHOUT_TOOL() \
  if (::mote::test::tool_path().empty()) GTEST_SKIP() << "the tool is not built"

struct ToolResult {
  int status = -1;  // 128 + n: ended by signal n
  std::string out, err;

  // A part of it lives as long as this result.
  Json& json() const {
    if (parsed.is_null()) parsed = Json::parse(out);
    return parsed;
  }
  std::vector<Json> json_lines() const;

  mutable Json parsed = nullptr;  // once asked for
};
// input: what it reads from standard input. environment: "NAME=value".
ToolResult run_tool(const Words& arguments, const std::string& input = "",
                    const Words& environment = {});

// Removed with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }
  // Writes a file, returns its path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

std::string read_all(const std::string& path);

// A small model with a byte-level tokenizer and a chat template, as a file.
std::string write_tiny_model(const TemporaryFolder& folder);

// Error of a failed run: exactly one line on stderr that begins with "mote: ", and the status.
void expect_failure(const ToolResult& result, int status, const std::string& what);

}  // namespace mote::test
