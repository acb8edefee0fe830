import { describe, expect, it } from "vitest";
import type { Buffer } from "../data/profile";
import { alive, at, find, highest, steps, top } from "./plan";

const plan: Buffer[] = [
  { name: "a", bytes: 100, offset_bytes: 0, first: 0, last: 1 },
  { name: "b", bytes: 50, offset_bytes: 100, first: 1, last: 3 },
  { name: "s", bytes: 30, offset_bytes: 150, first: 1, last: 1, scratch: true },
  { name: "c", bytes: 120, offset_bytes: 160, first: 3, last: 3 },
];

describe("plan", () => {
  it("sums what is alive", () => {
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
