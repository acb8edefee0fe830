import { describe, expect, test } from "vitest";
import type { Metric } from "../data/profile";
import { curves, denseTime, gained, grouped, key, optimisable, ratio, refusals, rows } from "./data";
import type { Layer, Loss, Plan, Speed, Study } from "./types";

const of = (v: number): Metric => ({ kind: "measured", median: v });
const layer = (op: string, more: Partial<Layer> = {}): Layer => ({ node: 0, input: 1, id: op, name: op, op, weight: "w", shape: [4, 4], type: "float32", rows: 4, cols: 4, taps: 1, groups: 1, params: 20, zeros: 0, ...more });
const study: Study = { created: "", model: { name: "m" } as Study["model"], layers: [layer("Conv"), layer("Gemm", { fixed: "no_zero" }), layer("Conv")] };
const speed: Speed = {
  name: "s",
  target: "host",
  changes: [],
  created: "",
  latency_s: of(10),
  layers: [
    { layer: 0, latency_s: of(4) },
    { layer: 1, latency_s: of(2) },
    { layer: 2, latency_s: of(2), limit: "memory" },
  ],
  points: [
    { layer: 0, change: { structure: "unstructured", level: 0.9 }, ratio: of(0.5) },
    { layer: 0, change: { structure: "unstructured", level: 0.5 }, latency_s: of(4) },
    { layer: 2, change: { structure: "unstructured", level: 0.9 }, ratio: of(1), cause: "no_kernel" },
  ],
};
const loss: Loss = { name: "l", method: "output", metric: "relative_error", changes: [], created: "", points: [{ layer: 0, change: { structure: "unstructured", level: 0.9 }, value: of(0.1) }] };

describe("a study", () => {
  test("rows know gains, unchanged layers and reasons", () => {
    const r = rows(study, speed, loss, undefined);
    expect(r.map((x) => x.fastestRatio)).toEqual([0.5, undefined, undefined]);
    expect(r[0].share).toBe(0.4);
    expect(r[0].verdict).toBe("Up to 2.0 times as fast, whatever it loses.");
    expect(r[1].verdict).toContain("zero point unknown");
    expect(r[2].verdict).toBe("No kernel gains from this.");
    expect(r[0].loss).toHaveLength(1);
  });
  test("a plan's choice comes before what could be", () => {
    const plan: Plan = { name: "p", created: "", goal: {}, speed: "s", loss: "l", predicted: {}, choices: [{ layer: 0, change: { structure: "4x1", level: 0.8 }, time_s: 1 }, { layer: 2, change: {}, cause: "head" }] };
    const r = rows(study, speed, loss, plan);
    expect(r[0].verdict).toBe("80 % 4×1 blocks, 4.00 times as fast.");
    expect(r[2].verdict).toBe("Unchanged: it computes an output of the model.");
    expect(r[2].after).toBe(2);
  });
  test("noise and changes that leave no work do not count as gains; the gain of a plan is its change's", () => {
    const change = { structure: "unstructured", level: 0.9 };
    const points = [
      { layer: 0, change, ratio: { ...of(0.9), ci95: [0.7, 1.1] } as Metric },
      { layer: 0, change: { structure: "filter", level: 0.99 }, ratio: of(0) },
      { layer: 2, change: { format: "int8" }, ratio: { ...of(0.5), ci95: [0.4, 0.6] } as Metric },
    ];
    const plan: Plan = { name: "p", created: "", goal: {}, speed: "s", loss: "l", predicted: {}, choices: [{ layer: 0, change: {} }, { layer: 2, change: { format: "int8" } }] };
    const r = rows(study, { ...speed, points }, loss, plan);
    expect(r.map((x) => x.fastestRatio)).toEqual([undefined, undefined, 0.5]);
    expect(r.map((x) => x.planRatio)).toEqual([undefined, undefined, 0.5]);
    expect(optimisable(r, speed)).toEqual({ gains: 2, none: 6, others: 2, whole: 10 });
  });
  test("the time splits into what gains, what does not, and what has no weights", () => {
    expect(optimisable(rows(study, speed, loss, undefined), speed)).toEqual({ gains: 4, none: 4, others: 2, whole: 10 });
    expect(optimisable([], undefined)).toBeUndefined();
  });
  test("curves rise in levels, and nothing is made up", () => {
    const c = curves(speed.points, 0);
    expect(c).toHaveLength(1);
    expect(c[0].points.map((p) => p.change.level)).toEqual([0.5, 0.9]);
    expect(ratio({ layer: 0, change: {} }, 3)).toBeUndefined();
    expect(key({ level: 0.5, structure: "2:4" })).not.toBe(key({ level: 0.5, structure: "4x1" }));
  });
  test("what becomes smaller with a layer counts as its gain", () => {
    const p = { layer: 0, change: { structure: "filter", level: 0.5 }, ratio: of(0.5), others: [{ layer: 2, ratio: of(0.25) }] };
    const [own, other] = [denseTime(speed, 0) ?? 0, denseTime(speed, 2) ?? 0];
    expect(own).toBeGreaterThan(0);
    expect(gained(speed, p)).toBeCloseTo((0.5 * own + 0.25 * other) / (own + other), 12);
    expect(gained(speed, { ...p, others: [] })).toBe(0.5);
  });
  test("what gains nothing says at which levels", () => {
    expect(refusals(speed.points, 2)).toEqual(["unstructured at 90 %: no kernel gains from this"]);
    expect(refusals(speed.points, 0)).toEqual([]);
    expect(refusals([{ layer: 0, change: { format: "float16" }, cause: "no_kernel" }], 0)).toEqual(["float16 weights: no kernel gains from this"]);
  });
  test("operators add up", () => {
    expect(grouped([{ name: "a", value: 1, layer: 0 }, { name: "b", value: 2, layer: 2 }, { name: "c", value: 4, layer: 1 }], study)).toEqual([
      { name: "Gemm", value: 4, layer: -1 },
      { name: "Conv", value: 3, layer: -1 },
    ]);
  });
});
