/* Bilinear interpolation. */
#include "fixed.h"
#include "kernels.h"

/* Weights are in 1/1024 along both axes; S holds the largest sum. */
#define BILINEAR(SUFFIX, X, S)                                                                                     \
  void k_bilinear_##SUFFIX(const k_bilinear *p, const X *x, X *y) {                                                \
    const int32_t row = p->in_w * p->channels;                                                                     \
    int32_t n, i, j, k;                                                                                            \
    for (n = 0; n < p->batch; n++, x += p->in_h * row)                                                             \
      for (i = 0; i < p->out_h; i++) {                                                                             \
        const X *top = x + p->rows[3 * i] * row, *bottom = x + p->rows[3 * i + 1] * row;                           \
        const S v = p->rows[3 * i + 2];                                                                            \
        for (j = 0; j < p->out_w; j++) {                                                                           \
          const int32_t a = p->cols[3 * j] * p->channels, b = p->cols[3 * j + 1] * p->channels;                    \
          const S u = p->cols[3 * j + 2];                                                                          \
          for (k = 0; k < p->channels; k++) {                                                                      \
            S s = (1024 - v) * ((1024 - u) * top[a + k] + u * top[b + k]) + v * ((1024 - u) * bottom[a + k] + u * bottom[b + k]); \
            s = s > 0 ? s + (1 << 19) : s - (1 << 19);                                                             \
            *y++ = (X)(s / (1 << 20));                                                                             \
          }                                                                                                        \
        }                                                                                                          \
      }                                                                                                            \
  }

BILINEAR(s8, int8_t, int32_t)
BILINEAR(s16, int16_t, int64_t)
