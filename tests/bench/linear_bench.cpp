// Linear layers: every instruction set x format x shape, and the bounds of the machine in the same
// run.
//   linear/<isa>/<format>/<columns>x<rows>/<tokens>
// bytes_per_second counts weights (held against roofline/read), operations_per_second
// multiplications and additions (held against roofline/int8_dot or roofline/float_fma). One thread.
// Weights come from a working set that no L2 holds.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/cpu.h"
#include "kernels/kernels.h"
#include "quant/packed.h"
#include "quant/quant.h"
#include "roofline.h"
#include "tests/support/random_weights.h"

namespace mote::bench {
namespace {

constexpr size_t kStreamBytes = 96u << 20, kReuseBytes = 8u << 20;

// Page-aligned memory on huge pages where the system grants them.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes) {
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return;
    data_ = static_cast<uint8_t*>(map);
#if defined(MADV_HUGEPAGE)
    madvise(map, bytes, MADV_HUGEPAGE);
#endif
  }
  ~Buffer() {
    if (data_) munmap(data_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  uint8_t* data() { return data_; }

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_;
};

struct Shape {
  size_t columns, rows;
};

// Random valid weights, as many copies of the matrix as the working set holds.
void fill_weights(Format format, Shape shape, size_t copies, uint8_t* out) {
  const size_t one = row_bytes(format, shape.columns) * shape.rows;
  test::Random random(1);
  const std::vector<uint8_t> weights =
      test::random_weights(format, shape.rows * shape.columns, &random);
  if (is_packed(format))
    quant::pack(format, weights.data(), shape.rows, shape.columns, out);
  else
    std::memcpy(out, weights.data(), one);
  for (size_t i = 1; i < copies; ++i) std::memcpy(out + i * one, out, one);
}

void linear(benchmark::State& state, const Kernels* kernels, Format format, Shape shape,
            size_t tokens) {
  const size_t one = row_bytes(format, shape.columns) * shape.rows;
  const size_t copies = std::max<size_t>(1, (tokens <= 8 ? kStreamBytes : kReuseBytes) / one);
  Buffer weights(one * copies);
  if (!weights.data()) return state.SkipWithError("no memory");
  fill_weights(format, shape, copies, weights.data());

  test::Random random(2);
  std::vector<float> x = random.normals(tokens * shape.columns);
  const size_t blocks = shape.columns / 32;
  std::vector<int8_t> q(x.size());
  std::vector<float> scale(tokens * blocks), scaled_sum(tokens * blocks);
  std::vector<int32_t> correction(tokens * blocks * 2);
  for (size_t t = 0; t < tokens; ++t)
    kernels->quantize_activations(&x[t * shape.columns], shape.columns, &q[t * shape.columns],
                                  &scale[t * blocks], &scaled_sum[t * blocks],
                                  &correction[t * blocks * 2]);
  Activations activations;
  activations.x = x.data();
  activations.x_stride = shape.columns;
  activations.q = q.data();
  activations.scale = scale.data();
  activations.scaled_sum = scaled_sum.data();
  activations.correction = correction.data();
  std::vector<float> y(tokens * shape.rows);
  Buffer scratch(linear_scratch_bytes(shape.columns) + 64);

  LinearTask task;
  task.columns = shape.columns;
  task.rows = task.last_row = shape.rows;
  task.activations = &activations;
  task.tokens = tokens;
  task.y = y.data();
  task.y_stride = shape.rows;
  task.scratch = scratch.data();
  const LinearKernel kernel = linear_kernel(*kernels, format);
  size_t copy = 0;
  for (auto _ : state) {
    task.weights = weights.data() + copy * one;
    kernel(&task);
    copy = copy + 1 == copies ? 0 : copy + 1;
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["bytes_per_second"] =
      benchmark::Counter(runs * static_cast<double>(one), benchmark::Counter::kIsRate);
  state.counters["weights_per_second"] = benchmark::Counter(
      runs * static_cast<double>(shape.columns * shape.rows), benchmark::Counter::kIsRate);
  state.counters["operations_per_second"] =
      benchmark::Counter(runs * 2.0 * static_cast<double>(tokens * shape.columns * shape.rows),
                         benchmark::Counter::kIsRate);
}

void quantize(benchmark::State& state, const Kernels* kernels, size_t columns, size_t tokens) {
  test::Random random(3);
  const std::vector<float> x = random.normals(tokens * columns);
  std::vector<int8_t> q(x.size());
  std::vector<float> scale(x.size() / 32), scaled_sum(x.size() / 32);
  std::vector<int32_t> correction(x.size() / 16);
  for (auto _ : state)
    for (size_t t = 0; t < tokens; ++t)
      kernels->quantize_activations(&x[t * columns], columns, &q[t * columns],
                                    &scale[t * columns / 32], &scaled_sum[t * columns / 32],
                                    &correction[t * columns / 16]);
  state.counters["bytes_per_second"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(x.size() * sizeof(float)),
      benchmark::Counter::kIsRate);
}

void read_roofline(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  Buffer buffer(bytes);
  if (!buffer.data()) return state.SkipWithError("no memory");
  std::memset(buffer.data(), 1, bytes);
  for (auto _ : state) benchmark::DoNotOptimize(read_all(buffer.data(), bytes));
  state.counters["bytes_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(bytes),
                         benchmark::Counter::kIsRate);
}

void peak_roofline(benchmark::State& state, uint64_t (*peak)(uint64_t, const char**)) {
  const char* name = nullptr;
  uint64_t operations = 0;
  for (auto _ : state) operations += peak(100000, &name);
  if (!name) return state.SkipWithError("no such instruction is known");
  state.SetLabel(name);
  state.counters["operations_per_second"] =
      benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate);
}

void register_all() {
  benchmark::RegisterBenchmark("roofline/read", read_roofline)->Arg(kStreamBytes);
  benchmark::RegisterBenchmark("roofline/int8_dot", peak_roofline, int8_dot_peak);
  benchmark::RegisterBenchmark("roofline/float_fma", peak_roofline, float_fma_peak);
  const CpuFeatures cpu = cpu_features();
  size_t count;
  const IsaTable* tables = isa_tables(&count);
  for (size_t i = 0; i < count; ++i) {
    if (!tables[i].supported(cpu)) continue;
    const Kernels* kernels = tables[i].kernels;
    const std::string isa = kernels->isa;
    benchmark::RegisterBenchmark(("quantize_activations/" + isa + "/576/512").c_str(), quantize,
                                 kernels, 576, 512)
        ->Unit(benchmark::kMicrosecond);
    for (const Format format : {
#define LINEAR(name) Format::name,
#include "kernels/linear_formats.inc"
#undef LINEAR
         })
      for (const Shape shape :
           {Shape{576, 1536}, {1536, 576}, {576, 576}, {640, 2048}, {2048, 640}})
        for (const size_t tokens : {1, 2, 4, 8, 32, 512}) {
          if (shape.columns % format_info(format).values != 0) continue;
          const std::string name = "linear/" + isa + "/" + format_info(format).name + "/" +
                                   std::to_string(shape.columns) + "x" +
                                   std::to_string(shape.rows) + "/" + std::to_string(tokens);
          benchmark::RegisterBenchmark(name.c_str(), linear, kernels, format, shape, tokens)
              ->Unit(benchmark::kMicrosecond);
        }
  }
}

}  // namespace
}  // namespace mote::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  mote::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
