/* opmeter agent: tells over a wire how long each operator of a model takes.
 *
 * One header for any firmware. In exactly one C or C++ file:
 *
 *     #define OPMETER_IMPLEMENTATION
 *     #include "opmeter.h"
 *
 * and wherever something is measured, the include alone. No allocation, no
 * library, under 1 KB of RAM. Frames, costs and limits: docs/reference/agent.md.
 *
 * The functions are for one thread and not for interrupt handlers, except
 * opmeter_systick, which is for one, and the hooks for a scheduler.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef OPMETER_H
#define OPMETER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sends all bytes and returns when they may be overwritten. */
typedef void (*opmeter_write_fn)(void *user, const uint8_t *data, size_t size);

/* What a counter counts. */
enum opmeter_unit { OPMETER_CYCLES, OPMETER_INSTRUCTIONS, OPMETER_NANOSECONDS, OPMETER_TICKS };

/* Texts must stay where they are: they are sent again for hosts that join late. */
typedef struct {
  opmeter_write_fn write;
  void *user;                   /* given to write and now */
  uint64_t (*now)(void *user);  /* NULL: the built-in counter of this processor */
  uint32_t hz;                  /* rate of the counter, 0 unknown */
  uint8_t unit;                 /* enum opmeter_unit */
  uint32_t unit_num, unit_den;  /* figure = counts * num / den, for emulators; 0 is 1 */
  const char *name;             /* of the model, NULL unknown */
  const char *board;            /* NULL unknown */
  const char *model_sha256_hex; /* of the model file, NULL unknown */
} opmeter_config;

/* Starts the counter, measures what the agent itself costs, says hello. */
void opmeter_start(const opmeter_config *config);

/* Around the whole inference. */
void opmeter_inference_begin(void);
void opmeter_inference_end(void);

/* Around one operator. An index has the same tag in every inference. Operators
 * may stand within operators, OPMETER_NEST deep. */
void opmeter_op_begin(uint16_t index, const char *tag);
void opmeter_op_end(uint16_t index);

/* How many operators the running inference has begun: an index for interpreters
 * that have none of their own. */
uint16_t opmeter_op_count(void);

/* A figure of the running operator, or of the inference where none is running. */
void opmeter_counter(const char *name, uint64_t value);

/* Memory in use, such as "arena" or "stack". */
void opmeter_memory(const char *name, uint32_t bytes);

/* A remark for whoever reads the profile. */
void opmeter_text(const char *text);

/* Bytes such as an output tensor, sent in pieces; for outside of inferences. */
void opmeter_data(const char *name, uint16_t index, const void *bytes, uint32_t size);

/* The firmware is through: the host need not wait for more. */
void opmeter_done(void);

/* To be called from SysTick_Handler: extends the counter to 64 bits. Needed where
 * SysTick is the counter, useful where a 32-bit counter may go round within one
 * operator. With OPMETER_SYSTICK_HANDLER defined the agent has that handler itself. */
void opmeter_systick(void);

/* With OPMETER_TASKS defined everywhere: for the scheduler of an RTOS, when the thread
 * that measures loses the processor and when it gets it back. Counts between the two are
 * in no figure. Without these, operators contain what ran in between. */
#ifdef OPMETER_TASKS
void opmeter_task_out(void);
void opmeter_task_in(void);
#endif

#ifdef __cplusplus
}
#endif

#endif /* OPMETER_H */

#if defined(OPMETER_IMPLEMENTATION) && !defined(OPMETER_IMPLEMENTED)
#define OPMETER_IMPLEMENTED

/* How deep operators may stand within each other. */
#ifndef OPMETER_NEST
#define OPMETER_NEST 8
#endif

/* For how many operators the agent remembers that their tag was sent: a bit each.
 * Tags of higher indices are sent every time. */
#ifndef OPMETER_TAGS
#define OPMETER_TAGS 1024
#endif

/* Bytes of the longest frame with its delimiters. Below 256, so that one byte of
 * COBS reaches over it. */
#ifndef OPMETER_FRAME
#define OPMETER_FRAME 128
#endif

#if OPMETER_FRAME < 96 || OPMETER_FRAME > 255 || OPMETER_NEST < 1 || OPMETER_NEST > 64
#error "opmeter: OPMETER_FRAME is 96 to 255, OPMETER_NEST 1 to 64"
#endif

enum {
  OPMETER_VERSION = 1,

  OPMETER_TYPE_HELLO = 1,
  OPMETER_TYPE_INFO = 2,
  OPMETER_TYPE_TAG = 3,
  OPMETER_TYPE_BEGIN = 4,
  OPMETER_TYPE_OP = 5,
  OPMETER_TYPE_END = 6,
  OPMETER_TYPE_COUNTER = 7,
  OPMETER_TYPE_MEMORY = 8,
  OPMETER_TYPE_TEXT = 9,
  OPMETER_TYPE_DATA = 10,
  OPMETER_TYPE_DONE = 11,
  OPMETER_TYPE_PROBLEM = 12,

