import { expect, test } from "vitest";
import type { Layer, Metric, Phase, Profile } from "../data/profile";
import { Figures } from "../figures/quantities";
import { groupsOf, limit, memory, phasesOf, points, speed, speeds, time, title, tokens, waysOf } from "./data";

const metric = (median: number): Metric => ({ kind: "measured", median, ci95: [0.9 * median, 1.1 * median] });
const phase = (more: Partial<Phase>): Phase => ({ kind: "decode", batch: 1, tokens: 1, context: 0, quantity: "decode_0_s", cache_read_bytes: 0, cache_written_bytes: 10, latency_s: metric(0.1), tokens_per_s: metric(10), ram_bytes: 7, ...more });
const layer = (index: number, op: string, first: number, other?: number): Layer => ({ index, op, name: `l.${index}`, state: "ran", latency_s: metric(first), figures: other === undefined ? undefined : { decode_0_s: metric(other) } });

const profile = {
  target: { id: "host", kind: "host" },
  totals: { weights_bytes: 1000 },
  layers: [layer(0, "Gather", 1, 1), layer(1, "Attention", 2, 1), layer(2, "MatMul", 3, 5), layer(3, "Attention", 4, 1), layer(4, "MatMul", 5, 5)],
  blocks: [{ count: 2, parts: [{ name: "attention" }, { name: "MLP" }], layers: [{ layers: [1, 3], part: "attention" }, { layers: [2, 4], part: "MLP" }] }],
  language_model: {
    cache: { layers: 2, dtype: "float32", position_bytes: 10 },
    phases: [
      phase({ kind: "prefill", tokens: 16, quantity: "prefill_16_s", latency_s: undefined }),
      phase({ ops: 100, weights_read_bytes: 90, roof: { bound: "memory", level: "L3", use: 0.5, ops_per_second: 1e5, bytes_per_second: 2000 }, roof_tokens_per_s: 20 }),
      phase({ context: 64, quantity: "latency_s", ram_bytes: 8, tokens_per_s: metric(5) }),
    ],
  },
} as unknown as Profile;

const figures = new Figures([{ key: "latency_s", unit: "s", name: "Time", adds: true }, { key: "decode_0_s", unit: "s", name: "Time", adds: true }] as never);

test("phases have names and speeds", () => {
  expect(phasesOf(profile).map(title)).toEqual(["decode at 0", "decode at 64"]);
  expect([tokens(1320), tokens(5.5), tokens(undefined)]).toEqual(["1.32 k tokens/s", "5.50 tokens/s", ""]);
});

test("a phase is under the limits of memory or arithmetic", () => {
  const [first, second] = phasesOf(profile);
  expect(limit(profile, first)).toBe("L3 at 2.00 kB/s");
  expect(limit(profile, { ...first, ops: 1e6, roof: { ...first.roof, dtype: "float32" } as Phase["roof"] })).toBe("float32 arithmetic");
  expect(limit(profile, second)).toBe("");
  expect(points(profile)).toEqual([{ phase: first, intensity: 1, rate: 1000, roof: 2000 }]);
});

test("times by operator, part and block add up to those of the layers", () => {
  expect(waysOf(profile)).toEqual(["op", "part", "block"]);
  const by = (w: "op" | "part" | "block") => groupsOf(profile, figures, w).map((g) => [g.name, ...g.times]);
  expect(by("op")).toEqual([["MatMul", 10, 8], ["Attention", 2, 6], ["Gather", 1, 1]]);
  expect(by("part")).toEqual([["MLP", 10, 8], ["attention", 2, 6], ["layers outside of blocks", 1, 1]]);
  expect(by("block")).toEqual([["2 × block of 2 layers", 12, 14], ["layers outside of blocks", 1, 1]]);
});

test("speed and memory over the context", () => {
  expect(speeds(profile, "prefill")).toEqual([]);
  expect(speeds(profile, "decode")).toEqual([{ name: "measured", points: [{ x: 0, y: 10, lo: 9, hi: 11 }, { x: 64, y: 5, lo: 4.5, hi: 5.5 }] }]);
  const totals = (p: Profile) => memory(p).find((s) => s.name === "total")?.points.map((x) => x.y);
  expect(totals(profile)).toEqual([1007, 1000 + 64 * 10 + 8]);
  const shared = { ...profile, language_model: { ...profile.language_model!, cache: { ...profile.language_model!.cache, shared: true, capacity: 100 } } };
  expect(totals(shared)).toEqual([2007, 2008]);
});

test("phases of an encoder and of several batches", () => {
  const list = [phase({ kind: "encode", tokens: 24, quantity: "encode_24_s" }), phase({ kind: "prefill", tokens: 4, quantity: "prefill_4_s" })];
  const sizes = [1, 4].flatMap((batch) => [0, 64].map((context) => phase({ batch, context, quantity: `decode_${context}_batch_${batch}_s` })));
  const cache = { layers: 2, dtype: "float32", position_bytes: 10, cross_bytes: 3, state_bytes: 2 };
  const p = { ...profile, language_model: { cache, encoder_length: 24, phases: [...list, ...sizes] } } as unknown as Profile;
  expect(phasesOf(p).map(title)).toEqual(["encode 24", "prefill 4", "decode at 0", "decode at 64", "decode at 0, batch 4", "decode at 64, batch 4"]);
  expect(list.map((ph) => [time(p, ph), speed(ph, 10)])).toEqual([["time", "10.0 positions/s"], ["time", "10.0 tokens/s"]]);
  expect(time(profile, list[1])).toBe("TTFT");
  expect(speeds(p, "decode").map((s) => [s.name, s.points.length])).toEqual([["measured, batch 1", 2], ["measured, batch 4", 2]]);
  expect(memory(p).find((s) => s.name === "caches")?.points).toEqual([{ x: 0, y: 20 }, { x: 64, y: 4 * 645 }]);
});
