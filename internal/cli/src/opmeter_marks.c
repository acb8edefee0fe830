/* opmeter marks: the part that is compiled once. See opmeter_marks.h.
 *
 * Each thread has a ring of its own, which it alone fills. Rings are emptied in
 * rounds: by whichever thread finds its ring full or the last round long ago, under
 * one mutex, all rings at once. A round turns marks into blocks of at most 4096
 * bytes and writes each in one call, so that several processes may share a pipe or a
 * file. What a round costs the thread that makes it is told in the stream and left
 * out of its stages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if !defined(_WIN32)
#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE) && !defined(__APPLE__) && !defined(__FreeBSD__)
#define _POSIX_C_SOURCE 200809L
#endif
#endif

#include "opmeter_marks.h"

#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <errno.h>
#include <windows.h>
#else
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#endif

/* ---- What compilers call differently ---- */

#if defined(__cplusplus) && __cplusplus >= 201103L
#define OPMETER_MARKS_THREAD thread_local
#elif defined(_MSC_VER)
#define OPMETER_MARKS_THREAD __declspec(thread)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(__STDC_NO_THREADS__)
#define OPMETER_MARKS_THREAD _Thread_local
#else
#define OPMETER_MARKS_THREAD __thread
#endif

#if defined(__GNUC__) || defined(__clang__)
#define OPMETER_MARKS_LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define OPMETER_MARKS_PEEK(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define OPMETER_MARKS_STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define OPMETER_MARKS_ADD(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define OPMETER_MARKS_RARELY(x) __builtin_expect(!!(x), 0)
#elif defined(_MSC_VER) && defined(_M_IX86)
#error "opmeter marks: 32-bit programs need GCC or Clang here"
#elif defined(_MSC_VER)
/* Aligned volatile words are read and written whole; the fences keep the order. */
#if defined(_M_ARM64)
#define OPMETER_MARKS_FENCE() __dmb(_ARM64_BARRIER_ISH)
#else
#define OPMETER_MARKS_FENCE() _ReadWriteBarrier()
#endif
static uint64_t opmeter_marks_load64(const volatile uint64_t *p) {
  const uint64_t v = *p;
  OPMETER_MARKS_FENCE();
  return v;
}
#define OPMETER_MARKS_LOAD(p) opmeter_marks_load64(p)
#define OPMETER_MARKS_PEEK(p) (*(const volatile uint64_t *)(p))
#define OPMETER_MARKS_STORE(p, v) (OPMETER_MARKS_FENCE(), (void)(*(volatile uint64_t *)(p) = (v)))
#define OPMETER_MARKS_ADD(p, v) ((uint64_t)_InterlockedExchangeAdd64((volatile long long *)(p), (long long)(v)))
#define OPMETER_MARKS_RARELY(x) (x)
#else
#error "opmeter marks: needs GCC, Clang or Visual C++"
#endif

/* ---- The format ---- */

enum {
  OPMETER_MARKS_BLOCK = 4096, /* bytes of the largest block */
  OPMETER_MARKS_HEAD = 16,
  OPMETER_MARKS_TAIL = 8,
  OPMETER_MARKS_LONGEST = 40, /* bytes of the longest mark */
  OPMETER_MARKS_TEXT = 120,
  OPMETER_MARKS_NAMES = 4096,
  OPMETER_MARKS_LANES = 1000,
  OPMETER_MARKS_RING = 2048, /* a power of two */

  OPMETER_MARKS_VERSION = 1,
  OPMETER_MARKS_MARKS = 1,
  OPMETER_MARKS_HELLO = 2,
  OPMETER_MARKS_TEXTS = 3,
  OPMETER_MARKS_SYNC = 4,
  OPMETER_MARKS_END = 5,

  OPMETER_MARKS_STAGE_BEGIN = 1,
  OPMETER_MARKS_STAGE_END = 2,
  OPMETER_MARKS_FRAME_BEGIN = 3,
  OPMETER_MARKS_FRAME_END = 4,
  OPMETER_MARKS_FRAME_ENTER = 5,
  OPMETER_MARKS_FRAME_LEAVE = 6,
  OPMETER_MARKS_COUNT = 7,
  OPMETER_MARKS_LEVEL = 8,
  OPMETER_MARKS_MODEL = 9,
  OPMETER_MARKS_DROPPED = 10,
  OPMETER_MARKS_OWN = 11,
  OPMETER_MARKS_LANE = 12,
  OPMETER_MARKS_LANE_NAME = 13
};

/* Nanoseconds after which a frame's end, and any mark, begins a round. */
#define OPMETER_MARKS_SOON 100000000u
#define OPMETER_MARKS_LATE 500000000u
/* Nanoseconds between attempts to write to a reader that takes nothing. */
#define OPMETER_MARKS_AGAIN 5000000u

typedef struct {
  uint64_t time; /* nanoseconds since the start */
  uint64_t value;
  uint32_t kind;
  uint32_t name;
} opmeter_marks_mark;

