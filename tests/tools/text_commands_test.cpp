// mote classify, answer, tag, embed and fill as their users run them.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/support/text_encoder.h"
#include "tests/tools/tool_support.h"

namespace mote::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class TextCommands : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_TOOL(); }
  std::string model(TextHead head) {
    const Bytes bytes = text_encoder(head).build();
    return folder_.write("model.gguf", std::string(bytes.begin(), bytes.end()));
  }
  TemporaryFolder folder_;
};

TEST_F(TextCommands, ClassifyAText) {
  const std::string m = model(TextHead::classify);
  const ToolResult result = run_tool({"classify", "-m", m, "the lamp is on", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json json = result.json();
  ASSERT_EQ(json["labels"].size(), 3u);
  double sum = 0;
  for (const Json& label : json["labels"]) sum += label["score"].get<double>();
  EXPECT_NEAR(sum, 1.0, 1e-5);
  EXPECT_EQ(json["tokens"], 6);
  EXPECT_EQ(json["truncated"], false);

  const Json best =
      run_tool({"classify", "-m", m, "the lamp is on", "--json", "--top", "1"}).json();
  ASSERT_EQ(best["labels"].size(), 1u);
  EXPECT_EQ(best["labels"][0], json["labels"][0]);
  const Json none =
      run_tool({"classify", "-m", m, "the lamp is on", "--json", "--threshold", "1.5"}).json();
  EXPECT_TRUE(none["labels"].empty());
  EXPECT_EQ(none["none_of_these"], true);
  const ToolResult text = run_tool({"classify", "-m", m, "the lamp is on"});
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 3);
  EXPECT_EQ(run_tool({"classify", "-m", m, "x", "--threshold", "2"}).out, "none of these\n");
}

TEST_F(TextCommands, ManyTextsInOrderWithTheirFields) {
  const std::string m = model(TextHead::classify);
  std::string lines, file;
  for (int i = 0; i < 2500; ++i) {
    const std::string text = i % 3 ? "the lamp " + std::to_string(i) : "";
    file += text + "\n";
    lines += Json({{"text", text}, {"id", i}, {"kind", {"a", i}}}).dump() + "\n";
  }
  lines += "no json\n{\"id\": 7}\n{\"text\": 5, \"id\": 8}\n";
  const ToolResult result =
      run_tool({"classify", "-m", m, "--jsonl", folder_.write("lines", lines), "--top", "1"});
  EXPECT_EQ(result.status, 1);  // of the last three
  const std::vector<Json> got = result.json_lines();
  ASSERT_EQ(got.size(), 2503u);
  for (int i = 0; i < 2500; ++i) {
    ASSERT_EQ(got[static_cast<size_t>(i)]["id"], i);
    ASSERT_EQ(got[static_cast<size_t>(i)]["kind"][1], i);
    ASSERT_EQ(got[static_cast<size_t>(i)]["labels"].size(), 1u);
    ASSERT_FALSE(got[static_cast<size_t>(i)].contains("text"));
  }
  for (size_t i = 2500; i < 2503; ++i) EXPECT_TRUE(got[i].contains("error")) << got[i];
  EXPECT_THAT(result.err, HasSubstr("line 2501: "));
  EXPECT_THAT(result.err, HasSubstr("2503 texts, "));

  const ToolResult plain = run_tool(
      {"classify", "-m", m, "--file", folder_.write("file", file), "--json", "--top", "1"});
  ASSERT_EQ(plain.status, 0) << plain.err;
  const std::vector<Json> same = plain.json_lines();
  ASSERT_EQ(same.size(), 2500u);
  for (size_t i = 0; i < 2500; ++i) ASSERT_EQ(same[i]["labels"], got[i]["labels"]);
  const ToolResult piped = run_tool({"classify", "-m", m, "--file", "-", "--json"}, "one\ntwo\n");
  EXPECT_EQ(piped.json_lines().size(), 2u);
}

TEST_F(TextCommands, AFailedInputHasItsErrorInItsPlace) {
  const std::string m = model(TextHead::classify);
  const ToolResult result = run_tool({"classify", "-m", m, "--ctx", "8", "--long", "error",
                                      "--json", "on", "the lamp is on and off and on", "off"});
  EXPECT_EQ(result.status, 1);
  const std::vector<Json> lines = result.json_lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].contains("labels"));
  EXPECT_THAT(lines[1]["error"].get<std::string>(), HasSubstr("expected at most 8 tokens"));
  EXPECT_TRUE(lines[2].contains("labels"));
}

