// generate, chat, score, bench and inspect, on a small random model.
#include <fcntl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/support/tiny_model.h"
#include "tests/tools/tool_support.h"

namespace mote::test {
namespace {

class Generate : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_TOOL();
    model_ = write_tiny_model(folder_);
  }
  ToolResult run(const std::string& command, Words words, const std::string& input = "") {
    words.insert(words.begin(), {command, "-m", model_});
    return run_tool(words, input);
  }

  TemporaryFolder folder_;
  std::string model_;
};

TEST_F(Generate, JsonHasEveryField) {
  const ToolResult result =
      run("generate", {"-p", "the sea", "-n", "12", "--ignore-eos", "--json", "-t", "2"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json json = result.json();
  EXPECT_TRUE(json["text"].is_string());
  EXPECT_EQ(json["tokens"].size(), 12u);
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["generated_tokens"], 12);
  EXPECT_GT(json["prompt_tokens"].get<int>(), 3);
  EXPECT_EQ(json["threads"], 2);
  for (const char* field : {"load_ms", "prefill_ms", "decode_ms"})
    EXPECT_GT(json[field].get<double>(), 0) << field;
}

TEST_F(Generate, TextIsTheJsonsTextAndTokensDetokenizeToIt) {
  const Words words = {"-p", "the sea", "-n", "20", "--ignore-eos"};
  Words with_json = words;
  with_json.push_back("--json");
  const Json json = run("generate", with_json).json();
  const ToolResult plain = run("generate", words);
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(plain.out, json["text"].get<std::string>() + "\n");
  EXPECT_EQ(plain.err, "");
  std::string ids;
  for (const Json& id : json["tokens"])
    ids += (ids.empty() ? "" : ",") + std::to_string(id.get<int>());
  EXPECT_EQ(run("detokenize", {"--ids", ids, "--skip-special", "--json"}).json()["text"],
            json["text"]);
}

// How many guesses there are depends on times; that nothing else changes does not.
TEST_F(Generate, SpeculatingGivesTheSameTokens) {
  const std::string prompt = "one two three four, one two three four, one two three four, one";
  Words words = {"-p", prompt, "--raw", "-n", "40", "--ignore-eos", "--json"};
  const Json plain = run("generate", words).json();
  EXPECT_EQ(plain["drafted_tokens"], 0);
  EXPECT_EQ(plain["accepted_tokens"], 0);
  words.insert(words.end(), {"--speculate", "7"});
  const Json json = run("generate", words).json();
  EXPECT_EQ(json["tokens"], plain["tokens"]);
  EXPECT_EQ(json["text"], plain["text"]);
  EXPECT_LE(json["accepted_tokens"].get<int>(), json["drafted_tokens"].get<int>());
  expect_failure(run("generate", {"-p", "x", "--speculate", "8"}), 2, "--speculate");
}

TEST_F(Generate, PromptComesFromStandardInputOrAFile) {
  const std::string expected = run("generate", {"-p", "of the sea\n", "-n", "9"}).out;
  EXPECT_EQ(run("generate", {"-p", "-", "-n", "9"}, "of the sea\n").out, expected);
  EXPECT_EQ(run("generate", {"--file", folder_.write("prompt", "of the sea\n"), "-n", "9"}).out,
            expected);
}

TEST_F(Generate, TemplateIsTheIdsOfItsText) {
  const std::string text =
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nthe "
      "sea<|im_end|>\n<|im_start|>assistant\n";
  const Json ids = run("tokenize", {"-p", text, "--special", "--json"}).json()["ids"];
  std::string list = ids.dump();
  const Json by_ids = run("generate", {"--ids", list, "-n", "10", "--json"}).json();
  const Json by_template =
      run("generate", {"-p", "the sea", "--system", "Be brief.", "-n", "10", "--json"}).json();
  const Json by_text =
      run("generate", {"-p", text, "--raw", "--special", "-n", "10", "--json"}).json();
  EXPECT_EQ(by_ids["tokens"], by_template["tokens"]);
  EXPECT_EQ(by_ids["tokens"], by_text["tokens"]);
  const Json raw = run("generate", {"-p", "the sea", "--raw", "-n", "10", "--json"}).json();
  EXPECT_EQ(raw["prompt_tokens"], run("tokenize", {"the sea", "--json"}).json()["ids"].size());
}

TEST_F(Generate, StopsAtTexts) {
  const std::string whole =
      run("generate", {"-p", "the sea", "-n", "30", "--ignore-eos", "--json"}).json()["text"];
  // A piece of ASCII from the middle, so that the stop text is whole characters.
  size_t at = whole.size() / 2;
  while (at < whole.size() && static_cast<unsigned char>(whole[at]) >= 0x80) ++at;
  ASSERT_LT(at, whole.size());
  const std::string stop = whole.substr(at, 1);
  const Json json = run("generate", {"-p", "the sea", "-n", "30", "--ignore-eos", "--json",
                                     "--stop", "never said", "--stop", stop})
                        .json();
  EXPECT_EQ(json["finish_reason"], "stop");
  EXPECT_EQ(json["text"], whole.substr(0, whole.find(stop)));
}

TEST_F(Generate, ReasonsToEnd) {
  const Json full =
      run("generate", {"-p", "the sea", "-n", "0", "--ignore-eos", "--json", "--ctx", "64"}).json();
  EXPECT_EQ(full["finish_reason"], "capacity");
  EXPECT_EQ(full["prompt_tokens"].get<size_t>() + full["tokens"].size(), 64u);
  const Json late =
      run("generate", {"-p", "the sea", "-n", "0", "--ignore-eos", "--json", "--deadline-ms", "1"})
          .json();
  EXPECT_EQ(late["finish_reason"], "deadline");
  // The largest seed there is, and the smallest.
  for (const char* seed : {"18446744073709551615", "0"})
    EXPECT_EQ(run("generate", {"-p", "x", "-n", "2", "--temp", "1", "--seed", seed}).status, 0);
  expect_failure(run("generate", {"-p", std::string(4000, 'x'), "--ctx", "32"}), 1, "32");
  expect_failure(run("generate", {"-p", "x", "--ctx", "5000"}), 1, "1024");
}

TEST_F(Generate, NoTokenizerMeansIds) {
  const std::string folder = MOTE_TEST_DATA "/tiny/llama";
  const std::string out = folder_.path("llama.gguf");
  ASSERT_EQ(run_tool({"convert", folder, "-o", out}).status, 0);
  const Json json = run_tool({"generate", "-m", out, "--ids", "1,5,9", "-n", "4", "--json"}).json();
  EXPECT_TRUE(json["text"].is_null());
  ASSERT_EQ(json["tokens"].size(), 4u);
  std::string list;
  for (const Json& id : json["tokens"])
    list += (list.empty() ? "" : ",") + std::to_string(id.get<int>());
  EXPECT_EQ(run_tool({"generate", "-m", out, "--ids", "1 5 9", "-n", "4"}).out, list + "\n");
  expect_failure(run_tool({"generate", "-m", out, "-p", "x"}), 1, "tokenizer");
  expect_failure(run_tool({"chat", "-m", out}), 1, "chat template");
  expect_failure(run_tool({"tokenize", "-m", out, "x"}), 1, "tokenizer");
}

// A base model: generate continues the text behind the beginning that the tokenizer asks for, chat
// says why it cannot.
TEST_F(Generate, NoTemplateMeansContinuing) {
  TinyModel base;
  base.chat_template = false;
  const Bytes bytes = base.bytes();
  const std::string with_template = model_;
  model_ = folder_.write("base.gguf", std::string(bytes.begin(), bytes.end()));
  const Json continued = run("generate", {"-p", "the sea", "-n", "6", "--json"}).json();
  EXPECT_EQ(continued["tokens"].size(), 6u);
  EXPECT_EQ(run("generate", {"-p", "the sea", "-n", "6", "--raw", "--json"}).json()["tokens"],
            continued["tokens"]);
  EXPECT_EQ(run_tool({"generate", "-m", with_template, "-p", "the sea", "-n", "6", "--raw"}).out,
            run("generate", {"-p", "the sea", "-n", "6"}).out);
  expect_failure(run("chat", {}, "the sea\n"), 1, "has no chat template");
  expect_failure(run("chat", {}, "the sea\n"), 1, "mote generate continues a text");
  expect_failure(run("generate", {"-p", "the sea", "--system", "be brief"}), 1, "--system");

  GgufBuilder begun = base.builder();
  begun.boolean("tokenizer.ggml.add_bos_token", true);
  const Bytes begun_bytes = begun.build();
  model_ = folder_.write("begun.gguf", std::string(begun_bytes.begin(), begun_bytes.end()));
  const Json behind = run("generate", {"-p", "the sea", "-n", "6", "--json"}).json();
  EXPECT_EQ(behind["prompt_tokens"].get<int>(), continued["prompt_tokens"].get<int>() + 1);
}

// A template with a fault is not a base model: nothing is answered in its place.
TEST_F(Generate, WrongTemplateIsNoAnswer) {
  TinyModel base;
  base.chat_template = false;
  GgufBuilder builder = base.builder();
  builder.text("tokenizer.chat_template", "{% for message in %}");
  const Bytes bytes = builder.build();
  model_ = folder_.write("wrong.gguf", std::string(bytes.begin(), bytes.end()));
  for (const auto& [command, words, instead] :
       {std::tuple<const char*, Words, const char*>{"generate", {"-p", "the sea"}, "--raw"},
        {"chat", {}, "mote generate"}}) {
    const ToolResult result = run(command, words, "the sea\n");
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find("warning: "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("chat template cannot be read"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(instead), std::string::npos) << result.err;
  }
  EXPECT_EQ(run("generate", {"-p", "the sea", "-n", "3", "--raw"}).status, 0);
}

TEST_F(Generate, ChatAnswersEachLine) {
  const ToolResult two = run("chat", {"-n", "5"}, "the sea\n\nof the land\n");
  EXPECT_EQ(two.status, 0) << two.err;
  const std::string first = run("generate", {"-p", "the sea", "-n", "5"}).out;
  EXPECT_EQ(two.out.substr(0, first.size()), first);
  const ToolResult reset = run("chat", {"-n", "5"}, "of the land\n/reset\nthe sea\n");
  ASSERT_GE(reset.out.size(), first.size());
  EXPECT_EQ(reset.out.substr(reset.out.size() - first.size()), first);
  const ToolResult full = run("chat", {"-n", "5", "--ctx", "16"}, std::string(200, 'x') + "\n");
  EXPECT_EQ(full.status, 1);
  EXPECT_NE(full.err.find("/reset"), std::string::npos) << full.err;
}

// Each turn computes its own tokens only; --stats says so, and nothing else is on stderr.
TEST_F(Generate, ChatReusesEarlierTurns) {
  const ToolResult result =
      run("chat", {"-n", "5", "--ignore-eos", "--stats"}, "the sea\nof the land\nin the end\n");
  ASSERT_EQ(result.status, 0) << result.err;
  std::istringstream lines(result.err);
  std::string line;
  unsigned before = 0, turns = 0;
  while (std::getline(lines, line)) {
    unsigned prompt = 0, reused = 0, generated = 0, rate = 0;
    double ms = 0;
    ASSERT_EQ(std::sscanf(line.c_str(),
                          "prompt %u tokens (%u reused) in %lf ms (%u tok/s); %u generated in",
                          &prompt, &reused, &ms, &rate, &generated),
              5)
        << line;
    EXPECT_EQ(generated, 5u);
    // All of the turn before: random answers may read as other tokens, its prompt does not.
    EXPECT_GE(reused, before) << line;
    EXPECT_LT(reused, prompt);
    before = prompt - 1;
    ++turns;
  }
  EXPECT_EQ(turns, 3u);
  EXPECT_EQ(run("chat", {"-n", "5"}, "the sea\n").err, "");
}

// Not a line that looks like an empty answer.
TEST_F(Generate, NoRoomForATokenSaysSo) {
  const std::string ids = "5,6,7,8,9,10,11,12";
  const ToolResult full = run("generate", {"--ids", ids, "--ctx", "8"});
  EXPECT_EQ(full.out, "");
  EXPECT_EQ(full.status, 0);
  EXPECT_NE(full.err.find("8 tokens fills the context"), std::string::npos) << full.err;
}
TEST_F(Generate, ADeadlineWithinThePromptSaysSo) {
  const std::string text(900, 'x');  // takes longer than a millisecond
  for (const char* command : {"generate", "chat"}) {
    Words words = {"--deadline-ms", "1", "--ctx", "1024", "-t", "1"};
    if (std::string(command) == "generate") words.insert(words.end(), {"-p", "-"});
    const ToolResult late = run(command, words, text);
    EXPECT_EQ(late.out, "") << command;
    EXPECT_EQ(late.status, command == std::string("chat")) << command;
    EXPECT_NE(late.err.find("deadline"), std::string::npos) << late.err;
  }
  const ToolResult json =
      run("generate", {"-p", text, "--deadline-ms", "1", "-t", "1", "--ctx", "1024", "--json"});
  EXPECT_EQ(json.status, 0);
  EXPECT_EQ(json.json()["finish_reason"], "deadline");
}

TEST_F(Generate, ScoreCountsWholeWindows) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "the sea and the land in the rain " + std::to_string(i) + "\n";
  const std::string file = folder_.write("text", text);
  const size_t tokens = run("tokenize", {"--file", file, "--json"}).json()["ids"].size();
  const Json json = run("score", {"--file", file, "--window", "64", "--json"}).json();
  EXPECT_EQ(json["tokens"], tokens / 64 * 63);
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(json["nll"].get<double>()), 1e-6);
  EXPECT_EQ(run("score", {"--file", "-", "--window", "64", "--json"}, text).json()["nll"],
            json["nll"]);
  expect_failure(run("score", {"--file", folder_.write("short", "a b c")}), 1,
                 "fewer than one window");
}

