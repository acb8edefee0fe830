import { describe, expect, it } from "vitest";
import { figure, reach, Steps } from "./counter";

describe("steps", () => {
  const n = 5000;
  const times_s = Float64Array.from({ length: n }, (_, i) => i * 0.5);
  const values = Float64Array.from({ length: n }, (_, i) => Math.sin(i * 12.9898) * 1000);
  const s = new Steps({ name: "x", times_s, values });
  it("finds the sample that holds", () => {
    expect(s.at(-1)).toBe(-1);
    expect(s.at(0)).toBe(0);
    expect(s.at(0.99)).toBe(1);
    expect(s.at(1e9)).toBe(n - 1);
  });
  it("finds extremes as a plain search does", () => {
    for (const [a, b] of [[0, n - 1], [17, 17], [3, 900], [256, 4351], [4990, 4999]]) {
      const part = Array.from(values.slice(a, b + 1));
      expect(s.span(a, b)).toEqual([Math.min(...part), Math.max(...part)]);
    }
    expect(s.least).toBe(Math.min(...values));
    expect(s.most).toBe(Math.max(...values));
  });
});

describe("axes of counters", () => {
  it("sizes are binary as everywhere, rates are not", () => {
    expect([figure(16000, "B"), figure(2.5e9, "B/s"), figure(1.5e9, "Hz")]).toEqual(["15.6 KiB", "2.50 GB/s", "1.50 GHz"]);
  });
  it("begin at zero or below", () => {
    const of = (unit: string, ...values: number[]) => reach({ name: "x", unit, times_s: Float64Array.from(values.keys()), values: Float64Array.from(values) });
    expect(of("B", 512, 2048)).toBe("0 B to 2.00 KiB");
    expect(of("V", -2, 1)).toBe("-2.00 V to 1.00 V");
    expect(of("B")).toBe("B");
  });
});
