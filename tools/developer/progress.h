// A line on a terminal that says which tensor is being written; nothing where stderr is a file.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace mote::tool {

class Progress {
 public:
  explicit Progress(size_t total) : total_(total), shown_(isatty(STDERR_FILENO)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step(const std::string& name) {
    ++done_;
    if (shown_)
      std::fprintf(stderr, "\r\033[K%zu/%zu %s", done_, total_, name.c_str()), std::fflush(stderr);
  }
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  size_t total_, done_ = 0;
  bool shown_;
};

}  // namespace mote::tool
