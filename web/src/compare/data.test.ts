import { describe, expect, it } from "vitest";
import type { Layer } from "../data/profile";
import { items, keep, levels, levelSign, merged, order, statusOf, sum, summary } from "./data";
import type { Comparison, Group, Ratio, Row, Waterfall } from "./types";
import { bytes, count, fixed } from "../figures/format";
import { ends, figures, formatter, judge, mark, quality, ratio, reason, signed, times } from "./words";

const unknown = { verdict: "open" as const };

/** group is a row of two runs: layers and figures of each, and the verdict. */
function group(op: string, a: number[], b: number[], values: [number?, number?], verdict = "alike"): Group {
  const part = (a.length > 0 && values[0] === undefined) || (b.length > 0 && values[1] === undefined) ? null : (values[1] ?? 0) - (values[0] ?? 0);
  return {
    op, name: `n/${op}`, operators: Math.max(a.length, b.length), layers: [a, b], confidence: "exact", certain: true, kind: "same",
    figures: values.map((value) => ({ value })), ratios: [unknown, { verdict: verdict as "alike", value: 1 }], contributions: [null, part],
  };
}

/** layer reads what other layers write. */
function layer(index: number, op: string, from: number[]): Layer {
  return { index, op, name: `${op}${index}`, state: "ran", inputs: from.map((i) => ({ name: `t${i}`, dtype: "f", shape: [1, 2] })), outputs: [{ name: `t${index}`, dtype: "f", shape: [1, 2] }] } as unknown as Layer;
}

function comparison(groups: Group[], layers: Layer[][] = [[], []]): Comparison {
  return { comparison: { schema: "", model: "m", quantity: "latency_s", unit: "s", topic: "time", runs: [], groups }, title: "m", answers: [], limits: [], layers };
}

describe("rows", () => {
  const groups = [group("A", [0], [0], [1, 3], "slower"), group("B", [1], [], [5, undefined]), group("C", [], [1], [undefined, 4]), group("D", [2], [2], [2, undefined], "open"), group("E", [3], [3], [2, 1.5], "less")];
  groups[3].certain = false;
  const list = items(comparison(groups), 1);
  it("have a status by layers, then by verdict", () => {
    expect(list.map((i) => i.status)).toEqual(["slower", "removed", "inserted", "open", "faster"]);
    expect(list.map((i) => i.part)).toEqual([2, -5, 4, undefined, -0.5]);
    expect(list.map((i) => i.uncertain)).toEqual([false, false, false, true, false]);
    expect(statusOf({ ...groups[0], layers: [null, null, [1]] }, 1)).toBeUndefined();
  });
  it("sort by contribution, unknown last both ways", () => {
    expect(order(list, "-part").map((i) => i.at)).toEqual([1, 2, 0, 4, 3]);
    expect(order(list, "part").map((i) => i.at)).toEqual([4, 0, 2, 1, 3]);
    expect(order(list, "run:1").map((i) => i.at)).toEqual([4, 0, 2, 1, 3]);
    expect(order(list, "-most").map((i) => i.at)).toEqual([1, 2, 0, 3, 4]);
  });
  it("are filtered by words, result, layers, operator and positions", () => {
    const no = { words: "", status: "", kind: "", op: "" };
    const at = (w: Partial<typeof no> & { only?: number[] }) => keep(list, { ...no, ...w }).map((i) => i.at);
    expect(at({})).toEqual([0, 1, 2, 3, 4]);
    expect(at({ words: "N/c" })).toEqual([2]);
    expect(at({ words: "#1" })).toEqual([1]);
    expect(at({ status: "changed" })).toEqual([0, 1, 2, 4]);
    expect(at({ status: "open" })).toEqual([3]);
    expect(at({ kind: "uncertain" })).toEqual([3]);
    expect(at({ kind: "removed" })).toEqual([1]);
    expect(at({ op: "E" })).toEqual([4]);
    expect(at({ only: [] })).toEqual([]);
  });
  it("differ from the first run as their own run says", () => {
    const g = { ...group("A", [0], [0], [1, 3]), kind: "replaced" as const, certain: false };
    g.layers = [[0], [0], [0]];
    g.matches = [{ certain: true }, { kind: "same", certain: true }, { kind: "replaced", certain: false }];
    const seen = [1, 2].map((run) => items(comparison([g]), run)[0]);
    expect(seen.map((i) => [i.kind, i.uncertain])).toEqual([["same", false], ["replaced", true]]);
  });
  it("without a verdict have a status of their own", () => {
    const none = items(comparison([group("A", [0], [0], [1, 3], "incomparable")]), 1);
    expect(none.map((i) => i.status)).toEqual(["incomparable"]);
    expect(keep(none, { words: "", status: "changed", kind: "", op: "" })).toEqual([]);
    expect(summary(none).status).toBe("incomparable");
    expect(ratio({ value: 2.28, verdict: "incomparable" })).toBe("(2.28)");
    expect(mark({ value: 2.28, verdict: "incomparable" })).toBeUndefined();
  });
  it("of counts have digits and a sign where they differ", () => {
    const exact = (value: number, verdict: "more" | "less" | "alike") => ({ value, verdict, interval: "exact" as const });
    expect([exact(1.0004, "more"), exact(0.99999, "less"), exact(1, "alike"), exact(2, "more")].map((r) => `${ratio(r)} ${mark(r)?.sign ?? ""}`.trim())).toEqual(["1.0004 ▲", "0.99999 ▼", "1.00", "2.00 ▲"]);
  });
  it("in a box have the status of what changes most", () => {
    expect(summary(list)).toEqual({ status: "removed", text: "−1 +1 ▲1 ▼1", part: 0.5 });
    expect(summary([list[3]])).toEqual({ status: "open", text: "", part: undefined });
  });
  it("cope with fields that are absent", () => {
    const bare = { op: "X", operators: 1, layers: [[0], [0]], figures: [{}, {}], ratios: [unknown, unknown], confidence: "exact" } as Group;
    expect(items(comparison([bare]), 1)[0]).toMatchObject({ status: "open", kind: undefined, uncertain: false, part: undefined });
    expect(items({ ...comparison([]), comparison: { ...comparison([]).comparison, groups: null } }, 1)).toEqual([]);
  });
});

