import { describe, expect, test } from "vitest";
import type { Layer, Roof, Target } from "../data/profile";
import { relative, roofline } from "./roofline";

const target = (more: Partial<Target> = {}): Target => ({ id: "t", kind: "host", ...more });
const layer = (index: number, ops: number | undefined, bytes: number | undefined, s?: number, roof?: Roof): Layer => ({
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
  test("takes limits and bounds from the profile", () => {
    const at = (bound: Roof["bound"], use: number): Roof => ({ bound, use, dtype: "int8", level: "L1", ops_per_second: 100, bytes_per_second: 10 });
    const r = roofline([layer(0, 1000, 10, 20, at("compute", 0.5)), layer(1, 10, 100, 20, at("memory", 0.5)), layer(2, 10, 10, 100, at("neither", 0.01)), layer(3, 5, 5)], target());
    expect(r.ridge).toBe(10);
    expect([r.peaks, r.levels]).toEqual([[{ name: "int8", rate: 100 }], [{ name: "L1", rate: 10 }]]);
    expect(r.points.map((p) => p.bound)).toEqual(["compute", "memory", "neither"]);
    expect(r.points.map((p) => p.roof)).toEqual([100, 1, 10]);
    expect(r.use).toBeCloseTo((0.5 * 40 + 1) / 140);
    expect(r.covered).toBe(1);
  });
  test("several types and levels have limits of their own", () => {
    const r = roofline([layer(0, 100, 10, 1, { dtype: "int8", level: "L1", ops_per_second: 400, bytes_per_second: 90 }), layer(1, 100, 10, 1, { dtype: "float32", level: "memory", ops_per_second: 100, bytes_per_second: 5 })], target());
    expect(r.peaks.map((p) => p.name)).toEqual(["int8", "float32"]);
    expect(r.levels.map((p) => p.name)).toEqual(["L1", "memory"]);
    expect(r.ridge).toBeUndefined();
    expect(r.points.map((p) => p.roof)).toEqual([400, 50]);
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
  test("one limit gives a roof and no bound", () => {
    const r = roofline([layer(0, 100, 50, 10, { use: 0.1, ops_per_second: 100 })], target());
    expect(r.points[0].use).toBe(0.1);
    expect(r.points[0].roof).toBe(100);
    expect(r.points[0].bound).toBeUndefined();
    expect(r.ridge).toBeUndefined();
  });
});
