/* Convolutions and fully connected layers for one type of activations. Whoever includes
 * this defines
 *   K_NAME(f)  the name of function f for the type
 *   K_X, K_W   types of activations and weights
 *   K_SUM      the unsigned type in which sums wrap
 *   K_BIAS     the type of biases
 *   K_DONE(c, sum, o)  the output of channel o for its sum
 * There is no guard against including it again: that is its use. */

/* Sum of n products. */
static inline K_SUM K_NAME(dot)(const K_X *x, const K_W *w, int32_t n) {
  K_SUM s = 0;
  for (; n >= 4; n -= 4, x += 4, w += 4) {
    s += (K_SUM)((int32_t)x[0] * w[0]) + (K_SUM)((int32_t)x[1] * w[1]);
    s += (K_SUM)((int32_t)x[2] * w[2]) + (K_SUM)((int32_t)x[3] * w[3]);
  }
  for (; n > 0; n--) s += (K_SUM)((int32_t)*x++ * *w++);
  return s;
}

/* What a tap outside the image adds: the zero point times its weights. */
static inline K_SUM K_NAME(outside)(int32_t zero, const K_W *w, int32_t n) {
  int32_t s = 0;
  if (zero == 0) return 0;
  for (; n > 0; n--) s += *w++;
  return (K_SUM)(zero * s);
}

/* The sum of one output channel at one place: w are its weights, x the image from the
 * group's first channel on, (y0, x0) the place of the first tap. */
static inline K_SUM K_NAME(window)(const k_conv *c, const K_X *x, const K_W *w, int32_t y0, int32_t x0, int32_t channels) {
  K_SUM s = 0;
  int32_t ky, kx;
  for (ky = 0; ky < c->kernel_h; ky++) {
    const int32_t iy = y0 + ky * c->dilation_h;
    for (kx = 0; kx < c->kernel_w; kx++, w += channels) {
      const int32_t ix = x0 + kx * c->dilation_w;
      if (iy < 0 || iy >= c->in_h || ix < 0 || ix >= c->in_w)
        s += K_NAME(outside)(c->zero, w, channels);
      else
        s += K_NAME(dot)(x + (iy * c->in_w + ix) * c->in_c, w, channels);
    }
  }
  return s;
}

/* The same where all taps lie inside and those of a row lie side by side. */
static inline K_SUM K_NAME(inside)(const k_conv *c, const K_X *x, const K_W *w) {
  const int32_t n = c->kernel_w * c->in_c, row = c->dilation_h * c->in_w * c->in_c;
  K_SUM s = 0;
  int32_t ky;
  for (ky = 0; ky < c->kernel_h; ky++, x += row, w += n) s += K_NAME(dot)(x, w, n);
  return s;
}

void K_NAME(k_conv)(const k_conv *c, const K_X *x, K_X *y) {
  const int32_t groups = c->groups, channels = c->in_c / groups, each = c->out_c / groups;
  const int32_t taps = c->kernel_h * c->kernel_w * channels;
  const int32_t last_y = c->in_h - (c->kernel_h - 1) * c->dilation_h, last_x = c->in_w - (c->kernel_w - 1) * c->dilation_w;
  const int together = groups == 1 && (c->dilation_w == 1 || c->kernel_w == 1);
  const K_BIAS *bias = (const K_BIAS *)c->bias;
  int32_t n, oy, ox, g, o;
  for (n = 0; n < c->batch; n++, x += c->in_h * c->in_w * c->in_c) {
    for (oy = 0; oy < c->out_h; oy++) {
      const int32_t y0 = oy * c->stride_h - c->pad_top;
      for (ox = 0; ox < c->out_w; ox++) {
        const int32_t x0 = ox * c->stride_w - c->pad_left;
        const int whole = together && y0 >= 0 && y0 < last_y && x0 >= 0 && x0 < last_x;
        const K_X *first = whole ? x + (y0 * c->in_w + x0) * c->in_c : x;
        const K_W *w = (const K_W *)c->weights;
        for (g = 0, o = 0; g < groups; g++) {
          const int32_t end = o + each;
          for (; o < end; o++, w += taps) {
            const K_SUM s = whole ? K_NAME(inside)(c, first, w) : K_NAME(window)(c, x + g * channels, w, y0, x0, channels);
            *y++ = (K_X)K_DONE(c, s + (K_SUM)bias[o], o);
          }
        }
      }
    }
  }
}

/* Output channels that are summed side by side. */
#define K_SIDE 16