// What is an input's own and what is ours stay apart, also where it fails.
TEST_F(TextCommands, FieldsOfInputs) {
  const std::string m = model(TextHead::classify);
  const std::string lines =
      "{\"text\": \"on\", \"id\": 18446744073709551615, \"error\": \"mine\", \"line\": \"x\"}\n"
      "{\"text\": \"on\", \"id\": 18446744073709551616}\n"
      "{\"text\": 5, \"id\": \"five\"}\n"
      "{\"text\": \"the lamp is on and off and on\", \"id\": -9007199254740993}\n"
      "nothing\n";
  const ToolResult result = run_tool({"classify", "-m", m, "--ctx", "8", "--long", "error",
                                      "--jsonl", folder_.write("lines", lines)});
  EXPECT_EQ(result.status, 1);
  const std::vector<Json> got = result.json_lines();
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(got[0]["id"], 18446744073709551615u);
  EXPECT_FALSE(got[0].contains("error"));
  EXPECT_EQ(got[0]["line"], "x");
  EXPECT_THAT(got[1]["error"].get<std::string>(), HasSubstr("64 bits, found 18446744073709551616"));
  EXPECT_EQ(got[2]["id"], "five");
  EXPECT_TRUE(got[2].contains("error"));
  EXPECT_EQ(got[3]["id"], -9007199254740993);
  EXPECT_THAT(got[3]["error"].get<std::string>(), HasSubstr("expected at most 8 tokens"));
  EXPECT_EQ(got[4]["line"], 5);
}

TEST_F(TextCommands, LongLinesFailAlone) {
  const std::string long_line(5 << 20, 'a');
  const std::string file = folder_.write("file", "on\n" + long_line + "\r\noff\n" + long_line);
  const ToolResult result = run_tool(
      {"classify", "-m", model(TextHead::classify), "--file", file, "--json", "--top", "1"});
  EXPECT_EQ(result.status, 1);
  const std::vector<Json> got = result.json_lines();
  ASSERT_EQ(got.size(), 4u);
  EXPECT_TRUE(got[0].contains("labels"));
  EXPECT_EQ(got[1]["line"], 2);
  EXPECT_THAT(got[1]["error"].get<std::string>(),
              HasSubstr("expected a line of at most 4194304 bytes, found 5242881"));
  EXPECT_TRUE(got[2].contains("labels"));
  EXPECT_TRUE(got[3].contains("error"));
  EXPECT_THAT(result.err, HasSubstr("line 4: expected a line"));
}

TEST_F(TextCommands, AByteOrderMarkIsNoText) {
  const std::string m = model(TextHead::classify);
  const auto classified = [&](const std::string& bytes) {
    return run_tool({"classify", "-m", m, "--file", folder_.write("file", bytes)}).out;
  };
  EXPECT_EQ(classified("\xef\xbb\xbfon\noff\n"), classified("on\noff\n"));
  EXPECT_EQ(classified("\xef\xbb\xbf\non\n"), classified("\non\n"));
  EXPECT_NE(classified("on\n\xef\xbb\xbfoff\n"), classified("on\noff\n"));
}

