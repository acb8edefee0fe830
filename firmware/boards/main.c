/* Runs the model again and again and tells the host what each operator cost. */
#include "board.h"
#include "model.h"
#define OPMETER_IMPLEMENTATION
#include "opmeter.h"

/* How often outputs and memory are told: a host may begin to listen late. */
#define TELL_EVERY 16u

static void tell(void) {
  for (uint32_t i = 0; i < model_outputs(); i++) {
    uint32_t bytes = 0;
    const void *data = model_output(i, &bytes);
    opmeter_data(model_output_name(i), (uint16_t)i, data, bytes);
  }
  opmeter_memory("arena", model_arena_bytes);
  opmeter_memory("weights", model_weights_bytes);
  opmeter_memory("stack", board_stack_used());
}

int main(void) {
  opmeter_config c = {0};
  c.write = board_write;
#ifdef BOARD_COUNTER_ADDRESS
  c.now = board_now;
#endif
  c.hz = BOARD_COUNTER_HZ;
  c.unit = BOARD_COUNTER_UNIT;
  c.unit_num = BOARD_COUNTER_NUM;
  c.unit_den = BOARD_COUNTER_DEN;
  c.name = model_name;
  c.board = BOARD_NAME;
  c.model_sha256_hex = model_sha256;
  opmeter_start(&c);
  for (uint32_t n = 0;; n++) {
    model_set_inputs();
    opmeter_inference_begin();
    model_run();
    opmeter_inference_end();
    if (n % TELL_EVERY == 0) tell();
  }
}
