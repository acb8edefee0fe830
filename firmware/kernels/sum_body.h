/* Sums and differences of two inputs for one type of activations, K_X; see conv_body.h
 * for the way of including. */

static inline int32_t K_NAME(fine_a)(const k_sum *p, int32_t v) { return k_scale(k_left(v - p->zero_a, p->shift), p->mul_a, p->shift_a); }

static inline int32_t K_NAME(fine_b)(const k_sum *p, int32_t v) { return k_scale(k_left(v - p->zero_b, p->shift), p->mul_b, p->shift_b); }

static inline K_X K_NAME(result)(const k_sum *p, int32_t v) {
  return (K_X)k_clamp(k_plus(k_scale(v, p->mul, p->shift_out), p->zero), p->min, p->max);
}

/* One run along the last dimension; kind is 0 for a sum, 1 for a difference, 2 for its
 * square. */
static inline K_X *K_NAME(line)(const k_sum *p, const K_X *a, const K_X *b, K_X *y, int kind) {
  const int32_t n = p->walk.size[K_DIMS - 1], sa = p->walk.a[K_DIMS - 1], sb = p->walk.b[K_DIMS - 1];
  int32_t i;
  for (i = 0; i < n; i++, a += sa, b += sb) {
    const int32_t u = K_NAME(fine_a)(p, *a), v = K_NAME(fine_b)(p, *b), d = k_minus(u, v);
    const int32_t s = kind == 0 ? k_plus(u, v) : kind == 1 ? d : k_signed((uint32_t)d * (uint32_t)d);
    *y++ = K_NAME(result)(p, s);
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
