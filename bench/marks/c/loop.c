/* Times marks: THREADS ROUNDS FRAMES; a line of nanoseconds a call for each thread and round. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "opmeter_marks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STAGES = 4, CALLS = 2 + 2 * STAGES };

static uint32_t camera, stage[STAGES];
static long rounds, frames;
static pthread_barrier_t together;

/* Time of this thread on a processor: what others do on a busy machine is not the marks'. */
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *run(void *out) {
  double *each = (double *)out;
  long r, i;
  int k;
  for (r = 0; r < rounds; r++) {
    double begin;
    pthread_barrier_wait(&together);
    begin = now();
    for (i = 0; i < frames; i++) {
      const uint64_t frame = opmeter_frame_begin(camera);
      for (k = 0; k < STAGES; k++) {
        opmeter_stage_begin(stage[k]);
        opmeter_stage_end(stage[k]);
      }
      opmeter_frame_end(frame);
    }
    each[r] = (now() - begin) / ((double)frames * CALLS);
  }
  return NULL;
}

int main(int argc, char **argv) {
  static double each[64][1000];
  pthread_t t[64];
  long threads, i, r;
  if (argc != 4) {
    return 2;
  }
  threads = atol(argv[1]);
  rounds = atol(argv[2]);
  frames = atol(argv[3]);
  if (threads < 1 || threads > 64 || rounds > 1000) {
    return 2;
  }
  camera = opmeter_marks_name("camera");
  stage[0] = opmeter_marks_name("decode");
  stage[1] = opmeter_marks_name("preprocess");
  stage[2] = opmeter_marks_name("infer");
  stage[3] = opmeter_marks_name("postprocess");
  if (opmeter_marks_open(NULL) != 0) {
    return 3;
  }
  pthread_barrier_init(&together, NULL, (unsigned)threads);
  for (i = 0; i < threads; i++) {
    pthread_create(&t[i], NULL, run, each[i]);
  }
  for (i = 0; i < threads; i++) {
    pthread_join(t[i], NULL);
    for (r = 0; r < rounds; r++) {
      printf("%.3f\n", each[i][r]);
    }
  }
  if (opmeter_marks_dropped() != 0) {
    fprintf(stderr, "%llu calls were dropped\n", (unsigned long long)opmeter_marks_dropped());
    return 4;
  }
  return 0;
}
