/* Long short-term memory for one type of activations, K_X; see conv_body.h for the way of
 * including. */

/* One product of a gate: row o of the weights with x, brought to Q3.12. */
static inline int32_t K_NAME(product)(const k_gate *g, const K_X *x, int32_t o) {
  const int8_t *w = g->weights + o * g->columns;
  K_SUM s = (K_SUM)((const K_BIAS *)g->fold)[o];
  int32_t i;
  for (i = 0; i < g->columns; i++) s += (K_SUM)((int32_t)x[i] * w[i]);
  return k_saturate16(K_DONE(s, g->mul, g->shift));
}

static inline int16_t K_NAME(gate)(const k_lstm *p, int g, const K_X *x, const K_X *hidden, int32_t k) {
  return k_saturate16(K_NAME(product)(&p->inputs[g], x, k) + K_NAME(product)(&p->recurrent[g], hidden, k));
}

void K_NAME(k_lstm)(const k_lstm *p, const K_X *x, K_X *hidden, int16_t *cell, K_X *fresh, K_X *y) {
  const int32_t n = p->cells;
  int32_t t, b, k;
  for (t = 0; t < p->steps; t++) {
    for (b = 0; b < p->batch; b++) {
      const int32_t r = p->time_major ? t * p->batch + b : b * p->steps + t;
      const K_X *in = x + r * p->in;
      K_X *h = hidden + b * n;
      int16_t *state = cell + b * n;
      for (k = 0; k < n; k++) {
        const int32_t i = k_logistic16(p->table, K_NAME(gate)(p, 0, in, h, k), 0, 0);
        const int32_t f = k_logistic16(p->table, K_NAME(gate)(p, 1, in, h, k), 0, 0);
        const int32_t g = k_tanh16(p->table, K_NAME(gate)(p, 2, in, h, k), 0, 0);
        const int32_t o = k_logistic16(p->table, K_NAME(gate)(p, 3, in, h, k), 0, 0);
        const int32_t kept = k_saturate16(k_scale(f * state[k], p->mul_forget, p->shift_forget));
        const int32_t added = k_saturate16(k_scale(i * g, p->mul_input, p->shift_input));
        int32_t v = k_saturate16(kept + added);
        if (p->clip > 0) v = k_clamp(v, -p->clip, p->clip);
        state[k] = (int16_t)v;
        v = k_scale(o * k_tanh16(p->table, v, p->mul_tanh, p->shift_tanh), p->mul_output, p->shift_output);
        fresh[k] = (K_X)k_clamp(k_plus(v, p->zero), p->min, p->max);
      }
      memcpy(h, fresh, (size_t)n * sizeof(K_X));
      memcpy(y + r * n, fresh, (size_t)n * sizeof(K_X));
    }
  }
}

#undef K_NAME
#undef K_X
#undef K_SUM
#undef K_BIAS
#undef K_DONE
