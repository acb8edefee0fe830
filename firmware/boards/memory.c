/* The four functions that a compiler may call on its own, so that no library is
 * needed. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *a, const void *b, size_t size);

/* Loops below must stay loops: the compiler knows them as calls of themselves. */
#define LOOP __attribute__((optimize("no-tree-loop-distribute-patterns")))

/* Words may be read and written where bytes of any kind lie. */
typedef uint32_t __attribute__((may_alias)) word;

static int aligned(const void *a, const void *b) { return (((uintptr_t)a | (uintptr_t)b) & 3u) == 0; }

LOOP void *memcpy(void *restrict to, const void *restrict from, size_t size) {
  uint8_t *t = to;
  const uint8_t *f = from;
  if (aligned(t, f)) {
    for (; size >= 4; size -= 4, t += 4, f += 4) *(word *)(void *)t = *(const word *)(const void *)f;
  }
  for (; size != 0; size--) *t++ = *f++;
  return to;
}

LOOP void *memmove(void *to, const void *from, size_t size) {
  uint8_t *t = to;
  const uint8_t *f = from;
  if ((uintptr_t)t - (uintptr_t)f >= size) return memcpy(to, from, size);
  while (size != 0) {
    size--;
    t[size] = f[size];
  }
  return to;
}

LOOP void *memset(void *to, int value, size_t size) {
  uint8_t *t = to;
  const uint8_t byte = (uint8_t)value;
  const uint32_t four = byte * 0x01010101u;
  for (; size != 0 && ((uintptr_t)t & 3u) != 0; size--) *t++ = byte;
  for (; size >= 4; size -= 4, t += 4) *(word *)(void *)t = four;
  for (; size != 0; size--) *t++ = byte;
  return to;
}

LOOP int memcmp(const void *a, const void *b, size_t size) {
  const uint8_t *x = a, *y = b;
  for (; size != 0; size--, x++, y++)
    if (*x != *y) return *x < *y ? -1 : 1;
  return 0;
}
