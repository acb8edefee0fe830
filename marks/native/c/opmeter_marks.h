/* opmeter marks: an application tells which of its stages takes how long.
 *
 * Around decode, preprocess, infer, postprocess, on any number of threads and
 * with any engine. Compile opmeter_marks.c (C99 or C++) into the application and
 * include this header where something is marked:
 *
 *     const uint32_t camera = opmeter_marks_name("camera");
 *     const uint32_t decode = opmeter_marks_name("decode");
 *     opmeter_marks_open(NULL);
 *     for (;;) {
 *       const uint64_t frame = opmeter_frame_begin(camera);
 *       opmeter_stage_begin(decode);
 *       ...
 *       opmeter_stage_end(decode);
 *       opmeter_frame_end(frame);
 *     }
 *
 * and run it with "opmeter trace -- ./application". Without that, or without
 * OPMETER_MARKS in the environment, each call is a look at one variable. Nothing
 * here blocks, allocates per call, or ends the application: what finds no room is
 * left out and counted. Format and rules: docs/reference/marks.md.
 *
 * Every function may be called from any thread, and none from signal handlers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef OPMETER_MARKS_H
#define OPMETER_MARKS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the way out: a path, at which a file is made or appended to ("%p" in it is
 * the number of the process), "fd:N" for an open descriptor such as a pipe, or
 * "tcp:ADDRESS:PORT" with an address in numbers, where somebody listens. NULL takes
 * the variable OPMETER_MARKS, whose absence is not an error. Returns 0, or an errno of
 * why there is no way out; marks are then off. */
int opmeter_marks_open(const char *to);

/* Writes what waits, with the last word, and turns marks off. Done at exit, too. */
void opmeter_marks_close(void);

/* Writes what waits now: before exec or _exit, or for a reader who looks on. */
void opmeter_marks_flush(void);

/* 1 between open and close, as far as there is a reader. */
int opmeter_marks_enabled(void);

/* The number of a text, the same for the same text: of a stage, of a kind of frame,
 * of a figure. 120 bytes of it count. May be called before open. 0 where there
 * are more than 4095. */
uint32_t opmeter_marks_name(const char *text);

/* Around one pass of the pipeline. The number that begin returns is for end, on
 * whatever thread. The calling thread works for the frame until it ends it, leaves it
 * or enters another. 0 while marks are off. */
uint64_t opmeter_frame_begin(uint32_t kind);
void opmeter_frame_end(uint64_t frame);

/* The calling thread works for a frame that another thread has begun. */
void opmeter_frame_enter(uint64_t frame);
void opmeter_frame_leave(void);

/* Around one stage. Stages stand within stages of the same thread, 64 deep. */
void opmeter_stage_begin(uint32_t stage);
void opmeter_stage_end(uint32_t stage);

/* Adds to a figure of the innermost stage of this thread, or of its frame: bytes,
 * items, hits of a cache. What is added in one frame is one value. */
void opmeter_stage_count(uint32_t figure, int64_t amount);

/* A figure that has a level at each moment: the length of a queue, a temperature. */
void opmeter_stage_level(uint32_t figure, double value);

/* Says which model a stage runs: the name of its file, and the SHA-256 of that in
 * hexadecimal or NULL. Once is enough. */
void opmeter_stage_model(uint32_t stage, const char *model, const char *sha256);

/* Names the calling thread in the timeline. */
void opmeter_thread_name(const char *name);

/* How many calls were left out, because the reader was too slow, the disk full, or
 * threads more than 1000. */
uint64_t opmeter_marks_dropped(void);

#ifdef __cplusplus
}

/* A stage that ends with its block. */
class opmeter_stage_scope {
 public:
  explicit opmeter_stage_scope(uint32_t stage) : stage_(stage) { opmeter_stage_begin(stage); }
  ~opmeter_stage_scope() { opmeter_stage_end(stage_); }

 private:
  opmeter_stage_scope(const opmeter_stage_scope &);
  opmeter_stage_scope &operator=(const opmeter_stage_scope &);
  uint32_t stage_;
};
#endif

#endif /* OPMETER_MARKS_H */
