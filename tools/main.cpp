// The command line tool: finds the command, turns what it throws into a line on stderr and an exit
// status.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "mote.h"
#include "tools/commands.h"

namespace {

using mote::tool::Arguments;

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};

constexpr Command kCommands[] = {
    {"generate", "continues a prompt, or answers it", mote::tool::run_generate},
    {"chat", "a conversation in the terminal", mote::tool::run_chat},
    {"classify", "labels of texts", mote::tool::run_classify},
    {"answer", "the span of a passage that answers a question", mote::tool::run_answer},
    {"tag", "entities of texts", mote::tool::run_tag},
    {"fill", "the tokens that fit a text's masks", mote::tool::run_fill},
    {"embed", "vectors of texts", mote::tool::run_embed},
    {"tokenize", "ids and pieces of texts", mote::tool::run_tokenize},
    {"detokenize", "the text of ids", mote::tool::run_detokenize},
    {"template", "renders messages with a chat template", mote::tool::run_template},
    {"score", "negative log-likelihood and perplexity of a text", mote::tool::run_score},
    {"inspect", "keys, tensors, memory of a session", mote::tool::run_inspect},
    {"bench", "speed of prefill and decoding", mote::tool::run_bench},
    {"train", "a classifier from labelled texts, on an encoder", mote::tool::run_train},
    {"convert", "a Hugging Face folder to a GGUF file", mote::tool::run_convert},
    {"quantize", "a GGUF file to another type", mote::tool::run_quantize},
    {"dump", "hidden states and logits as safetensors", mote::tool::run_dump},
    {"compare", "errors against a reference, layer by layer", mote::tool::run_compare},
};

void print_usage() {
  std::string text =
      "mote runs transformer models on the CPU.\nUsage: mote COMMAND [OPTIONS]\n\nCommands:\n";
  for (const Command& command : kCommands) {
    std::string name = command.name;
    text += "  " + name.append(12 - name.size(), ' ') + command.summary + "\n";
  }
  text +=
      "\nmote COMMAND --help shows a command's options, mote --version the version.\n"
      "Results go to stdout, everything else to stderr. Exit status: 0 done, 1 failed, 2 wrong "
      "usage.\n";
  mote::tool::print(text);
}

Arguments split(int count, char** words) {
  Arguments arguments;
  char** const end = words + count;
  char** const mark =
      std::find_if(words, end, [](const char* word) { return !std::strcmp(word, "--"); });
  arguments.options.assign(words, mark);
  if (mark != end) arguments.texts.assign(mark + 1, end);
  return arguments;
}

int run_command(const std::string& name, const Arguments& arguments) {
  for (const Command& command : kCommands)
    if (name == command.name) return command.run(arguments);
  throw mote::tool::UsageError("there is no command " + name + "; see mote --help");
}

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name.empty()) throw mote::tool::UsageError("give a command; see mote --help");
  if (name == "--help" || name == "-h" || name == "help") {
    print_usage();
  } else if (name == "--version") {
    const uint32_t version = mote_version();
    mote::tool::print("mote " + std::to_string(version >> 16) + "." +
                      std::to_string(version >> 8 & 255) + "." + std::to_string(version & 255) +
                      "\n");
  } else {
    const int status = run_command(name, split(argc - 2, argv + 2));
    mote::tool::finish_output();
    return status;
  }
  mote::tool::finish_output();
  return 0;
}

// Where standard input, output or error are closed, no file that is opened may become one of them.
// Reading the first and writing the others stays an error.
void occupy_standard_files() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
      (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

bool wants_json(int argc, char** argv) {
  return std::any_of(argv, argv + argc,
                     [](const char* word) { return !std::strcmp(word, "--json"); });
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_files();
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is an error of writing
  try {
    return run(argc, argv);
  } catch (const mote::tool::UsageError& error) {
    mote::tool::complain(error.what());
    return 2;
  } catch (const std::exception& error) {
    mote::tool::complain(error.what());
    try {
      if (wants_json(argc, argv)) mote::tool::print_json({{"error", error.what()}});
      mote::tool::finish_output();
    } catch (const mote::tool::Failure&) {  // stdout is what failed
    }
    return 1;
  }
}
