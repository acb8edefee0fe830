import { expect, test } from "vitest";
import type { Distribution } from "../data/load";
import type { Lane } from "../data/profile";
import { box, byLayer, fromDistribution, fromSamples, spread } from "./samples";

const f = (...v: number[]) => Float64Array.from(v);

test("samples of one layer and inference in one lane are summed", () => {
  const lane = (kind: Lane["kind"], layers: number[] | undefined, iterations: number[] | undefined, ...d: number[]): Lane => ({
    name: "x",
    kind,
    starts_s: f(...d.map((_, i) => i)),
    durations_s: f(...d),
    layers: layers && Int32Array.from(layers),
    iterations: iterations && Int32Array.from(iterations),
  });
  const m = byLayer({
    lanes: [
      lane("layer", [0, 0, 1, 0, 1, -1], [0, 0, 0, 1, 1, 1], 1, 2, 5, 3, 6, 9),
      lane("layer", [1, 1], [0, 1], 1, 1),
      lane("layer", [2, 2, 2], undefined, 1, 2, 3),
      lane("engine", [3, 3], undefined, 1, 2),
      lane("iteration", undefined, undefined, 10, 11),
    ],
  });
  expect([...m.get(0)!]).toEqual([3, 3]);
  expect([...m.get(1)!]).toEqual([5, 6]); // the lane with more time
  expect([...m.get(2)!]).toEqual([1, 2, 3]);
  expect(m.has(3)).toBe(false);
  expect([...m.get(-1)!]).toEqual([10, 11]);
  expect(byLayer(undefined).size).toBe(0);
});

test("samples and distribution agree", () => {
  const d: Distribution = {
    layer: 0,
    n: 100,
    edges_s: f(0, 50, 100, 400),
    counts: f(50, 49, 1),
    quantiles_s: f(...Array.from({ length: 101 }, (_, i) => i)),
    stretch: 10,
    mins_s: f(),
    medians_s: f(),
    maxs_s: f(),
  };
  const s = fromDistribution(d);
  expect(s.quantile(0.5)).toBe(50);
  expect(s.histogram.tail).toBe(true);
  expect(s.fences.high).toBe(150);
  const all = fromSamples(f(...Array.from({ length: 101 }, (_, i) => i)), "");
  expect(all.quantile(0.9)).toBeCloseTo(s.quantile(0.9));
  expect(spread(undefined, all)).toBeCloseTo((1.4826 * 25) / 50);
});

test("a box has what is known", () => {
  const b = box({ kind: "measured", min: 1, median: 2, max: 5 });
  expect(b.marks.map((m) => m.at)).toEqual([1, 2, 5]);
  expect(spread({ kind: "measured", median: 2, mad: 0.1 })).toBeCloseTo(0.074);
  expect(spread({ kind: "measured", median: 2 })).toBeUndefined();
});
