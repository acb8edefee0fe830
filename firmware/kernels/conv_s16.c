/* Convolutions and fully connected layers of int16 activations and int8 weights: sums have
 * 64 bits. */
#include "fixed.h"
#include "kernels.h"

/* The output of channel o for its sum. */
static inline int32_t done(const k_output *q, int32_t narrow, uint64_t sum, int32_t o) {
  const int32_t i = o * q->step;
  const int32_t v = narrow ? k_scale((int32_t)(uint32_t)sum, q->mul[i], q->shift[i]) : k_scale64((int64_t)sum, q->mul[i], q->shift[i]);
  return k_clamp(v, q->min, q->max);
}

#define K_NAME(f) f##_s16
#define K_X int16_t
#define K_W int8_t
#define K_SUM uint64_t
#define K_BIAS int64_t
#define K_DONE(c, sum, o) done(&(c)->out, (c)->narrow, sum, o)
#include "conv_body.h"
