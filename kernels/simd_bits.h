// What unpackers are made of: operations on levels, the small integers that weights are stored as,
// in the tile view of simd_int8.h. `words` are the 4 bytes of a lane as one integer.
//
//   set_bytes(v)                   v in every byte
//   bits_and, bits_or, bits_xor    bitwise
//   subtract_bytes                 per byte, modulo 256
//   shift_down, shift_up(v, n)     each word by n bits, zeros come in; bits cross bytes
//   look_up(table, levels)         table[level], levels < 16
//   with_fifth_bit(levels, high, i)  + 16 in byte k where bit 4 i + k of the word `high` is set
//   level_factor(s)                s, 0..255, as a factor for
//   multiply_levels(levels, s)     per byte; every product must be below 256
#pragma once

#include "kernels/simd_int8.h"

namespace mote::MOTE_ISA {
namespace {

#if defined(MOTE_ISA_scalar)

MOTE_INLINE Bytes as_bytes(uint32_t v) { return read<Bytes>(&v); }
MOTE_INLINE uint32_t word_of(Bytes v) { return read<uint32_t>(&v); }
MOTE_INLINE Bytes set_bytes(int v) { return as_bytes(0x01010101u * static_cast<uint8_t>(v)); }
MOTE_INLINE Bytes set_words(uint32_t v) { return as_bytes(v); }
MOTE_INLINE Bytes bits_and(Bytes a, Bytes b) { return as_bytes(word_of(a) & word_of(b)); }
MOTE_INLINE Bytes bits_or(Bytes a, Bytes b) { return as_bytes(word_of(a) | word_of(b)); }
MOTE_INLINE Bytes bits_xor(Bytes a, Bytes b) { return as_bytes(word_of(a) ^ word_of(b)); }
MOTE_INLINE Bytes shift_down(Bytes v, int n) { return as_bytes(word_of(v) >> n); }
MOTE_INLINE Bytes shift_up(Bytes v, int n) { return as_bytes(word_of(v) << n); }
MOTE_INLINE Bytes subtract_bytes(Bytes a, Bytes b) {
  for (int k = 0; k < 4; ++k) a.byte[k] = static_cast<int8_t>(a.byte[k] - b.byte[k]);
  return a;
}
MOTE_INLINE Bytes look_up(const int8_t* table, Bytes levels) {
  for (int8_t& level : levels.byte) level = table[level];
  return levels;
}
MOTE_INLINE Bytes with_fifth_bit(Bytes levels, Bytes high, int i) {
  for (int k = 0; k < 4; ++k)
    levels.byte[k] = static_cast<int8_t>(levels.byte[k] | (word_of(high) >> (4 * i + k) & 1) << 4);
  return levels;
}
MOTE_INLINE Bytes level_factor(Bytes s) { return s; }
MOTE_INLINE Bytes multiply_levels(Bytes levels, Bytes s) {
  return as_bytes(word_of(levels) * word_of(s));  // no product carries into the next byte
}

#elif defined(__AVX512BW__)

MOTE_INLINE Bytes as_bytes(Ints v) { return v; }
MOTE_INLINE Bytes set_bytes(int v) { return _mm512_set1_epi8(static_cast<char>(v)); }
MOTE_INLINE Bytes set_words(uint32_t v) { return _mm512_set1_epi32(static_cast<int>(v)); }
MOTE_INLINE Bytes bits_and(Bytes a, Bytes b) { return _mm512_and_si512(a, b); }
MOTE_INLINE Bytes bits_or(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
MOTE_INLINE Bytes bits_xor(Bytes a, Bytes b) { return _mm512_xor_si512(a, b); }
MOTE_INLINE Bytes subtract_bytes(Bytes a, Bytes b) { return _mm512_sub_epi8(a, b); }
MOTE_INLINE Bytes shift_down(Bytes v, int n) { return _mm512_srlv_epi32(v, _mm512_set1_epi32(n)); }
MOTE_INLINE Bytes shift_up(Bytes v, int n) { return _mm512_sllv_epi32(v, _mm512_set1_epi32(n)); }
MOTE_INLINE Bytes look_up(const int8_t* table, Bytes levels) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load16(table)), levels);
}
MOTE_INLINE Bytes with_fifth_bit(Bytes levels, Bytes high, int i) {
  const Bytes byte = _mm512_broadcast_i32x4(_mm_add_epi32(
      _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c), _mm_set1_epi32(0x01010101 * (i / 2))));
  const Bytes bit = _mm512_set1_epi32(i % 2 ? static_cast<int>(0x80402010) : 0x08040201);
  const __mmask64 set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(high, byte), bit);
  return _mm512_mask_add_epi8(levels, set, levels, _mm512_set1_epi8(16));
}
MOTE_INLINE Bytes level_factor(Bytes s) { return bits_or(s, _mm512_slli_epi32(s, 16)); }
// Two products at a time: the lower one does not carry.
MOTE_INLINE Bytes multiply_levels(Bytes levels, Bytes s) { return _mm512_mullo_epi16(levels, s); }

