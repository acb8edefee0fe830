/* A Cortex-M3 in an emulator that counts instructions (40 to a tick of SysTick): what the
 * agent costs, and whether its counter is right around the end of a round. Linked at 0,
 * its UART that of the MPS2 boards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KERNEL
#define OPMETER_SYSTICK_HANDLER
#endif
#define OPMETER_IMPLEMENTATION
#include "opmeter.h"

#define UART(offset) (*(volatile uint32_t *)(0x40004000u + (offset)))

int main(void);

#ifdef KERNEL /* SysTick belongs to an RTOS, whose handler finds its flag set */
static volatile uint32_t rounds, flags;

static void SysTick_Handler(void) {
  rounds++;
  flags += *(volatile uint32_t *)0xE000E010u >> 16 & 1u;
#ifdef OPMETER_TASKS /* another thread has every second round, up to its last tenth */
  if (rounds % 2 == 0) {
    opmeter_task_out();
    while (*(volatile uint32_t *)0xE000E018u > ROUND / 10) {
    }
    opmeter_task_in();
  }
#endif
}
#endif

static void send(void *user, const uint8_t *data, size_t size) {
  (void)user;
  while (size-- > 0) {
    while ((UART(4) & 1u) != 0) {
    }
    UART(0) = *data++;
  }
}

static void spin(uint32_t n) {
  __asm volatile(".syntax unified\n1: subs %0, #1\n\tbne 1b" : "+r"(n) : : "cc"); /* 2 n instructions */
}

#ifndef KERNEL
/* Rounds of SysTick end with the interrupt off: the reading must see it, and must go on
 * where the handler has counted. */
static void wrap(void) {
  uint64_t before, across, after;
  uint32_t mask, i, bad = 0;
  for (i = 0; i < 20; i++) {
    mask = opmeter_lock();
    *(volatile uint32_t *)0xE000E018u = 0; /* a new round, which the counter must not know of */
    spin(50 + i);
    opmeter_state.last = 0; /* so that it does not count as one that went back */
    before = opmeter_now();
    while ((*(volatile uint32_t *)0xE000ED04u & (1u << 26)) == 0) {
    }
    spin(10000); /* 500 ticks, further into the new round than before was into the old */
    across = opmeter_now();
    opmeter_unlock(mask);
    after = opmeter_now();
    if (across - before < opmeter_state.period || across - before > opmeter_state.period + 1000 || after < across || after - across > 1000) {
      bad++;
    }
  }
  opmeter_memory("wrong readings", bad);
}
#endif

int main(void) {
  static opmeter_config config; /* not on the stack, whose filling would need a library */
  uint32_t i, k;
  UART(16) = 16; /* divider */
  UART(8) = 1;   /* transmitter on */
#ifdef ROUND /* a SysTick that runs already, with short rounds */
  *(volatile uint32_t *)0xE000E014u = ROUND - 1u;
  *(volatile uint32_t *)0xE000E018u = 0;
  *(volatile uint32_t *)0xE000E010u = 7;
#endif
  config.write = send;
  config.board = "mps2-an385";
  config.unit = OPMETER_INSTRUCTIONS;
  config.hz = 25000000;
  config.unit_num = 40;
  opmeter_start(&config);
  /* Empty operators, with work of all lengths between them so that the ticks fall
   * everywhere: their mean is what the agent costs inside one. */
  for (k = 0; k < 8; k++) {
    opmeter_inference_begin();
    for (i = 0; i < 100; i++) {
      opmeter_op_begin(0, "NOTHING");
      opmeter_op_end(0);
      spin(1 + (i * 37) % 101);
    }
    for (i = 0; i < 10; i++) {
      opmeter_op_begin(1, "WORK");
      spin(20000); /* 40000 instructions */
      opmeter_op_end(1);
    }
    opmeter_inference_end();
  }
#ifdef KERNEL
  opmeter_memory("lost rounds", rounds - flags);
#elif defined(ROUND)
  opmeter_inference_begin();
  opmeter_op_begin(2, "LONG");
  spin(2000000); /* 100000 ticks */
  opmeter_op_end(2);
  opmeter_inference_end();
#else
  opmeter_state.period = 4096; /* short rounds */
  *(volatile uint32_t *)0xE000E014u = 4095;
#endif
#ifndef KERNEL
  wrap();
#endif
  opmeter_done();
  for (;;) {
  }
}

extern uint32_t stack_top[];

static void fault(void) {
  for (;;) {
  }
}

static void start(void) {
  extern uint32_t bss_begin[], bss_end[];
  uint32_t *p;
  for (p = bss_begin; p < bss_end; p++) {
    *p = 0;
  }
  (void)main();
}

typedef void (*vector)(void);

__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    (vector)(uintptr_t)stack_top, start, fault, fault, fault, fault, fault, fault,
    fault, fault, fault, fault, fault, fault, fault, SysTick_Handler,
};
