// Ten thousand damaged files from a seeded mutator: each is refused in words that name the file, or
// opens and then serves. Run it with AddressSanitizer (preset dev).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ostream>

#include "tests/support/api.h"
#include "tests/support/file_mutator.h"
#include "tests/support/file_trial.h"
#include "tests/support/guard_page.h"
#include "tests/support/random.h"
#include "tests/support/tiny_families.h"

namespace mote::test {

void PrintTo(const TinyFamily& family, std::ostream* out) { *out << family.name; }

namespace {

constexpr uint32_t kFiles = 10000;

// The bytes end at a guard page, as nearly as the alignment allows.
FileTrial try_file(const Bytes& bytes) {
  GuardedBytes guarded(bytes.size(), (32 - bytes.size() % 32) % 32);
  if (!bytes.empty()) std::memcpy(guarded.data(), bytes.data(), bytes.size());
  return FileTrial(guarded.data(), bytes.size(), chosen_isa());
}

class MutatedFiles : public testing::TestWithParam<TinyFamily> {};

TEST_P(MutatedFiles, UndamagedServes) {
  const FileTrial trial = try_file(GetParam().build().build());
  EXPECT_EQ(trial.faults(), "");
  EXPECT_TRUE(trial.computed()) << mote_last_error();
}

TEST_P(MutatedFiles, RefusedOrServing) {
  constexpr double kMostSeconds = 20;  // with sanitizers, on a busy or emulated machine
  const auto families = static_cast<uint32_t>(tiny_families().size());
  const uint32_t all = std::getenv("MOTE_TEST_ALL") ? 50 * kFiles : kFiles;
  const uint32_t files = (all + families - 1) / families;
  const GgufBuilder good = GetParam().build();
  uint32_t computed = 0, refused = 0;
  for (uint32_t file = 0; file < files; ++file) {
    const uint64_t seed = uint64_t{families} * file + GetParam().seed;
    Random random(seed);
    FileMutator mutator([&](uint32_t limit) { return random.below(limit); });
    const Bytes bytes = mutator.damage(good);
    const auto start = std::chrono::steady_clock::now();
    const FileTrial trial = try_file(bytes);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(trial.faults(), "") << "seed " << seed << ": " << mutator.what();
    EXPECT_LT(seconds.count(), kMostSeconds) << "seed " << seed << ": " << mutator.what();
    computed += trial.computed();
    refused += !trial.opened();
  }
  // Damage that is always refused at the first look would try little.
  EXPECT_GT(computed, files / 5);
  EXPECT_GT(refused, files / 5);
}

// Whichever allocation of an opening fails, the others are released.
TEST_P(MutatedFiles, NoMemoryIsSaid) {
  const AlignedBytes bytes(GetParam().build().build());
  size_t most = 0;
  for (mote_status status = MOTE_ERROR_MEMORY; status != MOTE_OK; ++most) {
    LimitedAllocator allocator(SIZE_MAX, most);
    mote_model_options options = model_options();
    options.allocator = allocator.get();
    mote_model* model = nullptr;
    status = mote_model_open_memory(bytes.data(), bytes.size(), &options, &model);
    if (status != MOTE_OK) {
      ASSERT_EQ(status, MOTE_ERROR_MEMORY) << mote_last_error();
      EXPECT_STRNE(mote_last_error(), "");
    }
    mote_model_close(model);
    EXPECT_EQ(allocator.used(), 0u) << "after " << most << " allocations";
  }
  EXPECT_GT(most, 10u);
}

INSTANTIATE_TEST_SUITE_P(Files, MutatedFiles, testing::ValuesIn(tiny_families()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mote::test