#elif defined(__AVX2__)

MOTE_INLINE Bytes as_bytes(Ints v) { return v; }
MOTE_INLINE Bytes set_bytes(int v) { return _mm256_set1_epi8(static_cast<char>(v)); }
MOTE_INLINE Bytes set_words(uint32_t v) { return _mm256_set1_epi32(static_cast<int>(v)); }
MOTE_INLINE Bytes bits_and(Bytes a, Bytes b) { return _mm256_and_si256(a, b); }
MOTE_INLINE Bytes bits_or(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
MOTE_INLINE Bytes bits_xor(Bytes a, Bytes b) { return _mm256_xor_si256(a, b); }
MOTE_INLINE Bytes subtract_bytes(Bytes a, Bytes b) { return _mm256_sub_epi8(a, b); }
MOTE_INLINE Bytes shift_down(Bytes v, int n) { return _mm256_srlv_epi32(v, _mm256_set1_epi32(n)); }
MOTE_INLINE Bytes shift_up(Bytes v, int n) { return _mm256_sllv_epi32(v, _mm256_set1_epi32(n)); }
MOTE_INLINE Bytes look_up(const int8_t* table, Bytes levels) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load16(table)), levels);
}
MOTE_INLINE Bytes with_fifth_bit(Bytes levels, Bytes high, int i) {
  const Bytes byte = _mm256_broadcastsi128_si256(_mm_add_epi32(
      _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c), _mm_set1_epi32(0x01010101 * (i / 2))));
  const Bytes bit = _mm256_set1_epi32(i % 2 ? static_cast<int>(0x80402010) : 0x08040201);
  const Bytes found = _mm256_and_si256(_mm256_shuffle_epi8(high, byte), bit);
  const Bytes set = _mm256_and_si256(_mm256_cmpeq_epi8(found, bit), _mm256_set1_epi8(16));
  return _mm256_or_si256(levels, set);
}
MOTE_INLINE Bytes level_factor(Bytes s) { return bits_or(s, _mm256_slli_epi32(s, 16)); }
// Two products at a time: the lower one does not carry.
MOTE_INLINE Bytes multiply_levels(Bytes levels, Bytes s) { return _mm256_mullo_epi16(levels, s); }

#elif defined(__x86_64__)  // SSE2

MOTE_INLINE Bytes as_bytes(Ints v) { return v; }
MOTE_INLINE Bytes set_bytes(int v) { return _mm_set1_epi8(static_cast<char>(v)); }
MOTE_INLINE Bytes set_words(uint32_t v) { return _mm_set1_epi32(static_cast<int>(v)); }
MOTE_INLINE Bytes bits_and(Bytes a, Bytes b) { return _mm_and_si128(a, b); }
MOTE_INLINE Bytes bits_or(Bytes a, Bytes b) { return _mm_or_si128(a, b); }
MOTE_INLINE Bytes bits_xor(Bytes a, Bytes b) { return _mm_xor_si128(a, b); }
MOTE_INLINE Bytes subtract_bytes(Bytes a, Bytes b) { return _mm_sub_epi8(a, b); }
MOTE_INLINE Bytes shift_down(Bytes v, int n) { return _mm_srl_epi32(v, _mm_cvtsi32_si128(n)); }
MOTE_INLINE Bytes shift_up(Bytes v, int n) { return _mm_sll_epi32(v, _mm_cvtsi32_si128(n)); }
// There is no byte shuffle yet.
MOTE_INLINE Bytes look_up(const int8_t* table, Bytes levels) {
  uint8_t byte[16];
  store_bytes(byte, levels);
  for (uint8_t& level : byte) level = static_cast<uint8_t>(table[level]);
  return load_bytes(byte);
}
// The four bits in both halves of a word; one multiplication moves each to where it belongs.
MOTE_INLINE Bytes with_fifth_bit(Bytes levels, Bytes high, int i) {
  const Bytes twice = i < 4 ? _mm_shufflehi_epi16(_mm_shufflelo_epi16(high, 0xa0), 0xa0)
                            : _mm_shufflehi_epi16(_mm_shufflelo_epi16(high, 0xf5), 0xf5);
  const Bytes bits = _mm_and_si128(_mm_srli_epi16(twice, i % 4 * 4), _mm_set1_epi16(15));
  const Bytes moved = _mm_mullo_epi16(bits, _mm_set1_epi32(0x02040810));
  return _mm_or_si128(levels, _mm_and_si128(moved, _mm_set1_epi8(16)));
}
MOTE_INLINE Bytes level_factor(Bytes s) { return bits_or(s, _mm_slli_epi32(s, 16)); }
// Two products at a time: the lower one does not carry.
MOTE_INLINE Bytes multiply_levels(Bytes levels, Bytes s) { return _mm_mullo_epi16(levels, s); }

