#include <cmath>

#include "tools/developer/import_architecture.h"

namespace mote::tool {

namespace {

constexpr double kPi = 3.14159265358979323846;

uint32_t original_context(const Config& config, const RopeSettings& rope) {
  return rope.parameters.number("original_max_position_embeddings",
                                config.number("max_position_embeddings"));
}

// YaRN's factor of the rotated vectors' length where the config says it, or 0: it follows from the
// factor then. With mscale settings as DeepSeek's models have them it is a quotient of two such
// factors.
double yarn_attention_factor(const Config& parameters, double factor) {
  if (parameters.has("attention_factor")) return parameters.real("attention_factor");
  if (!parameters.has("mscale") || !parameters.has("mscale_all_dim")) return 0.0;
  const auto scale = [factor](double mscale) {
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
  };
  return scale(parameters.real("mscale")) / scale(parameters.real("mscale_all_dim"));
}

// Configs of two times may stand side by side; which of them counts, readers do not agree on.
void check_agreement(const Config& config, const Config& now, const Config& old) {
  if (now.json().empty()) return;
  for (const auto& [key, value] : old.json().items()) {
    const auto same = now.json().find(key == "type" ? "rope_type" : key);
    if (same == now.json().end() || *same != value)
      config.fail("rope_scaling", "expected what rope_parameters says, found " + key + " " +
                                      value.dump() +
                                      (same == now.json().end() ? ", which is not there"
                                                                : ", there it is " + same->dump()));
  }
}

}  // namespace

RopeSettings read_rope(const Config& config, const RopeRule& rule) {
  RopeSettings rope;
  Config now = config.child("rope_parameters"), old = config.child("rope_scaling");
  if (now.has("full_attention")) {  // settings of each type of layer
    if (!rule.local_base)
      now.fail("full_attention",
               "rotary settings of each type of layer are not supported for this architecture");
    const Config local = now.child("sliding_attention");
    if (const std::string type = local.text("rope_type", "default"); type != "default")
      local.fail("rope_type", "expected default, found " + type);
    rope.local_base = local.real("rope_theta", 0.0);
    now = now.child("full_attention");
  }
  check_agreement(config, now, old);
  if (rule.local_base && rope.local_base == 0.0)
    rope.local_base = config.real(rule.local_base_key, 10000.0);
  rope.base = now.real("rope_theta", config.real(rule.base_key, rule.base));
  rope.partial =
      now.real("partial_rotary_factor", config.real("partial_rotary_factor", rule.partial));
  if (!rule.may_be_partial && rope.partial != 1.0)
    config.fail("partial_rotary_factor", "expected 1, found " +
                                             nlohmann::json(rope.partial).dump() +
                                             ", which is not supported for this architecture");
  rope.parameters = now.json().empty() ? old : now;
  // Old configs say "type"; later ones "rope_type".
  rope.type = rope.parameters.text("rope_type", rope.parameters.text("type", "default"));
  if (!(rope.base > 1)) config.fail("rope_theta", "expected more than 1");
  if (rule.local_base && !(rope.local_base > 1))
    config.fail(rule.local_base_key, "expected more than 1");
  return rope;
}

void set_rope_keys(const Config& config, const RopeSettings& rope, const std::string& architecture,
                   GgufKeys* keys) {
  const std::string prefix = architecture + ".rope.";
  keys->set(prefix + "freq_base", static_cast<float>(rope.base));
  if (rope.local_base != 0.0)
    keys->set(prefix + "freq_base_swa", static_cast<float>(rope.local_base));
  if (rope.type == "default" || rope.type == "llama3") return;
  if (rope.type != "linear" && rope.type != "yarn")
    rope.parameters.fail(rope.parameters.has("rope_type") ? "rope_type" : "type",
                         "expected default, linear, llama3 or yarn, found " + rope.type);
  const double factor = rope.parameters.real("factor");
  if (factor < 1.0) rope.parameters.fail("factor", "expected at least 1");
  keys->set(prefix + "scaling.type", rope.type);
  keys->set(prefix + "scaling.factor", static_cast<float>(factor));
  if (rope.type != "yarn") return;
  keys->set(prefix + "scaling.original_context_length", original_context(config, rope));
  if (rope.parameters.has("beta_fast"))
    keys->set(prefix + "scaling.yarn_beta_fast",
              static_cast<float>(rope.parameters.real("beta_fast")));
  if (rope.parameters.has("beta_slow"))
    keys->set(prefix + "scaling.yarn_beta_slow",
              static_cast<float>(rope.parameters.real("beta_slow")));
  if (!rope.parameters.boolean("truncate", true))
    rope.parameters.fail("truncate",
                         "a YaRN ramp that is not rounded to whole pairs is not supported");
  // The file's number multiplies what follows from the factor.
  if (const double attention = yarn_attention_factor(rope.parameters, factor); attention != 0.0)
    keys->set(prefix + "scaling.attn_factor",
              static_cast<float>(attention / (0.1 * std::log(factor) + 1.0)));
}

std::vector<float> rope_divisors(const RopeSettings& rope, uint32_t rotary_dimensions) {
  std::vector<float> divisors;
  if (rope.type != "llama3") return divisors;
  const double factor = rope.parameters.real("factor"),
               low = rope.parameters.real("low_freq_factor", 1.0),
               high = rope.parameters.real("high_freq_factor", 4.0),
               context = rope.parameters.number("original_max_position_embeddings");
  if (factor < 1.0) rope.parameters.fail("factor", "expected at least 1");
  if (!(low > 0.0 && high > low))
    rope.parameters.fail("high_freq_factor", "expected more than low_freq_factor");
  // Llama 3.1: pairs whose wave fits the original context often stay, those that do not fit are
  // divided by the factor, and between them the frequencies blend.
  for (uint32_t i = 0; i < rotary_dimensions; i += 2) {
    const double wave = 2.0 * kPi * std::pow(rope.base, double(i) / rotary_dimensions);
    const double blend = (context / wave - low) / (high - low);
    divisors.push_back(static_cast<float>(blend > 1.0   ? 1.0
                                          : blend < 0.0 ? factor
                                                        : 1.0 / ((1.0 - blend) / factor + blend)));
  }
  return divisors;
}

}  // namespace mote::tool
