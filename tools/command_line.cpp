#include "tools/command_line.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mote::tool {
namespace {

// A message is one line, whatever a library put into it.
std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int output_error = 0;  // errno of the first time that stdout could not be flushed

bool flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0) return true;
  if (output_error == 0) output_error = errno;
  return false;
}

// Help says N and X where CLI11 says UINT and FLOAT; it takes an empty text for 0, we do not.
void name_types(CLI::App& app) {
  const CLI::Validator some(
      [](std::string& value) {
        if (value.empty()) return std::string("expected a number, found nothing");
        const bool none = std::isnan(std::strtod(value.c_str(), nullptr));
        return none ? "expected a number, found " + value : std::string();
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const bool whole = type == "UINT" || type == "INT";
    if (!whole && type != "FLOAT") continue;
    option->type_name(whole ? "N" : "X");
    option->check(some);
  }
}

}  // namespace

CommandLine::CommandLine(const std::string& command, const std::string& summary)
    : app(summary, "mote " + command) {
  app.set_help_flag("-h,--help", "show this and stop");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

void CommandLine::add_json() { app.add_flag("--json", json, "print JSON instead of text"); }

void CommandLine::accept_texts(const std::string& what) {
  accepts_texts_ = true;
  app.allow_extras();
  app.footer(what);
}

bool CommandLine::parse(const Arguments& arguments) {
  name_types(app);
  // CLI11 takes them last first.
  std::vector<std::string> reversed(arguments.options.rbegin(), arguments.options.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(one_line(error.what()));
  }
  if (accepts_texts_) {
    for (const std::string& text : app.remaining()) {
      if (text.size() > 1 && text[0] == '-')
        throw UsageError("unknown option " + text + " (a text that begins with - goes behind --)");
      texts_.push_back(text);
    }
    texts_.insert(texts_.end(), arguments.texts.begin(), arguments.texts.end());
  } else if (!arguments.texts.empty()) {
    throw UsageError("unexpected argument " + arguments.texts[0]);
  }
  return true;
}

CLI::Validator within(double least, double most) { return CLI::Range(least, most).description(""); }

CLI::Validator unsigned_number() {
  const auto check = [](std::string& value) {
    errno = 0;
    const bool good = !value.empty() &&
                      value.find_first_not_of("0123456789") == std::string::npos &&
                      (std::strtoull(value.c_str(), nullptr, 10), errno == 0);
    return good ? std::string() : "expected a number of 0 to 2^64 - 1, found " + value;
  };
  return CLI::Validator(check, "");
}

CLI::Validator one_of(std::vector<std::string> values) {
  return CLI::IsMember(std::move(values)).description("");
}

void check_range(const char* option, double value, double least, double most) {
  if (value >= least && value <= most) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s: expected %g to %g, found %g", option, least, most, value);
  throw UsageError(text);
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    throw Failure(std::string("stdout: cannot write: ") + std::strerror(errno));
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_json(const Json& json) { print(json_line(json)); }

void finish_output() {
  if (!flush_output() || std::ferror(stdout))
    throw Failure(std::string("stdout: cannot write: ") +
                  std::strerror(output_error ? output_error : EIO));
}

void complain(const std::string& message) {
  (void)flush_output();
  std::fprintf(stderr, "mote: %s\n", one_line(message).c_str());
}

}  // namespace mote::tool
