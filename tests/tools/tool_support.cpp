#include "tests/tools/tool_support.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/support/tiny_model.h"

namespace mote::test {
namespace {

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string tool_path() {
  const std::string path = MOTE_BINARY_DIR "/tools/mote";
  return access(path.c_str(), X_OK) == 0 ? path : "";
}

std::vector<Json> ToolResult::json_lines() const {
  std::vector<Json> lines;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

ToolResult run_tool(const Words& arguments, const std::string& input, const Words& environment) {
  const TemporaryFolder folder;
  std::string command = "env";
  for (const std::string& variable : environment) command += " " + quoted(variable);
  command += " " + quoted(tool_path());
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  command += " < " + quoted(folder.write("in", input)) + " > " + quoted(folder.path("out")) +
             " 2> " + quoted(folder.path("err"));
  const int status = std::system(command.c_str());
  ToolResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_all(folder.path("out"));
  result.err = read_all(folder.path("err"));
  return result;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "mote_test_XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make a folder: " + pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  std::ofstream file(path(name), std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path(name));
  return path(name);
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string write_tiny_model(const TemporaryFolder& folder) {
  const Bytes bytes = TinyModel().bytes();
  return folder.write("tiny.gguf", std::string(bytes.begin(), bytes.end()));
}

void expect_failure(const ToolResult& result, int status, const std::string& what) {
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.err.rfind("mote: ", 0), 0u) << result.err;
  EXPECT_NE(result.err.find(what), std::string::npos)
      << "expected \"" << what << "\" in: " << result.err;
}

}  // namespace mote::test
