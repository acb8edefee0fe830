/* Mean and largest value of windows. */
#include "fixed.h"
#include "kernels.h"

#define K_NAME(f) f##_s8
#define K_X int8_t
#include "pool_body.h"

#define K_NAME(f) f##_u8
#define K_X uint8_t
#include "pool_body.h"

#define K_NAME(f) f##_s16
#define K_X int16_t
#include "pool_body.h"
