import { describe, expect, it } from "vitest";
import { Space } from "./spaces";

const space = new Space({
  name: "global",
  partitions: [
    { name: "b", address_bytes: 5000, bytes: 1000 },
    { name: "a", address_bytes: 1000, bytes: 1000 },
  ],
  starts_s: Float64Array.of(0, 1, 1, 3),
  ends_s: Float64Array.of(4, 2, 3, 5),
  address_bytes: Float64Array.of(1000, 5500, 9000, 1900),
  size_bytes: Float64Array.of(500, 500, 100, 300),
  writes: Int32Array.of(0, 1, 0, 1),
});

describe("space", () => {
  it("leaves out what nobody used", () => {
    expect(space.parts.map((p) => [p.name, p.address, p.bytes, p.at])).toEqual([
      ["a", 1000, 1000, 0],
      ["other", 2000, 200, 1000],
      ["b", 5000, 1000, 1200],
      ["other", 9000, 100, 2200],
    ]);
    expect(space.bytes).toBe(2300);
    expect(space.place(5500)).toBe(1700);
    expect(space.address(1700)).toBe(5500);
  });
  it("finds what touches a range", () => {
    expect(space.within({ t0: 2.5, t1: 2.9 })).toEqual([0, 3]);
    expect(space.within({ t0: 4.5, t1: 9 })).toEqual([3, 4]);
  });
  it("spreads accesses over time and address", () => {
    const d = space.density({ t0: 0, t1: 5 }, 5, 1);
    expect(Array.from(d.read)).toEqual([500, 600, 600, 500, 0]);
    expect(Array.from(d.write)).toEqual([0, 500, 0, 300, 300]);
    const u = space.use({ t0: 0, t1: 5 }, 0, 1000, 4, "read", 1);
    expect(Array.from(u)).toEqual([4, 4, 0, 0]);
    const w = space.use({ t0: 0, t1: 5 }, 0, 1000, 4, "write", 1);
    expect(w[3]).toBeCloseTo(2 * 0.4);
  });
});