#elif defined(__ARM_NEON)

MOTE_INLINE Bytes as_bytes(Ints v) { return vreinterpretq_s8_s32(v); }
MOTE_INLINE uint32x4_t words_of(Bytes v) { return vreinterpretq_u32_s8(v); }
MOTE_INLINE Bytes set_bytes(int v) { return vdupq_n_s8(static_cast<int8_t>(v)); }
MOTE_INLINE Bytes set_words(uint32_t v) { return vreinterpretq_s8_u32(vdupq_n_u32(v)); }
MOTE_INLINE Bytes bits_and(Bytes a, Bytes b) { return vandq_s8(a, b); }
MOTE_INLINE Bytes bits_or(Bytes a, Bytes b) { return vorrq_s8(a, b); }
MOTE_INLINE Bytes bits_xor(Bytes a, Bytes b) { return veorq_s8(a, b); }
MOTE_INLINE Bytes subtract_bytes(Bytes a, Bytes b) { return vsubq_s8(a, b); }
MOTE_INLINE Bytes shift_up(Bytes v, int n) {
  return vreinterpretq_s8_u32(vshlq_u32(words_of(v), vdupq_n_s32(n)));
}
MOTE_INLINE Bytes shift_down(Bytes v, int n) { return shift_up(v, -n); }
MOTE_INLINE Bytes look_up(const int8_t* table, Bytes levels) {
#if defined(__aarch64__)
  return vqtbl1q_s8(vld1q_s8(table), vreinterpretq_u8_s8(levels));
#else
  const int8x8x2_t halves = {{vld1_s8(table), vld1_s8(table + 8)}};
  return vcombine_s8(vtbl2_s8(halves, vget_low_s8(levels)), vtbl2_s8(halves, vget_high_s8(levels)));
#endif
}
MOTE_INLINE Bytes with_fifth_bit(Bytes levels, Bytes high, int i) {
  // Byte i / 2 of each word, four times.
  const uint64_t low_words = 0x0404040400000000u + 0x0101010101010101u * (i / 2u);
#if defined(__aarch64__)
  const uint8x16_t byte =
      vcombine_u8(vcreate_u8(low_words), vcreate_u8(low_words + 0x0808080808080808u));
  const int8x16_t found = vqtbl1q_s8(high, byte);
#else
  const int8x8_t byte = vcreate_s8(low_words);
  const int8x16_t found =
      vcombine_s8(vtbl1_s8(vget_low_s8(high), byte), vtbl1_s8(vget_high_s8(high), byte));
#endif
  const Bytes bit = set_words(i % 2 ? 0x80402010u : 0x08040201u);
  const uint8x16_t set = vandq_u8(vtstq_s8(found, bit), vdupq_n_u8(16));
  return vorrq_s8(levels, vreinterpretq_s8_u8(set));
}
MOTE_INLINE Bytes level_factor(Bytes s) {
  return vreinterpretq_s8_u32(vmulq_n_u32(words_of(s), 0x01010101u));
}
MOTE_INLINE Bytes multiply_levels(Bytes levels, Bytes s) { return vmulq_s8(levels, s); }

#endif

// Byte n of each word.
MOTE_INLINE Bytes byte_of(Bytes words, int n) {
  return bits_and(shift_down(words, 8 * n), set_words(255));
}
// (byte >> shift) & mask, mask < 1 << (8 - shift) so that no bit of the next byte remains.
MOTE_INLINE Bytes field(Bytes v, int shift, int mask) {
  return bits_and(shift_down(v, shift), set_bytes(mask));
}
MOTE_INLINE Ints signed_byte_of(Bytes words, int n) {
  return shift_right<24>(as_ints(shift_up(words, 24 - 8 * n)));
}

}  // namespace
}  // namespace mote::MOTE_ISA
