/* Copies along nested loops, and fills. */
#include <stddef.h>
#include <string.h>

#include "kernels.h"

/* A run of bytes; short ones are not worth a call. */
static inline void piece(uint8_t *to, const uint8_t *from, int32_t n) {
  if (n >= 16) {
    memcpy(to, from, (size_t)n);
    return;
  }
  for (; n > 0; n--) *to++ = *from++;
}

static void move(const k_move *m, const uint8_t *x, uint8_t *y) {
  const int32_t n = m->size[K_DIMS - 1], to = m->to_step[K_DIMS - 1], from = m->from_step[K_DIMS - 1], run = m->run;
  int32_t i0, i1, i2, i3, i4, i, k;
  for (i0 = 0; i0 < m->size[0]; i0++) {
    const int32_t from0 = m->from + (m->table != NULL ? m->table[i0] : i0 * m->from_step[0]);
    for (i1 = 0; i1 < m->size[1]; i1++)
      for (i2 = 0; i2 < m->size[2]; i2++)
        for (i3 = 0; i3 < m->size[3]; i3++)
          for (i4 = 0; i4 < m->size[4]; i4++) {
            uint8_t *d = y + m->to + i0 * m->to_step[0] + i1 * m->to_step[1] + i2 * m->to_step[2] + i3 * m->to_step[3] + i4 * m->to_step[4];
            const uint8_t *s = x + from0 + i1 * m->from_step[1] + i2 * m->from_step[2] + i3 * m->from_step[3] + i4 * m->from_step[4];
            if (m->map != NULL) {
              for (i = 0; i < n; i++)
                for (k = 0; k < run; k++) d[i * to + k] = m->map[s[i * from + k]];
            } else if (run == 1)
              for (i = 0; i < n; i++) d[i * to] = s[i * from];
            else
              for (i = 0; i < n; i++) piece(d + i * to, s + i * from, run);
          }
  }
}

void k_copy(const k_move *moves, int32_t n, const void *x, void *y) {
  for (; n > 0; n--) move(moves++, (const uint8_t *)x, (uint8_t *)y);
}

void k_fill(void *y, int32_t n, uint32_t value, int32_t width) {
  uint8_t *d = (uint8_t *)y;
  int32_t i, k;
  if (width == 1) {
    memset(d, (int)(value & 0xFF), (size_t)n);
    return;
  }
  for (i = 0; i < n; i++)
    for (k = 0; k < width; k++) *d++ = (uint8_t)(value >> (8 * (k & 3)));
}
