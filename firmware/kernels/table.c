/* Functions of one 8-bit value, by table. */
#include "kernels.h"

void k_table_8(const uint8_t *table, const uint8_t *x, uint8_t *y, int32_t n) {
  int32_t i;
  for (i = 0; i < n; i++) y[i] = table[x[i]];
}

void k_table_16(const uint16_t *table, const uint8_t *x, uint16_t *y, int32_t n) {
  int32_t i;
  for (i = 0; i < n; i++) y[i] = table[x[i]];
}

void k_table_32(const uint32_t *table, const uint8_t *x, uint32_t *y, int32_t n) {
  int32_t i;
  for (i = 0; i < n; i++) y[i] = table[x[i]];
}
