import { describe, expect, test } from "vitest";
import type { Node } from "./model";
import type { Box, Scene } from "./scene";
import { begin, centred, fit, follow, legible, visible, whole, zoomed } from "./window";

const node = (id: string): Node => ({ id, kind: "layer", layer: 0, title: id, members: [], children: [], order: 0 });
const box = (x: number, y: number): Box => ({ node: node(`${x} ${y}`), x, y, w: 100, h: 50, open: false });
const scene = (w: number, h: number): Scene => ({ boxes: [], lines: [], at: () => undefined, w, h });
const frame = { width: 800, height: 600 };
/** Where a place of the plane stands on the canvas. */
const on = (v: { x: number; y: number; k: number }, b: Box) => [v.x + b.x * v.k, v.y + b.y * v.k];

describe("the window", () => {
  test("begins with all where that can be read, else at the box that matters", () => {
    expect(begin(scene(700, 500), frame, box(0, 0))).toEqual(fit(scene(700, 500), frame));
    const [s, b] = [scene(900, 30000), box(400, 20000)];
    expect(whole(s, frame)).toBeLessThan(legible);
    const v = begin(s, frame, b);
    expect(v.k).toBeGreaterThanOrEqual(legible);
    expect(visible(b, v, frame)).toBe(true);
    expect(begin(s, frame, undefined)).toEqual(fit(s, frame));
  });
  test("a box keeps its corner when a layout changes", () => {
    const v = { x: -130, y: 17, k: 0.7 };
    const [before, after] = [box(300, 400), box(250, 1900)];
    const got = on(follow(v, before, after), after);
    on(v, before).forEach((c, i) => expect(got[i]).toBeCloseTo(c, 9));
  });
  test("zooming keeps the point under the pointer", () => {
    const v = zoomed({ x: 10, y: 20, k: 1 }, 2, 110, 220, 0.1);
    expect(v.k).toBe(2);
    expect(v.x + 100 * v.k).toBeCloseTo(110);
    expect(v.y + 200 * v.k).toBeCloseTo(220);
    expect(zoomed(v, 1e9, 0, 0, 0.1).k).toBe(4);
    expect(zoomed(v, 1e-9, 0, 0, 0.1).k).toBe(0.1);
  });
  test("a box at the rim is centred no further than the rim", () => {
    const s = scene(5000, 5000);
    for (const [x, y] of [[0, 0], [4900, 4950], [2500, 2500]]) {
      const v = centred(box(x, y), s, frame, 1);
      expect(v.x).toBeLessThanOrEqual(12);
      expect(v.x + 5000).toBeGreaterThanOrEqual(frame.width - 12);
      expect(visible(box(x, y), v, frame)).toBe(true);
    }
  });
});
