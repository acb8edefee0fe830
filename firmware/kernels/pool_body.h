/* Pooling for one type of activations, K_X; see conv_body.h for the way of including. */

/* The part of a window that lies inside the image along one axis. */
static inline int32_t K_NAME(part)(int32_t *from, int32_t size, int32_t limit) {
  int32_t end = *from + size;
  if (end > limit) end = limit;
  if (*from < 0) *from = 0;
  return end > *from ? end - *from : 0;
}

static void K_NAME(pool)(const k_pool *p, const K_X *x, K_X *y, int largest) {
  const int32_t row = p->in_w * p->channels;
  int32_t n, oy, ox, i, r, q;
  for (n = 0; n < p->batch; n++, x += p->in_h * row) {
    for (oy = 0; oy < p->out_h; oy++) {
      int32_t y0 = oy * p->stride_h - p->pad_top;
      const int32_t rows = K_NAME(part)(&y0, p->kernel_h, p->in_h);
      for (ox = 0; ox < p->out_w; ox++) {
        int32_t x0 = ox * p->stride_w - p->pad_left;
        const int32_t cols = K_NAME(part)(&x0, p->kernel_w, p->in_w);
        const int32_t count = rows * cols > 0 ? rows * cols : 1;
        for (i = 0; i < p->channels; i++) {
          int32_t s = largest ? INT32_MIN : 0;
          for (r = 0; r < rows; r++) {
            const K_X *at = x + (y0 + r) * row + x0 * p->channels + i;
            if (largest)
              for (q = 0; q < cols; q++, at += p->channels) s = *at > s ? *at : s;
            else
              for (q = 0; q < cols; q++, at += p->channels) s += *at;
          }
          if (!largest) s = (s > 0 ? s + count / 2 : s - count / 2) / count;
          *y++ = (K_X)k_clamp(s, p->min, p->max);
        }
      }
    }
  }
}

void K_NAME(k_average_pool)(const k_pool *p, const K_X *x, K_X *y) { K_NAME(pool)(p, x, y, 0); }

void K_NAME(k_max_pool)(const k_pool *p, const K_X *x, K_X *y) { K_NAME(pool)(p, x, y, 1); }

#undef K_NAME
#undef K_X