TEST_F(TextCommands, ATextOfStandardInputHasNoLineEnd) {
  const std::string m = model(TextHead::answer);
  const auto answered = [&](const std::string& question, const std::string& input) {
    return run_tool({"answer", "-m", m, "-q", question, "-c", "it is on", "--json"}, input).out;
  };
  for (const char* end : {"", "\n", "\r\n"})
    EXPECT_EQ(answered("-", std::string("is it on?") + end), answered("is it on?", "")) << end;
  expect_failure(run_tool({"answer", "-m", m, "-q", "-", "-c", "-"}), 2, "- may be given once");

  // Where the text is shown or found in, what is dropped shows.
  const std::string c = model(TextHead::classify);
  for (const char* text : {"on", "on\n", "on\r\n"})
    EXPECT_THAT(run_tool({"classify", "-m", c, "-", "off"}, text).out, HasSubstr("\ton\n")) << text;
  EXPECT_THAT(run_tool({"classify", "-m", c, "-", "off"}, "on\n\n").out, HasSubstr("\ton \n"));
}

TEST_F(TextCommands, ClosedStandardInput) {
  const std::string out = folder_.path("out");
  const std::string command =
      tool_path() + " classify -m '" + model(TextHead::classify) + "' - <&- >'" + out + "' 2>&1";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(read_all(out), HasSubstr("standard input: cannot read"));
}

TEST_F(TextCommands, OneQueryAndManyPassages) {
  const std::string m = model(TextHead::relevance);
  const std::string file = folder_.write("passages", "the lamp is on\noff\nin the kitchen\n");
  const ToolResult many =
      run_tool({"classify", "-m", m, "is the lamp on?", "--pairs", file, "--json"});
  ASSERT_EQ(many.status, 0) << many.err;
  const ToolResult few = run_tool({"classify", "-m", m, "is the lamp on?", "--pair",
                                   "the lamp is on", "--pair", "off", "--json"});
  ASSERT_EQ(few.status, 0) << few.err;
  ASSERT_EQ(many.json_lines().size(), 3u);
  ASSERT_EQ(few.json_lines().size(), 2u);
  EXPECT_EQ(many.json_lines()[1], few.json_lines()[1]);
  EXPECT_EQ(many.json_lines()[2]["pair"], 3);
  const ToolResult piped =
      run_tool({"classify", "-m", m, "-", "--pairs", file, "--json"}, "is the lamp on?");
  EXPECT_EQ(piped.json_lines(), many.json_lines());
  const ToolResult passages =
      run_tool({"classify", "-m", m, "is the lamp on?", "--pairs", "-", "--json"}, read_all(file));
  EXPECT_EQ(passages.json_lines(), many.json_lines());
  expect_failure(run_tool({"classify", "-m", m, "-", "--pairs", "-"}), 2, "- may be given once");
}

