import { describe, expect, it } from "vitest";
import type { Buffer, Layer, Profile } from "../data/profile";
import { alive, at, envelope, find, highest, layerAt, running, stepOf, steps, top } from "./plan";

const plan: Buffer[] = [
  { name: "a", bytes: 100, offset_bytes: 0, first: 0, last: 1 },
  { name: "b", bytes: 50, offset_bytes: 100, first: 1, last: 3 },
  { name: "s", bytes: 30, offset_bytes: 150, first: 1, last: 1, scratch: true },
  { name: "c", bytes: 120, offset_bytes: 160, first: 3, last: 3 },
];

describe("plan", () => {
  it("sums live buffers", () => {
    expect(steps(plan)).toBe(4);
    const a = alive(plan, 5);
    expect(Array.from(a.tensors)).toEqual([100, 150, 50, 170, 0]);
    expect(Array.from(a.scratch)).toEqual([0, 30, 0, 0, 0]);
    expect([a.peak, a.bytes]).toEqual([1, 180]);
    expect(alive([], 2).peak).toBe(-1);
  });
  it("lists and finds buffers", () => {
    expect(at(plan, 1)).toEqual([0, 1, 2]);
    expect(at(plan, 3)).toEqual([3, 1]);
    expect(top(plan)).toBe(280);
    expect(Array.from(highest(plan, 4))).toEqual([100, 180, 150, 280]);
    expect(find(plan, 1, 160)).toBe(2);
    expect(find(plan, 2, 20)).toBe(-1);
  });
});

describe("steps and layers", () => {
  const layer = (index: number, parent?: number): Layer => ({ index, op: "X", state: "ran", parent });
  const of = (layers: Layer[], step_layers?: number[]): Profile => ({ schema: "opmeter/profile/v1", model: { name: "m" }, settings: {}, target: { id: "t", kind: "host" }, totals: {}, layers, memory: { step_layers } });

  it("outputs that are kept to the end add no step", () => {
    // Four layers; "c" is an output and kept behind the last.
    const kept: Buffer[] = [...plan.slice(0, 3), { ...plan[3], last: 4 }];
    expect(running(of([0, 1, 2, 3].map((i) => layer(i))), kept)).toBe(4);
    expect(running(of([0, 1, 2, 3, 4, 5].map((i) => layer(i))), kept)).toBe(5);
  });
  it("layers of bodies have the step of their owner", () => {
    const p = of([layer(0), layer(1), layer(2, 1), layer(3, 2), layer(4)], [0, 1, 4]);
    expect([0, 1, 2, 3].map((s) => layerAt(p, s))).toEqual([0, 1, 4, -1]);
    expect([0, 1, 2, 3, 4].map((l) => stepOf(p, l))).toEqual([0, 1, 1, 1, 2]);
    expect([-1, 5].map((s) => layerAt(of([layer(0)]), s))).toEqual([-1, -1]);
  });
  it("an envelope holds every step", () => {
    const a = alive(plan, 5);
    expect(envelope(a, 0, 4, 2)).toEqual({ least: Float64Array.of(100, 50), most: Float64Array.of(180, 170) });
    expect(Array.from(envelope(a, 0, 4, 8).most)).toEqual([100, 100, 180, 180, 50, 50, 170, 170]);
  });
});