describe("waterfall", () => {
  it("adds up from the first total to the last", () => {
    const w: Waterfall = { run: 1, from: 10, to: 12.5, steps: [{ label: "a", groups: [3], value: 4 }, { label: "b", groups: [1, 2], value: -2 }], rest: 0.5 };
    const l = levels(w, "A", "B");
    expect(l.map((x) => [x.from, x.to])).toEqual([[0, 10], [10, 14], [14, 12], [12, 12.5], [0, 12.5]]);
    expect(levels({ ...w, rest: -1e-15 }, "A", "B")[3].value).toBe(0);
    const groups = [group("A", [0], [0], [1, 3], "slower"), group("B", [1], [1], [5, 6], "open"), group("C", [2], [2], [5, 6], "open")];
    const signs = [[0], [1], [1, 2], [0, 1], []].map((at) => levelSign({ ...l[1], groups: at }, groups, 1));
    expect(signs).toEqual(["▲", "?", "?", "▲", "▲"]);
    expect(l.slice(1, -1).reduce((s, x) => s + x.value, l[0].value)).toBe(12.5);
  });
});

describe("graph", () => {
  // A: 0 → 1 → 2 → 3; B: 0 → 9 → 2, and layer 1 is absent. Layer "pass" has no row.
  it("has an edge where either run has one, in an order in which data flow forward", () => {
    const a = [layer(0, "in", []), layer(1, "gone", [0]), layer(2, "pass", [1]), layer(3, "out", [2, 0])];
    const b = [layer(0, "in", []), layer(1, "new", [0]), layer(2, "out", [1, 0])];
    const c = comparison([group("in", [0], [0], [1, 1]), group("gone", [1], [], [1]), group("out", [3], [2], [1, 1]), group("new", [], [1], [undefined, 1])], [a, b]);
    const m = merged(c, 1);
    expect(m.rows).toEqual([0, 3, 1, 2]);
    const at = (i: number) => m.profile.layers[i].inputs!.map((t) => t.name);
    expect(at(0)).toEqual([]);
    expect(at(1)).toEqual(["#0 in"]);
    expect(at(2)).toEqual(["#0 in"]);
    // Through the layer without a row, and from both runs.
    expect(at(3)).toEqual(["#1 gone", "#0 in", "#3 new"]);
  });
  it("ends where layers of one row lead back to another", () => {
    const a = [layer(0, "x", []), layer(1, "y", [0]), layer(2, "x", [1])];
    const c = comparison([group("x", [0, 2], [0, 2], [1, 1]), group("y", [1], [1], [1, 1])], [a, a]);
    const m = merged(c, 1);
    expect(m.rows.toSorted()).toEqual([0, 1]);
    expect(m.profile.layers[0].inputs).toEqual([]);
  });
  it("passes a long chain of layers without a row", () => {
    const n = 30_000;
    const a = Array.from({ length: n }, (_, i) => layer(i, "p", i > 0 ? [i - 1] : []));
    const m = merged(comparison([group("a", [0], [0], [1, 1]), group("b", [n - 1], [n - 1], [1, 1])], [a, a]), 1);
    expect(m.profile.layers[1].inputs!.map((t) => t.name)).toEqual(["#0 a"]);
  });
});

