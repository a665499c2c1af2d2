#include "core/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "core/log.h"

namespace mote {
namespace {

std::string printable(std::string_view text, size_t capacity = 512) {
  std::string out(capacity, '#');
  const size_t length = make_printable(text.data(), text.size(), out.data(), capacity);
  EXPECT_LT(length, capacity);
  EXPECT_EQ(out[length], 0);
  out.resize(length);
  return out;
}

TEST(Status, CarriesCodeAndMessage) {
  EXPECT_TRUE(kOk.ok());
  const Status status = fail(MOTE_ERROR_BAD_FILE, "%s: expected %d, found %d", "a.gguf", 3, 4);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), MOTE_ERROR_BAD_FILE);
  EXPECT_STREQ(last_error(), "a.gguf: expected 3, found 4");
  clear_error();
  EXPECT_STREQ(last_error(), "");
}

TEST(Status, ContextGoesInFrontAndKeepsTheCode) {
  const Status status = with_context(fail(MOTE_ERROR_TASK, "no head"), "b.gguf");
  EXPECT_EQ(status.code(), MOTE_ERROR_TASK);
  EXPECT_STREQ(last_error(), "b.gguf: no head");
  EXPECT_TRUE(with_context(kOk, "b.gguf").ok());
  EXPECT_STREQ(last_error(), "b.gguf: no head");
}

TEST(Status, MessageMayQuoteTheMessageBefore) {
  (void)fail(MOTE_ERROR_IO, "first");
  (void)fail(MOTE_ERROR_IO, "second after %s", last_error());
  EXPECT_STREQ(last_error(), "second after first");
}

TEST(Status, SystemErrorsCarryTheSystemsText) {
  EXPECT_EQ(fail_system(ENOENT, "%s: cannot open", "x").code(), MOTE_ERROR_IO);
  EXPECT_EQ(std::string(last_error()), std::string("x: cannot open: ") + std::strerror(ENOENT));
}

TEST(Status, LongMessagesAreCutAt511BytesAtAWholeCharacter) {
  std::string text(509, 'a');
  text += "\u00e9\u00e9\u00e9";  // bytes 509 and 510 still fit
  (void)fail(MOTE_ERROR_IO, "%s", text.c_str());
  EXPECT_EQ(std::string(last_error()), text.substr(0, 511));
  (void)fail(MOTE_ERROR_IO, "x%s", text.c_str());
  EXPECT_EQ(std::string(last_error()), "x" + text.substr(0, 509));
  (void)fail(MOTE_ERROR_IO, "%s", std::string(100000, 'b').c_str());
  EXPECT_EQ(std::string(last_error()), std::string(511, 'b'));
}

TEST(Status, EachThreadHasItsOwnMessage) {
  (void)fail(MOTE_ERROR_IO, "mine");
  std::thread other([] {
    EXPECT_STREQ(last_error(), "");
    (void)fail(MOTE_ERROR_IO, "theirs");
    EXPECT_STREQ(last_error(), "theirs");
  });
  other.join();
  EXPECT_STREQ(last_error(), "mine");
}

TEST(Printable, KeepsTextAndEscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("plain"), "plain");
  EXPECT_EQ(printable("Gr\u00fc\u00dfe \u4f60\u597d \U0001f600"),
            "Gr\u00fc\u00dfe \u4f60\u597d \U0001f600");
  EXPECT_EQ(printable("a\nb\tc"), "a\\x0ab\\x09c");
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(printable("\u202egnp.exe"), "\\u{202e}gnp.exe");
}

TEST(Printable, BytesThatAreNoUtf8AreShownOneByOne) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xf0\x9f\x98"), "\\xf0\\x9f\\x98");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

TEST(Printable, NeverPassesTheCapacity) {
  for (size_t capacity = 1; capacity < 12; ++capacity) {
    const std::string shown = printable("\x01\u00e9\xff", capacity);
    EXPECT_EQ(shown, std::string("\\x01\u00e9\\xff").substr(0, shown.size())) << capacity;
    EXPECT_TRUE(shown.size() == 0 || shown.size() == 4 || shown.size() == 6 || shown.size() == 10);
  }
}

TEST(Printable, HostileNamesPassThroughFail) {
  const std::string_view name("evil\x1b]0;title\x07\n", 15);
  (void)fail(MOTE_ERROR_BAD_FILE, "key %.*s is wrong", MOTE_SHOW(name));
  EXPECT_STREQ(last_error(), "key evil\\x1b]0;title\\x07\\x0a is wrong");
  EXPECT_EQ(shown_length(std::string_view("x", SIZE_MAX / 2 + 7)), int{kShownBytes});
  (void)fail(MOTE_ERROR_BAD_FILE, "[%.*s]", MOTE_SHOW(std::string_view()));
  EXPECT_STREQ(last_error(), "[]");
}

TEST(Log, GoesToTheCallbackOrNowhere) {
  Log().write(MOTE_LOG_ERROR, "%s", "nobody listens");
  struct Seen {
    int32_t level = 0;
    std::string text;
  } seen;
  const Log log{[](void* user, int32_t level, const char* message, size_t length) {
                  EXPECT_EQ(message[length], 0);
                  *static_cast<Seen*>(user) = {level, std::string(message, length)};
                },
                &seen};
  log.write(MOTE_LOG_WARNING, "%d tokens\n", 7);
  EXPECT_EQ(seen.level, MOTE_LOG_WARNING);
  EXPECT_EQ(seen.text, "7 tokens\\x0a");
  log.write(MOTE_LOG_INFO, "%s", std::string(5000, 'c').c_str());
  EXPECT_EQ(seen.text, std::string(511, 'c'));
}

}  // namespace
}  // namespace mote
