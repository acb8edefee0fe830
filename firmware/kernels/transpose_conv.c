/* Transposed convolutions: each input element adds its share to a window of sums. */
#include "fixed.h"
#include "kernels.h"

static inline int32_t done(const k_output *q, uint32_t sum, int32_t o) {
  const int32_t i = o * q->step;
  return k_clamp(k_plus(k_scale(k_signed(sum), q->mul[i], q->shift[i]), q->zero), q->min, q->max);
}

static inline int32_t done64(const k_output *q, uint64_t sum, int32_t o) {
  const int32_t i = o * q->step;
  return k_clamp(k_scale64((int64_t)sum, q->mul[i], q->shift[i]), q->min, q->max);
}

#define K_NAME(f) f##_s8
#define K_X int8_t
#define K_W int8_t
#define K_SUM uint32_t
#define K_BIAS int32_t
#define K_DONE(c, sum, o) done(&(c)->out, sum, o)
#include "transpose_body.h"

#define K_NAME(f) f##_u8
#define K_X uint8_t
#define K_W int16_t
#define K_SUM uint32_t
#define K_BIAS int32_t
#define K_DONE(c, sum, o) done(&(c)->out, sum, o)
#include "transpose_body.h"

#define K_NAME(f) f##_s16
#define K_X int16_t
#define K_W int8_t
#define K_SUM uint64_t
#define K_BIAS int64_t
#define K_DONE(c, sum, o) done64(&(c)->out, sum, o)
#include "transpose_body.h"
