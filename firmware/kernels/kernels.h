/* Portable integer kernels of quantised neural networks, in plain C99: no allocation, no
 * library beyond <stdint.h> and <string.h>, no floating point but in the kernels that
 * read or write floats. What a kernel needs to know of an operator is a constant
 * structure; everything that does not depend on the data has been computed before.
 *
 * Images are [batch, height, width, channels]. Kernels with the ending s8, u8 and s16
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
  int32_t zero;        /* zero point of the input: what lies outside the image */
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

/* Pooling over windows; the mean is that of what lies inside the image. */
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
  const int32_t *table; /* NULL, or size[0] places that stand for from_step[0] * i */
  const uint8_t *map;   /* NULL, or a function of every byte: 256 values */
} k_move;

void k_copy(const k_move *moves, int32_t n, const void *x, void *y);
void k_fill(void *y, int32_t n, uint32_t value, int32_t width);

/* Products of two inputs. */
typedef struct {
  k_spread walk;
  int32_t zero_a, zero_b;
  int32_t mul, shift, zero, min, max;
} k_product;

void k_mul_s8(const k_product *p, const int8_t *a, const int8_t *b, int8_t *y);
void k_mul_u8(const k_product *p, const uint8_t *a, const uint8_t *b, uint8_t *y);
void k_mul_s16(const k_product *p, const int16_t *a, const int16_t *b, int16_t *y);

/* Values above the zero point are scaled, those below multiplied by slopes. */
typedef struct {
  k_spread walk;
  int32_t zero_a, zero_b;
  int32_t mul_up, shift_up, mul_down, shift_down, zero, min, max;
} k_prelu;

void k_prelu_s8(const k_prelu *p, const int8_t *a, const int8_t *b, int8_t *y);
void k_prelu_u8(const k_prelu *p, const uint8_t *a, const uint8_t *b, uint8_t *y);

/* Two inputs without scales; results wrap. */
#define K_PLAIN(name, suffix, type) void k_plain_##name##_##suffix(const k_spread *w, const type *a, const type *b, type *y)
#define K_PLAINS(suffix, type)   \
  K_PLAIN(add, suffix, type);    \
  K_PLAIN(sub, suffix, type);    \
  K_PLAIN(mul, suffix, type);    \
  K_PLAIN(max, suffix, type);    \
  K_PLAIN(min, suffix, type);    \
  K_PLAIN(squared_difference, suffix, type)
K_PLAINS(s8, int8_t);
K_PLAINS(u8, uint8_t);
K_PLAINS(s16, int16_t);
K_PLAINS(s32, int32_t);
K_PLAINS(s64, int64_t);

/* A walk over what a reduction keeps and, for each element of that, what becomes one:
 * sizes and steps in elements. */
typedef struct {
  int32_t keep[3], keep_step[3];
  int32_t drop[3], drop_step[3];
} k_reduce;

/* Sum or mean: the sum less the offset, scaled. */
typedef struct {
  k_reduce walk;
  int32_t offset, mul, shift, zero, min, max;
} k_total;

void k_total_s8(const k_total *p, const int8_t *x, int8_t *y);
void k_total_u8(const k_total *p, const uint8_t *x, uint8_t *y);
void k_total_s16(const k_total *p, const int16_t *x, int16_t *y);
void k_reduce_max_s8(const k_reduce *w, const int8_t *x, int8_t *y);
void k_reduce_max_u8(const k_reduce *w, const uint8_t *x, uint8_t *y);
void k_reduce_max_s16(const k_reduce *w, const int16_t *x, int16_t *y);
void k_reduce_max_s32(const k_reduce *w, const int32_t *x, int32_t *y);
void k_reduce_min_s8(const k_reduce *w, const int8_t *x, int8_t *y);
void k_reduce_min_u8(const k_reduce *w, const uint8_t *x, uint8_t *y);
void k_reduce_min_s16(const k_reduce *w, const int16_t *x, int16_t *y);
void k_reduce_min_s32(const k_reduce *w, const int32_t *x, int32_t *y);

/* Place of the first largest or least element along the middle of [outer, n, inner]. */
typedef struct {
  int32_t outer, n, inner, least;
} k_arg;

#define K_ARG(suffix, type)                                                    \
  void k_arg_##suffix##_s32(const k_arg *p, const type *x, int32_t *y);        \
  void k_arg_##suffix##_s64(const k_arg *p, const type *x, int64_t *y)
K_ARG(s8, int8_t);
K_ARG(u8, uint8_t);
K_ARG(s16, int16_t);
K_ARG(s32, int32_t);

/* From one quantisation to another. */
typedef struct {
  int32_t zero_in, mul, shift, zero, min, max;
} k_rescale;

#define K_RESCALE(from, x_type, to, y_type) void k_rescale_##from##_##to(const k_rescale *p, const x_type *x, y_type *y, int32_t n)
K_RESCALE(s16, int16_t, s8, int8_t);
K_RESCALE(s16, int16_t, u8, uint8_t);
K_RESCALE(s16, int16_t, s16, int16_t);
K_RESCALE(s16, int16_t, s32, int32_t);
K_RESCALE(s32, int32_t, s8, int8_t);
K_RESCALE(s32, int32_t, u8, uint8_t);
K_RESCALE(s32, int32_t, s16, int16_t);
K_RESCALE(s32, int32_t, s32, int32_t);

