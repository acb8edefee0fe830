/* The agent with the clock of this computer, as the guide shows it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define OPMETER_IMPLEMENTATION
#include "opmeter.h"

#include <stdio.h>

static volatile uint32_t sink;

static void work(uint32_t n) {
  while (n-- > 0) {
    sink += n;
  }
}

static void write_stdout(void *user, const uint8_t *data, size_t size) {
  (void)user;
  fwrite(data, 1, size, stdout);
}

int main(void) {
  opmeter_config config = {0};
  unsigned i;
  config.write = write_stdout;
  config.name = "host";
  config.board = "this computer";
  puts("starting");
  opmeter_start(&config);
  opmeter_memory("arena", 2048);
  for (i = 0; i < 20; i++) {
    opmeter_inference_begin();
    opmeter_op_begin(0, "CONV_2D");
    work(20000);
    opmeter_op_end(0);
    opmeter_op_begin(1, "SOFTMAX");
    work(200);
    opmeter_op_end(1);
    opmeter_inference_end();
    printf("inference %u\n", i);
  }
  opmeter_data("output", 0, "result", 6);
  opmeter_done();
  return 0;
}
