// The keys that encoders share: embeddings, pooling and heads.
#include <algorithm>
#include <cstdio>

#include "models/architectures/keys.h"

namespace mote {
namespace {

constexpr uint32_t kMaxTokenTypes = 1u << 16, kMaxLabels = 1u << 20;

struct Name {
  const char* name;
  int value;
};
constexpr Name kActivations[] = {
    {"gelu", int(ActivationKind::gelu_erf)}, {"gelu_tanh", int(ActivationKind::gelu_tanh)},
    {"relu", int(ActivationKind::relu)},     {"silu", int(ActivationKind::silu)},
    {"tanh", int(ActivationKind::tanh)},     {"none", int(ActivationKind::none)}};
constexpr Name kPoolings[] = {{"mean", int(Pooling::mean)},
                              {"cls", int(Pooling::cls)},
                              {"max", int(Pooling::max)},
                              {"last", int(Pooling::last)}};
constexpr Name kTasks[] = {{"embed", int(HeadKind::none)},
                           {"classify", int(HeadKind::classify)},
                           {"tag", int(HeadKind::tag)},
                           {"answer", int(HeadKind::answer)},
                           {"masked_lm", int(HeadKind::masked_lm)}};
constexpr Name kProblems[] = {{"single_label_classification", int(Problem::single_label)},
                              {"multi_label_classification", int(Problem::multi_label)},
                              {"regression", int(Problem::regression)}};

// The value of a name in the file; absent: *value stays.
template <class Enum, size_t N>
Status named(const GgufFile& file, const char* key, const Name (&names)[N], Enum* value) {
  if (!file.find(key)) return kOk;
  std::string_view text;
  MOTE_TRY(file.get_text(key, &text));
  char known[200] = "";
  size_t length = 0;
  for (const Name& name : names) {
    if (text == name.name) {
      *value = Enum(name.value);
      return kOk;
    }
    length += size_t(std::snprintf(known + length, sizeof known - length, "%s%s",
                                   length ? ", " : "", name.name));
  }
  return file_error(file, MOTE_ERROR_UNSUPPORTED, "key %s: expected one of %s, found \"%.*s\"", key,
                    known, int(text.size()), text.data());
}

}  // namespace

Status ArchitectureKeys::activation(const char* key, ActivationKind fallback,
                                    ActivationKind* activation) {
  *activation = fallback;
  return named(file_, key, kActivations, activation);
}

Status ArchitectureKeys::encoder_sizes(Spec* spec) {
  spec->causal = false;
  spec->norm = Norm::layer;
  MOTE_TRY(sizes(spec));
  MOTE_TRY(epsilon(spec));
  spec->embedding_norm = true;
  return token_types(spec);
}

// Files name their number, also those of models without such a table: then it is 1.
Status ArchitectureKeys::token_types(Spec* spec) {
  constexpr const char* kCount = "tokenizer.ggml.token_type_count";
  const Tensor* table = file_.find_tensor("token_types.weight");
  uint32_t count = 0;
  if (file_.find(kCount)) MOTE_TRY(file_.get_u32(kCount, &count));
  if (!table && count > 1)
    return file_error(file_, MOTE_ERROR_BAD_FILE,
                      "tensor token_types.weight is missing: key %s says that there are %u", kCount,
                      count);
  if (table && count > 0 && table->rows() != count)
    return file_error(file_, MOTE_ERROR_BAD_FILE,
                      "tensor token_types.weight: expected %u rows by key %s, found %llu", count,
                      kCount, static_cast<unsigned long long>(table->rows()));
  if (table)
    spec->token_types =
        static_cast<uint32_t>(std::min<uint64_t>(table->rows(), uint64_t{kMaxTokenTypes}));
  return kOk;
}

Status ArchitectureKeys::encoder(Spec* spec) {
  spec->norm_place = NormPlace::residual;
  spec->position = Position::learned;
  spec->gated = false;
  spec->always = kAllBiases;
  MOTE_TRY(encoder_sizes(spec));
  MOTE_TRY(activation("mote.activation", ActivationKind::gelu_erf, &spec->activation));
  if (file_.find("mote.embedding_width"))
    MOTE_TRY(file_.get_u32("mote.embedding_width", &spec->embedding_width));
  if (spec->embedding_width == 0 || spec->embedding_width > (1u << 20))
    return file_error(file_, MOTE_ERROR_BAD_FILE,
                      "key mote.embedding_width: expected 1..1048576, found %u",
                      spec->embedding_width);
  return kOk;
}

Status ArchitectureKeys::pooling(const Log& log, Spec* spec) {
  enum : uint32_t { kNone = 0, kMean = 1, kCls = 2, kLast = 3, kRank = 4 };
  uint32_t type = kNone;
  MOTE_TRY(u32("pooling_type", kNone, &type));
  if (type > kRank)
    log.write(MOTE_LOG_WARNING, "%.*s: key %s: %u is not known, the mean is taken",
              int(file_.name().size()), file_.name().data(), buffer_, type);
  spec->pooling = type == kCls ? Pooling::cls : type == kLast ? Pooling::last : Pooling::mean;
  MOTE_TRY(named(file_, "mote.pooling", kPoolings, &spec->pooling));
  MOTE_TRY(file_.get_bool("mote.normalize", false, &spec->normalize_embedding));
  spec->max_tokens = spec->context;
  MOTE_TRY(file_.get_u32("mote.max_tokens", spec->context, &spec->max_tokens));
  if (spec->max_tokens < 1 || spec->max_tokens > spec->context)
    return file_error(file_, MOTE_ERROR_BAD_FILE,
                      "key mote.max_tokens: expected 1..%u, the model's context, found %u",
                      spec->context, spec->max_tokens);
  return kOk;
}

// Files of other writers do not name the task: their classifiers have the tensor cls.output, and
// the activation is not said.
Status ArchitectureKeys::head_kind(const Log& log, Spec* spec) {
  HeadSpec& head = spec->head;
  if (file_.find("mote.task")) {
    MOTE_TRY(named(file_, "mote.task", kTasks, &head.kind));
    if (file_.find_tensor("cls.weight") && !file_.find("mote.head.activation"))
      return file_error(file_, MOTE_ERROR_BAD_FILE,
                        "key mote.head.activation is missing: of the head's matrix cls.weight");
    return activation("mote.head.activation", ActivationKind::none, &head.activation);
  }
  if (!file_.find_tensor("cls.output.weight")) return kOk;
  head.kind = HeadKind::classify;
  head.activation = ActivationKind::tanh;
  if (!file_.find_tensor("cls.weight"))
    return file_error(file_, MOTE_ERROR_BAD_FILE,
                      "tensor cls.weight is missing: the pooler before the classifier cls.output, "
                      "which some converters leave out");
  log.write(MOTE_LOG_WARNING,
            "%.*s: key mote.head.activation is missing: the classifier is taken to have tanh, as "
            "BERT's and RoBERTa's have",
            int(file_.name().size()), file_.name().data());
  return kOk;
}

Status ArchitectureKeys::head(const Log& log, Spec* spec) {
  MOTE_TRY(pooling(log, spec));
  MOTE_TRY(head_kind(log, spec));
  HeadSpec& head = spec->head;
  head.dense = head.activation != ActivationKind::none;
  // A masked language model's dense matrix leads back to the width of the embedding.
  head.width =
      head.dense && head.kind == HeadKind::masked_lm ? spec->embedding_width : spec->hidden;
  MOTE_TRY(named(file_, "mote.head.pooling", kPoolings, &head.pooling));
  MOTE_TRY(file_.get_bool("mote.head.normalize", false, &head.normalize));
  MOTE_TRY(named(file_, "mote.head.problem", kProblems, &head.problem));
  if (head.kind == HeadKind::answer) head.labels = 2;
  if (head.kind != HeadKind::classify && head.kind != HeadKind::tag) return kOk;
  const char* output = head.kind == HeadKind::tag ? "tag.output.weight" : "cls.output.weight";
  const Tensor* tensor = file_.find_tensor(output);
  if (!tensor) return file_error(file_, MOTE_ERROR_BAD_FILE, "tensor %s is missing", output);
  if (tensor->rows() < 1 || tensor->rows() > kMaxLabels)
    return file_error(file_, MOTE_ERROR_BAD_FILE, "tensor %s: expected 1..%u labels, found %llu",
                      output, kMaxLabels, static_cast<unsigned long long>(tensor->rows()));
  head.labels = uint32_t(tensor->rows());
  return kOk;
}

}  // namespace mote
