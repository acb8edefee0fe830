/* From one quantisation to another, and to and from floats. */
#include "fixed.h"
#include "kernels.h"

#define RESCALE(FROM, X, TO, Y)                                                                                \
  void k_rescale_##FROM##_##TO(const k_rescale *p, const X *x, Y *y, int32_t n) {                              \
    int32_t i;                                                                                                 \
    for (i = 0; i < n; i++) {                                                                                  \
      const int64_t v = (int64_t)k_scale(k_minus(x[i], p->zero_in), p->mul, p->shift) + p->zero;               \
      y[i] = (Y)(v < p->min ? p->min : v > p->max ? p->max : (int32_t)v);                                      \
    }                                                                                                          \
  }

RESCALE(s16, int16_t, s8, int8_t)
RESCALE(s16, int16_t, u8, uint8_t)
RESCALE(s16, int16_t, s16, int16_t)
RESCALE(s16, int16_t, s32, int32_t)
RESCALE(s32, int32_t, s8, int8_t)
RESCALE(s32, int32_t, u8, uint8_t)
RESCALE(s32, int32_t, s16, int16_t)
RESCALE(s32, int32_t, s32, int32_t)

/* v / scale to the nearest integer, ties away from zero, plus the zero point, within
 * the range; what is not a number is the zero point. */
static int32_t quantise(const k_quantise *p, float v) {
  const float q = v / p->scale;
  int64_t n;
  float rest;
  if (q != q) return p->zero;
  if (q >= 2147483648.0f) return p->max;
  if (q < -2147483648.0f) return p->min;
  n = (int32_t)q;
  rest = q - (float)(int32_t)q; /* both are exact: they have the same exponent at most */
  if (rest >= 0.5f) n++;
  if (rest <= -0.5f) n--;
  n += p->zero;
  return n < p->min ? p->min : n > p->max ? p->max : (int32_t)n;
}

#define QUANTISE(TO, Y)                                                          \
  void k_quantise_##TO(const k_quantise *p, const float *x, Y *y, int32_t n) {   \
    int32_t i;                                                                   \
    for (i = 0; i < n; i++) y[i] = (Y)quantise(p, x[i]);                         \
  }

QUANTISE(s8, int8_t)
QUANTISE(u8, uint8_t)
QUANTISE(s16, int16_t)
QUANTISE(s32, int32_t)

#define DEQUANTISE(FROM, X)                                                                                     \
  void k_dequantise_##FROM(const k_dequantise *p, const X *x, float *y, int32_t n) {                            \
    int32_t i;                                                                                                  \
    for (i = 0; i < n; i++) y[i] = (float)((double)p->scale * (double)((int64_t)x[i] - p->zero));               \
  }

DEQUANTISE(s16, int16_t)
DEQUANTISE(s32, int32_t)
