// The example data: enough texts, varied, and a held-out file that no training text gives away.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/tools/tool_support.h"
#include "tools/developer/labelled_texts.h"
#include "tools/developer/tfidf.h"

namespace mote::tool {
namespace {

std::vector<LabelledText> read(const std::string& name) {
  const std::string path = MOTE_SOURCE_DIR "/examples/" + name;
  return parse_labelled_texts(test::read_all(path), name, TextFormat::tsv);
}
std::vector<LabelledText> training() { return read("household_intents.tsv"); }
std::vector<LabelledText> held_out() { return read("household_intents_held_out.tsv"); }

// Distinct words of texts as sorted numbers.
using Words = std::vector<uint32_t>;
class WordNumbers {
 public:
  Words of(const std::string& text) {
    Words words;
    for (const std::string& word : words_of(text))
      words.push_back(numbers_.emplace(word, uint32_t(numbers_.size())).first->second);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    return words;
  }

 private:
  std::map<std::string, uint32_t> numbers_;
};

size_t common(const Words& a, const Words& b) {
  size_t count = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    count += a[i] == b[j];
    const bool first = a[i] <= b[j], second = b[j] <= a[i];
    i += first, j += second;
  }
  return count;
}

std::map<std::string, size_t> texts_by_label(const std::vector<LabelledText>& texts) {
  std::map<std::string, size_t> counts;
  for (const LabelledText& text : texts) ++counts[text.label];
  return counts;
}

TEST(HouseholdIntents, EveryIntentHasManyTextsInBothFiles) {
  const std::map<std::string, size_t> many = texts_by_label(training()),
                                      few = texts_by_label(held_out());
  EXPECT_GE(many.size(), 13u);  // 12 intents and out_of_scope
  EXPECT_EQ(many.count("out_of_scope"), 1u);
  EXPECT_EQ(many.size(), few.size());
  for (const auto& [label, count] : many) {
    EXPECT_GE(count, 40u) << label;
    EXPECT_GE(few.count(label) ? few.at(label) : 0, 15u) << label;
  }
}

// The share of a held-out text's distinct words that one training text has. It is at least the
// Jaccard index of both.
TEST(HouseholdIntents, NoHeldOutTextShares70PercentOfItsWordsWithATrainingText) {
  WordNumbers numbers;
  std::vector<std::pair<Words, const LabelledText*>> known;
  const std::vector<LabelledText> texts = training();
  for (const LabelledText& text : texts) known.push_back({numbers.of(text.text), &text});
  for (const LabelledText& text : held_out()) {
    const Words words = numbers.of(text.text);
    ASSERT_FALSE(words.empty()) << text.text;
    for (const auto& [others, other] : known)
      EXPECT_LT(10 * common(words, others), 7 * words.size())
          << "'" << text.text << "' and '" << other->text << "'";
  }
}

// Sentences were written, not made of templates: few are another one with two words changed.
TEST(HouseholdIntents, TrainingTextsVary) {
  const std::vector<LabelledText> texts = training();
  WordNumbers numbers;
  std::vector<Words> words;
  for (const LabelledText& text : texts) words.push_back(numbers.of(text.text));
  size_t near = 0;
  std::set<std::string> seen;
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(texts[i].text.find_first_not_of(" !%'+,-./0123456789:;?abcdefghijklmnopqrstuvwxyz"),
              std::string::npos)
        << texts[i].text;
    EXPECT_TRUE(seen.insert(texts[i].text).second) << texts[i].text;
    bool has_near = false;
    for (size_t j = 0; j < i; ++j) {
      const size_t both = common(words[i], words[j]);
      const size_t any = words[i].size() + words[j].size() - both;
      has_near = has_near || 10 * both >= 8 * any;
    }
    near += has_near;
  }
  EXPECT_LT(near * 20, texts.size()) << near << " of " << texts.size();
}

}  // namespace
}  // namespace mote::tool