  OPMETER_INFO_NAME = 1,
  OPMETER_INFO_BOARD = 2,
  OPMETER_INFO_MODEL = 3,
  OPMETER_INFO_COUNTER = 4,

  OPMETER_FLAG_REPEAT = 1, /* not the hello of a start */
  OPMETER_FLAG_STILL = 2,  /* the counter did not move when it was started */
  OPMETER_FLAG_POLLED = 4, /* nobody counts how often the counter goes round */

  OPMETER_PROBLEM_NEST = 1,      /* operators too deep within each other */
  OPMETER_PROBLEM_ORDER = 2,     /* an operator ended that is not the running one */
  OPMETER_PROBLEM_OUTSIDE = 3,   /* an operator outside of an inference */
  OPMETER_PROBLEM_OPEN = 4,      /* an inference ended with an operator running */
  OPMETER_PROBLEM_INFERENCE = 5, /* begin within an inference, or end outside of one */
  OPMETER_PROBLEM_BACKWARDS = 6, /* the counter went back */

  OPMETER_PAIRS = 8, /* empty operators in a round of calibration */
  OPMETER_ROUNDS = 4
};

typedef struct {
  uint64_t begin; /* counter */
  uint64_t own;   /* opmeter_state.own at that time */
  uint32_t calls;
  uint16_t index;
} opmeter_open;

static struct {
  opmeter_config config;
  uint64_t own;   /* counts that the agent itself spent since the inference began */
  uint64_t begin; /* counter where the inference began */
  uint64_t high;  /* what the built-in counter's rounds add up to */
  uint64_t last;  /* latest value of the built-in counter */
  uint64_t cost;  /* counts inside an empty operator */
  uint64_t pairs; /* counts of OPMETER_PAIRS empty operators that own does not have */
  uint32_t period;
  uint32_t calls; /* of the agent since the inference began */
  uint32_t inferences;
  uint32_t ops;   /* ended in this inference */
  uint16_t begun; /* begun in this inference */
  uint16_t sequence;
  uint16_t room; /* first byte of frame that a payload may not have */
  uint16_t size;
  uint8_t depth;
  uint8_t flags;
  uint8_t counter;
  bool running;
  bool muted;
  bool shared; /* SysTick belongs to an RTOS, which needs its flag */
#ifdef OPMETER_TASKS
  bool out;
  uint64_t left;          /* counter where the thread lost the processor */
  volatile uint64_t away; /* counts for which it has been without */
#endif
  uint8_t frame[OPMETER_FRAME];
  uint8_t told[(OPMETER_TAGS + 7) / 8];
  opmeter_open open[OPMETER_NEST];
} opmeter_state;

/* ---- Counters ---- */

enum {
  OPMETER_COUNTER_USER,
  OPMETER_COUNTER_DWT,
  OPMETER_COUNTER_SYSTICK,
  OPMETER_COUNTER_MCYCLE,
  OPMETER_COUNTER_CLOCK,
  OPMETER_COUNTER_RISCV,
  OPMETER_COUNTER_XTENSA
};

/* OPMETER_NO_COUNTER leaves every counter of the processor alone; config.now is needed.
 * OPMETER_COUNTER_CSR is the number of a 32-bit cycle counter of a RISC-V processor that
 * has no mcycle; OPMETER_COUNTER_CSR_START is a statement that starts it. */
#if defined(OPMETER_NO_COUNTER)
#elif defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__) || \
    defined(__ARM_ARCH_8M_BASE__) || defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
#define OPMETER_CORTEX_M
#if !defined(__ARM_ARCH_6M__) && !defined(__ARM_ARCH_8M_BASE__)
#define OPMETER_HAS_DWT
#endif
#elif defined(__riscv) && !defined(__linux__)
/* ESP32-C2 and C3 count in a register of their own: events 0x7E0 (1 is cycles), mode
 * 0x7E1, count 0x7E2. */
#if !defined(OPMETER_COUNTER_CSR) && (defined(CONFIG_IDF_TARGET_ESP32C2) || defined(CONFIG_IDF_TARGET_ESP32C3))
#define OPMETER_COUNTER_CSR 0x7E2
#define OPMETER_COUNTER_CSR_START() __asm volatile("csrwi 0x7E0, 1\n\tcsrwi 0x7E1, 1")
#endif
#ifndef OPMETER_COUNTER_CSR
#define OPMETER_MCYCLE
#endif
#ifndef OPMETER_COUNTER_CSR_START
#define OPMETER_COUNTER_CSR_START() ((void)0)
#endif
#elif defined(__XTENSA__)
#define OPMETER_CCOUNT
#elif defined(__unix__) || defined(__APPLE__) || defined(_WIN32)
#include <time.h>
#define OPMETER_CLOCK
#else
#error "opmeter: no counter of this processor is known: define OPMETER_NO_COUNTER and set config.now to a function that reads one"
#endif

