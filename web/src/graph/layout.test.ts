import { describe, expect, test } from "vitest";
import { crossings, layered, ranks, spaced } from "./layout";

const box = (n: number) => Array.from({ length: n }, () => ({ w: 100, h: 40 }));

function overlaps(l: ReturnType<typeof layered>, sizes: { w: number; h: number }[]): number {
  let found = 0;
  for (let a = 0; a < sizes.length; a++)
    for (let b = 0; b < a; b++)
      if (l.x[a] < l.x[b] + sizes[b].w - 0.01 && l.x[b] < l.x[a] + sizes[a].w - 0.01 && l.y[a] < l.y[b] + sizes[b].h - 0.01 && l.y[b] < l.y[a] + sizes[a].h - 0.01) found++;
  return found;
}

describe("layout", () => {
  test("ranks by the longest path", () => {
    expect([...ranks(4, [[0, 1], [1, 2], [0, 2], [3, 3]].slice(0, 3) as [number, number][])]).toEqual([0, 1, 2, 0]);
    // A source goes next to what it feeds.
    expect([...ranks(4, [[0, 1], [1, 3], [2, 3]])]).toEqual([0, 1, 1, 2]);
  });
  test("a chain is a straight column", () => {
    const l = layered(box(4), [[0, 1], [1, 2], [2, 3]]);
    expect(new Set(l.x).size).toBe(1);
    expect(l.y[1]).toBeGreaterThan(l.y[0] + 40);
  });
  test("a long chain breaks into columns", () => {
    const edges = Array.from({ length: 59 }, (_, i) => [i, i + 1] as [number, number]);
    const l = layered(box(60), edges, { aspect: 1.6 });
    expect(l.w / l.h).toBeGreaterThan(0.8);
    expect(l.w / l.h).toBeLessThan(3);
    expect(overlaps(l, box(60))).toBe(0);
    expect(l.bends.filter((b) => b.length === 4).length).toBeGreaterThan(2);
  });
  test("branches do not overlap or cross without need", () => {
    const edges: [number, number][] = [[0, 1], [0, 2], [1, 3], [2, 4], [3, 5], [4, 5], [0, 5]];
    const l = layered(box(6), edges);
    expect(overlaps(l, box(6))).toBe(0);
    expect(l.bends[6].length).toBeGreaterThan(0);
    expect(crossings([[0, 1], [2, 3]], [[3], [2], [], []])).toBe(1);
    expect(crossings([[0, 1], [2, 3]], [[2], [3], [], []])).toBe(0);
  });
  test("thousands of nodes in bounded time", () => {
    const n = 5000;
    const edges: [number, number][] = [];
    for (let i = 1; i < n; i++) {
      edges.push([i - 1, i]);
      if (i % 6 === 0) edges.push([i - 6, i]);
      if (i % 500 === 0) edges.push([i - 500, i]);
    }
    const start = performance.now();
    const l = layered(box(n), edges, { aspect: 1.5, time: 300 });
    expect(performance.now() - start).toBeLessThan(4000);
    expect(Number.isFinite(l.w)).toBe(true);
  });
  test("nothing", () => expect(layered([], []).w).toBe(0));
  test("spacing keeps order and moves least", () => {
    expect(spaced([0, 0, 0], [1, 1, 1], [0, 10, 10])).toEqual([-10, 0, 10]);
    expect(spaced([0, 50], [1, 1], [0, 10])).toEqual([0, 50]);
  });
});
