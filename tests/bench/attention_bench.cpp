// Attention as models use it: prefill and decode of one layer through the cache, by threads.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <vector>

#include "models/kv_cache.h"

namespace mote {
namespace {

struct Model {
  const char* name;
  uint32_t heads, kv_heads, head_dim, window;
  bool causal;
  KvType type;
};
const Model kModels[] = {
    {"smollm2_135m", 9, 3, 64, 0, true, KvType::f16},
    {"gemma3_270m", 4, 1, 256, 512, true, KvType::f16},
    {"minilm", 12, 12, 32, 0, false, KvType::f32},
    {"llama3_1b", 32, 8, 64, 0, true, KvType::f16},
    {"smollm2_135m_q8_0", 9, 3, 64, 0, true, KvType::q8_0},
    {"gemma3_270m_q8_0", 4, 1, 256, 512, true, KvType::q8_0},
};

std::vector<float> random_values(size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& x : values) x = normal(random);
  return values;
}

// One call appends `tokens` at `position`; eight layers keep the cache out of the core's own
// caches.
void attend(benchmark::State& state, const Model& model, size_t position, size_t tokens,
            uint32_t threads, const Kernels* kernels) {
  if (!kernels) return state.SkipWithError("this CPU cannot run it");
  auto spec = std::make_unique<Spec>();
  spec->layers = model.causal ? 8 : 1;
  spec->heads = model.heads;
  spec->kv_heads = model.kv_heads;
  spec->head_dim = model.head_dim;
  spec->causal = model.causal;
  for (uint32_t i = 0; i < spec->layers; ++i) spec->layer[i].window = model.window;
  KvCache cache;
  Team team;
  Arena measure;
  const size_t capacity = position + tokens, chunk = std::max<size_t>(tokens, 64);
  cache.plan(measure, *spec, model.type, capacity, chunk, threads);
  team.plan(measure, threads);
  std::vector<uint8_t> memory(measure.used() + 64);
  Arena arena(memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64,
              measure.used());
  cache.plan(arena, *spec, model.type, capacity, chunk, threads);
  team.plan(arena, threads);
  if (!team.start(nullptr).ok()) return state.SkipWithError("no threads");
  const size_t width = model.heads * model.head_dim, kv_width = model.kv_heads * model.head_dim;
  const auto q = random_values(chunk * width), k = random_values(chunk * kv_width),
             v = random_values(chunk * kv_width);
  std::vector<float> out(chunk * width);
  auto run = [&](size_t layer, size_t p, size_t n) {
    cache.attend(team, *kernels, static_cast<uint32_t>(layer), p, n, q.data(), width, k.data(),
                 v.data(), kv_width, out.data(), width);
  };
  team.run([&] {
    for (size_t layer = 0; layer < spec->layers; ++layer)
      for (size_t p = 0; p < position; p += chunk) run(layer, p, std::min(chunk, position - p));
  });
  for (auto _ : state)
    team.run([&] {
      for (size_t layer = 0; layer < spec->layers; ++layer) run(layer, position, tokens);
    });
  const double layers = spec->layers * static_cast<double>(state.iterations());
  state.counters["us_layer"] =
      benchmark::Counter(layers / 1e6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  const double keys = model.causal ? position + (tokens + 1) / 2.0 : tokens;
  state.counters["flops"] =
      benchmark::Counter(4 * keys * tokens * width * layers, benchmark::Counter::kIsRate);
}

void add(const Model& model, const char* isa, size_t position, size_t tokens, uint32_t threads) {
  const Kernels* kernels = select_kernels(isa);
  const std::string name = std::string("attention/") + model.name + "/" + (isa ? isa : "best") +
                           "/at:" + std::to_string(position) + "/tokens:" + std::to_string(tokens) +
                           "/threads:" + std::to_string(threads);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    attend(state, model, position, tokens, threads, kernels);
  })->UseRealTime();
}

const int registered = [] {
  for (uint32_t threads : {1, 2}) {
    for (size_t tokens : {128, 512, 2048}) add(kModels[0], nullptr, 0, tokens, threads);
    for (size_t position : {127, 511, 4095}) add(kModels[0], nullptr, position, 1, threads);
    add(kModels[0], nullptr, 4092, 4, threads);
    add(kModels[1], nullptr, 0, 512, threads);
    for (size_t position : {127, 511, 4095}) add(kModels[1], nullptr, position, 1, threads);
    for (size_t tokens : {8, 32, 128, 512}) add(kModels[2], nullptr, 0, tokens, threads);
    add(kModels[3], nullptr, 0, 512, threads);
    add(kModels[3], nullptr, 511, 1, threads);
    for (size_t model : {4, 5}) {
      add(kModels[model], nullptr, 0, 512, threads);
      for (size_t position : {127, 511, 4095}) add(kModels[model], nullptr, position, 1, threads);
    }
  }
  size_t count;
  const IsaTable* tables = isa_tables(&count);
  for (size_t i = 0; i < count; ++i)
    for (size_t model : {0, 1, 2, 4}) {
      add(kModels[model], tables[i].kernels->isa, 0, 512, 1);
      if (kModels[model].causal) add(kModels[model], tables[i].kernels->isa, 511, 1, 1);
    }
  return 0;
}();

}  // namespace
}  // namespace mote
