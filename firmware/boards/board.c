/* Start-up, faults and the UART of a board. Everything that differs between boards
 * stands in board.h and board.ld, which are made from its description. */
#include "board.h"

#include "opmeter.h"

/* Ends of the sections, from board.ld. */
extern uint32_t board_data_load[], board_data_start[], board_data_end[];
extern uint32_t board_bss_start[], board_bss_end[];
extern uint32_t board_arena_start[], board_arena_end[];
extern uint32_t board_stack_start[], board_stack_end[], board_handlers_end[], board_guard[];

int main(void);
void board_reset(void);
void board_fault(void);
void board_told_fault(const uint32_t *handlers, const uint32_t *program, uint32_t from);
void board_begin(void);

/* ---- registers ---- */

static volatile uint32_t *reg(uint32_t address) {
  return (volatile uint32_t *)(uintptr_t)address;
}

#define SCB_VTOR 0xE000ED08u
#define SCB_SHCSR 0xE000ED24u
#define SCB_CFSR 0xE000ED28u
#define SCB_HFSR 0xE000ED2Cu
#define SCB_BFAR 0xE000ED38u
#define SCB_CPACR 0xE000ED88u
#define MPU_TYPE 0xE000ED90u
#define MPU_CTRL 0xE000ED94u
#define MPU_RNR 0xE000ED98u
#define MPU_RBAR 0xE000ED9Cu
#define MPU_RASR 0xE000EDA0u

/* A step of the set-up: a wait until (register & keep) == bits, or a write of
 * (register & keep) | bits. Without bits to keep nothing is read. */
struct step {
  uint32_t address, keep, bits;
  uint8_t wait, width;
};

static uint32_t read_width(uint32_t address, uint8_t width) {
  if (width == 8) return *(volatile uint8_t *)(uintptr_t)address;
  if (width == 16) return *(volatile uint16_t *)(uintptr_t)address;
  return *reg(address);
}

static void write_width(uint32_t address, uint8_t width, uint32_t value) {
  if (width == 8)
    *(volatile uint8_t *)(uintptr_t)address = (uint8_t)value;
  else if (width == 16)
    *(volatile uint16_t *)(uintptr_t)address = (uint16_t)value;
  else
    *reg(address) = value;
}

static void set_up(void) {
  static const struct step steps[] = {BOARD_STEPS};
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    const struct step *s = &steps[i];
    if (s->width == 0) continue; /* ends the list */
    if (s->wait != 0) {
      /* A clock that never becomes ready must not keep the board silent for ever. */
      for (uint32_t tries = 1000000; tries != 0; tries--)
        if ((read_width(s->address, s->width) & s->keep) == s->bits) break;
      continue;
    }
    uint32_t value = s->bits;
    if (s->keep != 0) value |= read_width(s->address, s->width) & s->keep;
    write_width(s->address, s->width, value);
  }
}

/* ---- the UART: a status register that says when a byte may be written ---- */

void board_write(void *user, const uint8_t *data, size_t size) {
  (void)user;
  for (size_t i = 0; i < size; i++) {
    while ((read_width(BOARD_UART_STATUS, BOARD_UART_WIDTH) & BOARD_UART_MASK) != BOARD_UART_READY) {
    }
    write_width(BOARD_UART_DATA, BOARD_UART_WIDTH, data[i]);
  }
}

static void put_text(const char *s) {
  for (; *s != 0; s++) board_write(NULL, (const uint8_t *)s, 1);
}

static void put_hex(const char *name, uint32_t v) {
  put_text(name);
  for (int i = 28; i >= 0; i -= 4) board_write(NULL, (const uint8_t *)&"0123456789abcdef"[(v >> i) & 15u], 1);
}

/* ---- the counter ---- */

#ifdef BOARD_COUNTER_ADDRESS
/* A counter of 32 bits at an address, made 64 bits long. Where there is a slow counter
 * beside it, that tells how often it went round since the last look; otherwise it must
 * be looked at before it does. */
uint64_t board_now(void *user) {
  static uint32_t last;
  static uint64_t sum;
  (void)user;
#ifdef BOARD_ROUNDS_ADDRESS
  static uint32_t last_slow;
  const uint32_t slow = *reg(BOARD_ROUNDS_ADDRESS);
  if (slow - last_slow > 0x40000000u / BOARD_ROUNDS_RATIO) { /* a quarter of a round: seldom */
    const uint32_t now = *reg(BOARD_COUNTER_ADDRESS);
    const uint32_t part = BOARD_COUNTER_DOWN ? last - now : now - last;
    const uint64_t about = (uint64_t)(slow - last_slow) * BOARD_ROUNDS_RATIO;
    sum += part;
    if (about > part) sum += (about - part + 0x80000000u) & ~(uint64_t)0xFFFFFFFFu; /* whole rounds, to the nearest */
    last = now;
    last_slow = slow;
    return sum;
  }
#endif
  const uint32_t now = *reg(BOARD_COUNTER_ADDRESS);
  sum += BOARD_COUNTER_DOWN ? last - now : now - last;
  last = now;
#ifdef BOARD_ROUNDS_ADDRESS
  last_slow = slow;
#endif
  return sum;
}
#endif

