// What config.json says of single layers: which see a window, which have no rotary positions.
#include <algorithm>

#include "tools/developer/import_architecture.h"

namespace mote::tool {
namespace {

using Json = nlohmann::json;

// Every period-th is not (0: all are); the first of them is number period - 1, or 0 if `first`.
std::vector<bool> all_but_each(uint32_t period, uint32_t layers, bool first = false) {
  std::vector<bool> flags(layers);
  for (uint32_t i = 0; i < layers; ++i)
    flags[i] = period == 0 || (i + (first ? 0 : 1)) % period != 0;
  return flags;
}

const Json& layer_list(const Config& config, const char* key, uint32_t layers) {
  const Json& list = *config.find(key);
  if (!list.is_array() || list.size() != layers)
    config.fail(key, "expected an array of " + std::to_string(layers) + " values, found " +
                         config.shown(key));
  return list;
}

std::vector<bool> window_layers(const Config& config, const WindowRule& rule, uint32_t layers) {
  if (config.has("layer_types")) {
    std::vector<bool> flags;
    for (const Json& type : layer_list(config, "layer_types", layers)) {
      const std::string text = type.is_string() ? type.get<std::string>() : "something else";
      if (text != "sliding_attention" && text != "full_attention")
        config.fail("layer_types", "expected sliding_attention and full_attention, found " + text);
      flags.push_back(text == "sliding_attention");
    }
    return flags;
  }
  if (rule.first_key) {
    std::vector<bool> flags(layers, true);
    // May be 0 or behind the last layer; without it only a full model would be guessed.
    const auto first = static_cast<size_t>(std::max(config.real(rule.first_key), 0.0));
    std::fill_n(flags.begin(), std::min<size_t>(first, layers), false);
    return flags;
  }
  for (const char* key : {rule.period_key, "sliding_window_pattern", "_sliding_window_pattern"})
    if (key && config.has(key)) return all_but_each(config.number(key), layers, rule.global_first);
  return all_but_each(rule.global_every, layers, rule.global_first);
}

// The window, or 0.
uint32_t window_of(const Config& config, const WindowRule& rule) {
  if (rule.switch_key && !config.boolean(rule.switch_key, false)) return 0;
  if (config.has(rule.size_key)) return config.number(rule.size_key);
  return config.json().contains(rule.size_key) ? 0 : rule.fallback;
}

void set_windows(const Config& config, const ImportArchitecture& architecture, uint32_t layers,
                 GgufKeys* keys) {
  const WindowRule& rule = architecture.window;
  const std::string prefix = std::string(architecture.architecture) + ".attention.";
  // Classes with a window in every layer do not read layer_types.
  const std::vector<bool> flags = rule.kind == WindowRule::Kind::every_layer
                                      ? all_but_each(0, layers)
                                      : window_layers(config, rule, layers);
  const bool any = std::find(flags.begin(), flags.end(), true) != flags.end();
  const uint32_t window = any ? window_of(config, rule) : 0;
  keys->set(prefix + "sliding_window", window);
  if (window == 0 || flags == all_but_each(rule.global_every, layers, rule.global_first)) return;
  uint32_t period = 1;
  while (period <= layers && flags != all_but_each(period, layers, rule.global_first)) ++period;
  if (period <= layers)
    keys->set(prefix + "sliding_window_pattern", period);
  else
    keys->set(prefix + "sliding_window_pattern", flags);
}

}  // namespace

void set_layer_keys(const Config& config, const ImportArchitecture& architecture, uint32_t layers,
                    GgufKeys* keys) {
  if (architecture.window.kind != WindowRule::Kind::none) {
    set_windows(config, architecture, layers, keys);
  } else if (config.has("layer_types")) {
    const std::vector<bool> flags = window_layers(config, {}, layers);
    if (std::find(flags.begin(), flags.end(), true) != flags.end())
      config.fail("layer_types",
                  "expected full_attention only, found sliding_attention, which is not supported "
                  "for this architecture");
  }
  const uint32_t unturned_every = architecture.rope.unturned_every;
  if (unturned_every == 0) return;
  std::vector<bool> turned =
      all_but_each(config.number("no_rope_layer_interval", unturned_every), layers);
  if (config.has("no_rope_layers")) {
    turned.clear();
    for (const Json& flag : layer_list(config, "no_rope_layers", layers)) {
      if (!flag.is_number_unsigned() || flag.get<uint64_t>() > 1)
        config.fail("no_rope_layers", "expected 0 and 1, found " + config.shown("no_rope_layers"));
      turned.push_back(flag.get<uint64_t>() == 1);
    }
  }
  // GGUF has no key for it: readers know the usual pattern.
  if (turned != all_but_each(unturned_every, layers)) keys->set("mote.rope.layers", turned);
}

}  // namespace mote::tool
