import { describe, expect, test } from "vitest";
import { drift, fences, histogram, lag1, modes, quantile, sorted, thin } from "./stats";

/** Numbers that look random and are the same every time. */
function noise(n: number): number[] {
  let x = 1;
  return Array.from({ length: n }, () => {
    x = (x * 16807) % 2147483647;
    return x / 2147483647;
  });
}

describe("quantile", () => {
  test("is of type 7", () => {
    expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
    expect(quantile([1, 2, 3, 4, 5], 0.9)).toBeCloseTo(4.6);
    expect(quantile([7], 0.99)).toBe(7);
  });
});

describe("histogram", () => {
  test("holds every sample once", () => {
    for (const n of [2, 7, 100, 3000]) {
      const h = histogram(sorted(noise(n)));
      expect(Array.from(h.counts).reduce((a, b) => a + b)).toBe(n);
      expect(h.edges.length).toBe(h.counts.length + 1);
    }
  });
  test("equal samples", () => {
    expect(histogram([2, 2, 2]).counts).toEqual([3]);
  });
  test("equal middle", () => {
    const h = histogram([1, 2, 2, 2, 2, 2, 2, 9]);
    expect(h.rule).toContain("Sturges");
    expect(Array.from(h.counts).reduce((a, b) => a + b)).toBe(8);
  });
  test("far outliers go into one last bin", () => {
    const h = histogram(sorted([...noise(200), 50]));
    expect(h.tail).toBe(true);
    expect(h.counts[h.counts.length - 1]).toBe(1);
    expect(h.edges[h.edges.length - 1]).toBe(50);
  });
});

describe("drift", () => {
  test("finds a slope under outliers", () => {
    const s = Array.from({ length: 100 }, (_, i) => 10 + i * 0.01);
    s[50] = 900;
    const d = drift(s)!;
    expect(d.change).toBeCloseTo(0.99);
    expect(d.relative).toBeCloseTo(0.094, 2);
  });
  test("long series", () => {
    const s = Array.from({ length: 5000 }, (_, i) => 10 + i * 0.001);
    expect(drift(s)!.change).toBeCloseTo(5, 1);
  });
  test("needs samples", () => expect(drift([1, 2])).toBeUndefined());
  test("lag 1", () => {
    expect(lag1(noise(4000))!).toBeLessThan(0.06);
    expect(lag1(Array.from({ length: 100 }, (_, i) => i))!).toBeGreaterThan(0.9);
    expect(lag1([1, 1, 1, 1, 1, 1])).toBeUndefined();
  });
});

test("fences count on both sides", () => {
  const f = fences([-50, 1, 2, 3, 4, 5, 6, 7, 99]);
  expect([f.below, f.above]).toEqual([1, 1]);
});

describe("modes", () => {
  test("two groups", () => {
    const m = modes(sorted(noise(200).map((x, i) => (i % 4 ? 10 : 13) + x * 0.3)))!;
    expect(m.low).toBeCloseTo(10.15, 1);
    expect(m.high).toBeCloseTo(13.15, 1);
    expect(m.part).toBeCloseTo(0.25, 1);
  });
  test("one group", () => {
    const n = noise(3000);
    expect(modes(sorted(n.slice(0, 300)))).toBeUndefined();
    expect(modes(sorted(Array.from({ length: 300 }, (_, i) => n[3 * i] + n[3 * i + 1] + n[3 * i + 2])))).toBeUndefined();
    expect(modes(sorted(n.slice(0, 300).map((x) => -Math.log(x))))).toBeUndefined();
  });
});

test("thin keeps extremes", () => {
  const t = thin([1, 5, 2, 2, 9, 0], 2);
  expect(t.lo).toEqual([1, 0]);
  expect(t.hi).toEqual([5, 9]);
});
