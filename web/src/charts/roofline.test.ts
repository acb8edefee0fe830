import { describe, expect, test } from "vitest";
import type { Layer, Target } from "../data/profile";
import { relative, roofline } from "./roofline";

const target = (ops?: number, bytes?: number): Target => ({ id: "t", kind: "host", peak_ops_per_second: ops, peak_bytes_per_second: bytes });
const layer = (index: number, ops: number | undefined, bytes: number | undefined, s?: number): Layer => ({
  index,
  op: "X",
  state: "ran",
  ops,
  bytes_read: bytes,
  bytes_written: bytes === undefined ? undefined : 0,
  latency_s: s === undefined ? undefined : { kind: "measured", median: s },
});

describe("roofline", () => {
  test("sorts layers by what limits them", () => {
    // Peaks of 100 op/s and 10 B/s meet at 10 op/B.
    const r = roofline([layer(0, 1000, 10, 20), layer(1, 10, 100, 20), layer(2, 10, 10, 100), layer(3, 5, 5)], target(100, 10));
    expect(r.ridge).toBe(10);
    expect(r.points.map((p) => p.bound)).toEqual(["compute", "memory", "overhead"]);
    expect(r.points.map((p) => p.use)).toEqual([0.5, 0.5, 0.01]);
    expect(r.points[0].roof).toBe(100);
    expect(r.points[1].roof).toBe(1);
    expect(r.use).toBeCloseTo((0.5 * 40 + 1) / 140);
    expect(r.covered).toBe(1);
  });
  test("does not cut what exceeds the roof", () => {
    const r = roofline([layer(0, 1000, 10, 5)], target(100, 10));
    expect(r.points[0].use).toBe(2);
  });
  test("tells what is not known", () => {
    const r = roofline([layer(0, undefined, 10, 1), layer(1, 0, 10, 1), layer(2, 8, 4, 1)], target());
    expect(r.unknown).toEqual([0]);
    expect(r.workless).toEqual([1]);
    expect(r.use).toBeUndefined();
    expect(r.points[2].bound).toBeUndefined();
    expect(relative(r, r.points[2])).toBe(1);
    expect(relative(r, r.points[0])).toBeUndefined();
  });
  test("a layer without arithmetic is measured by its bytes", () => {
    const r = roofline([layer(0, 0, 50, 10)], target(100, 10));
    expect(r.points[0].use).toBe(0.5);
    expect(r.points[0].bound).toBe("memory");
  });
  test("one peak gives a roof and no bound", () => {
    const r = roofline([layer(0, 100, 50, 10)], target(100));
    expect(r.points[0].use).toBeCloseTo(0.1);
    expect(r.points[0].bound).toBeUndefined();
    expect(r.ridge).toBeUndefined();
  });
});
