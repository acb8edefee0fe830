import { describe, expect, test } from "vitest";
import { extent, linear, log } from "./scale";

describe("scales", () => {
  test("linear maps and inverts", () => {
    const s = linear(10, 20, 0, 100);
    expect(s(15)).toBe(50);
    expect(s.invert(50)).toBe(15);
    expect(s.ticks(5)).toEqual([10, 12, 14, 16, 18, 20]);
    expect(linear(3, 3, 0, 1).ticks(4)).toEqual([3]);
  });
  test("log maps and has round marks", () => {
    const s = log(1, 100, 0, 10);
    expect(s(10)).toBeCloseTo(5);
    expect(s.invert(5)).toBeCloseTo(10);
    expect(s.ticks(2)).toEqual([1, 10, 100]);
    expect(s.ticks(9)).toEqual([1, 2, 5, 10, 20, 50, 100]);
    expect(log(1e-9, 1e3, 0, 1).ticks(4).length).toBeLessThanOrEqual(6);
  });
  test("extent", () => {
    expect(extent([3, 1, 2])).toEqual([1, 3]);
    expect(extent([])).toBeUndefined();
  });
});
