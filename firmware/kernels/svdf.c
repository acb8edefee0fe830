/* Filters by singular value decomposition: features of the input enter a memory, a second
 * filter runs over it. */
#include <stddef.h>
#include <string.h>

#include "fixed.h"
#include "kernels.h"

#define SVDF(SUFFIX, S)                                                                                                   \
  void k_svdf_##SUFFIX(const k_svdf *p, const int8_t *x, S *state, int8_t *y) {                                           \
    const S *time = (const S *)p->time;                                                                                   \
    const int32_t all = p->batch * p->filters * p->memory;                                                                \
    int32_t b, f, u, k;                                                                                                   \
    S *row = state;                                                                                                       \
    memmove(state, state + 1, (size_t)(all - 1) * sizeof(S));                                                             \
    for (b = 0; b < p->batch; b++, x += p->in) {                                                                          \
      const int8_t *w = p->feature;                                                                                       \
      for (f = 0; f < p->filters; f++, w += p->in, row += p->memory) {                                                    \
        uint32_t s = 0;                                                                                                   \
        for (k = 0; k < p->in; k++) s += (uint32_t)((x[k] - p->zero_in) * w[k]);                                          \
        row[p->memory - 1] = (S)k_clamp(k_plus(k_scale(k_signed(s), p->mul_feature, p->shift_feature), p->zero_state), p->state_min, \
                                        p->state_max);                                                                    \
      }                                                                                                                   \
    }                                                                                                                     \
    row = state;                                                                                                          \
    for (b = 0; b < p->batch; b++) {                                                                                      \
      const S *w = time;                                                                                                  \
      for (u = 0; u < p->units; u++) {                                                                                    \
        uint32_t s = p->bias != NULL ? (uint32_t)p->bias[u] : 0;                                                          \
        const int32_t n = p->rank * p->memory; /* the filters of a unit lie one after the other */                        \
        for (k = 0; k < n; k++) s += k_times(row[k] - p->zero_state, w[k]);                                         \
        row += n;                                                                                                         \
        w += n;                                                                                                           \
        *y++ = (int8_t)k_clamp(k_plus(k_scale(k_signed(s), p->mul_time, p->shift_time), p->zero), INT8_MIN, INT8_MAX);    \
      }                                                                                                                   \
    }                                                                                                                     \
  }

SVDF(s8, int8_t)
SVDF(s16, int16_t)