#if defined(OPMETER_HAS_DWT) || defined(OPMETER_COUNTER_CSR) || defined(OPMETER_CCOUNT)
/* Extends a counter of 32 bits; for use with interrupts off. */
static uint64_t opmeter_extend(uint32_t value) {
  if (value < (uint32_t)opmeter_state.last) {
    opmeter_state.high += (uint64_t)1 << 32;
  }
  opmeter_state.last = opmeter_state.high + value;
  return opmeter_state.last;
}
#endif

#ifdef OPMETER_CORTEX_M

#define OPMETER_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define OPMETER_SYST_CSR OPMETER_REGISTER(0xE000E010u)
#define OPMETER_SYST_RVR OPMETER_REGISTER(0xE000E014u)
#define OPMETER_SYST_CVR OPMETER_REGISTER(0xE000E018u)
#define OPMETER_ICSR OPMETER_REGISTER(0xE000ED04u)
#define OPMETER_VTOR OPMETER_REGISTER(0xE000ED08u)
#define OPMETER_DEMCR OPMETER_REGISTER(0xE000EDFCu)
#define OPMETER_DWT_CTRL OPMETER_REGISTER(0xE0001000u)
#define OPMETER_DWT_CYCCNT OPMETER_REGISTER(0xE0001004u)
#define OPMETER_DWT_LAR OPMETER_REGISTER(0xE0001FB0u)

/* Interrupts off; returns what opmeter_unlock puts back. */
static uint32_t opmeter_lock(void) {
  uint32_t mask;
  __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(mask) : : "memory");
  return mask;
}

static void opmeter_unlock(uint32_t mask) {
  __asm volatile("msr primask, %0" : : "r"(mask) : "memory");
}

/* SysTick counts down from RVR to 0 and asks for its interrupt when it gets there;
 * 0 is therefore the first value of a new round. Where the round is over and the
 * interrupt still waits (interrupts are off here), its flag says so: the value that
 * was read may be of either side, one that is read after the flag is of the new round.
 * Reading the flag of the control register clears it. The driver of an RTOS needs that
 * flag; a SysTick that it keeps is therefore known to be in a new round by its value. */
static uint64_t opmeter_read_systick(void) {
  const uint32_t mask = opmeter_lock();
  uint32_t value = OPMETER_SYST_CVR;
  uint64_t now;
  if (opmeter_state.shared) {
    now = opmeter_state.high;
    if (now + (value != 0 ? opmeter_state.period - value : 0) < opmeter_state.last) {
      opmeter_state.high += opmeter_state.period;
      now = opmeter_state.high;
    }
  } else if ((opmeter_state.flags & OPMETER_FLAG_POLLED) != 0) {
    if ((OPMETER_SYST_CSR & (1u << 16)) != 0) { /* been round since the last look */
      value = OPMETER_SYST_CVR;
      opmeter_state.high += opmeter_state.period;
    }
    now = opmeter_state.high;
  } else {
    now = opmeter_state.high;
    if ((OPMETER_ICSR & (1u << 26)) != 0) {
      value = OPMETER_SYST_CVR;
      now += opmeter_state.period;
    }
  }
  if (value != 0) {
    now += opmeter_state.period - value;
  }
  /* Emulators let the flag come a little after the round. */
  if (now < opmeter_state.last) {
    now += opmeter_state.period;
  }
  opmeter_state.last = now;
  opmeter_unlock(mask);
  return now;
}

/* Whether the interrupt leads to opmeter_systick, found out by waiting for one. */
static bool opmeter_systick_arrives(uint32_t period) {
  const volatile uint64_t *high = &opmeter_state.high;
  const uint64_t before = *high;
  uint32_t last, value, patience;
  for (patience = 1000; patience != 0 && OPMETER_SYST_CVR == 0; patience--) { /* just started */
  }
  last = value = OPMETER_SYST_CVR;
  for (patience = 16u * period; patience != 0 && value <= last && *high == before; patience--) {
    last = value;
    value = OPMETER_SYST_CVR;
  }
  for (patience = 1000; patience != 0 && *high == before; patience--) {
  }
  return *high != before;
}

/* Whether SysTick counts. Its control register is not read for that, nor later right after
 * a round: the flag that says so is for the handler. */
static bool opmeter_systick_runs(void) {
  const uint32_t before = OPMETER_SYST_CVR;
  const uint32_t half = (OPMETER_SYST_RVR & 0xFFFFFFu) / 2u;
  uint32_t i;
  for (i = 0; i < 1000u && OPMETER_SYST_CVR == before; i++) { /* slow ones need a while */
  }
  if (OPMETER_SYST_CVR == before) {
    return false;
  }
  for (i = 0; i < 0x2000000u && (OPMETER_SYST_CVR > half || OPMETER_SYST_CVR < half / 2u); i++) {
  }
  return true;
}

/* A SysTick that runs keeps its period. Otherwise it is started with the longest
 * one, and with its interrupt where there is a handler: a vector that is also the one
 * of NMI is the default handler, which never returns. */