/* ---- the stack ---- */

#define STACK_MARK 0x6f706d74u

uint32_t board_stack_bytes(void) {
  return (uint32_t)((uintptr_t)board_stack_end - (uintptr_t)board_stack_start);
}

uint32_t board_stack_used(void) {
  const volatile uint32_t *p = board_stack_start;
  while (p < board_stack_end && *p == STACK_MARK) p++;
  return (uint32_t)((uintptr_t)board_stack_end - (uintptr_t)p);
}

/* ---- faults ---- */

#define CFSR_STACKING 0x00101010u /* a frame could not be pushed, or the stack's limit was passed */

/* board_told_fault says what happened as text, which people and hosts can read
 * whatever was being sent: a zero ends a frame that was begun. The program has a
 * stack of its own, so that this runs also where that has run over. */
__attribute__((used)) void board_told_fault(const uint32_t *handlers, const uint32_t *program, uint32_t from) {
  static const uint8_t zero;
  const uint32_t *frame = (from & 4u) != 0 ? program : handlers;
  int over = frame == program && frame < board_stack_start;
#if __ARM_ARCH >= 7
  over = over || (*reg(SCB_CFSR) & CFSR_STACKING) != 0;
#endif
  board_write(NULL, &zero, 1);
  put_text("\r\nopmeter: fault of the processor:");
  if (over) {
    put_text(" the stack ran over,");
  } else {
    put_hex(" pc 0x", frame[6]);
    put_hex(" lr 0x", frame[5]);
  }
#if __ARM_ARCH >= 7
  put_hex(" cfsr 0x", *reg(SCB_CFSR));
  put_hex(" hfsr 0x", *reg(SCB_HFSR));
  put_hex(" bfar 0x", *reg(SCB_BFAR));
#endif
  put_text("; the program has stopped\r\n");
  board_write(NULL, &zero, 1);
  for (;;) {
  }
}

/* Everything that has no handler of its own ends here. */
__attribute__((naked)) void board_fault(void) {
  __asm volatile(
      "mrs r0, msp\n"
      "mrs r1, psp\n"
      "mov r2, lr\n"
      "ldr r3, =board_told_fault\n"
      "bx r3\n");
}

static void systick(void) { opmeter_systick(); }

/* ---- start ---- */

typedef void (*vector)(void);

__attribute__((section(".vectors"), used)) static const struct {
  uint32_t *stack;
  vector vectors[15];
} board_vectors = {
    board_handlers_end,
    {board_reset, board_fault, board_fault, board_fault, board_fault, board_fault, board_fault, NULL, NULL, NULL,
     board_fault, board_fault, NULL, board_fault, systick}};

/* The processor starts here, on the stack of handlers. */
__attribute__((naked)) void board_reset(void) {
  __asm volatile(
      "ldr r0, =board_stack_end\n"
      "msr psp, r0\n"
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
      "ldr r0, =board_stack_start\n"
      "msr psplim, r0\n"
#endif
      "movs r0, #2\n" /* the program runs on the other stack */
      "msr control, r0\n"
      "isb\n"
      "ldr r0, =board_begin\n"
      "bx r0\n");
}

/* Before any variable has its value: nothing of this may be turned into calls of
 * memcpy, nor may floating point be used above its switch. */
__attribute__((noreturn, used, optimize("no-tree-loop-distribute-patterns"))) void board_begin(void) {
#if __ARM_ARCH >= 7
  *reg(SCB_VTOR) = (uint32_t)(uintptr_t)&board_vectors;
  *reg(SCB_SHCSR) |= 0xFu << 16; /* faults have their own level, so that a second one can be told */
#endif
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *reg(SCB_CPACR) |= 0xFu << 20; /* full access to the floating-point and vector unit */
  __asm volatile("dsb\n isb" ::: "memory");
#endif
#if defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__)
  /* Below the stack 32 bytes that no one may touch, where there is a unit for that.
   * Later processors have a limit of the stack. */
  if ((*reg(MPU_TYPE) & 0xFF00u) != 0) {
    *reg(MPU_RNR) = 0;
    *reg(MPU_RBAR) = (uint32_t)(uintptr_t)board_guard;
    *reg(MPU_RASR) = 1u << 28 | 4u << 1 | 1u;
    *reg(MPU_CTRL) = 5; /* everything else as without it */
    __asm volatile("dsb\n isb" ::: "memory");
  }
#endif
  const uint32_t *from = board_data_load;
  for (uint32_t *to = board_data_start; to < board_data_end;) *to++ = *from++;
  for (uint32_t *to = board_bss_start; to < board_bss_end;) *to++ = 0;
  for (uint32_t *to = board_arena_start; to < board_arena_end;) *to++ = 0;
  const uint32_t *here;
  __asm volatile("mov %0, sp" : "=r"(here));
  for (volatile uint32_t *to = board_stack_start; to < here - 8; to++) *to = STACK_MARK;
  set_up();
  (void)main();
  for (;;) {
  }
}
