#include "tools/developer/text_embeddings.h"

#include <algorithm>

#include "tools/interrupt.h"

namespace mote::tool {
namespace {

constexpr size_t kBatchTexts = 256;    // of one call
constexpr uint32_t kPassTokens = 512;  // of one pass: many short texts

}  // namespace

Embedded embed_texts(const Model& model, const ModelOptions& options,
                     const std::vector<std::string>& texts,
                     const std::function<void(size_t done)>& on_progress) {
  size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  mote_session_options session_sizes = session_options(model, options, longest);
  session_sizes.batch_tokens = kPassTokens;
  const Session session(model, session_sizes);
  const InterruptScope scope(session.get());
  const size_t width = model.info().embedding_size;
  Embedded result;
  result.rows.features = width;
  result.rows.values.resize(texts.size() * width);
  mote_text_options text_options{};
  text_options.size = sizeof text_options;
  for (size_t first = 0; first < texts.size(); first += kBatchTexts) {
    const size_t count = std::min(kBatchTexts, texts.size() - first);
    std::vector<mote_input> inputs(count);
    for (size_t i = 0; i < count; ++i) inputs[i].text = as_text(texts[first + i]);
    std::vector<mote_report> reports(count);
    check(mote_embed(session.get(), inputs.data(), count, &text_options,
                     result.rows.values.data() + first * width, count * width, reports.data()));
    for (const mote_report& report : reports) {
      check(report.status);
      result.truncated += report.truncated != 0;
    }
    if (on_progress) on_progress(first + count);
  }
  return result;
}

}  // namespace mote::tool
