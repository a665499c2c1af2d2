// What every command needs of its command line and its output.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/failure.h"

namespace mote::tool {

using Json = nlohmann::ordered_json;

// What follows the command's name. Behind "--" everything is text, whatever it begins with.
struct Arguments {
  std::vector<std::string> options;
  std::vector<std::string> texts;
};

// One command's options. Use: add options to app, then parse().
class CommandLine {
 public:
  CommandLine(const std::string& command, const std::string& summary);

  CLI::App app;
  bool json = false;

  void add_json();
  // The command takes texts: words that are no options. They are not a CLI11 positional, which
  // would take
  // "[CLS]" for a list.
  void accept_texts(const std::string& what);
  // False: help was asked for and shown. Throws UsageError.
  bool parse(const Arguments& arguments);
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  bool accepts_texts_ = false;
  std::vector<std::string> texts_;
};

// Checks that help does not show; the option's own text says what it takes.
CLI::Validator within(double least, double most);
CLI::Validator unsigned_number();  // of 64 bits; CLI11 itself takes -1 for the largest one
CLI::Validator one_of(std::vector<std::string> values);

// A number within [least, most], or a usage error that names the option.
void check_range(const char* option, double value, double least, double most);

// JSON as a line. Texts that are not UTF-8 get U+FFFD.
std::string json_line(const Json& json);
// One line of JSON on stdout. Texts that are not UTF-8 get U+FFFD.
void print_json(const Json& json);
// To stdout; throws Failure when it cannot be written.
void print(const std::string& text);
// Flushes stdout, throws Failure if anything was lost (a full disk).
void finish_output();
// One line on stderr: "mote: message".
void complain(const std::string& message);

}  // namespace mote::tool
