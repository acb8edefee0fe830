/* A pipeline that marks its stages, around an engine that is only pretended.
 *
 *     opmeter trace --native src/
 *     cc -Isrc pipeline.c src/opmeter_marks.c -pthread -o pipeline
 *     opmeter trace -- ./pipeline
 */
#include "opmeter_marks.h"

#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 320, HEIGHT = 240, SMALL = 32, CLASSES = 10 };

static unsigned char picture[HEIGHT][WIDTH];
static float input[SMALL][SMALL], weights[CLASSES][SMALL][SMALL], scores[CLASSES];

static void decode(unsigned n) {
  unsigned x, y;
  for (y = 0; y < HEIGHT; y++) {
    for (x = 0; x < WIDTH; x++) {
      picture[y][x] = (unsigned char)((x * n) ^ (y + n));
    }
  }
}

static void shrink(void) {
  int x, y;
  for (y = 0; y < SMALL; y++) {
    for (x = 0; x < SMALL; x++) {
      input[y][x] = (float)picture[y * HEIGHT / SMALL][x * WIDTH / SMALL] / 255.0f;
    }
  }
}

static void infer(void) {
  int c, x, y;
  for (c = 0; c < CLASSES; c++) {
    float sum = 0;
    for (y = 0; y < SMALL; y++) {
      for (x = 0; x < SMALL; x++) {
        sum += input[y][x] * weights[c][y][x];
      }
    }
    scores[c] = sum;
  }
}

static int best(void) {
  int c, at = 0;
  for (c = 1; c < CLASSES; c++) {
    if (scores[c] > scores[at]) {
      at = c;
    }
  }
  return at;
}

int main(int argc, char **argv) {
  const uint32_t camera = opmeter_marks_name("camera"), decoding = opmeter_marks_name("decode");
  const uint32_t preprocess = opmeter_marks_name("preprocess"), resize = opmeter_marks_name("resize");
  const uint32_t inference = opmeter_marks_name("infer"), postprocess = opmeter_marks_name("postprocess");
  const uint32_t pixels = opmeter_marks_name("pixels");
  const unsigned frames = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 200;
  unsigned i, sum = 0;
  for (i = 0; i < sizeof weights / sizeof weights[0][0][0]; i++) {
    (&weights[0][0][0])[i] = (float)(i * 2654435761u % 1000u) / 1000.0f;
  }
  if (opmeter_marks_open(NULL) != 0) {
    fputs("marks have no way out; going on without\n", stderr);
  }
  opmeter_stage_model(inference, "linear.tflite", NULL);
  for (i = 0; i < frames; i++) {
    const uint64_t frame = opmeter_frame_begin(camera);
    opmeter_stage_begin(decoding);
    decode(i);
    opmeter_stage_count(pixels, WIDTH * HEIGHT);
    opmeter_stage_end(decoding);
    opmeter_stage_begin(preprocess);
    opmeter_stage_begin(resize);
    shrink();
    opmeter_stage_end(resize);
    opmeter_stage_end(preprocess);
    opmeter_stage_begin(inference);
    infer();
    opmeter_stage_end(inference);
    opmeter_stage_begin(postprocess);
    sum += (unsigned)best();
    opmeter_stage_end(postprocess);
    opmeter_frame_end(frame);
  }
  printf("%u frames, %u\n", frames, sum);
  return 0; /* what waits is written at exit */
}
