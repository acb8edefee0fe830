/* Transposed convolution for one type of activations; see conv_body.h for the way of
 * including and for the names. */

void K_NAME(k_transpose_conv)(const k_conv *c, const K_X *x, K_SUM *sums, K_X *y) {
  const int32_t size = c->out_h * c->out_w * c->out_c;
  const K_BIAS *bias = (const K_BIAS *)c->bias;
  int32_t n, iy, ix, ky, kx, o, i;
  for (n = 0; n < c->batch; n++) {
    for (i = 0; i < size; i += c->out_c)
      for (o = 0; o < c->out_c; o++) sums[i + o] = (K_SUM)bias[o];
    for (iy = 0; iy < c->in_h; iy++)
      for (ix = 0; ix < c->in_w; ix++, x += c->in_c)
        for (ky = 0; ky < c->kernel_h; ky++) {
          const int32_t oy = iy * c->stride_h - c->pad_top + ky;
          if (oy < 0 || oy >= c->out_h) continue;
          for (kx = 0; kx < c->kernel_w; kx++) {
            const int32_t ox = ix * c->stride_w - c->pad_left + kx;
            const K_W *w = (const K_W *)c->weights + (ky * c->kernel_w + kx) * c->in_c;
            K_SUM *to = sums;
            if (ox < 0 || ox >= c->out_w) continue;
            to += (oy * c->out_w + ox) * c->out_c;
            for (o = 0; o < c->out_c; o++, w += c->kernel_h * c->kernel_w * c->in_c) {
              K_SUM s = 0;
              for (i = 0; i < c->in_c; i++) s += (K_SUM)((x[i] - c->zero) * w[i]);
              to[o] += s;
            }
          }
        }
    for (i = 0; i < size; i += c->out_c)
      for (o = 0; o < c->out_c; o++) *y++ = (K_X)K_DONE(c, sums[i + o], o);
  }
}

#undef K_NAME
#undef K_X
#undef K_W
#undef K_SUM
#undef K_BIAS
#undef K_DONE
