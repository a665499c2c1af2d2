#include "tools/developer/forward_run.h"

#include <algorithm>

#include "tools/developer/status.h"

namespace mote::tool {
namespace {

bool has_float_weights(const GgufFile& file) {
  return std::all_of(file.tensors().begin(), file.tensors().end(), [](const Tensor& tensor) {
    return tensor.format == Format::f32 || tensor.format == Format::f16 ||
           tensor.format == Format::bf16;
  });
}

mote_session_options options_for(const Model& model, const RunOptions& options, size_t capacity) {
  mote_session_options session{};
  session.size = sizeof session;
  session.capacity = static_cast<uint32_t>(std::max<size_t>(capacity, 1));
  session.threads = options.threads;
  if (options.chunk) session.batch_tokens = options.chunk;
  const bool full =
      options.kv.empty() ? has_float_weights(model_file(model.get())) : options.kv == "f32";
  session.kv_type = full ? MOTE_KV_F32 : options.kv == "q8_0" ? MOTE_KV_Q8_0 : MOTE_KV_F16;
  return session;
}

}  // namespace

std::vector<Sequence> read_sequences(SafetensorsReader& golden) {
  const SafetensorsEntry& shape = golden.at("input_ids");
  if (shape.shape.size() != 2 || shape.values() == 0)
    throw Failure(golden.path() + ": input_ids: expected [sequences, tokens], found " +
                  shape.describe());
  const size_t count = shape.shape[0], width = shape.shape[1];
  const std::vector<int64_t> ids = golden.read_integers("input_ids");
  std::vector<int64_t> mask, lengths;
  if (golden.find("attention_mask"))
    mask = golden.read_integers("attention_mask");
  else if (golden.find("lengths"))
    lengths = golden.read_integers("lengths");
  if ((!mask.empty() && mask.size() != ids.size()) || (!lengths.empty() && lengths.size() != count))
    throw Failure(golden.path() + ": attention_mask or lengths do not fit input_ids");
  std::vector<Sequence> sequences(count);
  for (size_t row = 0; row < count; ++row) {
    for (size_t i = 0; i < width; ++i) {
      const bool real = !mask.empty()      ? mask[row * width + i] != 0
                        : !lengths.empty() ? static_cast<int64_t>(i) < lengths[row]
                                           : true;
      if (!real) continue;
      if (sequences[row].size() != i)
        throw Failure(golden.path() + ": attention_mask: expected padding on the right only");
      const int64_t id = ids[row * width + i];
      if (id < 0 || id > INT32_MAX)
        throw Failure(golden.path() + ": input_ids: expected token ids, found " +
                      std::to_string(id));
      sequences[row].push_back(static_cast<int32_t>(id));
    }
    if (sequences[row].empty())
      throw Failure(golden.path() + ": sequence " + std::to_string(row) + " is empty");
  }
  return sequences;
}

ForwardRun::ForwardRun(const Model& model, const RunOptions& options, size_t capacity)
    : model_(model),
      chunk_(options.chunk),
      session_(model, options_for(model, options, capacity)) {}

void ForwardRun::append(const int32_t* ids, size_t count, const RunSink& sink) {
  ForwardSink forward_sink;
  forward_sink.user = const_cast<RunSink*>(&sink);
  if (sink.hidden)
    forward_sink.hidden = [](void* user, uint32_t layer, size_t position, size_t tokens,
                             const float* rows) {
      static_cast<const RunSink*>(user)->hidden(layer, position, tokens, rows);
    };
  if (sink.logits)
    forward_sink.logits = [](void* user, size_t position, size_t tokens, const float* rows) {
      static_cast<const RunSink*>(user)->logits(position, tokens, rows);
    };
  if (sink.input)
    forward_sink.input = [](void* user, const uint8_t* matrix, size_t columns, size_t tokens,
                            const float* rows, size_t stride) {
      static_cast<const RunSink*>(user)->input(matrix, columns, tokens, rows, stride);
    };
  forward_sink.last_only = sink.last_logits_only;
  check(forward(session_.get(), ids, count, chunk_, forward_sink));
}

void ForwardRun::run(const Sequence& ids, const RunSink& sink) {
  check(mote_session_rewind(session_.get(), 0));
  append(ids.data(), ids.size(), sink);
}

Sequence ForwardRun::greedy(const Sequence& prompt, size_t count) {
  const size_t vocabulary = spec().vocabulary;
  int32_t best = 0;
  RunSink sink;
  sink.last_logits_only = true;
  sink.logits = [&](size_t, size_t tokens, const float* rows) {
    const float* last = rows + (tokens - 1) * vocabulary;
    best = static_cast<int32_t>(std::max_element(last, last + vocabulary) - last);
  };
  Sequence generated;
  run(prompt, sink);
  while (generated.size() < count) {
    generated.push_back(best);
    if (generated.size() < count) append(&best, 1, sink);
  }
  return generated;
}

}  // namespace mote::tool
