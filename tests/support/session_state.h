// Saved sessions for tests, and the program itself run anew to restore one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/forward_rows.h"

namespace mote::test {

inline std::vector<uint8_t> saved(mote_session* session) {
  size_t bytes = 0;
  EXPECT_EQ(mote_session_save(session, nullptr, 0, &bytes), MOTE_OK) << mote_last_error();
  std::vector<uint8_t> state(bytes);
  EXPECT_EQ(mote_session_save(session, state.data(), state.size(), &bytes), MOTE_OK)
      << mote_last_error();
  EXPECT_EQ(bytes, state.size());
  return state;
}
inline mote_status restore(mote_session* session, const std::vector<uint8_t>& state) {
  return mote_session_restore(session, state.data(), state.size());
}

inline void write_bytes(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
}
inline std::vector<uint8_t> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<uint64_t> hashes(const Model& model, mote_session* session,
                                    const std::vector<int32_t>& ids) {
  return forward_rows(model, session, ids.data(), ids.size(), 0, false, false).hashes;
}

// Runs this program's test `name` in a new process with MOTE_TEST_CHILD set to `argument`.
inline bool run_test_again(const std::string& name, const std::string& argument) {
  const std::string emulator = MOTE_EMULATOR;
  const std::string command = "MOTE_TEST_CHILD='" + argument + "' " + emulator + " '" +
                              testing::internal::GetArgvs()[0] + "' --gtest_filter='" + name +
                              "' >/dev/null 2>&1";
  return std::system(command.c_str()) == 0;
}
// What run_test_again() passed; null in the first process.
inline const char* child_argument() { return std::getenv("MOTE_TEST_CHILD"); }

}  // namespace mote::test
