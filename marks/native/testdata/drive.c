/* Marks as the test in the argument says; native_test.go reads what comes of it. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "opmeter_marks.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint32_t camera, decode, resize, infer, input_bytes, queue, audio;

static void rest(long us) {
  struct timespec t;
  t.tv_sec = 0;
  t.tv_nsec = us * 1000;
  nanosleep(&t, NULL);
}

/* What marks_test.go does with the package, call by call. */
static void script(void) {
  int i;
  opmeter_stage_model(infer, "mobilenet.tflite", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
  for (i = 0; i < 40; i++) {
    const uint64_t frame = opmeter_frame_begin(camera);
    opmeter_stage_begin(decode);
    opmeter_stage_count(input_bytes, i % 2 == 0 ? 1000 + i : -i);
    opmeter_stage_begin(resize);
    opmeter_stage_end(resize);
    opmeter_stage_end(decode);
    opmeter_stage_level(queue, i / 4.0);
    opmeter_stage_begin(infer);
    opmeter_stage_end(infer);
    if (i % 3 == 0) {
      opmeter_frame_leave();
      opmeter_frame_enter(frame);
    }
    opmeter_frame_end(frame);
  }
  /* Wrong: an end without a beginning, one that ends others, a frame twice. */
  opmeter_stage_end(resize);
  {
    const uint64_t frame = opmeter_frame_begin(camera);
    opmeter_stage_begin(decode);
    opmeter_stage_begin(resize);
    opmeter_stage_end(decode);
    opmeter_stage_begin(infer);
    opmeter_frame_end(frame);
    opmeter_frame_end(frame);
    opmeter_stage_end(infer);
  }
}

static void *worker(void *arg) {
  const long n = *(const long *)arg;
  long i;
  for (i = 0; i < n; i++) {
    const uint64_t frame = opmeter_frame_begin(camera);
    opmeter_stage_begin(decode);
    opmeter_stage_end(decode);
    opmeter_stage_begin(infer);
    opmeter_stage_end(infer);
    opmeter_frame_end(frame);
  }
  return NULL;
}

/* A frame that goes from thread to thread. */
static uint64_t handed;
static void *second(void *arg) {
  (void)arg;
  opmeter_thread_name("second");
  opmeter_frame_enter(handed);
  opmeter_stage_begin(infer);
  rest(1000);
  opmeter_stage_end(infer);
  opmeter_frame_end(handed);
  return NULL;
}

static int many(long threads, long frames) {
  pthread_t t[64];
  long i;
  for (i = 0; i < threads && i < 64; i++) {
    if (pthread_create(&t[i], NULL, worker, &frames) != 0) {
      return 1;
    }
  }
  for (i = 0; i < threads && i < 64; i++) {
    pthread_join(t[i], NULL);
  }
  return 0;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  const long n = argc > 2 ? atol(argv[2]) : 0, m = argc > 3 ? atol(argv[3]) : 0;
  int why;
  camera = opmeter_marks_name("camera");
  decode = opmeter_marks_name("decode");
  resize = opmeter_marks_name("resize");
  infer = opmeter_marks_name("infer");
  input_bytes = opmeter_marks_name("input_bytes");
  queue = opmeter_marks_name("queue");
  audio = opmeter_marks_name("audio");
  why = opmeter_marks_open(NULL);
  if (why != 0) {
    fprintf(stderr, "open: %s\n", strerror(why));
    return 7;
  }
  if (strcmp(what, "script") == 0) {
    script();
  } else if (strcmp(what, "threads") == 0) {
    if (many(n, m) != 0) {
      return 6;
    }
  } else if (strcmp(what, "churn") == 0) {
    long i;
    for (i = 0; i < n; i++) {
      pthread_t t;
      long one = m;
      if (pthread_create(&t, NULL, worker, &one) != 0) {
        return 6;
      }
      pthread_join(t, NULL);
    }
  } else if (strcmp(what, "handed") == 0) {
    long i;
    for (i = 0; i < n; i++) {
      pthread_t t;
      handed = opmeter_frame_begin(camera);
      opmeter_stage_begin(decode);
      rest(500);
      opmeter_stage_end(decode);
      if (pthread_create(&t, NULL, second, NULL) != 0) {
        return 6;
      }
      pthread_join(t, NULL);
    }
  } else if (strcmp(what, "fork") == 0) {
    long frames = m;
    long i;
    worker(&frames);
    for (i = 0; i < n; i++) {
      const pid_t child = fork();
      if (child == 0) {
        worker(&frames);
        exit(0);
      }
      if (child < 0) {
        return 6;
      }
    }
    worker(&frames);
    while (wait(NULL) > 0) {
    }
  } else if (strcmp(what, "kill") == 0) {
    long frames = n;
    worker(&frames);
    opmeter_marks_flush();
    frames = m;
    worker(&frames);
    raise(SIGKILL);
  } else if (strcmp(what, "exit") == 0) {
    long frames = n;
    worker(&frames); /* no close: at exit */
    exit(3);
  } else if (strcmp(what, "reopen") == 0) {
    long frames = n;
    worker(&frames);
    opmeter_marks_close();
    worker(&frames);
    if (opmeter_marks_enabled() || opmeter_marks_open(NULL) != 0) {
      return 6;
    }
    worker(&frames);
  } else if (strcmp(what, "names") == 0) {
    char name[64];
    long i;
    for (i = 0; i < n; i++) {
      uint32_t number;
      snprintf(name, sizeof name, "stage number %ld", i);
      number = opmeter_marks_name(name);
      opmeter_stage_begin(number);
      opmeter_stage_end(number);
    }
  } else {
    return 5;
  }
  fprintf(stderr, "dropped %llu\n", (unsigned long long)opmeter_marks_dropped());
  return 0;
}
