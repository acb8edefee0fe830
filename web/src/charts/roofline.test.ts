import { describe, expect, test } from "vitest";
import type { Layer, Target } from "../data/profile";
import { relative, roofline } from "./roofline";

const target = (more: Partial<Target> = {}): Target => ({ id: "t", kind: "host", ...more });
const layer = (index: number, ops: number | undefined, bytes: number | undefined, s?: number, roof?: Layer["roof"]): Layer => ({
  index,
  op: "X",
  state: "ran",
  ops,
  bytes_read: bytes,
  bytes_written: bytes === undefined ? undefined : 0,
  latency_s: s === undefined ? undefined : { kind: "measured", median: s },
  roof,
});

describe("roofline", () => {
  test("takes the limits of a layer from the profile", () => {
    const r = roofline(
      [
        layer(0, 1000, 10, 20, { bound: "compute", use: 0.5, dtype: "int8", level: "L1", ops_per_second: 100, bytes_per_second: 10 }),
        layer(1, 10, 100, 20, { bound: "memory", use: 0.25, level: "memory", ops_per_second: 100, bytes_per_second: 10 }),
        layer(2, 5, 5),
      ],
      target(),
    );
    expect(r.points.map((p) => p.bound)).toEqual(["compute", "memory"]);
    expect(r.points.map((p) => p.use)).toEqual([0.5, 0.25]);
    expect(r.points.map((p) => p.roof)).toEqual([100, 1]);
    expect(r.points[0]).toMatchObject({ dtype: "int8", level: "L1" });
    // 0.5 of 20 s and 0.25 of 20 s of 40 s.
    expect(r.use).toBeCloseTo(0.375);
    expect(r.covered).toBe(1);
  });
  test("omits peaks of element types that no layer uses", () => {
    const peaks = [{ dtype: "float32", ops_per_second: 50 }, { dtype: "int8", ops_per_second: 100 }];
    const r = roofline([layer(0, 1000, 10, 20, { bound: "compute", use: 0.5, dtype: "float32" })], target({ peaks }));
    expect(r.peaks.map((l) => l.name)).toEqual(["float32"]);
  });
  test("lists the lines of the roofline, the highest first", () => {
    const r = roofline([], target({ peaks: [{ dtype: "float32", ops_per_second: 50 }, { dtype: "int8", ops_per_second: 100 }], levels: [{ name: "L1", bytes_per_second: 20 }, { name: "memory", bytes_per_second: 5 }], peak_ops_per_second: 100, peak_bytes_per_second: 5 }));
    expect(r.peaks.map((l) => l.name)).toEqual(["int8", "float32"]);
    expect(r.levels.map((l) => l.rate)).toEqual([20, 5]);
    expect(r.ridge).toBe(5);
  });
  test("two rates without lists are a roofline too", () => {
    const r = roofline([], target({ peak_ops_per_second: 100, peak_bytes_per_second: 10 }));
    expect(r.ridge).toBe(10);
    expect(roofline([], target({ peak_ops_per_second: 100 })).ridge).toBeUndefined();
  });
  test("lists layers with unknown or no work", () => {
    const r = roofline([layer(0, undefined, 10, 1), layer(1, 0, 10, 1), layer(2, 8, 4, 1)], target());
    expect(r.unknown).toEqual([0]);
    expect(r.workless).toEqual([1]);
    expect(r.use).toBeUndefined();
    expect(r.points[2].bound).toBeUndefined();
    expect(relative(r, r.points[2])).toBe(1);
    expect(relative(r, r.points[0])).toBeUndefined();
  });
});
