import { describe, expect, it } from "vitest";
import { clamp, clock, Past, readSaved, step, ticks, write, writeSaved, zoom } from "./range";

describe("range", () => {
  it("stays in bounds", () => {
    const b = { t0: 0, t1: 10 };
    expect(clamp({ t0: -2, t1: 2 }, b)).toEqual({ t0: 0, t1: 4 });
    expect(clamp({ t0: 8, t1: 12 }, b)).toEqual({ t0: 6, t1: 10 });
    expect(clamp({ t0: -5, t1: 50 }, b)).toEqual(b);
    const tiny = clamp({ t0: 5, t1: 5 }, b);
    expect(tiny.t1 - tiny.t0).toBeCloseTo(2e-9, 12);
  });
  it("zooms around a point", () => {
    const r = zoom({ t0: 0, t1: 10 }, 2, 0.5);
    expect(r).toEqual({ t0: 1, t1: 6 });
  });
  it("chooses round steps", () => {
    expect(step(1, 10)).toBeCloseTo(0.1);
    expect(step(1, 9)).toBeCloseTo(0.2);
    expect(step(3e-6, 8)).toBeCloseTo(5e-7);
    expect(ticks({ t0: 0.05, t1: 0.35 }, 0.1)).toHaveLength(3);
  });
  it("writes the digits that a step needs", () => {
    expect(clock(0.0125, 0.0005)).toBe("12.5 ms");
    expect(clock(0, 0.0005)).toBe("0 µs");
    expect(clock(1.25, 0.01)).toBe("1.25 s");
    expect(clock(3.2e-8, 1e-9)).toBe("32 ns");
  });
  it("survives the address", () => {
    const r = { t0: 0.123456789, t1: 0.123457 };
    const w = write(r);
    expect(Math.abs(Number(w.t0) - r.t0)).toBeLessThan((r.t1 - r.t0) / 1000);
    const s = [{ name: "a b", t0: 1, t1: 2.5 }];
    expect(readSaved(writeSaved(s))).toEqual(s);
    expect(readSaved("x~2~1|~1~2|y")).toEqual([]);
  });
  it("goes back and forward", () => {
    const p = new Past();
    p.push({ t0: 0, t1: 1 });
    p.push({ t0: 0, t1: 2 });
    p.push({ t0: 0, t1: 2 });
    expect(p.move(-1)).toEqual({ t0: 0, t1: 1 });
    expect(p.back).toBe(false);
    expect(p.move(1)).toEqual({ t0: 0, t1: 2 });
    expect(p.forward).toBe(false);
  });
});
