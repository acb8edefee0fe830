import { expect, test } from "vitest";
import type { Profile, Timeline } from "../data/profile";
import { align, apart, group, own, words } from "./clocks";
import { arrange } from "./layout";
import { Bars } from "./model";
import { facts } from "./query";

const f = (...v: number[]) => Float64Array.from(v);
const lane = (name: string, clock: string | undefined, starts: number[], durations: number[]) => ({ name, kind: "engine" as const, clock, group: "core 0", starts_s: f(...starts), durations_s: f(...durations) });
const t: Timeline = {
  clocks: [{ name: "host", offset_s: 100, rate: 2 }, { name: "probe" }],
  lanes: [lane("a", undefined, [1, 2], [1, 1]), lane("b", "host", [100.5, 101], [0.25, 0.5]), lane("c", "probe", [5000, 5001], [1, 1])],
  counters: [{ name: "volts", clock: "probe", times_s: f(4999), values: f(3) }],
  memories: [{ name: "m", clock: "host", starts_s: f(101), ends_s: f(102) }],
};

test("known clocks are converted to the timeline's", () => {
  const { timeline, fixes } = align(t);
  expect([...timeline.lanes[0].starts_s]).toEqual([1, 2]);
  expect([...timeline.lanes[1].starts_s]).toEqual([1, 2]);
  expect([...timeline.lanes[1].durations_s]).toEqual([0.5, 1]);
  expect([...timeline.memories![0].ends_s!]).toEqual([4]);
  expect(apart(fixes, "host")).toBeUndefined();
  expect(t.lanes[1].starts_s[0]).toBe(100.5);
});

test("unknown clocks begin where the timeline does and stand apart", () => {
  const { timeline, fixes } = align(t);
  expect([...timeline.counters![0].times_s]).toEqual([1]);
  expect([...timeline.lanes[2].starts_s]).toEqual([2, 3]);
  expect(own(apart(fixes, "probe")!, 2)).toBe(5000);
  expect(group(fixes, t.lanes[1])).toBe("core 0");
  expect(group(fixes, t.lanes[2])).toBe("core 0, clock probe: its times cannot be compared with the others");
  expect(words(fixes.get("probe")!)).toBe("probe, not comparable with others");
});

test("a timeline without clocks stays as it is", () => {
  const plain: Timeline = { lanes: [lane("a", undefined, [1], [1])] };
  expect(align(plain).timeline).toBe(plain);
});

test("bars say which clock their times are of, and their figures", async () => {
  const timeline: Timeline = { ...t, lanes: t.lanes.map((l, i) => (i === 2 ? { ...l, figures: { bank_conflicts: f(7, -1) } } : l)) };
  const b = await Bars.make({ layers: [] } as unknown as Profile, timeline, [{ key: "bank_conflicts", name: "bank conflicts", whole: true }]);
  const at = (k: number) => Object.fromEntries(facts(b, { row: b.lanes[2].rows[0], k }));
  expect(at(0)).toMatchObject({ Begin: "5000.000000000 s", Clock: "probe, not comparable with others", "Bank conflicts": "7" });
  expect(at(1)["Bank conflicts"]).toBeUndefined();
  expect(Object.fromEntries(facts(b, { row: b.lanes[1].rows[0], k: 0 }))).toMatchObject({ Begin: "1.000000000 s" });
  const strips = arrange(b, { merged: false, stacked: false, closed: new Set(), narrow: false, tall: false, detail: () => "" }).strips;
  expect(strips.map((s) => `${s.kind} ${s.name}`)).toEqual([
    "group core 0",
    "lane a",
    "lane b",
    "group core 0, clock probe: its times cannot be compared with the others",
    "lane c",
  ].concat(["group clock probe: its times cannot be compared with the others", "counter volts"]));
});
