#include "core/memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "core/arena.h"
#include "core/byte_buffer.h"

namespace mote {
namespace {

// Checks that what is given back is what was handed out, and can say no.
struct Recorder {
  std::map<void*, size_t> blocks;
  size_t budget = SIZE_MAX;
  mote_allocator functions() {
    return {this,
            [](void* user, size_t bytes, size_t alignment) -> void* {
              auto* self = static_cast<Recorder*>(user);
              if (bytes > self->budget) return nullptr;
              self->budget -= bytes;
              void* memory =
                  std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
              self->blocks[memory] = bytes;
              return memory;
            },
            [](void* user, void* memory, size_t bytes) {
              auto* self = static_cast<Recorder*>(user);
              EXPECT_EQ(self->blocks.count(memory), 1u);
              EXPECT_EQ(self->blocks[memory], bytes);
              self->blocks.erase(memory);
              self->budget += bytes;
              std::free(memory);
            }};
  }
};

TEST(Allocator, CountsAndAligns) {
  Allocator allocator;
  for (const size_t alignment : {size_t{1}, size_t{16}, size_t{64}, size_t{4096}}) {
    void* memory = allocator.allocate(100, alignment);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0u);
    EXPECT_EQ(allocator.bytes_in_use(), 100u);
    allocator.release(memory, 100);
    EXPECT_EQ(allocator.bytes_in_use(), 0u);
  }
  allocator.release(nullptr, 5);
  EXPECT_EQ(allocator.bytes_in_use(), 0u);
  void* nothing = allocator.allocate(0, 16);
  EXPECT_NE(nothing, nullptr);
  allocator.release(nothing, 0);
  EXPECT_EQ(allocator.bytes_in_use(), 0u);
}

TEST(Allocator, UsesTheCallersFunctions) {
  Recorder recorder;
  const mote_allocator functions = recorder.functions();
  Allocator allocator(&functions);
  void* memory = allocator.allocate(40, 32);
  EXPECT_EQ(recorder.blocks.size(), 1u);
  allocator.release(memory, 40);
  EXPECT_TRUE(recorder.blocks.empty());
}

TEST(HeapArray, OwnsItsMemory) {
  Recorder recorder;
  const mote_allocator functions = recorder.functions();
  Allocator allocator(&functions);
  {
    HeapArray<uint32_t> array;
    ASSERT_TRUE(array.allocate(allocator, 10, "test").ok());
    for (uint32_t& value : array) value = 7;
    HeapArray<uint32_t> moved = std::move(array);
    EXPECT_EQ(moved.size(), 10u);
    EXPECT_TRUE(array.empty());
    EXPECT_EQ(moved[9], 7u);
    ASSERT_TRUE(moved.allocate(allocator, 0, "test").ok());
    EXPECT_TRUE(recorder.blocks.empty());
    ASSERT_TRUE(moved.allocate(allocator, 3, "test").ok());
  }
  EXPECT_TRUE(recorder.blocks.empty());
  EXPECT_EQ(allocator.bytes_in_use(), 0u);
}

TEST(HeapArray, SaysWhatHadNoMemory) {
  Recorder recorder;
  recorder.budget = 99;
  const mote_allocator functions = recorder.functions();
  Allocator allocator(&functions);
  HeapArray<uint32_t> array;
  EXPECT_EQ(array.allocate(allocator, 25, "table of keys").code(), MOTE_ERROR_MEMORY);
  EXPECT_STREQ(last_error(), "table of keys: no memory for 100 bytes");
  EXPECT_EQ(array.allocate(allocator, SIZE_MAX / 2, "table").code(), MOTE_ERROR_MEMORY);
  EXPECT_TRUE(array.empty());
}

TEST(Arena, MeasuringAndTakingAgree) {
  const auto plan = [](Arena& arena) {
    arena.take<uint8_t>(1);
    arena.take<double>(9);
    arena.take<uint8_t>(0);
    arena.take<uint8_t>(64);
  };
  Arena measuring;
  plan(measuring);
  EXPECT_TRUE(measuring.measuring());
  EXPECT_EQ(measuring.used(), 64u + 128 + 0 + 64);
  alignas(64) uint8_t block[256];
  Arena arena(block, sizeof block);
  plan(arena);
  EXPECT_FALSE(arena.failed());
  EXPECT_EQ(arena.used(), measuring.used());
  EXPECT_EQ(arena.left(), 0u);
  EXPECT_EQ(arena.take<uint8_t>(1), nullptr);
  EXPECT_TRUE(arena.failed());
  EXPECT_EQ(arena.take<uint8_t>(0), nullptr);
}

TEST(Arena, PiecesAreAlignedAndApart) {
  alignas(64) uint8_t block[1024];
  Arena arena(block, sizeof block);
  uint8_t* a = arena.take<uint8_t>(3);
  const size_t mark = arena.mark();
  uint32_t* b = arena.take<uint32_t>(17);
  EXPECT_EQ(a, block);
  EXPECT_EQ(reinterpret_cast<uint8_t*>(b), block + 64);
  arena.release(mark);
  EXPECT_EQ(arena.take<uint32_t>(1), b);
  Arena rest = arena.rest();
  EXPECT_EQ(rest.take<uint8_t>(1), block + 128);
  EXPECT_EQ(arena.used(), 128u);
}

TEST(Arena, RowsTimesColumns) {
  Arena measuring;
  measuring.take<uint32_t>(3, 50);
  EXPECT_EQ(measuring.used(), 640u);
  EXPECT_FALSE(measuring.failed());
  measuring.take<uint8_t>(SIZE_MAX / 4 + 1, 4);  // 0 if it wrapped
  EXPECT_TRUE(measuring.failed());
  EXPECT_EQ(measuring.used(), SIZE_MAX);
}

TEST(Arena, OverflowIsAFailure) {
  Arena measuring;
  measuring.take<uint64_t>(SIZE_MAX / 4);
  EXPECT_TRUE(measuring.failed());
  EXPECT_EQ(measuring.used(), SIZE_MAX);
  alignas(64) uint8_t block[64];
  Arena arena(block, sizeof block);
  EXPECT_EQ(arena.take<uint64_t>(SIZE_MAX / 4), nullptr);
  EXPECT_TRUE(arena.failed());
  EXPECT_EQ(arena.left(), 64u);
  Arena sums;
  sums.take<uint8_t>(SIZE_MAX - 200);
  sums.take<uint8_t>(1000);
  EXPECT_EQ(sums.used(), SIZE_MAX);
  sums.take<uint8_t>(1000);
  EXPECT_EQ(sums.used(), SIZE_MAX);
}

TEST(ByteBuffer, Grows) {
  Allocator allocator;
  {
    ByteBuffer buffer(allocator);
    std::string expected;
    for (int i = 0; i < 5000; ++i) {
      const std::string piece = std::to_string(i);
      ASSERT_TRUE(buffer.append(piece.data(), piece.size()).ok());
      expected += piece;
    }
    ASSERT_TRUE(buffer.append_zeros(3).ok());
    expected.append(3, '\0');
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(buffer.data()), buffer.size()), expected);
    volatile size_t huge = SIZE_MAX - 10;  // unseen by the compiler's own checks
    EXPECT_EQ(buffer.append_zeros(huge).code(), MOTE_ERROR_MEMORY);
    EXPECT_EQ(buffer.size(), expected.size());
  }
  EXPECT_EQ(allocator.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace mote
