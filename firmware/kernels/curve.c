/* Functions of 16-bit values. */
#include "curve.h"
#include "fixed.h"
#include "kernels.h"

void k_logistic_s16(const k_curve *p, const int16_t *x, int16_t *y, int32_t n) {
  int32_t i;
  for (i = 0; i < n; i++) y[i] = k_logistic16(p->table, x[i], p->mul, p->shift);
}

void k_tanh_s16(const k_curve *p, const int16_t *x, int16_t *y, int32_t n) {
  int32_t i;
  for (i = 0; i < n; i++) y[i] = k_tanh16(p->table, x[i], p->mul, p->shift);
}

void k_leaky_s16(const k_leaky *p, const int16_t *x, int16_t *y, int32_t n) {
  int32_t i;
  for (i = 0; i < n; i++) {
    const int32_t d = x[i] - p->zero_in;
    const int32_t v = d >= 0 ? k_scale(d, p->mul_up, p->shift_up) : k_scale(d, p->mul_down, p->shift_down);
    y[i] = k_saturate16(k_plus(v, p->zero));
  }
}

/* A function in 512 straight pieces. */
static inline int16_t pieces(const int16_t *table, int16_t x) {
  const int32_t i = 256 + (x >> 7), slope = (int32_t)table[i + 1] - table[i];
  return (int16_t)(uint16_t)((uint32_t)table[i] + (uint32_t)((slope * (x & 0x7F) + 64) >> 7));
}

void k_pieces_s16(const int16_t *table, const int16_t *x, int16_t *y, int32_t n) {
  int32_t i;
  for (i = 0; i < n; i++) y[i] = pieces(table, x[i]);
}

void k_softmax_s16(const k_softmax16 *p, const int16_t *x, int16_t *y) {
  int32_t r, i;
  for (r = 0; r < p->rows; r++, x += p->depth, y += p->depth) {
    int32_t top = INT16_MIN, shifted, reciprocal;
    uint32_t sum = 0;
    int zeros, shift;
    for (i = 0; i < p->depth; i++)
      if (x[i] > top) top = x[i];
    for (i = 0; i < p->depth; i++) {
      y[i] = pieces(p->exp, k_saturate16(k_plus(k_scale(x[i] - top, p->mul, p->shift), 32767)));
      sum = k_more(sum, y[i]);
    }
    zeros = k_leading_zeros(sum);
    shifted = (int32_t)((((int64_t)k_signed(sum) * ((int64_t)1 << (zeros > 0 ? zeros - 1 : 0))) + (1 << 13)) >> 14);
    reciprocal = pieces(p->reciprocal, k_saturate16(shifted - (1 << 15) - (1 << 16)));
    shift = 31 - zeros;
    for (i = 0; i < p->depth; i++) {
      const int64_t v = shift < 0 ? 0 : ((int64_t)y[i] * reciprocal + (((int64_t)1 << shift) >> 1)) >> shift;
      y[i] = (int16_t)(v < 0 ? 0 : v > INT16_MAX ? INT16_MAX : v);
    }
  }
}
