/* Softmax of 8-bit rows: exponentials by table, their sum in Q12.19, its reciprocal by
 * Newton steps. */
#include "fixed.h"
#include "kernels.h"

/* One value of a row: place i of x or y. */
typedef int32_t (*get_fn)(const void *x, int32_t i);
typedef void (*put_fn)(void *y, int32_t i, int32_t v);

static int32_t get_s8(const void *x, int32_t i) { return ((const int8_t *)x)[i]; }
static int32_t get_u8(const void *x, int32_t i) { return ((const uint8_t *)x)[i]; }
static void put_s8(void *y, int32_t i, int32_t v) { ((int8_t *)y)[i] = (int8_t)v; }
static void put_u8(void *y, int32_t i, int32_t v) { ((uint8_t *)y)[i] = (uint8_t)v; }
static void put_s16(void *y, int32_t i, int32_t v) { ((int16_t *)y)[i] = (int16_t)v; }

/* Rows of x to y, whose type has the range lo to hi and the number of bits. */
static void softmax(const k_softmax *p, get_fn get, put_fn put, const void *x, void *y, int32_t lo, int32_t hi, int bits) {
  int32_t r, i, at = 0;
  for (r = 0; r < p->rows; r++, at += p->depth) {
    int32_t top = INT32_MIN, reciprocal;
    uint32_t sum = 0;
    int zeros, shift;
    for (i = 0; i < p->depth; i++) {
      const int32_t v = get(x, at + i);
      if (v > top) top = v;
    }
    for (i = 0; i < p->depth; i++) {
      const int32_t d = top - get(x, at + i);
      if (d <= p->span) sum += (uint32_t)k_round_shift(p->exps[d], 12);
    }
    zeros = k_leading_zeros(sum);
    reciprocal = k_one_over_one_plus(k_signed((sum << (zeros & 31)) - UINT32_C(0x80000000)));
    shift = 12 - zeros + 31 - bits;
    for (i = 0; i < p->depth; i++) {
      const int32_t d = top - get(x, at + i);
      int32_t v = lo;
      if (d <= p->span) v = k_clamp(k_plus(k_round_shift(k_high_mul(reciprocal, p->exps[d]), shift), lo), lo, hi);
      put(y, at + i, v);
    }
  }
}

void k_softmax_s8(const k_softmax *p, const int8_t *x, int8_t *y) { softmax(p, get_s8, put_s8, x, y, INT8_MIN, INT8_MAX, 8); }

void k_softmax_u8(const k_softmax *p, const uint8_t *x, uint8_t *y) { softmax(p, get_u8, put_u8, x, y, 0, UINT8_MAX, 8); }

void k_softmax_s8_s16(const k_softmax *p, const int8_t *x, int16_t *y) { softmax(p, get_s8, put_s16, x, y, INT16_MIN, INT16_MAX, 16); }
