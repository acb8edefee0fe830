/* Operators of two inputs that broadcast, save for quantised sums. */
#include "fixed.h"
#include "kernels.h"

/* Walks two inputs; EACH sees u and v, an element of each, and gives one of the output. */
#define BINARY(X, Y, EACH)                                                                                                              \
  const int32_t n = w->size[K_DIMS - 1], sa = w->a[K_DIMS - 1], sb = w->b[K_DIMS - 1];                                                  \
  int32_t i0, i1, i2, i3, i4, i;                                                                                                        \
  for (i0 = 0; i0 < w->size[0]; i0++)                                                                                                   \
    for (i1 = 0; i1 < w->size[1]; i1++)                                                                                                 \
      for (i2 = 0; i2 < w->size[2]; i2++)                                                                                               \
        for (i3 = 0; i3 < w->size[3]; i3++)                                                                                             \
          for (i4 = 0; i4 < w->size[4]; i4++) {                                                                                         \
            const X *pa = a + i0 * w->a[0] + i1 * w->a[1] + i2 * w->a[2] + i3 * w->a[3] + i4 * w->a[4];                                 \
            const X *pb = b + i0 * w->b[0] + i1 * w->b[1] + i2 * w->b[2] + i3 * w->b[3] + i4 * w->b[4];                                 \
            for (i = 0; i < n; i++, pa += sa, pb += sb) {                                                                               \
              const X u = *pa, v = *pb;                                                                                                 \
              *y++ = (Y)(EACH);                                                                                                         \
            }                                                                                                                           \
          }

#define PRODUCT(SUFFIX, X)                                                                                       \
  void k_mul_##SUFFIX(const k_product *p, const X *a, const X *b, X *y) {                                        \
    const k_spread *w = &p->walk;                                                                                \
    BINARY(X, X,                                                                                                 \
           k_clamp(k_plus(k_scale(k_signed((uint32_t)(u - p->zero_a) * (uint32_t)(v - p->zero_b)), p->mul, p->shift), p->zero), p->min, \
                   p->max))                                                                                      \
  }

PRODUCT(s8, int8_t)
PRODUCT(u8, uint8_t)
PRODUCT(s16, int16_t)

/* Products with slopes below the zero point. */
static inline int32_t slope(const k_prelu *p, int32_t x, int32_t alpha) {
  const int32_t d = x - p->zero_a;
  const int32_t v = d >= 0 ? k_scale(d, p->mul_up, p->shift_up) : k_scale(d * (alpha - p->zero_b), p->mul_down, p->shift_down);
  return k_clamp(k_plus(v, p->zero), p->min, p->max);
}

#define PRELU(SUFFIX, X)                                                           \
  void k_prelu_##SUFFIX(const k_prelu *p, const X *a, const X *b, X *y) {          \
    const k_spread *w = &p->walk;                                                  \
    BINARY(X, X, slope(p, u, v))                                                   \
  }

PRELU(s8, int8_t)
PRELU(u8, uint8_t)

/* Integers without scales. U is an unsigned type of at least 32 bits, in which they wrap. */
#define PLAIN(SUFFIX, X, U)                                                                                                              \
  void k_plain_add_##SUFFIX(const k_spread *w, const X *a, const X *b, X *y) { BINARY(X, X, (U)u + (U)v) }                               \
  void k_plain_sub_##SUFFIX(const k_spread *w, const X *a, const X *b, X *y) { BINARY(X, X, (U)u - (U)v) }                               \
  void k_plain_mul_##SUFFIX(const k_spread *w, const X *a, const X *b, X *y) { BINARY(X, X, (U)u * (U)v) }                               \
  void k_plain_squared_difference_##SUFFIX(const k_spread *w, const X *a, const X *b, X *y) { BINARY(X, X, ((U)u - (U)v) * ((U)u - (U)v)) } \
  void k_plain_max_##SUFFIX(const k_spread *w, const X *a, const X *b, X *y) { BINARY(X, X, u > v ? u : v) }                             \
  void k_plain_min_##SUFFIX(const k_spread *w, const X *a, const X *b, X *y) { BINARY(X, X, u < v ? u : v) }

PLAIN(s8, int8_t, uint32_t)
PLAIN(u8, uint8_t, uint32_t)
PLAIN(s16, int16_t, uint32_t)
PLAIN(s32, int32_t, uint32_t)
PLAIN(s64, int64_t, uint64_t)