/* Channels o to o+n-1 of one output place, taps in any position. */
static inline void K_NAME(depth_any)(const k_conv *c, const K_X *x, K_X *y, int32_t y0, int32_t x0, int32_t o, int32_t n) {
  const int32_t times = c->out_c / c->in_c;
  const K_BIAS *bias = (const K_BIAS *)c->bias + o;
  const K_W *w = (const K_W *)c->weights + o;
  K_SUM sum[K_SIDE];
  int32_t ky, kx, i;
  for (i = 0; i < n; i++) sum[i] = (K_SUM)bias[i];
  for (ky = 0; ky < c->kernel_h; ky++) {
    const int32_t iy = y0 + ky * c->dilation_h;
    for (kx = 0; kx < c->kernel_w; kx++, w += c->out_c) {
      const int32_t ix = x0 + kx * c->dilation_w;
      const K_X *at;
      if (iy < 0 || iy >= c->in_h || ix < 0 || ix >= c->in_w) {
        if (c->zero != 0)
          for (i = 0; i < n; i++) sum[i] += (K_SUM)(c->zero * w[i]);
        continue;
      }
      at = x + (iy * c->in_w + ix) * c->in_c;
      if (times == 1) {
        at += o;
        for (i = 0; i < n; i++) sum[i] += (K_SUM)((int32_t)at[i] * w[i]);
      } else if (c->in_c == 1) {
        const int32_t v = *at;
        for (i = 0; i < n; i++) sum[i] += (K_SUM)(v * w[i]);
      } else {
        int32_t from = o / times, left = times - o % times;
        for (i = 0; i < n; i++) {
          sum[i] += (K_SUM)((int32_t)at[from] * w[i]);
          if (--left == 0) {
            from++;
            left = times;
          }
        }
      }
    }
  }
  for (i = 0; i < n; i++) y[i] = (K_X)K_DONE(c, sum[i], o + i);
}

/* All channels of one output place of a 3x3 filter whose taps all lie inside. */
static inline void K_NAME(depth_nine)(const k_conv *c, const K_X *x, K_X *y) {
  const int32_t n = c->out_c, col = c->dilation_w * n, row = c->dilation_h * c->in_w * n;
  const K_W *w = (const K_W *)c->weights;
  const K_BIAS *bias = (const K_BIAS *)c->bias;
  int32_t o;
  for (o = 0; o < n; o++, x++, w++) {
    const K_X *p = x, *q = x + row, *r = x + 2 * row;
    K_SUM s = (K_SUM)bias[o];
    s += (K_SUM)((int32_t)p[0] * w[0]) + (K_SUM)((int32_t)p[col] * w[n]) + (K_SUM)((int32_t)p[2 * col] * w[2 * n]);
    s += (K_SUM)((int32_t)q[0] * w[3 * n]) + (K_SUM)((int32_t)q[col] * w[4 * n]) + (K_SUM)((int32_t)q[2 * col] * w[5 * n]);
    s += (K_SUM)((int32_t)r[0] * w[6 * n]) + (K_SUM)((int32_t)r[col] * w[7 * n]) + (K_SUM)((int32_t)r[2 * col] * w[8 * n]);
    y[o] = (K_X)K_DONE(c, s, o);
  }
}

void K_NAME(k_depthwise)(const k_conv *c, const K_X *x, K_X *y) {
  const int32_t last_y = c->in_h - (c->kernel_h - 1) * c->dilation_h, last_x = c->in_w - (c->kernel_w - 1) * c->dilation_w;
  const int nine = c->kernel_h == 3 && c->kernel_w == 3 && c->in_c == c->out_c;
  int32_t n, oy, ox, o;
  for (n = 0; n < c->batch; n++, x += c->in_h * c->in_w * c->in_c) {
    for (oy = 0; oy < c->out_h; oy++) {
      const int32_t y0 = oy * c->stride_h - c->pad_top;
      for (ox = 0; ox < c->out_w; ox++, y += c->out_c) {
        const int32_t x0 = ox * c->stride_w - c->pad_left;
        if (nine && y0 >= 0 && y0 < last_y && x0 >= 0 && x0 < last_x) {
          K_NAME(depth_nine)(c, x + (y0 * c->in_w + x0) * c->in_c, y);
          continue;
        }
        for (o = 0; o < c->out_c; o += K_SIDE)
          K_NAME(depth_any)(c, x, y + o, y0, x0, o, c->out_c - o < K_SIDE ? c->out_c - o : K_SIDE);
      }
    }
  }
}

void K_NAME(k_dense)(const k_dense *c, const K_X *x, K_X *y) {
  const K_BIAS *bias = (const K_BIAS *)c->bias;
  int32_t r, o;
  for (r = 0; r < c->rows; r++, x += c->in) {
    const K_W *w = (const K_W *)c->weights;
    for (o = 0; o < c->outs; o++, w += c->in) *y++ = (K_X)K_DONE(c, K_NAME(dot)(x, w, c->in) + (K_SUM)bias[o], o);
  }
}

#undef K_SIDE
#undef K_NAME
#undef K_X
#undef K_W
#undef K_SUM
#undef K_BIAS
#undef K_DONE