TEST_F(Generate, BenchGivesRowsPerThreads) {
  const Json rows =
      run("bench", {"-p", "16", "-n", "4", "-r", "3", "-t", "1,2", "--json"}).json()["rows"];
  ASSERT_EQ(rows.size(), 4u);
  const char* tests[] = {"pp16", "tg4", "pp16", "tg4"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows[i]["test"], tests[i]);
    EXPECT_EQ(rows[i]["threads"], i < 2 ? 1 : 2);
    EXPECT_EQ(rows[i]["unit"], "tok/s");
    EXPECT_GT(rows[i]["min"].get<double>(), 0);
    EXPECT_LE(rows[i]["min"].get<double>(), rows[i]["median"].get<double>());
    EXPECT_LE(rows[i]["median"].get<double>(), rows[i]["max"].get<double>());
  }
}

TEST_F(Generate, InspectListsKeysTensorsAndMemory) {
  const Json json = run("inspect", {"--json", "--ctx", "128"}).json();
  EXPECT_EQ(json["arch"], "llama");
  EXPECT_EQ(json["keys"]["llama.block_count"], 3);
  EXPECT_EQ(json["keys"]["tokenizer.ggml.tokens"]["count"], 300);
  EXPECT_EQ(json["tensors"].size(), 2u + 3 * 9);
  EXPECT_EQ(json["tensors"][0]["name"], "token_embd.weight");
  EXPECT_EQ(json["tensors"][0]["type"], "q8_0");
  EXPECT_EQ(json["tensors"][0]["shape"], Json({96, 300}));
  EXPECT_TRUE(json["labels"].empty());
  const size_t small = json["session_bytes"];
  const size_t large = run("inspect", {"--json", "--ctx", "1024"}).json()["session_bytes"];
  const size_t f32 =
      run("inspect", {"--json", "--ctx", "1024", "--kv", "f32"}).json()["session_bytes"];
  // Keys and values of 3 layers with 2 heads of 16 in two bytes each, and scratch that grows too.
  EXPECT_GE(large - small, (1024u - 128) * 3 * 2 * 2 * 16 * 2);
  EXPECT_GE(f32 - large, 1024u * 3 * 2 * 2 * 16 * 2);
  const ToolResult text = run("inspect", {});
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("blk.2.ffn_down.weight"), std::string::npos);
}