typedef struct opmeter_marks_lane {
  uint64_t head;  /* marks that were made; its thread writes it */
  uint64_t seen;  /* tail as its thread saw it last */
  uint64_t lost;  /* marks left out since the last one that was made */
  uint64_t start; /* of the stream that its marks are of */
  uint32_t name;
  struct opmeter_marks_lane *next;
  char apart[64];   /* so that rounds do not take the thread's line of the cache */
  uint64_t tail;    /* marks that were written; rounds write it */
  uint64_t running; /* a thread has it */
  uint64_t upto;    /* head when the round began */
  uint32_t number;
  opmeter_marks_mark ring[OPMETER_MARKS_RING];
} opmeter_marks_lane;

static struct {
  uint64_t enabled; /* number of the stream that is open, 0 for none */
  uint64_t last;    /* when the last round was, since the start */
  uint64_t frames;
  uint64_t dropped;
  uint64_t zero; /* of the clock */
  /* The rest is under the mutex. */
  uint64_t streams;
  uint64_t before; /* marks that were dropped before this stream */
  uint64_t wall; /* Unix time in nanoseconds at zero */
  opmeter_marks_lane *lanes;
  uint32_t count; /* of lanes */
  char *names[OPMETER_MARKS_NAMES];
  uint32_t known;   /* names */
  uint32_t written; /* names that the stream has */
  uint32_t process;
  uint32_t sequence;
  int greeted;
  int prepared;
  size_t limit; /* bytes of a block on this way */
#if defined(_WIN32)
  HANDLE out;
#else
  int out;
  int kind; /* 0 a file, 1 a pipe, 2 a socket */
  int patience; /* milliseconds that a slow reader is still waited for, at the end */
  int owned;
#endif
  unsigned char block[OPMETER_MARKS_BLOCK];
} opmeter_marks;

static OPMETER_MARKS_THREAD opmeter_marks_lane *opmeter_marks_mine;

/* ---- What systems call differently ---- */

#if defined(_WIN32)

static SRWLOCK opmeter_marks_mutex = SRWLOCK_INIT;
static DWORD opmeter_marks_key = FLS_OUT_OF_INDEXES;

static void opmeter_marks_lock(void) { AcquireSRWLockExclusive(&opmeter_marks_mutex); }
static void opmeter_marks_unlock(void) { ReleaseSRWLockExclusive(&opmeter_marks_mutex); }

static uint64_t opmeter_marks_clock(void) {
  static uint64_t rate; /* the same for every thread that finds it */
  LARGE_INTEGER n;
  uint64_t hz = OPMETER_MARKS_PEEK(&rate);
  if (hz == 0) {
    QueryPerformanceFrequency(&n);
    hz = (uint64_t)n.QuadPart;
    OPMETER_MARKS_STORE(&rate, hz);
  }
  QueryPerformanceCounter(&n);
  return (uint64_t)n.QuadPart / hz * 1000000000u + (uint64_t)n.QuadPart % hz * 1000000000u / hz;
}

static uint64_t opmeter_marks_unix(void) {
  FILETIME f;
  GetSystemTimeAsFileTime(&f);
  return ((((uint64_t)f.dwHighDateTime << 32) | f.dwLowDateTime) - 116444736000000000u) * 100u;
}

static uint64_t opmeter_marks_pid(void) { return GetCurrentProcessId(); }

static void opmeter_marks_shut(void) { CloseHandle(opmeter_marks.out); }

static void opmeter_marks_patience(int ms) { (void)ms; }

/* Whether a block went out whole: 1 yes, 0 no, -1 there is no reader any more. */
static int opmeter_marks_put(const unsigned char *data, size_t size) {
  DWORD n = 0;
  if (!WriteFile(opmeter_marks.out, data, (DWORD)size, &n, NULL)) {
    const DWORD why = GetLastError();
    return why == ERROR_BROKEN_PIPE || why == ERROR_NO_DATA ? -1 : 0;
  }
  return n == size;
}

