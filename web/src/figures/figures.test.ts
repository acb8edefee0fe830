import { expect, test } from "vitest";
import type { Layer, Metric, Profile, Quantity } from "../data/profile";
import { prose } from "./format";
import { about, columnsOf, exact, groupsOf, shown, total } from "./columns";
import { best, Figures, interval, took } from "./quantities";
import { places } from "./words";

const quantities: Quantity[] = [
  { key: "latency_s", unit: "s", head: "time", name: "Time", group: "Time", adds: true },
  { key: "share", unit: "1", head: "share", name: "Share of time", group: "Time", adds: true },
  { key: "ops", head: "ops", name: "Operations", group: "Work", adds: true, whole: true },
  { key: "bytes_read", unit: "B", head: "read", name: "Bytes read", group: "Memory", adds: true, whole: true },
  { key: "bytes_written", unit: "B", head: "written", name: "Bytes written", group: "Memory", adds: true, whole: true },
  { key: "ops_per_s", unit: "/s", head: "op/s", name: "Operations per second", group: "Rates", of: ["ops"], per: ["latency_s"] },
  { key: "ops_per_byte", head: "ops/byte", name: "Operations per byte", group: "Rates", of: ["ops"], per: ["bytes_read", "bytes_written"] },
  { key: "twice", name: "Twice the rate", of: ["ops_per_s", "ops_per_s"], per: ["ops"] },
  { key: "sparsity_weights", unit: "1", head: "zero weights", name: "Zero weights", group: "Sparsity" },
  { key: "bank_conflicts", name: "bank conflicts", group: "Probe", whole: true, adds: true },
  { key: "supply_v", unit: "V", name: "Supply", group: "Probe" },
  { key: "odd_one", name: "odd_one" },
];
const columns = columnsOf(quantities);
const column = (key: string) => columns.find((c) => c.key === key)!;
const layer = (index: number, more: Partial<Layer>): Layer => ({ index, op: "X", state: "ran", ...more });
const time = (v: number) => ({ kind: "measured" as const, median: v });

test("the figure to show is the median, else mean, least", () => {
  expect(best({ kind: "measured", median: 2, mean: 3, min: 4 })).toBe(2);
  expect(best({ kind: "measured", mean: 3, min: 4 })).toBe(3);
  expect(best({ kind: "measured", min: 4 })).toBe(4);
  expect(best(undefined)).toBeUndefined();
  // Files of earlier versions have a mean of the middle runs beside the median.
  expect(best({ kind: "measured", typical: 1, median: 2 } as Metric)).toBe(2);
});

test("an interval is next to the figure that it encloses", () => {
  expect(interval({ kind: "measured", median: 2, mean: 9, ci95: [1, 3] })).toEqual([1, 3]);
  expect(interval({ kind: "measured", median: 4, ci95: [1, 3] })).toBeUndefined();
  expect(interval({ kind: "measured", ci95: [1, 3] })).toBeUndefined();
  expect(interval({ kind: "estimated", median: 4, band: [1, 5], ci95: [1, 3] })).toEqual([1, 5]);
  expect(interval({ kind: "measured", median: 3 * (1 + 1e-15), ci95: [1, 3] })).toEqual([1, 3]);
});

test("places are named as the order of layers allows", () => {
  expect(([[1, 1], [1, 2], [2, 4], [11, 13], [22, 23]] as [number, number][]).map(places)).toEqual(["1st", "1st or 2nd", "2nd to 4th", "11th to 13th", "22nd or 23rd"]);
});

test("figures are found in fields, sparsity and the map", () => {
  const f = new Figures(quantities);
  const l = layer(0, { ops: 7, latency_s: time(2), sparsity: { weights: 0.5 }, figures: { bank_conflicts: { kind: "imported", median: 3 } } });
  expect(["ops", "latency_s", "sparsity_weights", "bank_conflicts", "supply_v", "nothing"].map((k) => f.value(l, k))).toEqual([7, 2, 0.5, 3, undefined, undefined]);
});

test("a foreign figure is a column by itself", () => {
  const l = layer(0, { figures: { bank_conflicts: { kind: "imported", median: 1234567 }, supply_v: { kind: "measured", median: 3.3 } } });
  const c = column("bank_conflicts");
  expect([c.head, c.name, c.group, shown(c, l), exact(c, l)]).toEqual(["Bank conflicts", "Bank conflicts", "Probe", "1.23 M", "1,234,567"]);
  expect(about(c, [l])).toContain("imported");
  expect([column("odd_one").head, column("odd_one").group, total(column("odd_one"), [l]).value]).toEqual(["odd_one", "Other", undefined]);
  expect(shown(column("supply_v"), l)).toBe("3.30 V");
  expect(about(column("supply_v"), [l])).toContain("Unit in files: V.");
  expect(groupsOf(columns)).toEqual(["Layer", "Time", "Work", "Memory", "Rates", "Target", "Sparsity", "Other", "Probe"]);
});

