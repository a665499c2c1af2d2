// all-MiniLM-L6-v2 against the reference's sentence vectors. MOTE_SHARED_DIR names a folder with
// goldens/real, MOTE_MODELS_DIR one with all-MiniLM-L6-v2.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/api.h"
#include "tests/support/tiny_folder.h"

namespace mote::test {
namespace {

using Json = nlohmann::json;

struct Accuracy {
  const char* type;
  double cosine;
};
void PrintTo(const Accuracy& accuracy, std::ostream* out) { *out << accuracy.type; }

double cosine(const float* a, const float* b, size_t count) {
  double product = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < count; ++i) {
    product += double(a[i]) * b[i];
    of_a += double(a[i]) * a[i];
    of_b += double(b[i]) * b[i];
  }
  return product / std::sqrt(of_a * of_b);
}

class MiniLm : public testing::TestWithParam<Accuracy> {};

TEST_P(MiniLm, SentenceVectors) {
  const char* shared = std::getenv("MOTE_SHARED_DIR");
  const char* models = std::getenv("MOTE_MODELS_DIR");
  const std::string real = std::string(shared ? shared : "") + "/goldens/real/";
  const std::string folder = std::string(models ? models : "") + "/all-MiniLM-L6-v2";
  if (!shared || !std::filesystem::exists(real + "minilm.json"))
    GTEST_SKIP() << "MOTE_SHARED_DIR names no folder with goldens/real";
  if (!models || !std::filesystem::exists(folder + "/model.safetensors"))
    GTEST_SKIP() << "MOTE_MODELS_DIR has no all-MiniLM-L6-v2";
  if (!std::filesystem::exists(tool_path())) GTEST_SKIP() << "the command line tool is not built";
  const std::string file =
      testing::TempDir() + "mote_minilm_" + GetParam().type + std::to_string(::getpid());
  const std::string command = run_tool() + " convert " + shell_word(folder) + " -o " +
                              shell_word(file) + " --type " + GetParam().type + " 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const Model model(file);
  std::remove(file.c_str());  // it is mapped
  std::ifstream json(real + "minilm.json");
  const Json sentences = Json::parse(json)["sentences"];
  const std::vector<float> expected = SafeTensors(real + "minilm.safetensors").floats("embedding");
  const size_t width = expected.size() / sentences.size();
  for (size_t i = 0; i < sentences.size(); ++i) {
    const Json& sentence = sentences[i];
    SCOPED_TRACE(sentence["id"].get<std::string>());
    SessionOptions sizes(sentence["max_length"], 0, 2);
    sizes.text_bytes = 1 << 16;
    Session session(model, sizes);
    const std::string text = sentence["text"];
    const mote_input input = {text_of(text), {nullptr, 0}};
    std::vector<float> vector(width);
    mote_report report{};
    ASSERT_EQ(mote_embed(session, &input, 1, nullptr, vector.data(), width, &report), MOTE_OK);
    EXPECT_EQ(report.status, MOTE_OK) << mote_last_error();
    EXPECT_GE(cosine(vector.data(), expected.data() + i * width, width), GetParam().cosine);
    EXPECT_EQ(std::min<size_t>(report.tokens, sentence["max_length"]), sentence["ids"].size());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MiniLm,
                         testing::Values(Accuracy{"f32", 0.99999}, Accuracy{"q8_0", 0.9995},
                                         Accuracy{"q8_row", 0.9965}),
                         [](const auto& info) { return std::string(info.param.type); });

}  // namespace
}  // namespace mote::test
