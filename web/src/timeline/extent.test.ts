import { describe, expect, it } from "vitest";
import type { Lane, Timeline } from "../data/profile";
import { align } from "./clocks";
import { extent, middle, opening, spans } from "./extent";

const lane = (kind: Lane["kind"], ...bars: [start: number, length: number][]): Lane => ({ name: kind, kind, starts_s: Float64Array.from(bars, (b) => b[0]), durations_s: Float64Array.from(bars, (b) => b[1]) });
const timeline = (...lanes: Lane[]): Timeline => ({ lanes, origin: "x" }) as Timeline;

describe("the part to begin with", () => {
  it("is the inference of middle length", () => {
    const t = timeline(lane("layer", [0, 1]), lane("iteration", [0, 9], [10, 2], [20, 4], [30, 3], [40, 5]));
    const r = middle(t)!;
    expect(r.t0).toBeCloseTo(20 - 0.02 * 4);
    expect(r.t1).toBeCloseTo(24 + 0.02 * 4);
  });
  it("is none for few inferences, for none, and for those without length", () => {
    expect(middle(timeline(lane("iteration", [0, 1], [2, 1], [4, 1])))).toBeUndefined();
    expect(middle(timeline(lane("layer", [0, 1], [1, 1], [2, 1], [3, 1], [4, 1])))).toBeUndefined();
    expect(middle(timeline(lane("iteration", [0, 0], [1, 0], [2, 0], [3, 0])))).toBeUndefined();
    expect(middle(timeline())).toBeUndefined();
  });
});

it("the extent reaches from the first start to the last end", () => {
  expect(extent(timeline(lane("layer", [1, 5], [2, 1]), lane("iteration", [0.5, 1])))).toEqual({ t0: 0.5, t1: 6 });
});

it("begins with what can be compared", () => {
  const chip = lane("engine", [0, 2], [3, 1]);
  const host = { ...lane("host", [5, 1000]), clock: "host" };
  const t = { ...timeline(chip, host), clocks: [{ name: "host" }] } as Timeline;
  const a = align(t);
  expect(extent(a.timeline).t1).toBe(1000);
  const r = opening(a.timeline, a.fixes)!;
  expect(r.t0).toBeCloseTo(-0.08);
  expect(r.t1).toBeCloseTo(4.08);
  const known = { ...t, clocks: [{ name: "host", offset_s: 1 }] } as Timeline;
  expect(opening(align(known).timeline, align(known).fixes)).toBeUndefined();
});

it("measures each clock by what it covers itself", () => {
  const chip = lane("engine", [0, 2], [3, 1]);
  const host = { ...lane("host", [5, 1000]), clock: "host" };
  const t = { ...timeline(chip, host), clocks: [{ name: "host" }] } as Timeline;
  const a = align(t);
  const of = spans(a.timeline, a.fixes);
  expect([of(undefined), of("host")]).toEqual([4, 1000]);
  // Clocks with a known conversion are one.
  const known = align({ ...t, clocks: [{ name: "host", offset_s: 5 }] } as Timeline);
  const both = spans(known.timeline, known.fixes);
  expect([both(undefined), both("host")]).toEqual([1000, 1000]);
});