test("units decide how a figure is written", () => {
  const l = layer(0, { latency_s: time(0.00125), ops: 2_500_000, bytes_read: 2048, bytes_written: 0, share: 0.125 });
  expect(["latency_s", "ops", "bytes_read", "share", "ops_per_s", "ops_per_byte"].map((k) => shown(column(k), l))).toEqual(["1.25 ms", "2.50 M", "2.00 KiB", "12.5 %", "2.00 Gop/s", "1.22 k"]);
});

test("quotients need all of their parts and a divisor above zero", () => {
  const f = new Figures(quantities);
  expect(f.value(layer(0, { ops: 6, latency_s: time(2) }), "ops_per_s")).toBe(3);
  expect(f.value(layer(0, { ops: 6 }), "ops_per_s")).toBeUndefined();
  expect(f.value(layer(0, { ops: 6, latency_s: time(0) }), "ops_per_s")).toBeUndefined();
  expect(f.value(layer(0, { ops: 6, bytes_read: 1 }), "ops_per_byte")).toBeUndefined();
  expect(f.value(layer(0, { ops: 6, latency_s: time(2) }), "twice")).toBe(1);
});

test("sums add what is known; quotients are of the layers that have all parts", () => {
  const list = [layer(0, { ops: 10, latency_s: time(2) }), layer(1, { ops: 1000 }), layer(2, { ops: 20, latency_s: time(4), sparsity: { weights: 1 } })];
  expect(total(column("ops"), list)).toEqual({ value: 1030, missing: 0 });
  expect(total(column("latency_s"), list)).toEqual({ value: 6, missing: 1 });
  expect(total(column("ops_per_s"), list)).toEqual({ value: 5, missing: 1 });
  expect(total(column("sparsity_weights"), list)).toEqual({ value: undefined, missing: 2 });
  expect(total(column("bank_conflicts"), list).value).toBeUndefined();
});

test("sums leave out layers that no inference reached, and count shared weights once", () => {
  const list = [
    layer(0, { params: 10, ops: 1, latency_s: time(2) }),
    layer(1, { params: 10, shared_params: 8, ops: 2 }),
    layer(2, { params: 100, ops: 1000, latency_s: time(0), state: "not_reached" }),
  ];
  const params = columnsOf([{ key: "params", name: "Parameters", adds: true, whole: true }]).find((c) => c.key === "params")!;
  expect(total(params, list)).toEqual({ value: 12, missing: 0 });
  expect(shown(params, list[1])).toBe("10");
  expect(new Figures(quantities).sum(list, "ops")).toBe(3);
  expect(total(column("ops_per_s"), list)).toEqual({ value: 0.5, missing: 1 });
});

test("a time below the resolution of the profiler is blank, with its cause", () => {
  const l = layer(0, { ops: 7, cause: { code: "resolution", text: "below the profiler's resolution of 1 µs" } });
  expect([shown(column("latency_s"), l), shown(column("share"), l), shown(column("ops_per_s"), l)]).toEqual(["", "", ""]);
  expect(shown(column("cause"), l)).toBe("below the profiler's resolution of 1 µs");
  expect(total(column("latency_s"), [l, layer(1, { latency_s: time(2) })])).toEqual({ value: 2, missing: 1 });
});

test("work of layers that did not run is not part of a rate", () => {
  const p = {
    totals: { ops: 100, bytes_read: 50, latency_s: time(2) },
    layers: [
      layer(0, { ops: 10 }),
      layer(1, { ops: 20, state: "unsupported", bytes_read: 50 }),
      layer(2, { ops: 30, state: "lost" }),
      layer(3, { ops: 5, state: "folded" }),
      layer(4, { ops: 5, state: "fused", fused_into: 0 }),
      layer(5, { ops: 7, state: "failed", constant: true }),
    ],
  } as unknown as Profile;
  expect(took(p)).toMatchObject({ ops: 50, bytes_read: 0 });
  expect(new Figures(quantities).rate(p, "ops_per_s")).toBe(25);
  expect(p.totals.ops).toBe(100);
});

test("figures in sentences keep their units on the line", () => {
  expect(prose("Times vary by 93.5 % in 18.1 ms; 1.5 KiB, 3 GB/s, 2 s.")).toBe("Times vary by 93.5\u00a0% in 18.1\u00a0ms; 1.5\u00a0KiB, 3\u00a0GB/s, 2\u00a0s.");
  expect(prose("9 layers, 13 steps, 2 mean, 4 Boxes")).toBe("9 layers, 13 steps, 2 mean, 4 Boxes");
  expect(prose("a\u202eb")).toBe("a\\u{202e}b");
});