static void opmeter_start_systick(void) {
  const bool found = opmeter_systick_runs();
  uint32_t control = 5u; /* processor clock, enabled */
  uint32_t mask;
  bool arrives = false;
  opmeter_state.counter = OPMETER_COUNTER_SYSTICK;
  if (found) {
    opmeter_state.period = (OPMETER_SYST_RVR & 0xFFFFFFu) + 1u;
    control = OPMETER_SYST_CSR;
    if ((control & 4u) == 0 && opmeter_state.config.unit == OPMETER_CYCLES) {
      opmeter_state.config.unit = OPMETER_TICKS; /* a clock of its own */
    }
    arrives = (control & 2u) != 0 && opmeter_systick_arrives(opmeter_state.period);
  } else {
#ifdef OPMETER_SYSTICK_HANDLER
    control |= 2u;
#else
    const volatile uint32_t *vectors = (const volatile uint32_t *)(uintptr_t)OPMETER_VTOR;
    if (vectors[15] != vectors[2] && vectors[15] != 0) {
      control |= 2u;
    }
#endif
    opmeter_state.period = 4096;
    OPMETER_SYST_CSR = 0;
    OPMETER_SYST_RVR = opmeter_state.period - 1u;
    OPMETER_SYST_CVR = 0;
    OPMETER_SYST_CSR = control;
    if ((control & 2u) != 0) {
      arrives = opmeter_systick_arrives(opmeter_state.period);
    }
    if (!arrives) {
      control &= ~2u;
    }
    OPMETER_SYST_CSR = 0;
    opmeter_state.period = 0x1000000u;
    OPMETER_SYST_RVR = opmeter_state.period - 1u;
    OPMETER_SYST_CVR = 0;
    OPMETER_SYST_CSR = control;
  }
  mask = opmeter_lock(); /* the handler may already be at work */
  opmeter_state.high = 0;
  opmeter_state.last = 0;
  opmeter_state.shared = found && !arrives;
  if (!arrives) {
    if (!found) {
      (void)OPMETER_SYST_CSR; /* forgets the round that was waited for */
    }
    opmeter_state.flags |= OPMETER_FLAG_POLLED;
  }
  opmeter_unlock(mask);
}

#ifdef OPMETER_HAS_DWT
static uint64_t opmeter_read_dwt(void) {
  const uint32_t mask = opmeter_lock();
  const uint64_t now = opmeter_extend(OPMETER_DWT_CYCCNT);
  opmeter_unlock(mask);
  return now;
}

/* False where the counter is absent or does not count, as in emulators. */
static bool opmeter_start_dwt(void) {
  uint32_t before;
  unsigned i;
  OPMETER_DEMCR |= 1u << 24;     /* TRCENA */
  OPMETER_DWT_LAR = 0xC5ACCE55u; /* the lock that Cortex-M7 has */
  if ((OPMETER_DWT_CTRL & (1u << 25)) != 0) {
    return false; /* NOCYCCNT */
  }
  OPMETER_DWT_CTRL |= 1u;
  before = OPMETER_DWT_CYCCNT;
  for (i = 0; i < 100; i++) {
    if (OPMETER_DWT_CYCCNT != before) {
      opmeter_state.counter = OPMETER_COUNTER_DWT;
      opmeter_state.period = 0; /* 2^32 */
      return true;
    }
  }
  return false;
}
#endif

void opmeter_systick(void) {
  if (opmeter_state.counter == OPMETER_COUNTER_SYSTICK) {
    if ((opmeter_state.flags & OPMETER_FLAG_POLLED) == 0) {
      const uint32_t mask = opmeter_lock();
      opmeter_state.high += opmeter_state.period;
      opmeter_unlock(mask);
    }
    return;
  }
#ifdef OPMETER_HAS_DWT
  if (opmeter_state.counter == OPMETER_COUNTER_DWT) {
    (void)opmeter_read_dwt();
  }
#endif
}

#ifdef OPMETER_SYSTICK_HANDLER
#ifdef __cplusplus
extern "C"
#endif
void SysTick_Handler(void);
void SysTick_Handler(void) { opmeter_systick(); }
#endif

static void opmeter_start_counter(void) {
#ifdef OPMETER_HAS_DWT
  if (opmeter_start_dwt()) {
    return;
  }
#endif
  opmeter_start_systick();
}

static uint64_t opmeter_read_counter(void) {
#ifdef OPMETER_HAS_DWT
  if (opmeter_state.counter == OPMETER_COUNTER_DWT) {
    return opmeter_read_dwt();
  }
#endif
  return opmeter_read_systick();
}

#else /* not a Cortex-M */

#if defined(OPMETER_COUNTER_CSR) || defined(OPMETER_CCOUNT)

static void opmeter_start_counter(void) {
#ifdef OPMETER_CCOUNT
  opmeter_state.counter = OPMETER_COUNTER_XTENSA;
#else
  OPMETER_COUNTER_CSR_START();
  opmeter_state.counter = OPMETER_COUNTER_RISCV;
#endif
}

#define OPMETER_TEXT_OF(x) #x
#define OPMETER_TEXT(x) OPMETER_TEXT_OF(x)

