// mote dump: hidden states and logits of the forward pass, as a safetensors file.
#include <algorithm>
#include <filesystem>

#include "tools/commands.h"
#include "tools/developer/encoder_run.h"
#include "tools/developer/forward_run.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

struct Options {
  RunOptions run;
  std::string ids, prompt, input, positions = "all", output;
  bool hidden_states = false;
  CLI::Option *ids_option, *prompt_option, *input_option;
};

std::vector<Sequence> sequences_of(const Options& o, const Model& model) {
  if (o.ids_option->count()) return {parse_ids(o.ids)};
  if (o.input_option->count()) {
    SafetensorsReader golden(o.input);
    return read_sequences(golden);
  }
  model.need(MOTE_TASK_TOKENIZE, "tokenizer: give --ids");
  const std::string text = o.prompt == "-" ? read_file("-") : o.prompt;
  ModelOptions small;
  small.context = 8;
  small.threads = 1;
  const Session session(model, session_options(model, small, text.size()));
  Sequence ids;
  for (const mote_token& token : tokenize(session, text, MOTE_TOKENIZE_FRAME))
    ids.push_back(token.id);
  return {ids};
}

std::string hidden_name(uint32_t layer) { return "hidden_states_" + std::to_string(layer); }

// Writes rows to their place in the packed tensors.
class Dump {
 public:
  Dump(const Options& o, const Spec& spec, const std::vector<Sequence>& sequences)
      : hidden_(spec.hidden),
        vocabulary_(spec.vocabulary),
        last_only_(o.positions == "last"),
        file_(o.output) {
    uint64_t rows = 0;
    std::vector<int64_t> lengths;
    for (const Sequence& sequence : sequences) {
      rows += last_only_ ? 1 : sequence.size();
      lengths.push_back(static_cast<int64_t>(sequence.size()));
    }
    file_.declare("lengths", "I64", {lengths.size()});
    if (o.hidden_states)
      for (uint32_t layer = 0; layer <= spec.layers; ++layer)
        file_.declare(hidden_name(layer), "F32", {rows, hidden_});
    file_.declare("logits", "F32", {rows, vocabulary_});
    file_.begin();
    file_.write("lengths", 0, lengths.data(), lengths.size() * sizeof(int64_t));
  }

  void run(ForwardRun& forward, const Sequence& ids, bool hidden_states) {
    length_ = ids.size();
    RunSink sink;
    sink.last_logits_only = last_only_;
    if (hidden_states)
      sink.hidden = [&](uint32_t layer, size_t position, size_t tokens, const float* rows) {
        place(hidden_name(layer), position, tokens, rows, hidden_);
      };
    sink.logits = [&](size_t position, size_t tokens, const float* rows) {
      place("logits", position, tokens, rows, vocabulary_);
    };
    forward.run(ids, sink);
    first_row_ += last_only_ ? 1 : length_;
  }

  void finish() { file_.finish(); }

 private:
  void place(const std::string& name, size_t position, size_t tokens, const float* rows,
             uint64_t width) {
    const uint64_t bytes = width * sizeof(float);
    if (!last_only_)
      file_.write(name, (first_row_ + position) * bytes, rows, tokens * bytes);
    else if (position + tokens == length_)
      file_.write(name, first_row_ * bytes, rows + (tokens - 1) * width, bytes);
  }

  uint64_t hidden_, vocabulary_, first_row_ = 0;
  size_t length_ = 0;
  bool last_only_;
  SafetensorsWriter file_;
};

void dump_encoder(const Options& o, const Model& model, const std::vector<Sequence>& sequences) {
  if (o.positions == "last") throw UsageError("--positions: an encoder's outputs are of all");
  TokenTypes types;
  if (o.input_option->count()) {
    SafetensorsReader golden(o.input);
    types = read_token_types(golden, sequences);
  }
  const std::vector<NamedTensor> tensors =
      run_encoder(model, o.run, sequences, types, o.hidden_states);
  std::vector<int64_t> lengths;
  for (const Sequence& sequence : sequences)
    lengths.push_back(static_cast<int64_t>(sequence.size()));
  SafetensorsWriter file(o.output);
  file.declare("lengths", "I64", {lengths.size()});
  for (const NamedTensor& tensor : tensors) file.declare(tensor.name, "F32", tensor.shape);
  file.begin();
  file.write("lengths", 0, lengths.data(), lengths.size() * sizeof(int64_t));
  for (const NamedTensor& tensor : tensors)
    file.write(tensor.name, 0, tensor.values.data(), tensor.values.size() * sizeof(float));
  file.finish();
}

void dump(const Options& o) {
  refuse_own_input(o.output, {o.run.model, o.input});
  const Model model(o.run.model);
  model.need(MOTE_TASK_GENERATE | MOTE_TASK_EMBED, "weights to run");
  const std::vector<Sequence> sequences = sequences_of(o, model);
  if (is_encoder(model)) return dump_encoder(o, model, sequences);
  size_t longest = 0;
  for (const Sequence& sequence : sequences) longest = std::max(longest, sequence.size());
  if (longest == 0) throw Failure("the input has no tokens");
  ForwardRun forward(model, o.run, longest);
  Dump output(o, forward.spec(), sequences);
  for (const Sequence& sequence : sequences) output.run(forward, sequence, o.hidden_states);
  output.finish();
}

}  // namespace

int run_dump(const Arguments& arguments) {
  CommandLine line("dump",
                   "Writes a model's outputs, and every layer's if asked for, as safetensors.");
  Options o;
  line.app.add_option("-m,--model", o.run.model, "the model, a GGUF file")->required();
  o.ids_option = line.app.add_option("--ids", o.ids, "token ids: 1,2,3; - reads standard input");
  o.prompt_option =
      line.app.add_option("-p,--prompt", o.prompt, "a text, with BOS where the model adds it");
  o.input_option = line.app.add_option(
      "--input", o.input, "safetensors with input_ids, attention_mask, token_type_ids");
  line.app.add_option("-o,--output", o.output, "the file to write")->required();
  line.app.add_flag("--hidden-states", o.hidden_states, "every layer's output too");
  line.app.add_option("--positions", o.positions, "all (default) or last")
      ->check(one_of({"all", "last"}));
  line.app
      .add_option("--kv", o.run.kv,
                  "the cache's type: f16, q8_0, f32 (default for float files: f32, else f16)")
      ->check(one_of({"f16", "q8_0", "f32"}));
  line.app.add_option("--chunk", o.run.chunk, "tokens in one pass (default 256)")
      ->check(within(1, 1 << 20));
  line.app.add_option("-t,--threads", o.run.threads, "threads")->check(within(1, 256));
  if (!line.parse(arguments)) return 0;
  if (o.ids_option->count() + o.prompt_option->count() + o.input_option->count() != 1)
    throw UsageError("give the input with exactly one of --ids, -p and --input");
  dump(o);
  return 0;
}

}  // namespace mote::tool
