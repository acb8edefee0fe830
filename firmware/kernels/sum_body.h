/* Sums and differences of two inputs for one type of activations, K_X; see conv_body.h
 * for the way of including. */

/* An input at the finer scale, a result from there. */
static inline int32_t K_NAME(fine)(int32_t v, int32_t zero, int32_t left, int32_t mul, int32_t shift) {
  return k_scale(k_left(v - zero, left), mul, shift);
}

#if K_SMALL
/* Puts n values of an input at the finer scale into v, or adds them with a sign. The input of
 * the larger scale is multiplied by exactly one half. */
static inline void K_NAME(finer)(int32_t *v, const K_X *x, int32_t step, int32_t n, int32_t zero, int32_t left, int32_t mul, int32_t shift, int sign) {
  const k_rounding r = k_round(-shift);
  int32_t i;
  if (mul == 1 << 30 && shift == 0 && left > 0) {
    for (i = 0; i < n; i++, x += step) {
      const int32_t f = k_left(*x - zero, left - 1);
      v[i] = sign == 0 ? f : sign > 0 ? v[i] + f : v[i] - f;
    }
    return;
  }
  for (i = 0; i < n; i++, x += step) {
    const int32_t f = k_scale_right(k_left(*x - zero, left), mul, r);
    v[i] = sign == 0 ? f : sign > 0 ? v[i] + f : v[i] - f;
  }
}

/* A run along the last dimension in blocks, each in three loops whose figures fit registers.
 * Values of 8 bits move left by 20 at most: nothing overflows. */
static inline K_X *K_NAME(blocks)(const k_sum *p, const K_X *a, const K_X *b, K_X *y, int kind) {
  enum { BLOCK = 64 };
  int32_t v[BLOCK];
  const int32_t n = p->walk.size[K_DIMS - 1], sa = p->walk.a[K_DIMS - 1], sb = p->walk.b[K_DIMS - 1];
  int32_t at, i;
  for (at = 0; at < n; at += BLOCK) {
    const int32_t m = n - at < BLOCK ? n - at : BLOCK, mul = p->mul, zero = p->zero, lo = p->min, hi = p->max;
    const k_rounding r = k_round(-p->shift_out);
    K_NAME(finer)(v, a + at * sa, sa, m, p->zero_a, p->shift, p->mul_a, p->shift_a, 0);
    K_NAME(finer)(v, b + at * sb, sb, m, p->zero_b, p->shift, p->mul_b, p->shift_b, kind == 0 ? 1 : -1);
    for (i = 0; i < m; i++) *y++ = (K_X)k_clamp(k_scale_right(v[i], mul, r) + zero, lo, hi);
  }
  return y;
}

static inline int K_NAME(in_blocks)(const k_sum *p) {
  const int32_t least = -31;
  return p->shift <= 20 && p->shift_a <= 0 && p->shift_b <= 0 && p->shift_out <= 0 && p->shift_a > least && p->shift_b > least && p->shift_out > least;
}
#endif

/* One run along the last dimension; kind is 0 for a sum, 1 for a difference, 2 for its
 * square. */
static inline K_X *K_NAME(line)(const k_sum *p, const K_X *a, const K_X *b, K_X *y, int kind) {
  const int32_t n = p->walk.size[K_DIMS - 1], sa = p->walk.a[K_DIMS - 1], sb = p->walk.b[K_DIMS - 1];
  int32_t i;
#if K_SMALL
  if (kind != 2 && K_NAME(in_blocks)(p)) return K_NAME(blocks)(p, a, b, y, kind);
#endif
  for (i = 0; i < n; i++, a += sa, b += sb) {
    const int32_t u = K_NAME(fine)(*a, p->zero_a, p->shift, p->mul_a, p->shift_a), v = K_NAME(fine)(*b, p->zero_b, p->shift, p->mul_b, p->shift_b);
    const int32_t d = k_minus(u, v), s = kind == 0 ? k_plus(u, v) : kind == 1 ? d : k_signed((uint32_t)d * (uint32_t)d);
    *y++ = (K_X)k_clamp(k_plus(k_scale(s, p->mul, p->shift_out), p->zero), p->min, p->max);
  }
  return y;
}

static inline void K_NAME(each)(const k_sum *p, const K_X *a, const K_X *b, K_X *y, int kind) {
  const k_spread *w = &p->walk;
  int32_t i0, i1, i2, i3, i4;
  for (i0 = 0; i0 < w->size[0]; i0++)
    for (i1 = 0; i1 < w->size[1]; i1++)
      for (i2 = 0; i2 < w->size[2]; i2++)
        for (i3 = 0; i3 < w->size[3]; i3++)
          for (i4 = 0; i4 < w->size[4]; i4++)
            y = K_NAME(line)(p, a + i0 * w->a[0] + i1 * w->a[1] + i2 * w->a[2] + i3 * w->a[3] + i4 * w->a[4],
                             b + i0 * w->b[0] + i1 * w->b[1] + i2 * w->b[2] + i3 * w->b[3] + i4 * w->b[4], y, kind);
}

void K_NAME(k_add)(const k_sum *p, const K_X *a, const K_X *b, K_X *y) { K_NAME(each)(p, a, b, y, 0); }

void K_NAME(k_sub)(const k_sum *p, const K_X *a, const K_X *b, K_X *y) { K_NAME(each)(p, a, b, y, 1); }

void K_NAME(k_squared_difference)(const k_sum *p, const K_X *a, const K_X *b, K_X *y) { K_NAME(each)(p, a, b, y, 2); }

#undef K_NAME
#undef K_X
#undef K_SMALL