TEST_F(Generate, InspectShowsFilesThatCannotRun) {
  std::string bytes = read_all(model_);
  const size_t at = bytes.find("llama", bytes.find("general.architecture"));
  const std::string other = folder_.write("other.gguf", bytes.replace(at, 5, "lemur"));
  const ToolResult result = run_tool({"inspect", "-m", other, "--json"});
  expect_failure(result, 1, "lemur");
  EXPECT_EQ(result.json()["arch"], "lemur");
  EXPECT_TRUE(result.json()["session_bytes"].is_null());
  EXPECT_FALSE(result.json()["tensors"].empty());
}

// A prompt of several seconds shows how far it is on a terminal, and nothing of it stays.
TEST(Progress, ShowsOnATerminal) {
  SKIP_WITHOUT_TOOL();
  const char* models = std::getenv("MOTE_MODELS_DIR");
  const std::string model = std::string(models ? models : "") + "/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!models || access(model.c_str(), R_OK) != 0)
    GTEST_SKIP() << "MOTE_MODELS_DIR has no SmolLM2-135M-Instruct.Q4_1.gguf";
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) || unlockpt(terminal)) GTEST_SKIP() << "no terminals here";
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 130; ++i) text += "word " + std::to_string(i % 7) + " ";
  // The slowest kernels: the first chunk takes seconds anywhere.
  const std::string command = "MOTE_ISA=scalar '" + tool_path() + "' generate -m '" + model +
                              "' --file '" + folder.write("prompt", text) +
                              "' -n 1 -t 1 --ctx 8192 --raw >/dev/null 2>" + ptsname(terminal);
  const int slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);  // keeps what was written readable
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::string shown(4096, '\0');
  const ssize_t bytes = read(terminal, shown.data(), shown.size());
  close(slave);
  close(terminal);
  ASSERT_GT(bytes, 0);
  shown.resize(static_cast<size_t>(bytes));
  EXPECT_EQ(shown.rfind("\rprompt: ", 0), 0u) << shown;
  EXPECT_NE(shown.find(" tokens\r\033[K"), std::string::npos) << shown;
  EXPECT_EQ(shown.substr(shown.size() - 4), "\r\033[K") << shown;
}

// SIGINT in the middle of a long generation: what there is, and status 0.
TEST(Interrupt, EndsAGenerationCleanly) {
  SKIP_WITHOUT_TOOL();
  const char* models = std::getenv("MOTE_MODELS_DIR");
  const std::string model = std::string(models ? models : "") + "/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!models || access(model.c_str(), R_OK) != 0)
    GTEST_SKIP() << "MOTE_MODELS_DIR has no SmolLM2-135M-Instruct.Q4_1.gguf";
  TemporaryFolder folder;
  const std::string out = folder.path("out"), tool = tool_path();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!std::freopen(out.c_str(), "w", stdout)) _exit(99);
    execl(tool.c_str(), "mote", "generate", "-m", model.c_str(), "-p", "Tell a long story.", "-n",
          "0", "--ignore-eos", "--json", nullptr);
    _exit(99);
  }
  sleep(3);
  kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const Json json = Json::parse(read_all(out));
  EXPECT_EQ(json["finish_reason"], "cancelled");
  EXPECT_EQ(json["tokens"].size(), json["generated_tokens"].get<size_t>());
}

}  // namespace
}  // namespace mote::test
