import { expect, test } from "vitest";
import fixture from "./predict.fixture.json";
import { bytesOf, Model } from "./predict";
import type { Change, Layer, Study } from "./types";

// The study of a keyword spotter as opmeter compress measured it, with what its plan predicts.
const study = fixture as unknown as Study & { expected: typeof fixture.expected };
const model = new Model(study, study.speeds![0], study.losses![0]);

test("the prediction is that of the plan", () => {
  const e = study.expected.plan;
  const p = model.predict(e.changes as Change[]);
  expect(p.unknown).toEqual([]);
  expect(p.loss).toBeCloseTo(e.loss, 9);
  expect(p.bytes).toBe(e.bytes);
  expect(p.sparsity).toBeCloseTo(e.zeros / study.layers.reduce((n, l) => n + l.rows * l.cols, 0), 2);
  expect(p.time! / e.time).toBeCloseTo(1, 12);
  for (const f of study.expected.front) {
    const q = model.predict(f.changes as Change[]);
    expect(q.loss).toBeCloseTo(f.loss, 9);
    expect(q.time! / f.cost).toBeCloseTo(1, 12);
  }
});

test("conversions between int8 layers and others take time", () => {
  const layers = [1, 2, 3].map((n) => ({ rows: 1, cols: 1, params: 1, zeros: 0, type: "float32", macs: n }));
  const one = { kind: "measured", median: 1 };
  const int8 = { format: "int8" };
  const of = (mixed: { changes: Change[]; ratio: number }[]) => {
    const speed = {
      target: "host", latency_s: { kind: "measured", median: 4 }, changes: [],
      layers: [0, 1, 2].map((layer) => ({ layer, latency_s: one })),
      points: [0, 1, 2].map((layer) => ({ layer, change: int8, ratio: { kind: "measured", median: 0.5 } })),
      mixed: mixed.map((m) => ({ changes: m.changes, ratio: { kind: "measured", median: m.ratio } })),
    };
    return new Model({ layers } as never, speed as never, undefined);
  };
  // 0.9 of the savings of 0.5, and 0.2 of the whole time for the conversion of all outputs.
  const ratio = (saved: number, share: number) => 1 - (0.9 * saved * 0.5) / 4 + 0.2 * share;
  const mixed = [
    { changes: [int8, {}, {}], ratio: ratio(1, 2 / 6) }, // its input counts as its output, 1, then its output, 1
    { changes: [{}, int8, {}], ratio: ratio(1, 3 / 6) },
    { changes: [{}, {}, int8], ratio: ratio(1, 5 / 6) },
    { changes: [int8, int8, int8], ratio: ratio(3, 4 / 6) },
  ];
  expect(of(mixed).predict([int8, int8, {}]).time! / 4).toBeCloseTo(ratio(2, 3 / 6), 12);
  expect(of(mixed).predict([]).time).toBe(4);
  // Too few models tell nothing of it.
  expect(of(mixed.slice(1)).predict([int8, int8, {}]).time).toBeCloseTo(3, 12);
});

test("without changes nothing changes", () => {
  const p = model.predict([]);
  expect(p.time).toBeCloseTo(p.before!, 12);
  expect(p.bytes).toBe(p.bytesBefore);
  expect(p.loss).toBe(0);
});

test("values between levels are interpolated, others are unknown", () => {
  const one = (c: Change) => model.predict([undefined, undefined, c]);
  const [a, b] = [one({ structure: "filter", level: 0.9 }), one({ structure: "filter", level: 0.95 })];
  const mid = one({ structure: "filter", level: 0.925 });
  expect(mid.loss).toBeCloseTo((a.loss! + b.loss!) / 2, 9);
  expect(mid.time! < a.time! && mid.time! > b.time!).toBe(true);
  const unknown = one({ structure: "2:4", level: 0.5 });
  expect(unknown).toMatchObject({ time: undefined, loss: undefined, unknown: [2] });
  expect(model.highest(2, { structure: "filter" })).toBe(0.99);
  expect(model.highest(2, { structure: "2:4" })).toBeUndefined();
  expect(model.layerTime(2, { structure: "2:4", level: 0.5 })).toBeUndefined();
  expect(model.layerTime(2, undefined)).toBeGreaterThan(0);
});

test("the correction of a plan scales savings and losses", () => {
  const m = (median: number) => ({ kind: "measured", median });
  const half = { structure: "filter", level: 0.5 };
  const tied = { ...half, level: 0.9 };
  const layers = [1, 2, 3].map((n) => ({ rows: 1, cols: 1, params: 1, zeros: 0, type: "float32", macs: n }));
  const speed = {
    target: "host", latency_s: m(5), changes: [],
    layers: [0, 1, 2].map((layer) => ({ layer, latency_s: m(1) })),
    points: [
      { layer: 0, change: half, ratio: m(0.6), others: [{ layer: 1, ratio: m(0.5) }], rest_s: m(-0.2) },
      { layer: 2, change: tied, ratio: m(0.1) },
    ],
  };
  const loss = { metric: "accuracy", higher: true, base: m(0.9), changes: [], points: [{ layer: 0, change: half, value: m(0.8) }, { layer: 2, change: tied, value: m(0.7), with: [0, 2] }] };
  const of = (c: object) => new Model({ layers } as never, speed as never, loss as never, c).predict([half, {}, tied]);
  expect(of({})).toMatchObject({ time: expect.closeTo(2 - 0.2 + 0.6 + 0.5 + 0.1, 12), loss: expect.closeTo(0.1, 12) });
  expect(of({ gain: 0.5, loss: 2, extra: 0.01 })).toMatchObject({ time: expect.closeTo(2 - 0.1 + 0.8 + 0.75 + 0.55, 12), loss: expect.closeTo(0.2 + 0.01 + 0.01, 12) });
  expect(of({ gain: 20 }).time).toBe(0); // no layer takes less than nothing, nor does the rest
});

test("losses are those of the metric", () => {
  const of = (metric: string, base: number | undefined, value: number, higher = false) => {
    const m = { kind: "measured", median: value };
    const loss = { name: "l", method: "end_to_end", metric, higher, changes: [], created: "", base: base === undefined ? undefined : { kind: "measured", median: base }, points: [{ layer: 0, change: { format: "w4" }, value: m }, { layer: 1, change: { format: "w4" }, value: m }] };
    return new Model(study, undefined, loss as never).predict([{ format: "w4" }, { format: "w4" }]).loss;
  };
  expect(of("accuracy", 0.9, 0.88, true)).toBeCloseTo(0.04, 9);
  expect(of("top1", undefined, 0.99)).toBeCloseTo(0.02, 9);
  expect(of("snr_db", undefined, 30)).toBeCloseTo(30 - 10 * Math.log10(2), 9);
  expect(of("accuracy", undefined, 0.9, true)).toBeUndefined();
});

test("bytes follow formats and removed filters", () => {
  const l = { rows: 10, cols: 20, params: 210, type: "float32" } as Layer;
  expect(bytesOf(l, {})).toBe(840);
  expect(bytesOf(l, { structure: "unstructured", level: 0.5 })).toBe(840);
  expect(bytesOf(l, { structure: "filter", level: 0.5 })).toBe(440);
  expect(bytesOf(l, { format: "int8" })).toBe(200 + 40 + 40);
  expect(bytesOf(l, { format: "w4" })).toBe(100 + 40 + 40);
  expect(bytesOf(l, { format: "float16" })).toBe(440);
  expect(bytesOf({ ...l, type: "int8" }, { format: "int8" })).toBe(240);
});
