#include "tools/developer/encoder_run.h"

#include <algorithm>
#include <cmath>

#include "models/encoder.h"
#include "models/session.h"
#include "tools/developer/status.h"

namespace mote::tool {
namespace {

class EncoderRun {
 public:
  EncoderRun(const Model& model, const RunOptions& options, size_t longest, bool hidden_states)
      : spec_(model_spec(model.get())),
        session_(model, options_for(options, longest)),
        limit_(options.chunk ? options.chunk : session_.get()->sizes.batch_tokens),
        hidden_states_(hidden_states) {}

  void run(const std::vector<Sequence>& sequences, const TokenTypes& types) {
    std::vector<mote::Sequence> batch;
    size_t tokens = 0;
    for (size_t s = 0; s < sequences.size(); ++s) {
      if (!batch.empty() && tokens + sequences[s].size() > limit_) {
        pass(batch);
        batch.clear();
        tokens = 0;
      }
      batch.push_back({sequences[s].data(), types.empty() ? nullptr : types[s].data(),
                       static_cast<uint32_t>(sequences[s].size())});
      tokens += sequences[s].size();
    }
    pass(batch);
  }

  std::vector<NamedTensor> finish() { return std::move(tensors_); }

 private:
  static mote_session_options options_for(const RunOptions& options, size_t longest) {
    mote_session_options session{};
    session.size = sizeof session;
    session.capacity = static_cast<uint32_t>(longest);
    session.batch_tokens = options.chunk;
    session.threads = options.threads;
    return session;
  }

  void pass(const std::vector<mote::Sequence>& batch) {
    size_t tokens = 0;
    for (const mote::Sequence& sequence : batch) tokens += sequence.tokens;
    ForwardSink sink;
    sink.user = this;
    if (hidden_states_)
      sink.hidden = [](void* user, uint32_t index, size_t, size_t rows, const float* values) {
        auto& run = *static_cast<EncoderRun*>(user);
        run.append("hidden_states_" + std::to_string(index), rows, run.spec_.hidden, values);
      };
    EncoderOutputs outputs;
    check(encode(session_.get(), batch.data(), batch.size(), sink, &outputs));
    const size_t labels = spec_.head.labels;
    switch (spec_.head.kind) {
      case HeadKind::classify:
        append("logits", batch.size(), labels, outputs.sequence_logits);
        append_probabilities(batch.size(), outputs.sequence_logits);
        break;
      case HeadKind::tag:
        append("logits", tokens, labels, outputs.token_logits);
        break;
      case HeadKind::answer:
        append_column("start_logits", tokens, outputs.token_logits);
        append_column("end_logits", tokens, outputs.token_logits + 1);
        break;
      case HeadKind::masked_lm:
        append_masked(tokens);
        break;
      case HeadKind::none:
        append("last_hidden_state", tokens, spec_.hidden, outputs.hidden);
        if (outputs.pooler_output)
          append("pooler_output", batch.size(), spec_.hidden, outputs.pooler_output);
        append_embedding("embedding_mean", batch.size(), Pooling::mean);
        append_embedding("embedding_cls", batch.size(), Pooling::cls);
        break;
    }
  }