static uint64_t opmeter_read_counter(void) {
  uint32_t mask, value;
  uint64_t now;
#ifdef OPMETER_CCOUNT
  __asm volatile("rsil %0, 3\n\trsr.ccount %1" : "=a"(mask), "=a"(value) : : "memory");
  now = opmeter_extend(value);
  __asm volatile("wsr.ps %0\n\trsync" : : "a"(mask) : "memory");
#else
  __asm volatile("csrrci %0, mstatus, 8" : "=r"(mask) : : "memory");
  __asm volatile("csrr %0, " OPMETER_TEXT(OPMETER_COUNTER_CSR) : "=r"(value));
  now = opmeter_extend(value);
  __asm volatile("csrs mstatus, %0" : : "r"(mask & 8u) : "memory");
#endif
  return now;
}

void opmeter_systick(void) { (void)opmeter_read_counter(); }

#else

void opmeter_systick(void) {}

#endif

#ifdef OPMETER_MCYCLE

static void opmeter_start_counter(void) { opmeter_state.counter = OPMETER_COUNTER_MCYCLE; }

static uint64_t opmeter_read_counter(void) {
#if __riscv_xlen == 32
  uint32_t high, low, again;
  do { /* until no carry came between the halves */
    __asm volatile("csrr %0, mcycleh\n\tcsrr %1, mcycle\n\tcsrr %2, mcycleh" : "=&r"(high), "=&r"(low), "=&r"(again));
  } while (high != again);
  return (uint64_t)high << 32 | low;
#else
  uint64_t now;
  __asm volatile("csrr %0, mcycle" : "=r"(now));
  return now;
#endif
}

#elif defined(OPMETER_CLOCK)

static void opmeter_start_counter(void) {
  opmeter_state.counter = OPMETER_COUNTER_CLOCK;
#ifdef CLOCK_MONOTONIC
  opmeter_state.config.hz = 1000000000u;
  opmeter_state.config.unit = OPMETER_NANOSECONDS;
#else /* plain C99 has nothing finer */
  opmeter_state.config.hz = (uint32_t)CLOCKS_PER_SEC;
  opmeter_state.config.unit = OPMETER_TICKS;
#endif
}

static uint64_t opmeter_read_counter(void) {
#ifdef CLOCK_MONOTONIC
  struct timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
    return 0;
  }
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#else
  return (uint64_t)clock();
#endif
}

#elif defined(OPMETER_NO_COUNTER)

static void opmeter_start_counter(void) {}
static uint64_t opmeter_read_counter(void) { return 0; }

#endif
#endif

static uint64_t opmeter_count(void) {
  if (opmeter_state.config.now != NULL) {
    return opmeter_state.config.now(opmeter_state.config.user);
  }
  return opmeter_read_counter();
}

#ifdef OPMETER_TASKS
/* Counts of the measuring thread: those of the counter without what others had of it. */
static uint64_t opmeter_now(void) {
  uint64_t away, now;
  do { /* until no switch came between */
    away = opmeter_state.away;
    now = opmeter_count();
  } while (away != opmeter_state.away);
  return now - away;
}

void opmeter_task_out(void) {
  opmeter_state.left = opmeter_count();
  opmeter_state.out = true;
}

void opmeter_task_in(void) {
  if (opmeter_state.out) {
    opmeter_state.out = false;
    opmeter_state.away += opmeter_count() - opmeter_state.left;
  }
}
#else
static uint64_t opmeter_now(void) { return opmeter_count(); }
#endif

/* ---- Frames ---- */

static void opmeter_put(uint8_t value) {
  if (opmeter_state.size < opmeter_state.room) {
    opmeter_state.frame[opmeter_state.size++] = value;
  }
}

static void opmeter_put_number(uint64_t value) {
  while (value > 0x7F) {
    opmeter_put((uint8_t)(0x80u | (value & 0x7Fu)));
    value >>= 7;
  }
  opmeter_put((uint8_t)value);
}

/* A length and as many bytes. */
static void opmeter_put_bytes(const uint8_t *bytes, size_t size) {
  size_t i;
  opmeter_put_number(size);
  for (i = 0; i < size; i++) {
    opmeter_put(bytes[i]);
  }
}

/* Bytes of a text before its end, at most max; cut before a character of UTF-8. */
static size_t opmeter_length(const char *text, size_t max) {
  size_t n = 0;
  if (text == NULL) {
    return 0;
  }
  while (n < max && text[n] != 0) {
    n++;
  }
  if (n == max) {
    const size_t whole = n;
    while (n > 0 && whole - n < 3 && ((uint8_t)text[n] & 0xC0u) == 0x80u) {
      n--;
    }
    if (((uint8_t)text[n] & 0xC0u) == 0x80u) {
      n = whole; /* not UTF-8 */
    }
  }
  return n;
}

static void opmeter_put_text(const char *text, size_t max) {
  opmeter_put_bytes((const uint8_t *)text, opmeter_length(text, max));
}

