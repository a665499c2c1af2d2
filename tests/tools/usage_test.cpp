// Exit statuses, help and messages of the tool.
#include <sys/wait.h>

#include <cstdlib>

#include "tests/tools/tool_support.h"

namespace mote::test {
namespace {

class Usage : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_TOOL(); }
};

const Words kCommands = {"generate", "chat",  "tokenize", "detokenize", "template", "score",
                         "inspect",  "bench", "convert",  "dump",       "compare"};

TEST_F(Usage, VersionAndHelpGoToStdout) {
  const ToolResult version = run_tool({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, "mote 0.1.0\n");
  EXPECT_EQ(version.err, "");
  const ToolResult help = run_tool({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const std::string& command : kCommands)
    EXPECT_NE(help.out.find("  " + command + " "), std::string::npos) << command;
}

TEST_F(Usage, EveryCommandHasHelp) {
  for (const std::string& command : kCommands) {
    const ToolResult help = run_tool({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_NE(help.out.find("Usage: mote " + command), std::string::npos) << command;
    EXPECT_EQ(help.err, "") << command;
  }
}

TEST_F(Usage, WrongUsageIsStatusTwo) {
  expect_failure(run_tool({}), 2, "command");
  expect_failure(run_tool({"sing"}), 2, "sing");
  expect_failure(run_tool({"generate"}), 2, "--model");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "--loud"}), 2, "--loud");
  expect_failure(run_tool({"generate", "-m", "x"}), 2, "--file");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "--ids", "1"}), 2, "exactly one");
  expect_failure(run_tool({"generate", "-m", "x", "--ids", "1,b"}), 2, "\"b\"");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "--temp", "-1"}), 2, "--temp");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "--temp", "nan"}), 2, "--temp");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "--temp", ""}), 2, "--temp");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "-n", ""}), 2, "--max-tokens");
  expect_failure(run_tool({"bench", "-m", "x", "-t", "x"}), 2, "-t: expected");
  expect_failure(run_tool({"classify", "-m", "x", "--threshold", "nan", "y"}), 2, "--threshold");
  expect_failure(run_tool({"bench", "-m", "x", "-p", "0", "-n", "0"}), 2, "nothing to measure");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "--top-p", "1.5"}), 2, "--top-p");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "--kv", "q3"}), 2, "--kv");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "-n", "-3"}), 2, "--max-tokens");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "-t", "0"}), 2, "threads");
  for (const char* seed : {"-1", "+1", "1.5", "x", "", "18446744073709551616"})
    expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "--seed", seed}), 2, "--seed");
  expect_failure(run_tool({"generate", "-m", "x", "-p", "y", "--stop", ""}), 2, "--stop");
  expect_failure(run_tool({"generate", "-m", "x", "--ids", "1", "--system", "s"}), 2, "--system");
  expect_failure(run_tool({"tokenize", "-m", "x"}), 2, "text");
  expect_failure(run_tool({"tokenize", "-m", "x", "--none", "text"}), 2, "--none");
  expect_failure(run_tool({"detokenize", "-m", "x"}), 2, "--ids");
  expect_failure(run_tool({"template", "--messages", "x"}), 2, "--template");
  expect_failure(run_tool({"score", "-m", "x", "--file", "y", "--window", "1"}), 2, "--window");
  expect_failure(run_tool({"convert", "x", "-o", "y", "--type", "q9"}), 2, "q9");
  expect_failure(run_tool({"dump", "-m", "x", "-o", "y"}), 2, "--input");
}

TEST_F(Usage, FailuresAreStatusOneAndNameTheFile) {
  const Words commands[] = {{"generate", "-p", "x"},
                            {"chat"},
                            {"tokenize", "x"},
                            {"detokenize", "--ids", "1"},
                            {"score", "--file", "/dev/null"},
                            {"inspect"},
                            {"bench"},
                            {"dump", "--ids", "1", "-o", "/dev/null"}};
  for (Words words : commands) {
    words.insert(words.end(), {"-m", "/nowhere/model.gguf"});
    expect_failure(run_tool(words), 1, "/nowhere/model.gguf");
  }
  const ToolResult json = run_tool({"inspect", "-m", "/nowhere/model.gguf", "--json"});
  expect_failure(json, 1, "/nowhere/model.gguf");
  EXPECT_NE(json.json()["error"].get<std::string>().find("/nowhere"), std::string::npos);
}

TEST_F(Usage, AFullDiskIsAFailure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const std::string command = tool_path() + " --help > /dev/full 2> /dev/null";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace mote::test
