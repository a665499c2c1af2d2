#include "tools/developer/output_types.h"

#include <cstdlib>
#include <cstring>

#include "quant/blocks.h"
#include "quant/packed.h"
#include "tools/failure.h"

namespace mote::tool {
namespace {

// Names of llama.cpp's llama-quantize and its numbers of file types.
const OutputType kTypes[] = {
    {"f32", Format::f32, 0},        {"f16", Format::f16, 1},        {"bf16", Format::bf16, 32},
    {"q8_0", Format::q8_0, 7},      {"q4_0", Format::q4_0, 2},      {"q4_1", Format::q4_1, 3},
    {"q5_0", Format::q5_0, 8},      {"q5_1", Format::q5_1, 9},      {"q2_k", Format::q2_k, 10},
    {"q2_k_s", Format::q2_k, 21},   {"q3_k_s", Format::q3_k, 11},   {"q3_k_m", Format::q3_k, 12},
    {"q3_k_l", Format::q3_k, 13},   {"q4_k_s", Format::q4_k, 14},   {"q4_k_m", Format::q4_k, 15},
    {"q5_k_s", Format::q5_k, 16},   {"q5_k_m", Format::q5_k, 17},   {"q6_k", Format::q6_k, 18},
    {"iq4_nl", Format::iq4_nl, 25}, {"iq4_xs", Format::iq4_xs, 30}, {"q8_row", Format::q8_row, 7}};

const std::pair<const char*, const char*> kAliases[] = {
    {"q3_k", "q3_k_m"}, {"q4_k", "q4_k_m"}, {"q5_k", "q5_k_m"}};

// exact: small tables that are read and not multiplied with.
enum class Role { other, exact, embedding, head, query, key, value, output, gate, up, down };

// In which layers a rule holds.
enum class Where {
  all,
  first_two,
  first_four,
  first_eighth,
  first_sixteenth,
  outer_and_third,  // the first and last eighth and every third between
  shared_keys       // 4 or more query heads to a key head
};

struct Rule {
  const char* type;
  Role role;
  Where where;
  Format format;
};

// The first that fits counts. A product of query, key and value at once counts as the value.
constexpr Rule kRules[] = {
    {"q2_k", Role::value, Where::shared_keys, Format::q4_k},
    {"q2_k", Role::value, Where::all, Format::q3_k},
    {"q2_k", Role::output, Where::all, Format::q3_k},
    {"q2_k", Role::down, Where::all, Format::q3_k},
    {"q2_k_s", Role::value, Where::shared_keys, Format::q4_k},
    {"q2_k_s", Role::down, Where::first_eighth, Format::q4_k},
    {"q3_k_m", Role::value, Where::first_two, Format::q5_k},
    {"q3_k_m", Role::value, Where::all, Format::q4_k},
    {"q3_k_m", Role::output, Where::all, Format::q4_k},
    {"q3_k_m", Role::down, Where::first_sixteenth, Format::q5_k},
    {"q3_k_m", Role::down, Where::all, Format::q4_k},
    {"q3_k_l", Role::value, Where::all, Format::q5_k},
    {"q3_k_l", Role::output, Where::all, Format::q5_k},
    {"q3_k_l", Role::down, Where::all, Format::q5_k},
    {"q4_k_s", Role::value, Where::first_four, Format::q5_k},
    {"q4_k_s", Role::down, Where::first_eighth, Format::q5_k},
    {"q4_k_m", Role::value, Where::outer_and_third, Format::q6_k},
    {"q4_k_m", Role::down, Where::outer_and_third, Format::q6_k},
    {"q5_k_m", Role::value, Where::outer_and_third, Format::q6_k},
    {"q5_k_m", Role::down, Where::outer_and_third, Format::q6_k},
    {"iq4_nl", Role::value, Where::shared_keys, Format::q5_k},
    {"iq4_nl", Role::down, Where::first_eighth, Format::q5_k},
    {"iq4_xs", Role::value, Where::shared_keys, Format::q5_k},
    {"iq4_xs", Role::down, Where::first_eighth, Format::q5_k},
};

bool holds(Where where, uint32_t layer, const ModelShape& shape) {
  const uint32_t layers = shape.layers;
  switch (where) {
    case Where::all:
      return true;
    case Where::first_two:
      return layer < 2;
    case Where::first_four:
      return layer < 4;
    case Where::first_eighth:
      return layer < layers / 8;
    case Where::first_sixteenth:
      return layer < layers / 16;
    case Where::outer_and_third:
      return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
    case Where::shared_keys:
      return shape.heads / (shape.kv_heads ? shape.kv_heads : 1) >= 4;
  }
  return false;
}

// "blk.7.ffn_up.weight": layer 7, rest "ffn_up.weight".
bool in_layer(std::string_view name, uint32_t* layer, std::string_view* rest) {
  if (name.substr(0, 4) != "blk.") return false;
  size_t at = 4;
  uint32_t number = 0;
  for (; at < name.size() && at < 10 && name[at] >= '0' && name[at] <= '9'; ++at)
    number = number * 10 + static_cast<uint32_t>(name[at] - '0');
  if (at == 4 || at == name.size() || name[at] != '.') return false;
  *layer = number;
  *rest = name.substr(at + 1);
  return true;
}

Role role_of(std::string_view name, uint32_t* layer) {
  static constexpr std::pair<std::string_view, Role> kNames[] = {
      {"attn_q.weight", Role::query},       {"attn_k.weight", Role::key},
      {"attn_v.weight", Role::value},       {"attn_qkv.weight", Role::value},
      {"attn_output.weight", Role::output}, {"ffn_gate.weight", Role::gate},
      {"ffn_up.weight", Role::up},          {"ffn_down.weight", Role::down},
      {"ffn_gate_exps.weight", Role::gate}, {"ffn_up_exps.weight", Role::up},
      {"ffn_down_exps.weight", Role::down}, {"ffn_gate_shexp.weight", Role::gate},
      {"ffn_up_shexp.weight", Role::up},    {"ffn_down_shexp.weight", Role::down}};
  if (name == "token_embd.weight") return Role::embedding;
  if (name == "output.weight") return Role::head;
  for (const char* table : {"position_embd.weight", "token_types.weight", "attn_rel_b.weight"})
    if (name == table) return Role::exact;
  std::string_view rest;
  if (!in_layer(name, layer, &rest)) return Role::other;
  for (const auto& [known, role] : kNames)
    if (rest == known) return role;
  return Role::other;
}

Format mixture_format(const OutputType& type, const ModelShape& shape, Role role, uint32_t layer) {
  if (role == Role::head || (role == Role::embedding && shape.tied))
    return type.format == Format::q8_0 || type.format == Format::q8_row ? Format::q8_0
                                                                        : Format::q6_k;
  for (const Rule& rule : kRules)
    if (std::strcmp(rule.type, type.name) == 0 && rule.role == role &&
        holds(rule.where, layer, shape))
      return rule.format;
  return type.format;
}

// The next format with smaller blocks and no fewer bits.
Format fall_back(Format format) {
  switch (format) {
    case Format::q2_k:
    case Format::q3_k:
    case Format::iq4_xs:
      return Format::iq4_nl;
    case Format::q4_k:
      return Format::q5_0;
    case Format::q5_k:
      return Format::q5_1;
    case Format::q6_k:
      return Format::q8_0;
    default:
      return Format::f16;
  }
}

}  // namespace

OutputType output_type(const std::string& name) {
  constexpr std::string_view kPacked = "-packed";
  std::string canonical = name;
  const bool packed = name.size() > kPacked.size() &&
                      name.compare(name.size() - kPacked.size(), kPacked.size(), kPacked) == 0;
  if (packed) canonical.resize(name.size() - kPacked.size());
  for (const auto& [alias, meant] : kAliases)
    if (canonical == alias) canonical = meant;
  for (OutputType type : kTypes)
    if (canonical == type.name && (!packed || format_info(type.format).values > 1)) {
      type.packed = packed;
      return type;
    }
  throw UsageError("--type: expected one of " + output_type_names() + ", found " + name);
}

std::string output_type_names() {
  std::string names;
  for (const OutputType& type : kTypes)
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names + "; with -packed behind one that has blocks, weights are packed";
}

uint32_t layers_by_name(std::string_view tensor) {
  uint32_t layer = 0;
  std::string_view rest;
  return in_layer(tensor, &layer, &rest) ? layer + 1 : 0;
}

TensorFormat tensor_format(const OutputType& type, bool pure, const ModelShape& shape,
                           std::string_view name, bool vector, uint64_t columns, Format source) {
  uint32_t layer = 0;
  const Role role = role_of(name, &layer);
  const bool plain = format_info(type.format).values == 1;
  const bool stays =
      role == Role::exact ? type.format != Format::f32 : role == Role::other && !plain;
  if (vector || stays) return {source, source};
  const Format wanted = plain || pure ? type.format : mixture_format(type, shape, role, layer);
  Format format = wanted;
  if (format == Format::q8_row && columns > quant::kMostRowColumns) format = Format::q8_0;
  while (columns % format_info(format).values != 0) format = fall_back(format);
  return {format, wanted};
}

const char* why_not_packed(Format format, const ModelShape& shape, std::string_view name,
                           uint64_t rows) {
  uint32_t layer = 0;
  const Role role = role_of(name, &layer);
  if (packed_format(format) == format) return "its format has no packed form";
  if (rows < quant::kPackedRows) return "fewer rows than a tile has";
  if (role == Role::exact || (role == Role::embedding && (!shape.tied || shape.looked_up)))
    return "only looked up";
  // Two or three matrices in one can only be told apart at tiles.
  const uint64_t heads = shape.heads + 2 * uint64_t{shape.kv_heads};
  if (name.find("attn_qkv.") != std::string_view::npos &&
      (rows % heads != 0 || rows / heads % quant::kPackedRows != 0))
    return "heads are no whole tiles of rows";
  if (role == Role::up && rows % (2 * quant::kPackedRows) != 0)
    return "halves are no whole tiles of rows";
  return nullptr;
}

}  // namespace mote::tool