describe("words", () => {
  it("say which way is good", () => {
    const row = (better: number | undefined, verdict: string, interval?: string) => ({ better, figures: [{}, {}], ratios: [unknown, { verdict, interval }] }) as unknown as Row;
    expect(judge(row(-1, "slower"), 1)).toEqual({ sign: "▲", word: "more", tone: "bad" });
    expect(judge(row(1, "more"), 1)).toEqual({ sign: "▲", word: "more", tone: "good" });
    expect(judge(row(undefined, "less"), 1)).toEqual({ sign: "▼", word: "less", tone: "" });
    expect(judge(row(-1, "open", "ci95"), 1)).toEqual({ sign: "?", word: "undecided", tone: "" });
    expect(judge(row(-1, "open"), 1)).toEqual({ sign: "", word: "no interval", tone: "" });
  });
  it("write figures, differences and reasons", () => {
    expect(formatter("s")(1.5e-3)).toBe("1.50 ms");
    expect(formatter("B")(2048)).toBe("2.00 KiB");
    expect(formatter("")(1.5e6)).toBe("1.50 M");
    expect(signed(-2e-6, formatter("s"))).toBe("−2.00 µs");
    expect(signed(undefined, formatter("s"))).toBe("");
    expect([times(123), times(12.3), times(1.234), times(0.5), times(0.0037)]).toEqual(["123", "12.3", "1.23", "0.500", "0.0037"]);
    expect(ends({ value: 1, low: 0.5, high: 2, interval: "ci95" }, times)).toBe("95 % CI 0.500 to 2.00");
    expect(ends({ value: 1, low: 1, high: 1, interval: "exact" }, times)).toBe("");
    expect(ends({ value: 1 }, times)).toBe("");
    expect(reason({ code: "bytes", first: 1024, this: 2048 })).toEqual({ name: "Bytes moved", first: "1.00 KiB", now: "2.00 KiB", times: "×2" });
    expect(reason({ code: "kernel", first_text: "a\u0000", this_text: "b" })).toEqual({ name: "Kernel", first: "a\\u{0}", now: "b", times: "" });
  });
  it("write figures with the digits that explain their ratio", () => {
    const fs = (a: number, b: number) => [{ value: a }, { value: b }];
    const of = (v: number, interval?: "exact") => [unknown, { value: v, verdict: "open", interval }] as Ratio[];
    expect(figures(fs(1.2155e-3, 1.2244e-3), of(1.0073), formatter("s"))).toEqual(["1.216 ms", "1.224 ms"]);
    expect(figures(fs(1.2155e-3, 1.2156e-3), of(1.0001), formatter("s"))).toEqual(["1.22 ms", "1.22 ms"]);
    expect(figures(fs(100000, 100040), of(1.0004, "exact"), formatter(""))).toEqual(["100.00 k", "100.04 k"]);
    expect(figures([{ value: 1, partial: true }, {}], of(1), formatter("s"))).toEqual(["> 1.00 s", ""]);
  });
  it("add up what is known", () => {
    expect(sum([1, undefined, 2])).toEqual({ value: 3, missing: 1 });
    expect(sum([undefined])).toEqual({ value: undefined, missing: 1 });
  });
});

describe("texts", () => {
  it("round as the program does", () => {
    expect([0.0909, 0.95, 0, 12, 2.5e6].map((v) => count(v))).toEqual(["0.0909", "0.95", "0", "12", "2.50 M"]);
    expect(bytes(98560)).toBe("96.2 KiB");
    expect([fixed(0.5, 0), fixed(1.5, 0), fixed(-2.5, 0), fixed(2.675, 2), fixed(0.125, 2), fixed(0.375, 2)]).toEqual(["0", "2", "-2", "2.67", "0.12", "0.38"]);
  });
  it("say what a run is good for", () => {
    const all = [{ trust: "good", fit: "comparing", tolerance: 0.0141 }, { trust: "good", fit: "comparing", tolerance: 0.051 }, { trust: "unreliable", fit: "shares" }, { trust: "fair", fit: "nothing" }, { trust: "fair" }, {}] as const;
    expect(all.map((r) => quality(r))).toEqual(["±1.5 %", "±6 %", "shares", "repeat", "doubtful", ""]);
  });
});