/* The longest name in frames that have more than a name. */
#define OPMETER_NAME 40u

/* A frame is 0, the COBS form of type, sequence number, content and check, 0.
 * frame[0] is the first delimiter, frame[1] the first byte of COBS. */
static void opmeter_open_frame(uint8_t type) {
  opmeter_state.size = 2;
  opmeter_state.room = OPMETER_FRAME - 5; /* check and delimiter */
  opmeter_put(type);
  opmeter_put((uint8_t)opmeter_state.sequence);
  opmeter_put((uint8_t)(opmeter_state.sequence >> 8));
}

static void opmeter_send(void) {
  uint8_t *frame = opmeter_state.frame;
  uint32_t check = 0xFFFFFFFFu;
  unsigned i, bit, code = 1;
  for (i = 2; i < opmeter_state.size; i++) { /* CRC-32 of IEEE 802.3 */
    check ^= frame[i];
    for (bit = 0; bit < 8; bit++) {
      check = (check >> 1) ^ (0xEDB88320u & (0u - (check & 1u)));
    }
  }
  check = ~check;
  opmeter_state.room = OPMETER_FRAME;
  for (i = 0; i < 4; i++) {
    opmeter_put((uint8_t)(check >> (8 * i)));
  }
  for (i = 2; i < opmeter_state.size; i++) {
    if (frame[i] == 0) {
      frame[code] = (uint8_t)(i - code);
      code = i;
    }
  }
  frame[code] = (uint8_t)(opmeter_state.size - code);
  frame[0] = 0;
  opmeter_put(0);
  opmeter_state.sequence++;
  if (!opmeter_state.muted && opmeter_state.config.write != NULL) {
    opmeter_state.config.write(opmeter_state.config.user, frame, opmeter_state.size);
  }
}

static void opmeter_send_info(uint8_t key, const char *text) {
  if (text == NULL) {
    return;
  }
  opmeter_open_frame(OPMETER_TYPE_INFO);
  opmeter_put(key);
  opmeter_put_text(text, OPMETER_FRAME - 16u);
  opmeter_send();
}

static void opmeter_send_problem(uint8_t code, uint16_t index) {
  opmeter_open_frame(OPMETER_TYPE_PROBLEM);
  opmeter_put(code);
  opmeter_put_number(index);
  opmeter_send();
}

static void opmeter_hello(uint8_t flags) {
  static const char *const counters[] = {"user", "dwt", "systick", "mcycle", "clock", "csr", "ccount"};
  const opmeter_config *c = &opmeter_state.config;
  unsigned i;
  opmeter_open_frame(OPMETER_TYPE_HELLO);
  opmeter_put(OPMETER_VERSION);
  opmeter_put((uint8_t)(opmeter_state.flags | flags));
  opmeter_put(c->unit);
  opmeter_put_number(c->hz);
  opmeter_put_number(c->unit_num);
  opmeter_put_number(c->unit_den);
  opmeter_put_number(opmeter_state.cost);
  opmeter_put_number(opmeter_state.pairs);
  opmeter_put_number(2 * OPMETER_PAIRS);
  if (opmeter_state.counter == OPMETER_COUNTER_DWT || opmeter_state.counter >= OPMETER_COUNTER_RISCV) {
    opmeter_put_number((uint64_t)1 << 32);
  } else {
    opmeter_put_number((opmeter_state.flags & OPMETER_FLAG_POLLED) != 0 ? opmeter_state.period : 0);
  }
  opmeter_put_number(opmeter_state.inferences);
  opmeter_send();
  opmeter_send_info(OPMETER_INFO_COUNTER, counters[opmeter_state.counter]);
  opmeter_send_info(OPMETER_INFO_NAME, c->name);
  opmeter_send_info(OPMETER_INFO_BOARD, c->board);
  opmeter_send_info(OPMETER_INFO_MODEL, c->model_sha256_hex);
  for (i = 0; i < sizeof opmeter_state.told; i++) {
    opmeter_state.told[i] = 0;
  }
}

/* ---- What a firmware calls ---- */

/* Operators with nothing in them, unsent: the least counts inside one, and the least
 * that a round of them takes beside what the agent itself sees of it. */
static void opmeter_calibrate(void) {
  unsigned round, i;
  opmeter_state.cost = UINT64_MAX;
  opmeter_state.pairs = UINT64_MAX;
  opmeter_state.muted = true;
  opmeter_state.running = true;
  for (round = 0; round < OPMETER_ROUNDS; round++) {
    const uint64_t own = opmeter_state.own;
    const uint64_t before = opmeter_now();
    const uint64_t begin = opmeter_now();
    uint64_t all, seen;
    for (i = 0; i < OPMETER_PAIRS; i++) {
      opmeter_op_begin(0, NULL);
      opmeter_op_end(0); /* takes the least for the cost */
    }
    all = opmeter_now() - begin;
    seen = opmeter_state.own - own + (begin - before); /* and one reading */
    all = all > seen ? all - seen : 0;
    opmeter_state.pairs = all < opmeter_state.pairs ? all : opmeter_state.pairs;
  }
  opmeter_state.running = false;
  opmeter_state.muted = false;
}

