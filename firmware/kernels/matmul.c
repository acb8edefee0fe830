/* Matrix multiplication of two activations. */
#include "fixed.h"
#include "kernels.h"

#define MATMUL(SUFFIX, X, Y, SUM, PRODUCT, DONE)                                                                       \
  void k_matmul_##SUFFIX(const k_matmul *p, const X *x, const Y *y, X *out) {                                          \
    int32_t b, i, j, k;                                                                                                \
    for (b = 0; b < p->batch; b++)                                                                                     \
      for (i = 0; i < p->m; i++)                                                                                       \
        for (j = 0; j < p->n; j++) {                                                                                   \
          const X *u = x + p->x_at[b] + i * p->x_row;                                                                  \
          const Y *v = y + p->y_at[b] + j * p->y_col;                                                                  \
          const int32_t q = j * p->out.step;                                                                           \
          SUM s = 0;                                                                                                   \
          for (k = 0; k < p->k; k++, u += p->x_step, v += p->y_step) s += (SUM)PRODUCT(*u - p->zero_x, *v - p->zero_y); \
          *out++ = (X)k_clamp(k_plus(DONE(s, p->out.mul[q], p->out.shift[q]), p->out.zero), p->out.min, p->out.max);   \
        }                                                                                                              \
  }

#define NARROW(a, b) ((a) * (b))
#define LONG(a, b) ((int64_t)(a) * (b))
#define SCALE(s, mul, shift) k_scale(k_signed(s), mul, shift)
#define SCALE64(s, mul, shift) k_scale64((int64_t)(s), mul, shift)

MATMUL(s8, int8_t, int8_t, uint32_t, NARROW, SCALE)
MATMUL(s16, int16_t, int16_t, uint64_t, LONG, SCALE64)
MATMUL(s16_s8, int16_t, int8_t, uint64_t, LONG, SCALE64)
