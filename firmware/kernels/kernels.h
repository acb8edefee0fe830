/* Portable integer kernels of quantised neural networks, in plain C99: no allocation, no
 * library beyond <stdint.h> and <string.h>, no floating point but in the kernels that
 * read or write floats. What a kernel needs to know of an operator is a constant
 * structure; everything that does not depend on the data has been computed before.
 *
 * Pictures are [batch, height, width, channels]. Kernels with the ending s8, u8 and s16
 * work on int8, uint8 and int16 activations. Sums of products wrap at 32 bits. */
#ifndef OPMETER_KERNELS_H
#define OPMETER_KERNELS_H

#include <stdint.h>

/* How sums of products become the integers of an output. */
typedef struct {
  const int32_t *mul;  /* multipliers, see k_scale */
  const int8_t *shift; /* powers of two */
  int32_t step;        /* 1: one multiplier a channel, 0: one for all */
  int32_t zero;        /* zero point of the output */
  int32_t min, max;    /* range of the output, zero point included */
} k_output;

/* Convolution. Weights are [out_c, kernel_h, kernel_w, in_c / groups], of a depthwise one
 * [kernel_h, kernel_w, out_c], less their zero point. The bias has the input's zero
 * point folded in: bias - zero * (sum of the channel's weights). */
typedef struct {
  int32_t batch, in_h, in_w, in_c;
  int32_t out_h, out_w, out_c;
  int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  int32_t groups;      /* 1 for plain convolutions; not looked at by depthwise ones */
  int32_t zero;        /* zero point of the input: what lies outside the picture */
  const void *weights; /* int8_t; int16_t with uint8 activations */
  const void *bias;    /* int32_t, one a channel; int64_t with int16 activations */
  int32_t narrow;      /* int16 activations with 32-bit sums */
  k_output out;
} k_conv;

void k_conv_s8(const k_conv *c, const int8_t *x, int8_t *y);
void k_conv_u8(const k_conv *c, const uint8_t *x, uint8_t *y);
void k_conv_s16(const k_conv *c, const int16_t *x, int16_t *y);
void k_depthwise_s8(const k_conv *c, const int8_t *x, int8_t *y);
void k_depthwise_u8(const k_conv *c, const uint8_t *x, uint8_t *y);
void k_depthwise_s16(const k_conv *c, const int16_t *x, int16_t *y);

/* Fully connected layer: rows of in values times weights [out, in]. */
typedef struct {
  int32_t rows, in, outs;
  const void *weights; /* as those of a convolution */
  const void *bias;    /* with the input's zero point folded in */
  int32_t narrow;
  k_output out;
} k_dense;

void k_dense_s8(const k_dense *c, const int8_t *x, int8_t *y);
void k_dense_u8(const k_dense *c, const uint8_t *x, uint8_t *y);
void k_dense_s16(const k_dense *c, const int16_t *x, int16_t *y);

/* Pooling over windows; the mean is that of what lies inside the picture. */
typedef struct {
  int32_t batch, in_h, in_w, channels;
  int32_t out_h, out_w;
  int32_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
  int32_t min, max; /* range of the output */
} k_pool;

void k_average_pool_s8(const k_pool *p, const int8_t *x, int8_t *y);
void k_average_pool_u8(const k_pool *p, const uint8_t *x, uint8_t *y);
void k_average_pool_s16(const k_pool *p, const int16_t *x, int16_t *y);
void k_max_pool_s8(const k_pool *p, const int8_t *x, int8_t *y);
void k_max_pool_u8(const k_pool *p, const uint8_t *x, uint8_t *y);
void k_max_pool_s16(const k_pool *p, const int16_t *x, int16_t *y);

/* Softmax of rows of 8-bit values. exps[d] is the exponential of a value d below the
 * largest of its row, Q0.31; values more than span below have none. */
typedef struct {
  int32_t rows, depth;
  const int32_t *exps; /* span + 1 of them */
  int32_t span;
} k_softmax;

void k_softmax_s8(const k_softmax *p, const int8_t *x, int8_t *y);
void k_softmax_u8(const k_softmax *p, const uint8_t *x, uint8_t *y);
void k_softmax_s8_s16(const k_softmax *p, const int8_t *x, int16_t *y);

/* Two inputs that broadcast to up to six dimensions: steps are in elements, 0 where an
 * input is repeated. */
#define K_DIMS 6
typedef struct {
  int32_t size[K_DIMS]; /* of the output, the last dimension varies fastest */
  int32_t a[K_DIMS], b[K_DIMS];
} k_spread;

/* Sum, difference or squared difference of two inputs at a common finer scale. */
typedef struct {
  k_spread walk;
  int32_t shift;
  int32_t zero_a, mul_a, shift_a;
  int32_t zero_b, mul_b, shift_b;
  int32_t mul, shift_out, zero, min, max; /* of the output */
} k_sum;

void k_add_s8(const k_sum *p, const int8_t *a, const int8_t *b, int8_t *y);
void k_add_u8(const k_sum *p, const uint8_t *a, const uint8_t *b, uint8_t *y);
void k_add_s16(const k_sum *p, const int16_t *a, const int16_t *b, int16_t *y);
void k_sub_s8(const k_sum *p, const int8_t *a, const int8_t *b, int8_t *y);
void k_sub_u8(const k_sum *p, const uint8_t *a, const uint8_t *b, uint8_t *y);
void k_sub_s16(const k_sum *p, const int16_t *a, const int16_t *b, int16_t *y);
void k_squared_difference_s8(const k_sum *p, const int8_t *a, const int8_t *b, int8_t *y);
void k_squared_difference_u8(const k_sum *p, const uint8_t *a, const uint8_t *b, uint8_t *y);
void k_squared_difference_s16(const k_sum *p, const int16_t *a, const int16_t *b, int16_t *y);

/* n elements through a table of 256; the index is the stored byte. */
void k_table_8(const uint8_t *table, const uint8_t *x, uint8_t *y, int32_t n);
void k_table_16(const uint16_t *table, const uint8_t *x, uint16_t *y, int32_t n);
void k_table_32(const uint32_t *table, const uint8_t *x, uint32_t *y, int32_t n);

/* Pieces of run bytes each, copied along up to six nested loops; steps are in bytes. */
typedef struct {
  int32_t to, from; /* where the first piece goes and comes from */
  int32_t run;
  int32_t size[K_DIMS], to_step[K_DIMS], from_step[K_DIMS];
  const int32_t *table; /* NULL, or size[0] places that take the place of from_step[0] * i */
} k_move;

void k_copy(const k_move *moves, int32_t n, const void *x, void *y);
void k_fill(void *y, int32_t n, uint32_t value, int32_t width);

#endif