void opmeter_start(const opmeter_config *config) {
  uint64_t before;
  unsigned i;
  /* One by one: a copy of the whole would need memcpy. */
  opmeter_state.config.write = config->write;
  opmeter_state.config.user = config->user;
  opmeter_state.config.now = config->now;
  opmeter_state.config.hz = config->hz;
  opmeter_state.config.unit = config->unit;
  opmeter_state.config.unit_num = config->unit_num;
  opmeter_state.config.unit_den = config->unit_den;
  opmeter_state.config.name = config->name;
  opmeter_state.config.board = config->board;
  opmeter_state.config.model_sha256_hex = config->model_sha256_hex;
  opmeter_state.counter = OPMETER_COUNTER_USER;
  opmeter_state.flags = 0;
  opmeter_state.shared = false;
#ifdef OPMETER_TASKS
  opmeter_state.out = false;
  opmeter_state.away = 0;
#endif
  opmeter_state.period = 0;
  opmeter_state.high = 0;
  opmeter_state.last = 0;
  opmeter_state.own = 0;
  opmeter_state.inferences = 0;
  opmeter_state.depth = 0;
  if (opmeter_state.config.unit_num == 0) {
    opmeter_state.config.unit_num = 1;
  }
  if (opmeter_state.config.unit_den == 0) {
    opmeter_state.config.unit_den = 1;
  }
  if (opmeter_state.config.now == NULL) {
    opmeter_start_counter();
  }
  before = opmeter_now();
  opmeter_calibrate();
  for (i = 0; i < 100000u && opmeter_now() == before; i++) { /* slow ones need a while */
  }
  if (opmeter_now() == before) {
    opmeter_state.flags |= OPMETER_FLAG_STILL;
  }
  opmeter_state.sequence = 0;
  opmeter_state.begun = 0;
  opmeter_hello(0);
}

/* Hellos come again after 1, 2, 4, 8, 16 inferences and then every 16. */
void opmeter_inference_begin(void) {
  const uint32_t n = opmeter_state.inferences;
  if (opmeter_state.running) {
    opmeter_send_problem(OPMETER_PROBLEM_INFERENCE, 0);
  }
  if (n != 0 && (n % 16 == 0 || (n < 16 && (n & (n - 1)) == 0))) {
    opmeter_hello(OPMETER_FLAG_REPEAT);
  }
  opmeter_state.inferences = n + 1;
  opmeter_open_frame(OPMETER_TYPE_BEGIN);
  opmeter_put_number(n);
  opmeter_send();
  opmeter_state.running = true;
  opmeter_state.depth = 0;
  opmeter_state.ops = 0;
  opmeter_state.begun = 0;
  opmeter_state.calls = 0;
  opmeter_state.own = 0;
  opmeter_state.begin = opmeter_now();
}

void opmeter_inference_end(void) {
  const uint64_t now = opmeter_now();
  uint64_t counts = now - opmeter_state.begin;
  if (!opmeter_state.running) {
    opmeter_send_problem(OPMETER_PROBLEM_INFERENCE, 1);
    return;
  }
  if (opmeter_state.depth != 0) {
    opmeter_send_problem(OPMETER_PROBLEM_OPEN, opmeter_state.open[0].index);
    opmeter_state.depth = 0;
  }
  if (now < opmeter_state.begin || counts < opmeter_state.own) {
    opmeter_send_problem(OPMETER_PROBLEM_BACKWARDS, 0);
    counts = opmeter_state.own;
  }
  opmeter_state.running = false;
  opmeter_open_frame(OPMETER_TYPE_END);
  opmeter_put_number(opmeter_state.inferences - 1u);
  opmeter_put_number(counts);
  opmeter_put_number(opmeter_state.own);
  opmeter_put_number(opmeter_state.ops);
  opmeter_put_number(opmeter_state.calls);
  opmeter_send();
}

void opmeter_op_begin(uint16_t index, const char *tag) {
  const uint64_t entered = opmeter_now();
  opmeter_open *open;
  uint64_t now;
  opmeter_state.calls++;
  opmeter_state.begun++;
  if (!opmeter_state.running || opmeter_state.depth >= OPMETER_NEST) {
    if (!opmeter_state.running) {
      opmeter_send_problem(OPMETER_PROBLEM_OUTSIDE, index);
    } else {
      opmeter_send_problem(OPMETER_PROBLEM_NEST, index);
      if (opmeter_state.depth != 255) {
        opmeter_state.depth++;
      }
    }
    opmeter_state.own += opmeter_now() - entered;
    return;
  }
  if (tag != NULL && (index >= OPMETER_TAGS || (opmeter_state.told[index >> 3] & (1u << (index & 7u))) == 0)) {
    if (index < OPMETER_TAGS) {
      opmeter_state.told[index >> 3] = (uint8_t)(opmeter_state.told[index >> 3] | (1u << (index & 7u)));
    }
    opmeter_open_frame(OPMETER_TYPE_TAG);
    opmeter_put_number(index);
    opmeter_put_text(tag, OPMETER_FRAME - 16u);
    opmeter_send();
  }
  open = &opmeter_state.open[opmeter_state.depth++];
  open->index = index;
  open->calls = opmeter_state.calls;
  now = opmeter_now();
  opmeter_state.own += now - entered;
  open->own = opmeter_state.own;
  open->begin = now;
}

