/* Fixed-point arithmetic of quantised models: scaling by a multiplier of 31 bits and a
 * power of two, with exactly the roundings that opmeter's engine makes. Right shifts of
 * negative numbers must be arithmetic, as they are with every compiler for processors
 * that this is meant for. */
#ifndef OPMETER_KERNELS_FIXED_H
#define OPMETER_KERNELS_FIXED_H

#include <stdint.h>

/* The bits of x as a signed number: what an accumulator that wraps holds. */
static inline int32_t k_signed(uint32_t x) { return (int32_t)x; }

/* x moved left by n bits (0 to 31), bits that leave are lost. */
static inline int32_t k_left(int32_t x, int n) { return (int32_t)((uint32_t)x << n); }

/* a + b and a - b, wrapping. */
static inline int32_t k_plus(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
static inline int32_t k_minus(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }

/* A sum that wraps, and a product for one. */
static inline uint32_t k_more(uint32_t sum, int32_t x) { return sum + (uint32_t)x; }
static inline uint32_t k_times(int32_t a, int32_t b) { return (uint32_t)a * (uint32_t)b; }

/* High half of 2ab, ties upwards. The one product that does not fit is saturated. */
static inline int32_t k_high_mul(int32_t a, int32_t b) {
  if (a == INT32_MIN && b == INT32_MIN) return INT32_MAX;
  return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

/* x / 2^n, ties away from zero; n beyond 31 gives 0, below 1 gives x. */
static inline int32_t k_round_shift(int32_t x, int n) {
  int32_t mask, rest, threshold;
  if (n <= 0) return x;
  if (n > 31) return 0;
  mask = (int32_t)((UINT32_C(1) << n) - 1);
  rest = x & mask;
  threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> n) + (rest > threshold ? 1 : 0);
}

/* x * mul * 2^(shift-31) with two roundings; a positive shift goes to the left. */
static inline int32_t k_scale(int32_t x, int32_t mul, int shift) {
  if (shift >= 0) return k_high_mul(shift > 31 ? 0 : k_left(x, shift), mul);
  return k_round_shift(k_high_mul(x, mul), -shift);
}

/* How a shift of n bits to the right (0 to 30) rounds: what is added first, and to negative
 * numbers in addition. */
typedef struct {
  int32_t half, negative;
  int n;
} k_rounding;

static inline k_rounding k_round(int n) {
  k_rounding r = {0, 0, 0};
  if (n > 0) {
    r.half = (int32_t)(UINT32_C(1) << (n - 1));
    r.negative = -1;
    r.n = n;
  }
  return r;
}

/* k_scale with such a shift, where x and the result stay far from the limits of 32 bits and
 * mul is not negative. */
static inline int32_t k_scale_right(int32_t x, int32_t mul, k_rounding r) {
  const int32_t h = (int32_t)(((int64_t)x * mul + (1 << 30)) >> 31);
  return (h + ((h >> 31) & r.negative) + r.half) >> r.n;
}

/* k_scale for a sum of 64 bits: the multiplier is cut to 16 bits, one rounding. */
static inline int32_t k_scale64(int64_t x, int32_t mul, int shift) {
  const int64_t r = mul < 0x7FFF0000 ? ((int64_t)mul + (1 << 15)) >> 16 : 0x7FFF;
  const int total = 15 - shift;
  const uint64_t p = (uint64_t)x * (uint64_t)r;
  if (total <= 0) return (int32_t)(uint32_t)(p << -total);
  return (int32_t)(uint32_t)(uint64_t)((int64_t)(p + (UINT64_C(1) << (total - 1))) >> total);
}

static inline int32_t k_clamp(int32_t x, int32_t lo, int32_t hi) { return x < lo ? lo : x > hi ? hi : x; }

static inline int16_t k_saturate16(int32_t x) { return (int16_t)k_clamp(x, INT16_MIN, INT16_MAX); }

/* x * 2^n, saturated; n from 0 to 31. */
static inline int32_t k_left_saturated(int32_t x, int n) {
  const int64_t y = (int64_t)((uint64_t)(int64_t)x << n);
  return y > INT32_MAX ? INT32_MAX : y < INT32_MIN ? INT32_MIN : (int32_t)y;
}

/* Number of leading zero bits, 32 for 0. */
static inline int k_leading_zeros(uint32_t x) {
  int n = 0;
  if (x == 0) return 32;
  while ((x & UINT32_C(0x80000000)) == 0) {
    x <<= 1;
    n++;
  }
  return n;
}

/* 1/(1+x) in Q0.31 for x in [0, 1) as Q0.31: three Newton steps from a linear guess. */
static inline int32_t k_one_over_one_plus(int32_t x) {
  const int32_t half = (int32_t)(((int64_t)x + INT64_C(0x80000000)) / 2); /* (1+x)/2 rounded */
  int32_t t = 1515870810 + k_high_mul(half, -1010580540); /* 48/17 - 32/17 half, Q2.29 */
  int i;
  for (i = 0; i < 3; i++) t += k_left_saturated(k_high_mul(t, (1 << 29) - k_high_mul(half, t)), 2);
  return k_left_saturated(t, 1);
}

#endif