TEST_F(TextCommands, LabelsOfOnesOwn) {
  const Json json = run_tool({"classify", "-m", model(TextHead::entail), "the lamp is on",
                              "--labels", "kitchen,lamp", "--json"})
                        .json();
  ASSERT_EQ(json["labels"].size(), 2u);
  EXPECT_NEAR(json["labels"][0]["score"].get<double>() + json["labels"][1]["score"].get<double>(),
              1.0, 1e-5);
  const std::string generator = write_tiny_model(folder_);
  const ToolResult scored =
      run_tool({"classify", "-m", generator, "On and on", "--labels", "the one,other", "--json"});
  ASSERT_EQ(scored.status, 0) << scored.err;
  EXPECT_EQ(scored.json()["labels"].size(), 2u);
  const Json braces =
      run_tool({"classify", "-m", generator, "On", "--labels", "{},other", "--json"}).json();
  const Json same = run_tool({"classify", "-m", generator, "{}", "--labels", "{},other", "--prompt",
                              "Choose the label that fits the text. Labels: {}, other.\n\nText: "
                              "On\nLabel:",
                              "--json"})
                        .json();
  EXPECT_EQ(braces, same);
  const std::string entailment = model(TextHead::entail);
  const auto labelled = [&](const std::string& labels) {
    return run_tool({"classify", "-m", entailment, "the lamp", "--labels", labels, "--json"});
  };
  EXPECT_EQ(labelled(" on,\tthe lamp ").json(), labelled("on,the lamp").json());
  for (const char* labels : {"on,,off", "on, ,off", "on,", " ", ""})
    expect_failure(labelled(labels), 2, "found an empty one in \"" + std::string(labels) + "\"");
  expect_failure(labelled("on,off, on"), 2, "found \"on\" twice");
  expect_failure(run_tool({"classify", "-m", generator, "x"}), 1, "--labels");
  for (const Words& option : {Words{"--multi-label"}, Words{"--long", "error"},
                              Words{"--stride", "2"}, Words{"--hypothesis", "{}"}}) {
    Words words = {"classify", "-m", generator, "x", "--labels", "a,b"};
    words.insert(words.end(), option.begin(), option.end());
    expect_failure(run_tool(words), 2, option[0] + " does not apply");
  }
  expect_failure(run_tool({"classify", "-m", model(TextHead::entail), "x", "--labels", "a,b",
                           "--prompt", "{}"}),
                 2, "--prompt does not apply");
  for (const Words& pairs : {Words{"--pair", "y"}, Words{"--pairs", folder_.write("p", "y\n")}})
    for (const std::string& m : {generator, entailment})
      expect_failure(run_tool({"classify", "-m", m, "x", "--labels", "a,b", pairs[0], pairs[1]}), 2,
                     pairs[0] + " does not apply");
  expect_failure(run_tool({"classify", "-m", model(TextHead::classify), "x", "--labels", "a,b"}), 1,
                 "entail");
}

TEST_F(TextCommands, ALabelStaysInItsLine) {
  GgufBuilder builder = text_encoder(TextHead::relevance);
  builder.texts("bert.classifier.output_labels", {"of\ntwo\tlines"});
  const Bytes bytes = builder.build();
  const std::string m = folder_.write("lines.gguf", std::string(bytes.begin(), bytes.end()));
  for (const Words& texts : {Words{"on"}, Words{"on", "off"}}) {
    Words words = {"classify", "-m", m};
    words.insert(words.end(), texts.begin(), texts.end());
    const std::string out = run_tool(words).out;
    EXPECT_EQ(size_t(std::count(out.begin(), out.end(), '\n')), texts.size()) << out;
    EXPECT_THAT(out, HasSubstr("of two lines"));
  }
  EXPECT_EQ(run_tool({"classify", "-m", m, "on", "--json"}).json()["labels"][0]["label"],
            "of\ntwo\tlines");
}

