/* Logistic function and tanh of 16 bits by table and interpolation. */
#ifndef OPMETER_KERNELS_CURVE_H
#define OPMETER_KERNELS_CURVE_H

#include <stdint.h>

/* v in units of 1/12288; a multiplier of 0 stands for a power-of-two scale. */
static inline int32_t k_curve_input(int32_t v, int32_t mul, int32_t shift) {
  const int32_t m = mul != 0 ? mul : 3 * (1 << shift), s = mul != 0 ? shift : 0;
  const uint32_t round = s > 0 ? UINT32_C(1) << (s - 1) : 0;
  return (int32_t)((uint32_t)v * (uint32_t)m + round) >> s;
}

static inline uint32_t k_magnitude(int32_t v) { return v < 0 ? 0u - (uint32_t)v : (uint32_t)v; }

/* table holds 65536 times the logistic function of i / 24. */
static inline int16_t k_logistic16(const uint16_t *table, int32_t x, int32_t mul, int32_t shift) {
  const int32_t v = k_curve_input(x, mul, shift);
  const uint32_t a = k_magnitude(v), h = a >> 9;
  uint32_t y = UINT32_C(0x7FFF) << 10;
  if (h < 255) y = ((uint32_t)table[h] << 9) + (a & 0x1FF) * ((uint32_t)table[h + 1] - table[h]);
  y = v >= 0 ? y + (1 << 9) : (UINT32_C(1) << 25) - y + (1 << 9) - 1;
  return (int16_t)(uint16_t)(y >> 10);
}

/* tanh(x) = 2 logistic(2x) - 1, from the same table. */
static inline int16_t k_tanh16(const uint16_t *table, int32_t x, int32_t mul, int32_t shift) {
  const int32_t v = k_curve_input(x, mul, shift);
  const uint32_t a = k_magnitude(v), h = a >> 8;
  int32_t y = INT32_C(0xFFFF) << 8;
  if (h < 255) y = ((int32_t)table[h] << 8) + (int32_t)(a & 0xFF) * ((int32_t)table[h + 1] - (int32_t)table[h]);
  y = v >= 0 ? y - (1 << 23) + (1 << 7) : -y + (1 << 23) + (1 << 7) - 1;
  return (int16_t)(y >> 8);
}

#endif
