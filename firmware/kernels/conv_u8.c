/* Convolutions and fully connected layers of uint8 activations. Weights are differences
 * to their zero point, which takes 16 bits. */
#include "fixed.h"
#include "kernels.h"

/* The output of channel o for its sum. */
static inline int32_t done(const k_output *q, uint32_t sum, int32_t o) {
  const int32_t i = o * q->step;
  return k_clamp(k_plus(k_scale(k_signed(sum), q->mul[i], q->shift[i]), q->zero), q->min, q->max);
}

#define K_NAME(f) f##_u8
#define K_X uint8_t
#define K_W int16_t
#define K_SUM uint32_t
#define K_BIAS int32_t
#define K_DONE(c, sum, o) done(&(c)->out, sum, o)
#include "conv_body.h"