TEST_F(TextCommands, Answer) {
  const std::string m = model(TextHead::answer), passage = "the lamp in the k\xc3\xaftchen is on";
  const std::string file = folder_.write("passage", passage);
  const ToolResult result = run_tool(
      {"answer", "-m", m, "-q", "is it on?", "--file", file, "--top", "3", "--always", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = result.json();
  ASSERT_EQ(json["answers"].size(), 3u);
  EXPECT_TRUE(json["no_answer_score"].is_number());
  EXPECT_FALSE(json.contains("pair"));
  for (const Json& answer : json["answers"])
    EXPECT_EQ(answer["text"],
              passage.substr(answer["byte_start"], answer["byte_end"].get<size_t>() -
                                                       answer["byte_start"].get<size_t>()));
  const Json same = run_tool({"answer", "-m", m, "-q", "is it on?", "-c", passage, "--top", "3",
                              "--always", "--json"})
                        .json();
  EXPECT_EQ(same, json);
  const ToolResult lines = run_tool(
      {"answer", "-m", m, "-q", "is it on?", "-c", "the\nlamp\nis\non", "--top", "9", "--always"});
  EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 9);
  expect_failure(run_tool({"answer", "-m", m, "-q", "x", "-c", ""}), 1, "passage: it is empty");
  expect_failure(run_tool({"answer", "-m", m, "-q", "x"}), 2, "-c and --file");
}

TEST_F(TextCommands, Tag) {
  const std::string
      m = model(TextHead::tag),
      text = "l\xc3\xa4mp, a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9";
  size_t found = 0;
  for (const char* group : {"entity", "first", "max", "average", "none"}) {
    const ToolResult result = run_tool({"tag", "-m", m, text, "--group", group, "--json"});
    ASSERT_EQ(result.status, 0) << result.err;
    const Json json = result.json();
    for (const Json& entity : json["entities"]) {
      EXPECT_EQ(entity["text"],
                text.substr(entity["byte_start"],
                            entity["byte_end"].get<size_t>() - entity["byte_start"].get<size_t>()));
      EXPECT_LE(entity["start"], entity["byte_start"]);
      ++found;
    }
  }
  EXPECT_GT(found, 0u);
  expect_failure(run_tool({"tag", "-m", m, text, "--group", "any"}), 2, "--group");
  expect_failure(run_tool({"tag", "-m", model(TextHead::embed), text}), 1, "no tagging head");
}

TEST_F(TextCommands, EmbedAndFill) {
  const std::string m = model(TextHead::embed);
  const Json whole = run_tool({"embed", "-m", m, "the lamp", "--json"}).json();
  ASSERT_EQ(whole["embedding"].size(), 32u);
  double length = 0;
  for (const Json& x : whole["embedding"]) length += x.get<double>() * x.get<double>();
  EXPECT_NEAR(length, 1.0, 1e-5);
  EXPECT_EQ(run_tool({"embed", "-m", m, "the lamp", "--json", "--dim", "8", "--pooling", "cls"})
                .json()["embedding"]
                .size(),
            8u);
  expect_failure(run_tool({"embed", "-m", m, "x", "--dim", "33"}), 2, "32");
  const Json fills =
      run_tool({"fill", "-m", model(TextHead::fill), "the [MASK] is [MASK]", "--json"}).json();
  ASSERT_EQ(fills["fills"].size(), 2u);
  EXPECT_EQ(fills["fills"][0].size(), 5u);
  EXPECT_TRUE(fills["fills"][1][0]["token"].is_string());
  expect_failure(run_tool({"fill", "-m", model(TextHead::fill), "the [MASK]", "--top", "100000"}),
                 2, "--top: expected at most the model's");
  const ToolResult cut =
      run_tool({"fill", "-m", model(TextHead::fill), "--ctx", "4", "is the lamp [MASK]"});
  expect_failure(cut, 1, "[MASK], found none: the text was cut at 4 tokens");
  const ToolResult none = run_tool({"fill", "-m", model(TextHead::fill), "the lamp"});
  expect_failure(none, 1, "[MASK], found none");
  EXPECT_THAT(none.err, Not(HasSubstr("cut")));
}

TEST_F(TextCommands, CommandsOfOneTextTakeNoPairs) {
  const std::string lines =
      folder_.write("lines",
                    "{\"text\": \"the [MASK]\", \"pair\": \"off\", \"id\": 1}\n"
                    "{\"text\": \"the [MASK]\", \"pair\": null}\n{\"text\": \"the [MASK]\"}\n");
  for (const TextHead head : {TextHead::fill, TextHead::tag}) {
    const std::string command = head == TextHead::fill ? "fill" : "tag";
    const ToolResult result = run_tool({command, "-m", model(head), "--jsonl", lines});
    EXPECT_EQ(result.status, 1);
    const std::vector<Json> got = result.json_lines();
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[0]["error"], "expected one text, found a pair");
    EXPECT_EQ(got[0]["id"], 1);
    EXPECT_FALSE(got[1].contains("error"));
    EXPECT_FALSE(got[2].contains("error"));
    EXPECT_THAT(run_tool({command, "--help"}).out, Not(HasSubstr("pair")));
  }
  EXPECT_THAT(run_tool({"classify", "--help"}).out, HasSubstr("{\"text\", \"pair\"}"));
}

