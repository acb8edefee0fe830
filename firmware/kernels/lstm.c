/* Long short-term memory with cells of 16 bits. */
#include <stddef.h>
#include <string.h>

#include "curve.h"
#include "fixed.h"
#include "kernels.h"

#define K_NAME(f) f##_s8
#define K_X int8_t
#define K_SUM uint32_t
#define K_BIAS int32_t
#define K_DONE(s, mul, shift) k_scale(k_signed(s), mul, shift)
#include "lstm_body.h"

#define K_NAME(f) f##_s16
#define K_X int16_t
#define K_SUM uint64_t
#define K_BIAS int64_t
#define K_DONE(s, mul, shift) k_scale64((int64_t)(s), mul, shift)
#include "lstm_body.h"
