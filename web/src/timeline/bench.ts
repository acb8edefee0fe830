// A fixed sequence of pans and zooms that records frame times.
import type { Range } from "./range";

export interface Result {
  bars: number;
  open_ms: number;
  frames: number;
  seconds: number;
  fps: number;
  worst_frame_ms: number;
  draw_ms_median: number;
}

/** course is the range at second s of the run: zoom in and out twice while panning. */
export function course(s: number, whole: Range): Range {
  const length = whole.t1 - whole.t0;
  const depth = 0.5 - 0.5 * Math.cos((s / 2.5) * 2 * Math.PI);
  const part = length * 10 ** (-4.2 * depth);
  const middle = whole.t0 + length * (0.5 + 0.3 * Math.sin(s * 1.3));
  return { t0: middle - part / 2, t1: middle + part / 2 };
}

/** run calls show for some seconds; draws receives the time of each drawing. */
export function run(whole: Range, show: (r: Range) => void, draws: number[], bars: number, open: number, length = 5): Promise<Result> {
  return new Promise((done) => {
    let first = 0;
    let last = 0;
    let frames = 0;
    let worst = 0;
    draws.length = 0;
    const frame = (now: number) => {
      if (first === 0) first = last = now;
      else {
        frames++;
        worst = Math.max(worst, now - last);
        last = now;
      }
      const s = (now - first) / 1000;
      if (s >= length) {
        const sorted = [...draws].sort((a, b) => a - b);
        const tenth = (v: number) => Math.round(v * 10) / 10;
        done({
          bars,
          open_ms: Math.round(open),
          frames,
          seconds: tenth(s),
          fps: tenth(frames / s),
          worst_frame_ms: tenth(worst),
          draw_ms_median: tenth(sorted[sorted.length >> 1] ?? 0),
        });
        return;
      }
      show(course(s, whole));
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
}
