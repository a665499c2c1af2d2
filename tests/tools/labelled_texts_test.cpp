// Labelled texts in TSV, CSV and JSON lines; what is wrong with a file is said with its line.
#include "tools/developer/labelled_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/failure.h"

namespace mote::tool {
namespace {

using testing::HasSubstr;

std::string shown(std::string_view bytes, TextFormat format) {
  std::string all;
  for (const LabelledText& text : parse_labelled_texts(bytes, "data", format))
    all += std::to_string(text.line) + ":" + text.label + "=" + text.text + ";";
  return all;
}

void expect_refused(std::string_view bytes, TextFormat format, const std::string& what) {
  try {
    parse_labelled_texts(bytes, "data", format);
    FAIL() << "accepted: " << bytes;
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("data: "));
    EXPECT_THAT(failure.what(), HasSubstr(what)) << bytes;
  }
}

TEST(LabelledTexts, TabsSeparateAndNothingIsQuoted) {
  EXPECT_EQ(shown("a\tone\nb\t\"two\", three\r\n\n a b \t x \n", TextFormat::tsv),
            "1:a=one;2:b=\"two\", three;4:a b= x ;");
  EXPECT_EQ(shown("\xef\xbb\xbf\xc3\xa4\tlast without a line end", TextFormat::tsv),
            "1:\xc3\xa4=last without a line end;");
}

TEST(LabelledTexts, CommaSeparatedAsInRfc4180) {
  EXPECT_EQ(shown("a,one\r\nb,\"two, \"\"2\"\"\nlines\"\n\n\"c\",three", TextFormat::csv),
            "1:a=one;2:b=two, \"2\"\nlines;5:c=three;");
  EXPECT_EQ(shown("a,5\" nails\n", TextFormat::csv), "1:a=5\" nails;");
}

TEST(LabelledTexts, HeadersSayWhichColumnsCount) {
  EXPECT_EQ(shown("id,Text,source, LABEL \n1,one,x,a\n2,\"two\",y,b\n", TextFormat::csv),
            "2:a=one;3:b=two;");
  EXPECT_EQ(shown("text\tlabel\none\ta\n", TextFormat::tsv), "2:a=one;");
  // No header: one of the words alone is a label as any other.
  EXPECT_EQ(shown("label\tone\n", TextFormat::tsv), "1:label=one;");
}

TEST(LabelledTexts, JsonLines) {
  EXPECT_EQ(shown("{\"label\": \"a\", \"text\": \"one\\ntwo\", \"id\": 1}\n\n"
                  "{\"text\": \"\\u00e9\", \"label\": \"b\"}\r\n",
                  TextFormat::jsonl),
            "1:a=one\ntwo;3:b=\xc3\xa9;");
}

TEST(LabelledTexts, FaultsNameTheLine) {
  expect_refused("", TextFormat::tsv, "no text");
  expect_refused("label\ttext\n", TextFormat::tsv, "no text");
  expect_refused("a\tone\nno label\n", TextFormat::tsv, "line 2: expected 2 fields");
  expect_refused("a\tone\ttwo\n", TextFormat::tsv, "line 1: expected 2 fields");
  expect_refused("a\tone\n \ttwo\n", TextFormat::tsv, "line 2: the label is missing");
  expect_refused("a\tone\nb\t \n", TextFormat::tsv, "line 2: the text of label 'b' is empty");
  expect_refused("\xff\tone\n", TextFormat::tsv, "line 1: the label is not UTF-8");
  expect_refused("text,label,id\none,a\n", TextFormat::csv, "line 2: expected 3 fields");
  expect_refused("a,one\n\nb,\"two\nthree\n", TextFormat::csv, "line 3: a quoted field");
  expect_refused("a,\"one\"x\n", TextFormat::csv, "line 1: expected a comma");
  expect_refused("{\"label\": \"a\"}\n", TextFormat::jsonl, "line 1: \"text\" is missing");
  expect_refused("{\"text\": \"a\"}\n", TextFormat::jsonl, "line 1: \"label\" is missing");
  expect_refused("{\"label\": 1, \"text\": \"a\"}", TextFormat::jsonl,
                 "line 1: \"label\": expected");
  expect_refused("\n[1]\n", TextFormat::jsonl, "line 2: expected a JSON object");
  expect_refused("{\"label\": \"a\"", TextFormat::jsonl, "line 1: expected a JSON object");
}

TEST(LabelledTexts, OtherEncodingsAreRefused) {
  using std::string_view_literals::operator""sv;
  expect_refused("a\0\t\0o\0\n\0"sv, TextFormat::tsv, "line 1: expected UTF-8");
  expect_refused("\0a\0\t\0o\0\n"sv, TextFormat::tsv, "line 1: expected UTF-8");
  expect_refused("\xff\xfe\xe4\x4e"sv, TextFormat::csv, "line 1: expected UTF-8");
  expect_refused("a\tone\nb\tt\0wo\n"sv, TextFormat::tsv, "line 2: expected UTF-8");
  expect_refused("{\0\"\0"sv, TextFormat::jsonl, "line 1: expected UTF-8");
}

TEST(LabelledTexts, NamesTellTheFormat) {
  EXPECT_EQ(text_format("x/a.tsv"), TextFormat::tsv);
  EXPECT_EQ(text_format("a.b.csv"), TextFormat::csv);
  EXPECT_EQ(text_format("a.jsonl"), TextFormat::jsonl);
  EXPECT_EQ(text_format("a.ndjson"), TextFormat::jsonl);
  EXPECT_THROW(text_format("a.txt"), UsageError);
  EXPECT_THROW(text_format("-"), UsageError);
}

}  // namespace
}  // namespace mote::tool