/* From and to floats. */
typedef struct {
  float scale;
  int32_t zero, min, max;
} k_quantise;

void k_quantise_s8(const k_quantise *p, const float *x, int8_t *y, int32_t n);
void k_quantise_u8(const k_quantise *p, const float *x, uint8_t *y, int32_t n);
void k_quantise_s16(const k_quantise *p, const float *x, int16_t *y, int32_t n);
void k_quantise_s32(const k_quantise *p, const float *x, int32_t *y, int32_t n);

typedef struct {
  float scale;
  int32_t zero;
} k_dequantise;

void k_dequantise_s16(const k_dequantise *p, const int16_t *x, float *y, int32_t n);
void k_dequantise_s32(const k_dequantise *p, const int32_t *x, float *y, int32_t n);

/* Logistic function and tanh of 16-bit values; table holds 65536 times the logistic
 * function of i / 24. */
typedef struct {
  const uint16_t *table;
  int32_t mul, shift;
} k_curve;

/* 16-bit values, scaled by one multiplier above the zero point and by another below. */
typedef struct {
  int32_t zero_in, mul_up, shift_up, mul_down, shift_down, zero;
} k_leaky;

void k_leaky_s16(const k_leaky *p, const int16_t *x, int16_t *y, int32_t n);
void k_logistic_s16(const k_curve *p, const int16_t *x, int16_t *y, int32_t n);
void k_tanh_s16(const k_curve *p, const int16_t *x, int16_t *y, int32_t n);

/* A function of 16-bit values in 512 straight pieces between 513 points. */
void k_pieces_s16(const int16_t *table, const int16_t *x, int16_t *y, int32_t n);

/* Softmax of rows of 16-bit values; exp and 1/(1+x) in straight pieces. */
typedef struct {
  int32_t rows, depth;
  int32_t mul, shift;
  const int16_t *exp, *reciprocal;
} k_softmax16;

void k_softmax_s16(const k_softmax16 *p, const int16_t *x, int16_t *y);

/* Filter by singular value decomposition with a memory of int8 or int16. */
typedef struct {
  int32_t batch, in, filters, memory, units, rank;
  const int8_t *feature; /* [filters, in] */
  const void *time;      /* [filters, memory], of the memory's type */
  const int32_t *bias;   /* one a unit, or NULL */
  int32_t zero_in, zero_state, zero;
  int32_t mul_feature, shift_feature, mul_time, shift_time;
  int32_t state_min, state_max;
} k_svdf;

void k_svdf_s8(const k_svdf *p, const int8_t *x, int8_t *state, int8_t *y);
void k_svdf_s16(const k_svdf *p, const int8_t *x, int16_t *state, int8_t *y);

/* Long short-term memory; gates in the order input, forget, cell, output. */
typedef struct {
  const int8_t *weights; /* [cells, columns] */
  const void *fold;      /* bias less the zero point of the input: int32_t, with int16 activations int64_t */
  int32_t columns, mul, shift;
} k_gate;

typedef struct {
  int32_t batch, steps, in, cells, time_major;
  k_gate inputs[4], recurrent[4];
  int32_t mul_forget, shift_forget, mul_input, shift_input, mul_output, shift_output, mul_tanh, shift_tanh;
  int32_t clip; /* of the cell, 0 for none */
  int32_t zero, min, max;
  const uint16_t *table; /* of the logistic function */
} k_lstm;

void k_lstm_s8(const k_lstm *p, const int8_t *x, int8_t *hidden, int16_t *cell, int8_t *fresh, int8_t *y);
void k_lstm_s16(const k_lstm *p, const int16_t *x, int16_t *hidden, int16_t *cell, int16_t *fresh, int16_t *y);

/* Bilinear interpolation: for each row and column of the output lower neighbour, upper
 * neighbour and the weight of the upper one in 1/1024. */
typedef struct {
  int32_t batch, in_h, in_w, channels, out_h, out_w;
  const int32_t *rows, *cols;
} k_bilinear;

void k_bilinear_s8(const k_bilinear *p, const int8_t *x, int8_t *y);
void k_bilinear_s16(const k_bilinear *p, const int16_t *x, int16_t *y);

/* Transposed convolution with weights [out_c, kernel_h, kernel_w, in_c]; the bias has
 * nothing folded in. sums is room for one image of the output. */
void k_transpose_conv_s8(const k_conv *c, const int8_t *x, uint32_t *sums, int8_t *y);
void k_transpose_conv_u8(const k_conv *c, const uint8_t *x, uint32_t *sums, uint8_t *y);
void k_transpose_conv_s16(const k_conv *c, const int16_t *x, uint64_t *sums, int16_t *y);

/* Products of m x k by k x n matrices, one for each pair of places x_at, y_at. */
typedef struct {
  int32_t batch, m, n, k;
  int32_t x_row, x_step, y_col, y_step; /* steps in elements */
  const int32_t *x_at, *y_at;
  int32_t zero_x, zero_y;
  k_output out;
} k_matmul;

void k_matmul_s8(const k_matmul *p, const int8_t *x, const int8_t *y, int8_t *out);
void k_matmul_s16(const k_matmul *p, const int16_t *x, const int16_t *y, int16_t *out);
void k_matmul_s16_s8(const k_matmul *p, const int16_t *x, const int8_t *y, int16_t *out);

#endif
