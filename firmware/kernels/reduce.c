/* Sums, means and extremes over dimensions. */
#include "fixed.h"
#include "kernels.h"

/* Walks what is kept; BODY sees at, the place of the first element that becomes one, and
 * EACH sees v, an element of it. */
#define REDUCE(X, FIRST, EACH, LAST)                                                                          \
  int32_t i0, i1, i2, j0, j1, j2;                                                                             \
  for (i0 = 0; i0 < w->keep[0]; i0++)                                                                         \
    for (i1 = 0; i1 < w->keep[1]; i1++)                                                                       \
      for (i2 = 0; i2 < w->keep[2]; i2++) {                                                                   \
        const X *at = x + i0 * w->keep_step[0] + i1 * w->keep_step[1] + i2 * w->keep_step[2];                 \
        FIRST;                                                                                                \
        for (j0 = 0; j0 < w->drop[0]; j0++)                                                                   \
          for (j1 = 0; j1 < w->drop[1]; j1++) {                                                               \
            const X *from = at + j0 * w->drop_step[0] + j1 * w->drop_step[1];                                 \
            for (j2 = 0; j2 < w->drop[2]; j2++, from += w->drop_step[2]) {                                    \
              const X v = *from;                                                                              \
              EACH;                                                                                           \
            }                                                                                                 \
          }                                                                                                   \
        LAST;                                                                                                 \
      }

#define TOTAL(SUFFIX, X)                                                                                       \
  void k_total_##SUFFIX(const k_total *p, const X *x, X *y) {                                                  \
    const k_reduce *w = &p->walk;                                                                              \
    REDUCE(X, uint32_t s = 0, s = k_more(s, v),                                                                \
           *y++ = (X)k_clamp(k_plus(k_scale(k_minus(k_signed(s), p->offset), p->mul, p->shift), p->zero), p->min, p->max)) \
  }

TOTAL(s8, int8_t)
TOTAL(u8, uint8_t)
TOTAL(s16, int16_t)

#define EXTREME(SUFFIX, X, LEAST, MOST)                                                                        \
  void k_reduce_max_##SUFFIX(const k_reduce *w, const X *x, X *y) {                                            \
    REDUCE(X, X s = LEAST, s = v > s ? v : s, *y++ = s)                                                        \
  }                                                                                                            \
  void k_reduce_min_##SUFFIX(const k_reduce *w, const X *x, X *y) {                                            \
    REDUCE(X, X s = MOST, s = v < s ? v : s, *y++ = s)                                                         \
  }

EXTREME(s8, int8_t, INT8_MIN, INT8_MAX)
EXTREME(u8, uint8_t, 0, UINT8_MAX)
EXTREME(s16, int16_t, INT16_MIN, INT16_MAX)
EXTREME(s32, int32_t, INT32_MIN, INT32_MAX)

#define ARG(SUFFIX, X, TO, Y)                                                            \
  void k_arg_##SUFFIX##_##TO(const k_arg *p, const X *x, Y *y) {                         \
    int32_t o, i, k;                                                                     \
    for (o = 0; o < p->outer; o++, x += p->n * p->inner)                                 \
      for (i = 0; i < p->inner; i++) {                                                   \
        const X *at = x + i;                                                             \
        X best = *at;                                                                    \
        int32_t place = 0;                                                               \
        for (k = 1; k < p->n; k++) {                                                     \
          at += p->inner;                                                                \
          if (p->least ? *at < best : *at > best) {                                      \
            best = *at;                                                                  \
            place = k;                                                                   \
          }                                                                              \
        }                                                                                \
        *y++ = place;                                                                    \
      }                                                                                  \
  }

ARG(s8, int8_t, s32, int32_t)
ARG(u8, uint8_t, s32, int32_t)
ARG(s16, int16_t, s32, int32_t)
ARG(s32, int32_t, s32, int32_t)
ARG(s8, int8_t, s64, int64_t)
ARG(u8, uint8_t, s64, int64_t)
ARG(s16, int16_t, s64, int64_t)
ARG(s32, int32_t, s64, int64_t)