void opmeter_op_end(uint16_t index) {
  const uint64_t entered = opmeter_now();
  const opmeter_open *open;
  uint64_t counts, own;
  opmeter_state.calls++;
  if (opmeter_state.depth > OPMETER_NEST) {
    opmeter_state.depth--; /* its begin was a problem already */
    opmeter_state.own += opmeter_now() - entered;
    return;
  }
  if (!opmeter_state.running || opmeter_state.depth == 0) {
    opmeter_send_problem(opmeter_state.running ? OPMETER_PROBLEM_ORDER : OPMETER_PROBLEM_OUTSIDE, index);
    opmeter_state.own += opmeter_now() - entered;
    return;
  }
  open = &opmeter_state.open[--opmeter_state.depth];
  if (open->index != index) {
    opmeter_send_problem(OPMETER_PROBLEM_ORDER, index);
  }
  counts = entered - open->begin;
  own = opmeter_state.own - open->own;
  if (entered < open->begin || counts < own) {
    opmeter_send_problem(OPMETER_PROBLEM_BACKWARDS, open->index);
    counts = own;
  }
  opmeter_state.ops++;
  opmeter_open_frame(OPMETER_TYPE_OP);
  opmeter_put_number(open->index);
  opmeter_put(opmeter_state.depth);
  opmeter_put_number(counts - own);
  opmeter_put_number(opmeter_state.calls - open->calls - 1u);
  opmeter_send();
  if (opmeter_state.muted && counts - own < opmeter_state.cost) {
    opmeter_state.cost = counts - own;
  }
  opmeter_state.own += opmeter_now() - entered;
}

uint16_t opmeter_op_count(void) { return opmeter_state.begun; }

void opmeter_counter(const char *name, uint64_t value) {
  const uint64_t entered = opmeter_now();
  unsigned depth = opmeter_state.depth;
  opmeter_state.calls++;
  depth = depth > OPMETER_NEST ? OPMETER_NEST : depth;
  opmeter_open_frame(OPMETER_TYPE_COUNTER);
  opmeter_put_number(depth == 0 ? 0u : opmeter_state.open[depth - 1].index + 1u);
  opmeter_put_text(name, OPMETER_NAME);
  opmeter_put_number(value);
  opmeter_send();
  opmeter_state.own += opmeter_now() - entered;
}

void opmeter_memory(const char *name, uint32_t bytes) {
  const uint64_t entered = opmeter_now();
  opmeter_state.calls++;
  opmeter_open_frame(OPMETER_TYPE_MEMORY);
  opmeter_put_text(name, OPMETER_NAME);
  opmeter_put_number(bytes);
  opmeter_send();
  opmeter_state.own += opmeter_now() - entered;
}

/* In pieces, each with how much of the text is still to come: nothing for the last. */
void opmeter_text(const char *text) {
  const uint64_t entered = opmeter_now();
  size_t piece;
  opmeter_state.calls++;
  do {
    piece = opmeter_length(text, OPMETER_FRAME - 16u);
    opmeter_open_frame(OPMETER_TYPE_TEXT);
    opmeter_put(piece != 0 && text[piece] != 0 ? 1u : 0u);
    opmeter_put_bytes((const uint8_t *)text, piece);
    opmeter_send();
    text = text == NULL ? text : text + piece;
  } while (piece != 0 && *text != 0);
  opmeter_state.own += opmeter_now() - entered;
}

void opmeter_data(const char *name, uint16_t index, const void *bytes, uint32_t size) {
  const uint64_t entered = opmeter_now();
  const uint8_t *rest = (const uint8_t *)bytes;
  uint32_t at = 0;
  opmeter_state.calls++;
  do {
    uint32_t piece = OPMETER_FRAME - 26u - (uint32_t)opmeter_length(name, OPMETER_NAME);
    piece = size - at < piece ? size - at : piece;
    opmeter_open_frame(OPMETER_TYPE_DATA);
    opmeter_put_text(name, OPMETER_NAME);
    opmeter_put_number(index);
    opmeter_put_number(size);
    opmeter_put_number(at);
    opmeter_put_bytes(at == 0 ? rest : rest + at, piece);
    opmeter_send();
    at += piece;
  } while (at < size);
  opmeter_state.own += opmeter_now() - entered;
}

void opmeter_done(void) {
  opmeter_open_frame(OPMETER_TYPE_DONE);
  opmeter_put_number(opmeter_state.inferences);
  opmeter_send();
}

#endif /* OPMETER_IMPLEMENTATION */
