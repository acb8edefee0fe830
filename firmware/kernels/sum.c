/* Sums and differences of two quantised inputs that broadcast. */
#include "fixed.h"
#include "kernels.h"

#define K_NAME(f) f##_s8
#define K_X int8_t
#define K_SMALL 1
#include "sum_body.h"

#define K_NAME(f) f##_u8
#define K_X uint8_t
#define K_SMALL 1
#include "sum_body.h"

#define K_NAME(f) f##_s16
#define K_X int16_t
#define K_SMALL 0
#include "sum_body.h"
