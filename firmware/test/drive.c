/* Random calls of the agent, sensible and senseless, each start of it a sequence.
 * What it sends goes to standard output. The test in Go makes the same calls of its own
 * model of the agent, from the same numbers, and compares byte by byte.
 *
 *     drive SEED SEQUENCES
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPMETER_IMPLEMENTATION
#include "opmeter.h"

static uint32_t state;
static uint64_t clock_now;

static uint32_t pick(uint32_t n) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state % n;
}

static uint64_t now(void *user) {
  (void)user;
  clock_now += 3;
  return clock_now;
}

static void send(void *user, const uint8_t *data, size_t size) {
  size_t i;
  (void)user;
  if (size < 3 || size > OPMETER_FRAME || data[0] != 0 || data[size - 1] != 0) {
    fprintf(stderr, "a frame of %zu bytes\n", size);
    exit(1);
  }
  for (i = 1; i + 1 < size; i++) {
    if (data[i] == 0) {
      fprintf(stderr, "a delimiter within a frame\n");
      exit(1);
    }
  }
  clock_now += 10 * size;
  if (fwrite(data, 1, size, stdout) != size) {
    exit(1);
  }
}

/* A text in memory of its own size, so that reading beyond it is seen; NULL at times. */
static char *text(void) {
  uint32_t kind = pick(16), size = pick(8) == 0 ? pick(300) : pick(12), i;
  char *s;
  if (kind == 0) {
    return NULL;
  }
  s = malloc(size + 1);
  if (s == NULL) {
    exit(1);
  }
  for (i = 0; i < size; i++) {
    if (kind < 4) {
      s[i] = (char)(uint8_t)(1 + pick(255));
    } else if (kind < 8) {
      s[i] = (char)(uint8_t)(i % 3 == 0 ? 0xE2 : 0x82); /* characters of three bytes */
    } else {
      s[i] = (char)('a' + pick(26));
    }
  }
  s[size] = 0;
  return s;
}

static uint16_t open_ops[64];
static unsigned depth;

static void call(void) {
  char *s;
  uint32_t kind = pick(20), size, i;
  uint16_t index;
  uint64_t value;
  uint8_t *bytes;
  clock_now += pick(4) == 0 ? pick(1000000) : pick(50);
  switch (kind) {
    case 0:
    case 1:
      opmeter_inference_begin();
      depth = 0;
      break;
    case 2:
      opmeter_inference_end();
      depth = 0;
      break;
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
      s = text();
      index = (uint16_t)(pick(16) == 0 ? pick(65536) : pick(4) == 0 ? opmeter_op_count() : pick(12));
      if (depth < 64) {
        open_ops[depth++] = index;
      }
      opmeter_op_begin(index, s);
      free(s);
      break;
    case 8:
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
      index = depth > 0 && pick(32) != 0 ? open_ops[--depth] : (uint16_t)pick(65536);
      opmeter_op_end(index);
      break;
    case 14:
    case 15:
      s = text();
      value = pick(0xFFFFFFFFu);
      value <<= pick(33);
      opmeter_counter(s, value);
      free(s);
      break;
    case 16:
      s = text();
      opmeter_memory(s, pick(0xFFFFFFFFu));
      free(s);
      break;
    case 17:
      s = text();
      opmeter_text(s);
      free(s);
      break;
    case 18:
      s = text();
      index = (uint16_t)pick(65536);
      size = pick(2) == 0 ? pick(400) : pick(4);
      bytes = malloc(size == 0 ? 1 : size);
      if (bytes == NULL) {
        exit(1);
      }
      for (i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(pick(4) == 0 ? 0 : pick(256));
      }
      opmeter_data(s, index, size == 0 ? NULL : bytes, size);
      free(bytes);
      free(s);
      break;
    default:
      opmeter_done();
      break;
  }
}

int main(int argc, char **argv) {
  unsigned long sequences, calls;
  if (argc != 3) {
    return 2;
  }
  state = (uint32_t)strtoul(argv[1], NULL, 10);
  for (sequences = strtoul(argv[2], NULL, 10); sequences > 0; sequences--) {
    opmeter_config config;
    char *name = text(), *board = text(), *model = text();
    memset(&config, 0, sizeof config);
    config.write = send;
    config.now = now;
    config.hz = pick(3) == 0 ? 0 : pick(0xFFFFFFFFu);
    config.unit = (uint8_t)pick(4);
    config.unit_num = pick(3);
    config.unit_den = pick(3);
    config.name = name;
    config.board = board;
    config.model_sha256_hex = model;
    depth = 0;
    opmeter_start(&config);
    for (calls = pick(80); calls > 0; calls--) {
      call();
    }
    free(name);
    free(board);
    free(model);
  }
  return 0;
}
