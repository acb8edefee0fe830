/* A library with the one function that ONNX Runtime exports, which does what FAULT says: real
   faults of native code, unlike those that Go makes of itself. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const void *(*get_api)(unsigned version);
  const char *(*version)(void);
} api_base;

static const void *no_api(unsigned version) {
  (void)version;
  return NULL;
}

static const char *version(void) {
#if FAULT == 6
  return NULL;
#elif FAULT == 7
  return "\xff\xfe not a version\n\n";
#elif FAULT == 8
  return "1.10.0";
#else
  return "1.20.0";
#endif
}

static api_base base = {no_api, version};

const api_base *OrtGetApiBase(void) {
#if FAULT == 1
  memset((void *)8, 1, 64); /* a fault in memory */
#elif FAULT == 2
  fprintf(stderr, "terminate called after throwing an instance of 'std::bad_alloc'\n");
  abort();
#elif FAULT == 3
  _exit(0);
#elif FAULT == 4
  for (;;) pause();
#elif FAULT == 5
  return NULL;
#elif FAULT == 9
  kill(getpid(), SIGKILL);
#elif FAULT == 10
  puts("garbage on standard output");
  fflush(stdout);
#elif FAULT == 11
  memset(__builtin_alloca(1 << 16), 0xff, 1 << 20); /* the stack is gone */
#elif FAULT == 12
  raise(SIGILL);
#endif
  return &base;
}

#if FAULT == 13
__attribute__((constructor)) static void before(void) { memset((void *)8, 1, 64); }
#endif