  NamedTensor& tensor(const std::string& name, std::vector<uint64_t> shape) {
    for (NamedTensor& known : tensors_)
      if (known.name == name) {
        known.shape[0] += shape[0];
        return known;
      }
    tensors_.push_back({name, std::move(shape), {}});
    return tensors_.back();
  }
  void append(const std::string& name, size_t rows, size_t width, const float* values) {
    std::vector<float>& all = tensor(name, {rows, width}).values;
    all.insert(all.end(), values, values + rows * width);
  }
  // Of rows of two.
  void append_column(const std::string& name, size_t rows, const float* values) {
    std::vector<float>& all = tensor(name, {rows}).values;
    for (size_t row = 0; row < rows; ++row) all.push_back(values[2 * row]);
  }
  void append_probabilities(size_t rows, const float* logits) {
    const size_t labels = spec_.head.labels;
    std::vector<float> all(logits, logits + rows * labels);
    for (size_t row = 0; row < rows; ++row) {
      float* p = all.data() + row * labels;
      const float top = *std::max_element(p, p + labels);
      double sum = 0;
      for (size_t i = 0; i < labels; ++i) {
        const bool alone = labels == 1 || spec_.head.problem == Problem::multi_label;
        p[i] = static_cast<float>(alone ? 1.0 / (1.0 + std::exp(-double(p[i])))
                                        : std::exp(double(p[i]) - double(top)));
        sum = alone ? 1.0 : sum + double(p[i]);
      }
      for (size_t i = 0; i < labels; ++i) p[i] = static_cast<float>(double(p[i]) / sum);
    }
    if (spec_.head.problem != Problem::regression)
      append("probabilities", rows, labels, all.data());
  }
  void append_masked(size_t tokens) {
    mote_session& session = *session_.get();
    for (uint32_t first = 0; first < tokens; first += Transformer::kLogitRows) {
      uint32_t rows[Transformer::kLogitRows];
      const size_t count = std::min(Transformer::kLogitRows, tokens - first);
      for (uint32_t i = 0; i < count; ++i) rows[i] = first + i;
      session.team.run([&] {
        append("logits", count, spec_.vocabulary,
               session.transformer.masked_logits(session.team, rows, count));
      });
    }
  }
  void append_embedding(const std::string& name, size_t count, Pooling pooling) {
    mote_session& session = *session_.get();
    std::vector<float> rows;
    session.team.run([&] {
      const float* pooled = session.transformer.pooled(session.team, pooling);
      rows.assign(pooled, pooled + count * spec_.hidden);
    });
    for (size_t row = 0; row < count; ++row) {
      float* x = rows.data() + row * spec_.hidden;
      double squares = 0;
      for (size_t i = 0; i < spec_.hidden; ++i) squares += double(x[i]) * double(x[i]);
      for (size_t i = 0; i < spec_.hidden; ++i)
        x[i] = static_cast<float>(double(x[i]) / std::sqrt(squares));
    }
    append(name, count, spec_.hidden, rows.data());
  }

  const Spec& spec_;
  Session session_;
  size_t limit_;
  bool hidden_states_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace

bool is_encoder(const Model& model) { return !model_spec(model.get()).causal; }

TokenTypes read_token_types(SafetensorsReader& golden, const std::vector<Sequence>& sequences) {
  TokenTypes types;
  if (!golden.find("token_type_ids")) return types;
  const std::vector<uint64_t>& shape = golden.at("token_type_ids").shape;
  if (shape != golden.at("input_ids").shape)
    throw Failure(golden.path() + ": token_type_ids: expected the shape of input_ids, found " +
                  golden.at("token_type_ids").describe());
  const std::vector<int64_t> all = golden.read_integers("token_type_ids");
  for (size_t s = 0; s < sequences.size(); ++s) {
    types.emplace_back();
    for (size_t t = 0; t < sequences[s].size(); ++t) {
      const int64_t type = all[s * shape[1] + t];
      if (type < 0 || type > UINT8_MAX)
        throw Failure(golden.path() + ": token_type_ids: expected 0..255, found " +
                      std::to_string(type));
      types.back().push_back(static_cast<uint8_t>(type));
    }
  }
  return types;
}

std::vector<NamedTensor> run_encoder(const Model& model, const RunOptions& options,
                                     const std::vector<Sequence>& sequences,
                                     const TokenTypes& types, bool hidden_states) {
  size_t longest = 1;
  for (const Sequence& sequence : sequences) longest = std::max(longest, sequence.size());
  EncoderRun run(model, options, longest, hidden_states);
  run.run(sequences, types);
  return run.finish();
}

}  // namespace mote::tool