static int opmeter_marks_reach(const char *to) {
  const int pipe = strncmp(to, "\\\\.\\pipe\\", 9) == 0;
  if (strncmp(to, "fd:", 3) == 0 || strncmp(to, "tcp:", 4) == 0) {
    return EINVAL;
  }
  opmeter_marks.out = CreateFileA(to, pipe ? GENERIC_WRITE : FILE_APPEND_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                                  pipe ? OPEN_EXISTING : OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
  if (opmeter_marks.out == INVALID_HANDLE_VALUE) {
    return ENOENT;
  }
  if (pipe) {
    DWORD mode = PIPE_NOWAIT;
    SetNamedPipeHandleState(opmeter_marks.out, &mode, NULL, NULL);
  }
  opmeter_marks.limit = OPMETER_MARKS_BLOCK;
  return 0;
}

static void WINAPI opmeter_marks_leave(void *lane) {
  if (lane != NULL) {
    OPMETER_MARKS_STORE(&((opmeter_marks_lane *)lane)->running, (uint64_t)0);
  }
}

static void opmeter_marks_prepare(void) { opmeter_marks_key = FlsAlloc(opmeter_marks_leave); }

static void opmeter_marks_keep(opmeter_marks_lane *l) {
  if (opmeter_marks_key != FLS_OUT_OF_INDEXES) {
    FlsSetValue(opmeter_marks_key, l);
  }
}

#else

static pthread_mutex_t opmeter_marks_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t opmeter_marks_key;
static int opmeter_marks_keyed;

static void opmeter_marks_lock(void) { pthread_mutex_lock(&opmeter_marks_mutex); }
static void opmeter_marks_unlock(void) { pthread_mutex_unlock(&opmeter_marks_mutex); }

static uint64_t opmeter_marks_clock(void) {
#if defined(__APPLE__)
  return clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
#else
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

static uint64_t opmeter_marks_unix(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t opmeter_marks_pid(void) { return (uint64_t)getpid(); }

static void opmeter_marks_shut(void) {
  if (opmeter_marks.owned) {
    close(opmeter_marks.out);
  }
}

static void opmeter_marks_patience(int ms) { opmeter_marks.patience = ms; }

/* Whether it can be written to without waiting. */
static int opmeter_marks_ready(void) {
  const uint64_t begin = opmeter_marks.patience > 0 ? opmeter_marks_clock() : 0;
  struct pollfd p;
  int n;
  p.fd = opmeter_marks.out;
  p.events = POLLOUT;
  p.revents = 0;
  n = poll(&p, 1, opmeter_marks.patience);
  if (begin != 0) {
    const uint64_t took = (opmeter_marks_clock() - begin) / 1000000u;
    opmeter_marks.patience = took < (uint64_t)opmeter_marks.patience ? opmeter_marks.patience - (int)took : 0;
  }
  return n == 1 && (p.revents & (POLLOUT | POLLERR | POLLHUP)) != 0;
}

/* Writes to a pipe. A reader that is gone would end the process by SIGPIPE: it is held
 * back, and taken away where this write has caused it. */
static ssize_t opmeter_marks_pipe(const unsigned char *data, size_t size) {
  sigset_t only, before, waiting;
  ssize_t n;
  int why, was;
  sigemptyset(&only);
  sigaddset(&only, SIGPIPE);
  sigemptyset(&waiting);
  sigpending(&waiting);
  was = sigismember(&waiting, SIGPIPE);
  if (pthread_sigmask(SIG_BLOCK, &only, &before) != 0) {
    errno = EAGAIN;
    return -1;
  }
  n = write(opmeter_marks.out, data, size);
  why = errno;
  if (n < 0 && why == EPIPE && was != 1) {
    int which;
    sigemptyset(&waiting);
    sigpending(&waiting);
    if (sigismember(&waiting, SIGPIPE) == 1) {
      sigwait(&only, &which);
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = why;
  return n;
}

/* Whether a block went out whole: 1 yes, 0 no, -1 there is no reader any more. */
static int opmeter_marks_put(const unsigned char *data, size_t size) {
  ssize_t n;
  int tries;
  for (tries = 0; tries < 4; tries++) {
    if (opmeter_marks.kind != 0 && !opmeter_marks_ready()) {
      return 0;
    }
    if (opmeter_marks.kind == 1) {
      n = opmeter_marks_pipe(data, size);
    } else if (opmeter_marks.kind == 2) {
#if defined(MSG_NOSIGNAL)
      n = send(opmeter_marks.out, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
#else
      n = send(opmeter_marks.out, data, size, MSG_DONTWAIT);
#endif
    } else {
      n = write(opmeter_marks.out, data, size);
    }
    if (n >= 0) {
      return (size_t)n == size;
    }
    if (errno != EINTR) {
      break;
    }
  }
  return errno == EPIPE || errno == ECONNRESET || errno == EBADF || errno == ENOTCONN ? -1 : 0;
}

static int opmeter_marks_connect(const char *to) {
  struct sockaddr_in a;
  char host[64];
  const char *colon = strrchr(to, ':');
  unsigned long port;
  char *end;
  int one = 1, why;
  if (colon == NULL || (size_t)(colon - to) >= sizeof host) {
    return EINVAL;
  }
  memcpy(host, to, (size_t)(colon - to));
  host[colon - to] = 0;
  port = strtoul(colon + 1, &end, 10);
  memset(&a, 0, sizeof a);
  a.sin_family = AF_INET;
  a.sin_port = htons((uint16_t)port);
  if (*end != 0 || port == 0 || port > 65535 || inet_pton(AF_INET, host, &a.sin_addr) != 1) {
    return EINVAL;
  }
  opmeter_marks.out = socket(AF_INET, SOCK_STREAM, 0);
  if (opmeter_marks.out < 0) {
    return errno;
  }
  if (connect(opmeter_marks.out, (const struct sockaddr *)&a, sizeof a) != 0) {
    why = errno;
    close(opmeter_marks.out);
    return why;
  }
  fcntl(opmeter_marks.out, F_SETFD, FD_CLOEXEC);
#if defined(SO_NOSIGPIPE)
  setsockopt(opmeter_marks.out, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
#endif
  (void)one;
  opmeter_marks.owned = 1;
  return 0;
}

static int opmeter_marks_reach(const char *to) {
  struct stat st;
  int why = 0;
  if (strncmp(to, "tcp:", 4) == 0) {
    why = opmeter_marks_connect(to + 4);
    if (why != 0) {
      return why;
    }
  } else if (strncmp(to, "fd:", 3) == 0) {
    char *end;
    const unsigned long n = strtoul(to + 3, &end, 10);
    if (to[3] == 0 || *end != 0 || n > INT_MAX) {
      return EINVAL;
    }
    opmeter_marks.out = (int)n;
    opmeter_marks.owned = 0;
  } else {
    opmeter_marks.out = open(to, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
    if (opmeter_marks.out < 0) {
      return errno;
    }
    opmeter_marks.owned = 1;
  }
  if (fstat(opmeter_marks.out, &st) != 0) {
    why = errno;
  } else if (isatty(opmeter_marks.out)) {
    why = ENOTSUP; /* nobody reads these bytes there */
  }
  if (why != 0) {
    opmeter_marks_shut();
    return why;
  }
  opmeter_marks.kind = S_ISSOCK(st.st_mode) ? 2 : S_ISREG(st.st_mode) ? 0 : 1;
  opmeter_marks.limit = OPMETER_MARKS_BLOCK;
#if defined(PIPE_BUF)
  if (opmeter_marks.kind == 1 && PIPE_BUF < OPMETER_MARKS_BLOCK) {
    opmeter_marks.limit = PIPE_BUF; /* what goes out whole or not at all */
  }
#endif
  if (opmeter_marks.kind == 1 && opmeter_marks.out > 2) {
    /* Of its own: standard output and error belong to others, too, and are asked before. */
    fcntl(opmeter_marks.out, F_SETFL, fcntl(opmeter_marks.out, F_GETFL) | O_NONBLOCK);
  }
  return 0;
}

static void opmeter_marks_leave(void *lane) { OPMETER_MARKS_STORE(&((opmeter_marks_lane *)lane)->running, (uint64_t)0); }

static void opmeter_marks_begin(void);

/* In the child of a fork there is one thread. What waited is the parent's to write. */
static void opmeter_marks_child(void) {
  opmeter_marks_lane *l;
  for (l = opmeter_marks.lanes; l != NULL; l = l->next) {
    l->tail = l->head;
    if (l != opmeter_marks_mine) {
      l->running = 0;
    }
  }
  if (opmeter_marks.enabled != 0) {
    opmeter_marks_begin();
  }
  opmeter_marks_unlock();
}

static void opmeter_marks_prepare(void) {
  opmeter_marks_keyed = pthread_key_create(&opmeter_marks_key, opmeter_marks_leave) == 0;
  pthread_atfork(opmeter_marks_lock, opmeter_marks_unlock, opmeter_marks_child);
}

static void opmeter_marks_keep(opmeter_marks_lane *l) {
  if (opmeter_marks_keyed) {
    pthread_setspecific(opmeter_marks_key, l);
  }
}

#endif

/* ---- Bytes ---- */

static size_t opmeter_marks_number(unsigned char *p, uint64_t v) {
  size_t n = 0;
  while (v >= 0x80u) {
    p[n++] = (unsigned char)(v | 0x80u);
    v >>= 7;
  }
  p[n++] = (unsigned char)v;
  return n;
}

static void opmeter_marks_word(unsigned char *p, uint32_t v) {
  p[0] = (unsigned char)v;
  p[1] = (unsigned char)(v >> 8);
  p[2] = (unsigned char)(v >> 16);
  p[3] = (unsigned char)(v >> 24);
}

/* Completes the block, whose body ends at size, and writes it. */
static int opmeter_marks_send(unsigned type, size_t size) {
  unsigned char *b = opmeter_marks.block;
  uint32_t first = 1, second = 0;
  size_t i;
  int ok;
  while ((size & 3u) != 0) {
    b[size++] = 0;
  }
  b[0] = 'o';
  b[1] = 'M';
  b[2] = 'k';
  b[3] = 0xF5; /* in no text */
  b[4] = OPMETER_MARKS_VERSION;
  b[5] = (unsigned char)type;
  b[6] = (unsigned char)(size - OPMETER_MARKS_HEAD);
  b[7] = (unsigned char)((size - OPMETER_MARKS_HEAD) >> 8);
  opmeter_marks_word(b + 8, opmeter_marks.process);
  opmeter_marks_word(b + 12, opmeter_marks.sequence);
  for (i = 0; i < size; i += 4) {
    first += (uint32_t)b[i] | (uint32_t)b[i + 1] << 8 | (uint32_t)b[i + 2] << 16 | (uint32_t)b[i + 3] << 24;
    second += first;
  }
  opmeter_marks_word(b + size, first);
  opmeter_marks_word(b + size + 4, second);
  ok = opmeter_marks_put(b, size + OPMETER_MARKS_TAIL);
  opmeter_marks.sequence += ok == 1; /* one that was refused is made again */
  return ok;
}

/* ---- Rounds, under the mutex ---- */

/* The numbers of a new stream. */
static void opmeter_marks_begin(void) {
  const uint64_t now = opmeter_marks_clock();
  uint64_t mix;
  opmeter_marks.wall = opmeter_marks_unix();
  OPMETER_MARKS_STORE(&opmeter_marks.zero, now);
  OPMETER_MARKS_STORE(&opmeter_marks.last, (uint64_t)0);
  opmeter_marks.sequence = 0;
  opmeter_marks.written = 0;
  opmeter_marks.greeted = 0;
  opmeter_marks.before = OPMETER_MARKS_PEEK(&opmeter_marks.dropped);
  mix = (opmeter_marks.wall ^ opmeter_marks_pid() << 40) * 0x9E3779B97F4A7C15u;
  opmeter_marks.process = (uint32_t)(mix >> 32);
  opmeter_marks.streams++;
  OPMETER_MARKS_STORE(&opmeter_marks.enabled, opmeter_marks.streams);
}

/* Says hello, and the names that the stream lacks. */
static int opmeter_marks_greet(void) {
  unsigned char *b = opmeter_marks.block;
  int ok;
  if (!opmeter_marks.greeted) {
    size_t n = OPMETER_MARKS_HEAD;
    b[n++] = 0; /* written by this file */
    n += opmeter_marks_number(b + n, opmeter_marks_pid());
    n += opmeter_marks_number(b + n, opmeter_marks.wall);
    ok = opmeter_marks_send(OPMETER_MARKS_HELLO, n);
    if (ok != 1) {
      return ok;
    }
    opmeter_marks.greeted = 1;
  }
  while (opmeter_marks.written < opmeter_marks.known) {
    const size_t room = opmeter_marks.limit - OPMETER_MARKS_TAIL - OPMETER_MARKS_TEXT - 8;
    size_t n = OPMETER_MARKS_HEAD, at;
    uint32_t i = opmeter_marks.written;
    uint32_t count = 0;
    n += opmeter_marks_number(b + n, i + 1u);
    at = n++;
    while (i < opmeter_marks.known && n < room && count < 100) {
      const char *text = opmeter_marks.names[i++];
      const size_t size = strlen(text);
      n += opmeter_marks_number(b + n, size);
      memcpy(b + n, text, size);
      n += size;
      count++;
    }
    b[at] = (unsigned char)count;
    ok = opmeter_marks_send(OPMETER_MARKS_TEXTS, n);
    if (ok != 1) {
      return ok;
    }
    opmeter_marks.written = i;
  }
  return 1;
}

/* Puts one mark behind the others. Before is the time of the one before. */
static size_t opmeter_marks_encode(unsigned char *p, const opmeter_marks_mark *m, uint64_t *before) {
  size_t n = opmeter_marks_number(p, (uint64_t)m->name << 4 | m->kind);
  uint64_t v = m->value;
  unsigned i;
  switch (m->kind) {
  case OPMETER_MARKS_COUNT:
  case OPMETER_MARKS_DROPPED:
  case OPMETER_MARKS_MODEL:
  case OPMETER_MARKS_LANE:
  case OPMETER_MARKS_LANE_NAME:
    break;
  default: {
    const uint64_t time = m->time > *before ? m->time : *before;
    n += opmeter_marks_number(p + n, time - *before);
    *before = time;
  }
  }
  switch (m->kind) {
  case OPMETER_MARKS_COUNT:
    v = v << 1 ^ (v >> 63 != 0 ? UINT64_MAX : 0);
    n += opmeter_marks_number(p + n, v);
    break;
  case OPMETER_MARKS_LEVEL:
    for (i = 0; i < 8; i++) {
      p[n++] = (unsigned char)(v >> (8 * i));
    }
    break;
  case OPMETER_MARKS_MODEL:
    n += opmeter_marks_number(p + n, v & 0xFFFFFFFFu);
    n += opmeter_marks_number(p + n, v >> 32);
    break;
  case OPMETER_MARKS_STAGE_BEGIN:
  case OPMETER_MARKS_STAGE_END:
  case OPMETER_MARKS_FRAME_LEAVE:
  case OPMETER_MARKS_LANE:
  case OPMETER_MARKS_LANE_NAME:
    break;
  default:
    n += opmeter_marks_number(p + n, v);
  }
  return n;
}

/* Writes the marks that one lane had when the round began. */
static int opmeter_marks_empty(opmeter_marks_lane *l) {
  const uint64_t head = l->upto;
  const size_t room = opmeter_marks.limit - OPMETER_MARKS_TAIL - OPMETER_MARKS_LONGEST - 4;
  uint64_t tail = l->tail;
  while (tail != head) {
    unsigned char *b = opmeter_marks.block;
    uint64_t before = l->ring[tail % OPMETER_MARKS_RING].time;
    size_t n = OPMETER_MARKS_HEAD;
    int ok;
    n += opmeter_marks_number(b + n, l->number);
    n += opmeter_marks_number(b + n, before);
    while (tail != head && n < room) {
      n += opmeter_marks_encode(b + n, &l->ring[tail % OPMETER_MARKS_RING], &before);
      tail++;
    }
    ok = opmeter_marks_send(OPMETER_MARKS_MARKS, n);
    if (ok != 1) {
      return ok;
    }
    OPMETER_MARKS_STORE(&l->tail, tail);
  }
  return 1;
}

static void opmeter_marks_round(uint64_t now) {
  opmeter_marks_lane *l;
  int ok;
  if (opmeter_marks.enabled == 0) {
    return;
  }
  for (l = opmeter_marks.lanes; l != NULL; l = l->next) {
    l->upto = OPMETER_MARKS_LOAD(&l->head); /* before the names: those that these marks have are known */
  }
  ok = opmeter_marks_greet();
  for (l = opmeter_marks.lanes; l != NULL && ok == 1; l = l->next) {
    ok = opmeter_marks_empty(l);
  }
  if (ok == 1) {
    ok = opmeter_marks_send(OPMETER_MARKS_SYNC, OPMETER_MARKS_HEAD + opmeter_marks_number(opmeter_marks.block + OPMETER_MARKS_HEAD, now));
  }
  OPMETER_MARKS_STORE(&opmeter_marks.last, now);
  if (ok < 0) {
    OPMETER_MARKS_STORE(&opmeter_marks.enabled, (uint64_t)0);
    opmeter_marks_shut();
  }
}

/* ---- Marks ---- */

/* A lane whose thread has ended and that is written, NULL for none. Waits says that there is one
 * that is not written yet. */
static opmeter_marks_lane *opmeter_marks_free(int *waits) {
  opmeter_marks_lane *l;
  *waits = 0;
  for (l = opmeter_marks.lanes; l != NULL; l = l->next) {
    if (OPMETER_MARKS_LOAD(&l->running) == 0) {
      if (l->tail == OPMETER_MARKS_PEEK(&l->head)) {
        return l;
      }
      *waits = 1;
    }
  }
  return NULL;
}

/* A lane for this thread, NULL where there are too many or no memory. */
static opmeter_marks_lane *opmeter_marks_join(void) {
  const uint32_t few = 32;
  opmeter_marks_lane *l;
  int waits;
  opmeter_marks_lock();
  l = opmeter_marks_free(&waits);
  if (l == NULL && waits && opmeter_marks.count >= few) {
    opmeter_marks_round(opmeter_marks_clock() - OPMETER_MARKS_PEEK(&opmeter_marks.zero));
    l = opmeter_marks_free(&waits);
  }
  if (l == NULL && opmeter_marks.count < OPMETER_MARKS_LANES) {
    l = (opmeter_marks_lane *)calloc(1, sizeof *l);
    if (l != NULL) {
      l->number = opmeter_marks.count++;
      l->next = opmeter_marks.lanes;
      opmeter_marks.lanes = l;
    }
  }
  if (l != NULL) {
    OPMETER_MARKS_STORE(&l->running, (uint64_t)1);
    l->start = 0;
    l->lost = 0;
    l->name = 0;
    l->seen = l->tail;
    opmeter_marks_keep(l);
  }
  opmeter_marks_unlock();
  opmeter_marks_mine = l;
  return l;
}

static void opmeter_marks_write(opmeter_marks_lane *l, uint32_t kind, uint32_t name, uint64_t time, uint64_t value) {
  opmeter_marks_mark *m = &l->ring[l->head % OPMETER_MARKS_RING];
  m->time = time;
  m->value = value;
  m->kind = kind;
  m->name = name;
  OPMETER_MARKS_STORE(&l->head, l->head + 1);
}

/* Makes a round now, and tells what it took of this thread's time. */
static void opmeter_marks_pause(opmeter_marks_lane *l, uint64_t time) {
  uint64_t after;
  opmeter_marks_lock();
  opmeter_marks_round(time);
  opmeter_marks_unlock();
  l->seen = OPMETER_MARKS_LOAD(&l->tail);
  after = opmeter_marks_clock() - OPMETER_MARKS_PEEK(&opmeter_marks.zero);
  if (l->head - l->seen < OPMETER_MARKS_RING - 4 && after > time && l->lost == 0) {
    opmeter_marks_write(l, OPMETER_MARKS_OWN, 0, after, after - time);
  }
}

/* The way of a mark that is not the usual one: the first of a thread, or the ring is full.
 * Returns whether there is room. */
static int opmeter_marks_room(opmeter_marks_lane *l, uint64_t stream, uint64_t time) {
  l->seen = OPMETER_MARKS_LOAD(&l->tail);
  if (l->head - l->seen > OPMETER_MARKS_RING - 4) {
    const uint64_t last = OPMETER_MARKS_LOAD(&opmeter_marks.last);
    if (l->lost == 0 || time - last > OPMETER_MARKS_AGAIN) {
      opmeter_marks_pause(l, time);
    }
    if (l->head - l->seen > OPMETER_MARKS_RING - 4) {
      l->lost++;
      OPMETER_MARKS_ADD(&opmeter_marks.dropped, (uint64_t)1);
      return 0;
    }
  }
  if (l->start != stream) {
    l->start = stream;
    l->lost = 0;
    opmeter_marks_write(l, OPMETER_MARKS_LANE, l->name, time, 0);
  }
  if (l->lost != 0) {
    opmeter_marks_write(l, OPMETER_MARKS_DROPPED, 0, time, l->lost);
    l->lost = 0;
  }
  return 1;
}

static void opmeter_marks_add(uint64_t stream, uint32_t kind, uint32_t name, uint64_t value, uint64_t patience) {
  opmeter_marks_lane *l = opmeter_marks_mine;
  uint64_t time;
  if (OPMETER_MARKS_RARELY(l == NULL)) {
    l = opmeter_marks_join();
    if (l == NULL) {
      OPMETER_MARKS_ADD(&opmeter_marks.dropped, (uint64_t)1);
      return;
    }
  }
  time = opmeter_marks_clock() - OPMETER_MARKS_PEEK(&opmeter_marks.zero);
  if (OPMETER_MARKS_RARELY(l->head - l->seen > OPMETER_MARKS_RING - 4 || l->start != stream || l->lost != 0) && !opmeter_marks_room(l, stream, time)) {
    return;
  }
  opmeter_marks_write(l, kind, name, time, value);
  if (OPMETER_MARKS_RARELY((int64_t)(time - OPMETER_MARKS_PEEK(&opmeter_marks.last)) > (int64_t)patience)) {
    opmeter_marks_pause(l, time);
  }
}

#define OPMETER_MARKS_OPEN(name)                                                 \
  const uint64_t name = OPMETER_MARKS_LOAD(&opmeter_marks.enabled);              \
  if (OPMETER_MARKS_RARELY(name == 0)) return

void opmeter_stage_begin(uint32_t stage) {
  OPMETER_MARKS_OPEN(stream);
  opmeter_marks_add(stream, OPMETER_MARKS_STAGE_BEGIN, stage, 0, OPMETER_MARKS_LATE);
}

void opmeter_stage_end(uint32_t stage) {
  OPMETER_MARKS_OPEN(stream);
  opmeter_marks_add(stream, OPMETER_MARKS_STAGE_END, stage, 0, OPMETER_MARKS_LATE);
}

uint64_t opmeter_frame_begin(uint32_t kind) {
  uint64_t frame;
  OPMETER_MARKS_OPEN(stream) 0;
  frame = OPMETER_MARKS_ADD(&opmeter_marks.frames, (uint64_t)1) + 1u;
  opmeter_marks_add(stream, OPMETER_MARKS_FRAME_BEGIN, kind, frame, OPMETER_MARKS_LATE);
  return frame;
}

void opmeter_frame_end(uint64_t frame) {
  OPMETER_MARKS_OPEN(stream);
  opmeter_marks_add(stream, OPMETER_MARKS_FRAME_END, 0, frame, OPMETER_MARKS_SOON);
}

void opmeter_frame_enter(uint64_t frame) {
  OPMETER_MARKS_OPEN(stream);
  opmeter_marks_add(stream, OPMETER_MARKS_FRAME_ENTER, 0, frame, OPMETER_MARKS_LATE);
}

void opmeter_frame_leave(void) {
  OPMETER_MARKS_OPEN(stream);
  opmeter_marks_add(stream, OPMETER_MARKS_FRAME_LEAVE, 0, 0, OPMETER_MARKS_LATE);
}

void opmeter_stage_count(uint32_t figure, int64_t amount) {
  OPMETER_MARKS_OPEN(stream);
  opmeter_marks_add(stream, OPMETER_MARKS_COUNT, figure, (uint64_t)amount, OPMETER_MARKS_LATE);
}

void opmeter_stage_level(uint32_t figure, double value) {
  uint64_t bits;
  OPMETER_MARKS_OPEN(stream);
  memcpy(&bits, &value, sizeof bits);
  opmeter_marks_add(stream, OPMETER_MARKS_LEVEL, figure, bits, OPMETER_MARKS_LATE);
}

void opmeter_stage_model(uint32_t stage, const char *model, const char *sha256) {
  uint64_t names;
  OPMETER_MARKS_OPEN(stream);
  if (model == NULL) {
    return;
  }
  names = opmeter_marks_name(model);
  if (sha256 != NULL) {
    names |= (uint64_t)opmeter_marks_name(sha256) << 32;
  }
  opmeter_marks_add(stream, OPMETER_MARKS_MODEL, stage, names, OPMETER_MARKS_LATE);
}

void opmeter_thread_name(const char *name) {
  opmeter_marks_lane *l;
  OPMETER_MARKS_OPEN(stream);
  if (name == NULL) {
    return;
  }
  l = opmeter_marks_mine != NULL ? opmeter_marks_mine : opmeter_marks_join();
  if (l == NULL) {
    return;
  }
  l->name = opmeter_marks_name(name);
  opmeter_marks_add(stream, OPMETER_MARKS_LANE_NAME, l->name, 0, OPMETER_MARKS_LATE);
}

/* ---- The whole ---- */

uint32_t opmeter_marks_name(const char *text) {
  uint32_t i;
  size_t size = 0;
  char *copy;
  if (text == NULL) {
    return 0;
  }
  while (size < OPMETER_MARKS_TEXT && text[size] != 0) {
    size++;
  }
  opmeter_marks_lock();
  for (i = 0; i < opmeter_marks.known; i++) {
    if (strncmp(opmeter_marks.names[i], text, size) == 0 && opmeter_marks.names[i][size] == 0) {
      break;
    }
  }
  if (i == opmeter_marks.known) {
    copy = i < OPMETER_MARKS_NAMES - 1 ? (char *)malloc(size + 1) : NULL;
    if (copy == NULL) {
      opmeter_marks_unlock();
      return 0;
    }
    memcpy(copy, text, size);
    copy[size] = 0;
    opmeter_marks.names[opmeter_marks.known++] = copy;
  }
  opmeter_marks_unlock();
  return i + 1u;
}

/* Writes a path with the number of the process for "%p" into p, which has size bytes. */
static int opmeter_marks_path(char *p, size_t size, const char *to) {
  size_t n = 0;
  while (*to != 0) {
    char digits[24];
    size_t k = 0;
    if (to[0] == '%' && to[1] == 'p') {
      uint64_t v = opmeter_marks_pid();
      do {
        digits[k++] = (char)('0' + v % 10);
        v /= 10;
      } while (v != 0);
      to += 2;
    } else {
      digits[k++] = *to++;
    }
    while (k > 0) {
      if (n + 1 >= size) {
        return ENAMETOOLONG;
      }
      p[n++] = digits[--k];
    }
  }
  p[n] = 0;
  return n == 0 ? ENOENT : 0;
}

static void opmeter_marks_exit(void) { opmeter_marks_close(); }

int opmeter_marks_open(const char *to) {
  char path[2048];
  int why;
  if (to == NULL) {
    to = getenv("OPMETER_MARKS");
    if (to == NULL || to[0] == 0) {
      return 0;
    }
  }
  opmeter_marks_close();
  opmeter_marks_lock();
  why = opmeter_marks_path(path, sizeof path, to);
  if (why == 0) {
    why = opmeter_marks_reach(path);
  }
  if (why == 0) {
    if (!opmeter_marks.prepared) {
      opmeter_marks.prepared = 1;
      opmeter_marks_prepare();
      atexit(opmeter_marks_exit);
    }
    opmeter_marks_begin();
  }
  opmeter_marks_unlock();
  return why;
}

void opmeter_marks_flush(void) {
  opmeter_marks_lock();
  if (opmeter_marks.enabled != 0) {
    opmeter_marks_round(opmeter_marks_clock() - OPMETER_MARKS_PEEK(&opmeter_marks.zero));
  }
  opmeter_marks_unlock();
}

void opmeter_marks_close(void) {
  opmeter_marks_lane *l;
  opmeter_marks_lock();
  if (opmeter_marks.enabled != 0) {
    const uint64_t now = opmeter_marks_clock() - OPMETER_MARKS_PEEK(&opmeter_marks.zero);
    opmeter_marks_patience(1000);
    opmeter_marks_round(now);
    if (opmeter_marks.enabled != 0) {
      size_t n = OPMETER_MARKS_HEAD;
      n += opmeter_marks_number(opmeter_marks.block + n, now);
      n += opmeter_marks_number(opmeter_marks.block + n, OPMETER_MARKS_PEEK(&opmeter_marks.dropped) - opmeter_marks.before);
      opmeter_marks_send(OPMETER_MARKS_END, n);
      OPMETER_MARKS_STORE(&opmeter_marks.enabled, (uint64_t)0);
      opmeter_marks_shut();
    }
    opmeter_marks_patience(0);
    for (l = opmeter_marks.lanes; l != NULL; l = l->next) {
      OPMETER_MARKS_STORE(&l->tail, OPMETER_MARKS_LOAD(&l->head));
    }
  }
  opmeter_marks_unlock();
}

int opmeter_marks_enabled(void) { return OPMETER_MARKS_LOAD(&opmeter_marks.enabled) != 0; }

uint64_t opmeter_marks_dropped(void) { return OPMETER_MARKS_PEEK(&opmeter_marks.dropped); }
