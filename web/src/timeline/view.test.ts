import { describe, expect, it } from "vitest";
import type { Lane, Profile } from "../data/profile";
import { course } from "./bench";
import { Arrows } from "./arrows";
import { next, occurrences } from "./occurrences";
import { arrange, stackable } from "./layout";
import { Bars, noFilters } from "./model";
import { facts, firstBars, measure, parts, rowsOf } from "./query";

function engine(name: string, group: string, moved?: number[]): Lane {
  return {
    kind: "engine",
    name,
    group,
    starts_s: Float64Array.of(0, 1, 3),
    durations_s: Float32Array.of(1, 2, 1),
    layers: Int32Array.of(0, 1, 0),
    ...(moved ? { moved_bytes: Float64Array.from(moved) } : {}),
  };
}

const profile = {
  schema: "opmeter/profile/v1",
  layers: [
    { index: 0, op: "CONV_2D", name: "first" },
    { index: 1, op: "ADD" },
  ],
  timeline: {
    lanes: [engine("TIU", "core 0"), engine("DMA", "core 0", [100, 400, -1]), engine("TIU", "core 1"), engine("DMA", "core 1", [50, 50, 50]), { ...engine("layers", "", [1, 1, 1]), kind: "layer" }],
    counters: [{ name: "clock", group: "core 1", times_s: Float64Array.of(0), values: Float64Array.of(5) }],
    links: [
      { from_lane: 1, from_bar: 1, to_lane: 0, to_bar: 2 },
      { from_lane: 1, from_bar: 0, to_lane: 0, to_bar: 1 },
    ],
  },
} as unknown as Profile;

async function make(): Promise<Bars> {
  const b = await Bars.make(profile, profile.timeline!);
  await b.colour("type");
  await b.build(noFilters, "");
  return b;
}
const options = { merged: false, stacked: false, closed: new Set<string>(), narrow: false, tall: false, detail: () => "" };

describe("layout", () => {
  it("keeps groups together, and nothing overlaps", async () => {
    const { strips, height } = arrange(await make(), options);
    expect(strips.map((s) => `${s.kind} ${s.name}`)).toEqual(["group core 0", "lane TIU", "lane DMA", "group core 1", "lane TIU", "lane DMA", "counter clock", "lane layers"]);
    let y = 0;
    for (const s of strips) {
      expect(s.y).toBe(y);
      y += s.h;
      for (const r of s.rows) expect(r.y >= s.y && r.y + r.h <= s.y + s.h).toBe(true);
    }
    expect(height).toBe(y);
  });
  it("closes groups and merges cores", async () => {
    const b = await make();
    expect(arrange(b, { ...options, closed: new Set(["core 0"]) }).strips.filter((s) => s.group === "core 0")).toHaveLength(1);
    const merged = arrange(b, { ...options, merged: true, stacked: true }).strips;
    expect(merged.map((s) => s.name)).toEqual(["Bandwidth", "TIU × 2", "DMA × 2", "layers", "core 1 clock"]);
    expect(merged[1].rows).toHaveLength(2);
  });
  it("stacks units only, since layers repeat their bytes", async () => {
    expect(stackable((await make()).lanes.filter((l) => l.lane.moved_bytes)).map((l) => l.id)).toEqual([1, 3]);
  });
});

describe("questions", () => {
  it("measures lanes between two times", async () => {
    const b = await make();
    expect(measure([b.lanes[1]], { t0: 0.5, t1: 2 })).toEqual([{ name: "core 0 DMA", count: 2, busy: 1.5, bytes: 250 }]);
  });
  it("sums categories", async () => {
    const b = await make();
    const p = parts(b, [b.lanes[0]], { t0: 0, t1: 3.5 }, 100)!;
    expect(p.map((x) => [x.name, x.count, x.seconds])).toEqual([["ADD", 1, 2], ["CONV_2D", 2, 1.5]]);
    expect(parts(b, b.lanes, b.bounds, 3)).toBeUndefined();
  });
  it("lists bars in order", async () => {
    const b = await make();
    const list = firstBars(rowsOf(arrange(b, options).strips), { t0: 0, t1: 4 }, 6);
    expect(list).toHaveLength(6);
    expect(list.map((s) => s.row.start(s.k))).toEqual([0, 0, 0, 0, 0, 1]);
  });
  it("leaves out what is not known of a bar", async () => {
    const b = await make();
    const row = b.lanes[1].rows[0];
    const keys = facts(b, { row, k: 2 }).map(([k]) => k);
    expect(keys).not.toContain("Moved");
    expect(keys).not.toContain("Stalled");
    expect(Object.fromEntries(facts(b, { row, k: 1 })).Bandwidth).toBe("200 B/s");
  });
  it("goes from occurrence to occurrence", async () => {
    const b = await make();
    const f = occurrences(b, (l) => l.id < 2, (l, i) => l.lane.layers![i] === 0);
    expect([...f.values()].map((x) => Array.from(x))).toEqual([[0, 2], [0, 2]]);
    const all = () => true;
    expect(next(f, 0, true, all)?.k).toBe(2);
    expect(next(f, 3, false, all)?.k).toBe(0);
    expect(next(f, 3, true, all)).toBeUndefined();
    expect(next(f, -1, true, (r) => r.lane.id === 1)?.row.lane.id).toBe(1);
  });
  it("finds dependencies that begin or end in a range", async () => {
    const a = new Arrows(await make(), profile.timeline!.links!);
    expect(a.within({ t0: 0.5, t1: 2 }, 10)).toEqual({ list: [1], count: 1 });
    expect(a.within({ t0: 0, t1: 4 }, 10).count).toBe(2);
    expect(a.within({ t0: 0.9, t1: 1 }, 10).count).toBe(0);
    expect(a.within({ t0: 0, t1: 4 }, 1)).toEqual({ list: [1], count: 2 });
  });
});

describe("bench", () => {
  it("zooms in twice and ends as it began", () => {
    const whole = { t0: 0, t1: 10 };
    const length = (s: number) => course(s, whole).t1 - course(s, whole).t0;
    expect(length(0)).toBeCloseTo(10);
    expect(length(1.25)).toBeLessThan(0.001);
    expect(length(5)).toBeCloseTo(10);
  });
});