// The C example gives what the tool gives.
TEST_F(TextCommands, ExampleInC) {
  const std::string example = MOTE_BINARY_DIR "/examples/classify";
  if (access(example.c_str(), X_OK) != 0) GTEST_SKIP() << "the examples are not built";
  const std::string m = model(TextHead::classify), out = folder_.path("out");
  const std::string command = std::string(MOTE_EMULATOR " '") + example + "' '" + m +
                              "' 'the lamp is on' 'off' >'" + out + "' 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << read_all(out);
  const Json json =
      run_tool({"classify", "-m", m, "the lamp is on", "--top", "1", "--json"}).json();
  EXPECT_EQ(read_all(out).rfind(json["labels"][0]["label"].get<std::string>() + " ", 0), 0u)
      << read_all(out);
  EXPECT_THAT(read_all(out), HasSubstr("  off\n"));
}

// A signal while results are printed or texts are read: whole lines, and the program says so.
TEST_F(TextCommands, ASignalEndsARunCleanly) {
  const std::string m = model(TextHead::embed), err = folder_.path("err"), tool = tool_path();
  constexpr size_t kBatch = 1024;  // and a piece of a text that never ends
  std::string input;
  for (size_t i = 0; i < kBatch; ++i) input += "the lamp\n";
  input += "is o";
  // The pipe takes the first bytes only; or there is nothing but the piece left to read.
  for (const size_t read_before : {size_t{1}, size_t{280} * kBatch}) {
    int to[2], from[2];
    ASSERT_EQ(pipe(to), 0);
    ASSERT_EQ(pipe(from), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (const int file : {to[0], to[1], from[0], from[1]}) close(file);
      if (!std::freopen(err.c_str(), "w", stderr)) _exit(99);
      execl(tool.c_str(), "mote", "embed", "-m", m.c_str(), "--file", "-", "--json", nullptr);
      _exit(99);
    }
    close(to[0]);
    close(from[1]);
    ASSERT_EQ(write(to[1], input.data(), input.size()), ssize_t(input.size()));
    std::string out;
    char bytes[4096];
    ssize_t count = 0;
    while (out.size() < read_before && (count = read(from[0], bytes, sizeof bytes)) > 0)
      out.append(bytes, size_t(count));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(child, SIGTERM);
    while ((count = read(from[0], bytes, sizeof bytes)) > 0) out.append(bytes, size_t(count));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    close(to[1]);
    close(from[0]);
    ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 1);
    EXPECT_EQ(size_t(std::count(out.begin(), out.end(), '\n')), kBatch);
    EXPECT_EQ(out.back(), '\n');
    EXPECT_THAT(read_all(err), HasSubstr("cancelled: these are the results until then"));
  }
}

TEST_F(TextCommands, Usage) {
  const std::string m = model(TextHead::classify);
  expect_failure(run_tool({"classify", "-m", m}), 2, "give texts");
  expect_failure(run_tool({"classify", "-m", m, "x", "--file", "y"}), 2, "one of them");
  expect_failure(run_tool({"classify", "-m", m, "x", "--prompt", "{}"}), 2, "--labels");
  expect_failure(run_tool({"classify", "-m", m, "--pairs", "f", "x", "y"}), 2, "one text");
  for (const char* command : {"classify", "tag", "embed"})
    expect_failure(run_tool({command, "-m", m, "x", "--stride", "2"}), 2,
                   "--stride goes with --long windows");
  EXPECT_EQ(run_tool({"classify", "-m", m, "x", "--stride", "2", "--long", "windows"}).status, 0);
  expect_failure(run_tool({"classify", "-m", m, "-", "-"}), 2, "- may be given once");
  expect_failure(run_tool({"classify", "-m", m, "--file", folder_.path("missing")}), 1,
                 "cannot open");
}

}  // namespace
}  // namespace mote::test
