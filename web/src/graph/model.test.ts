import { describe, expect, test } from "vitest";
import type { Layer, Profile } from "../data/profile";
import { automatic, type Grouping } from "./groups";
import { boxes, build, cost, costs, spine, summed } from "./model";

function layer(index: number, inputs: string[], outputs: string[], more: Partial<Layer> = {}): Layer {
  return { index, op: "X", state: "ran", inputs: inputs.map((name) => ({ name })), outputs: outputs.map((name) => ({ name })), latency_s: { kind: "measured", median: 1 }, ...more };
}

function model(layers: Layer[], inputs: string[] = [], outputs: string[] = []): Profile {
  return {
    schema: "opmeter/profile/v1",
    model: { name: "m", inputs: inputs.map((name) => ({ name })), outputs: outputs.map((name) => ({ name })) },
    settings: {},
    target: { id: "t", kind: "host" },
    totals: {},
    layers,
  };
}

const pairs = (g: ReturnType<typeof build>) => g.edges.map((e) => `${e.from.id}>${e.to.id}`).sort();

describe("graph of a profile", () => {
  test("edges go by names of tensors", () => {
    const g = build(model([layer(0, ["x"], ["a"]), layer(1, ["a"], ["b"]), layer(2, ["a", "b"], ["y"])], ["x"], ["y"]), { source: false, grouping: "none" });
    expect(pairs(g)).toEqual(["i0>l0", "l0>l1", "l0>l2", "l1>l2", "l2>o0"]);
  });
  test("fused layers belong to the one that does their work", () => {
    const p = model([layer(0, ["x"], ["a"]), layer(1, ["a"], ["b"], { state: "fused", fused_into: 0 }), layer(2, ["b"], ["y"]), layer(3, [], ["c"], { state: "folded" })]);
    const g = build(p, { source: false, grouping: "none" });
    expect(pairs(g)).toEqual(["l0>l2"]);
    expect(g.byLayer.get(0)!.members).toEqual([0, 1]);
    expect(cost(g.byLayer.get(0)!, costs.time, p.layers)).toBe(2);
    const s = build(p, { source: true, grouping: "none" });
    expect(pairs(s)).toContain("l0>l1");
    expect(s.byLayer.size).toBe(4);
  });
  test("sums of a group leave out layers that were not reached, and count weights once", () => {
    const l = (i: number, more: Partial<Layer>) => layer(i, [`t${i}`], [`t${i + 1}`], { scope: i < 4 ? "a" : "b", ...more });
    const p = model([
      l(0, { macs: 5, weights_bytes: 8 }),
      l(1, { macs: 5, weights_bytes: 8, shared_weights_bytes: 8 }),
      l(2, { macs: 100, weights_bytes: 64, state: "not_reached" }),
      l(3, {}),
      l(4, { macs: 1 }),
      l(5, { macs: 1 }),
    ]);
    const g = build(p, { source: false, grouping: "scope" });
    expect(g.root.children.map((n) => [n.title, cost(n, costs.macs, p.layers), cost(n, costs.weights, p.layers)])).toEqual([["a", 10, 8], ["b", 2, undefined]]);
    expect(cost(g.byLayer.get(1)!, costs.weights, p.layers)).toBe(8);
    expect(summed(p.layers, costs.macs)).toBe(12);
  });
  test("what holds more than half of the time is open from the start, recursively", () => {
    const l = (i: number, scope: string, t: number, more: Partial<Layer> = {}) => layer(i, [`t${i}`], [`t${i + 1}`], { scope, latency_s: { kind: "measured", median: t }, ...more });
    const p = model([l(0, "a/x", 1), l(1, "a/x", 1), l(2, "b/x", 1), l(3, "b/x", 1), l(4, "b/y", 9), l(5, "b/y", 20), l(6, "c/x", 5), l(7, "c/x", 5)]);
    const g = build(p, { source: false, grouping: "scope" });
    expect([...spine(g, costs.time, p.layers)].map((n) => n.title)).toEqual(["b", "y"]);
    // Without a cost, what holds most of the layers.
    expect([...spine(g, undefined, p.layers)]).toEqual([]);
  });
  test("the path leads through control flow to the branch that took the time", () => {
    const inside = (i: number, graph: string, t: number) => layer(i, [`t${i}`], [`t${i + 1}`], { parent: 0, graph, latency_s: { kind: "measured", median: t } });
    const p = model([layer(0, ["x"], ["y"], { op: "If" }), inside(1, "then", 1), inside(2, "then", 1), inside(3, "else", 40), inside(4, "else", 40), layer(5, ["y"], ["z"])]);
    const g = build(p, { source: false, grouping: "none" });
    expect([...spine(g, costs.time, p.layers)].map((n) => n.title)).toEqual(["If", "else"]);
  });
  test("a group with too many boxes is divided into parts, and the costly part opens", () => {
    const p = model(Array.from({ length: 402 }, (_, i) => layer(i, [`t${i}`], [`t${i + 1}`], { scope: i < 400 ? "a" : "b", latency_s: { kind: "measured", median: i < 20 ? 100 : 1 } })));
    const g = build(p, { source: false, grouping: "scope" });
    expect(g.root.children[0].children.map((n) => n.title).slice(0, 2)).toEqual(["#0 to #19", "#20 to #39"]);
    expect(g.root.children[0].members.length).toBe(400);
    expect([...spine(g, costs.time, p.layers)].map((n) => n.title)).toEqual(["a", "#0 to #19"]);
  });
  test("source nodes of one layer stand inside it", () => {
    const p = model([layer(0, [], ["a"], { provenance: { confidence: "exact", source_nodes: [{ graph: 0, node: 0, op: "Conv" }, { graph: 0, node: 1, op: "Relu" }] } })]);
    const g = build(p, { source: true, grouping: "none" });
    expect(g.byLayer.get(0)!.children.map((c) => c.title)).toEqual(["Conv", "Relu"]);
    expect(g.byLayer.get(0)!.members).toEqual([0]);
  });
  test("scopes become groups of runs", () => {
    const l = (i: number, scope: string) => layer(i, [`t${i}`], [`t${i + 1}`], { scope });
    const g = build(model([l(0, "a/b"), l(1, "a/b"), l(2, "a/c"), l(3, "d"), l(4, "a/b"), l(5, "a/b")]), { source: false, grouping: "scope" });
    expect(g.root.children.map((c) => c.title)).toEqual(["a", "X", "a/b"]);
    expect(g.root.children[0].members).toEqual([0, 1, 2]);
    expect(g.root.children[0].children.map((c) => c.title)).toEqual(["b", "X"]);
  });
  test("blocks begin where branches part and end where they are joined", () => {
    const g = build(
      model([layer(0, ["x"], ["a"], { params: 1 }), layer(1, ["a"], ["b"], { params: 1 }), layer(2, ["b"], ["c"], { params: 1 }), layer(3, ["a", "c"], ["d"]), layer(4, ["d"], ["e"], { params: 1 }), layer(5, ["e"], ["f"])]),
      { source: false, grouping: "block" },
    );
    expect(g.root.children.map((c) => c.members)).toEqual([[0], [1, 2, 3], [4, 5]]);
  });
  test("bodies stand inside their owner and see tensors around", () => {
    const g = build(
      model([layer(0, ["x"], ["a"]), layer(1, ["a"], ["y"], { op: "If" }), layer(2, ["a"], ["t"], { parent: 1, graph: "then" }), layer(3, ["a"], ["e"], { parent: 1, graph: "else" })]),
      { source: false, grouping: "none" },
    );
    const owner = g.byLayer.get(1)!;
    expect(owner.children.map((c) => c.title)).toEqual(["then", "else"]);
    expect(owner.members).toEqual([1, 2, 3]);
    expect(pairs(g)).toContain("l0>l2");
  });
  test("without tensors the order of execution stands in", () => {
    const g = build(model([layer(0, [], []), layer(1, [], [])]), { source: false, grouping: "none" });
    expect(g.edges).toHaveLength(1);
    expect(g.edges[0].guess).toBe(true);
  });
  test("names that many layers share, and loops of fusion", () => {
    const p = model([layer(0, ["t"], ["t"]), layer(1, ["t"], ["t"]), layer(2, ["t"], ["t"], { state: "fused", fused_into: 2 }), layer(3, ["t"], ["t"], { parent: 3 })]);
    expect(() => build(p, { source: false, grouping: "block" })).not.toThrow();
    expect(pairs(build(p, { source: true, grouping: "none" }))).toEqual(["l0>l1", "l1>l2", "l2>l3"]);
  });
});

describe("groups to begin with", () => {
  const count = (p: Profile) => (by: Grouping) => boxes(p, { source: false, grouping: by });
  test("few boxes stay as they are", () => {
    expect(automatic(count(model([layer(0, [], ["a"]), layer(1, ["a"], ["b"])])), false)).toBe("none");
  });
  test("hundreds of like blocks are one box with their number", () => {
    const list = Array.from({ length: 700 }, (_, i) => [
      layer(3 * i, [`t${i}`], [`a${i}`], { op: "dw", params: 1 }),
      layer(3 * i + 1, [`a${i}`], [`b${i}`], { op: "pw", params: 1 }),
      layer(3 * i + 2, [`b${i}`, `t${i}`], [`t${i + 1}`], { op: "add" }),
    ]).flat();
    const p = model([...list, layer(2100, ["t700"], ["y"], { op: "dense", params: 1 })]);
    expect(automatic(count(p), false)).toBe("block");
    const g = build(p, { source: false, grouping: "block" });
    expect(g.root.children.map((n) => n.title)).toEqual(["700 blocks of 3", "dense"]);
    // In parts, since 700 boxes are more than one can read.
    const parts = g.root.children[0].children;
    expect(parts[0].title).toBe("#0 to #77");
    expect(parts.flatMap((n) => n.children)).toHaveLength(700);
    expect(parts.flatMap((n) => n.children).every((n) => n.members.length === 3)).toBe(true);
  });
  test("scopes that group come before blocks, scopes that do not behind", () => {
    const list = Array.from({ length: 100 }, (_, i) => layer(i, [`t${i}`], [`t${i + 1}`], { params: 1 - (i % 2), scope: `m/part${Math.floor(i / 10)}` }));
    expect(automatic(count(model(list)), true)).toBe("scope");
    const single = list.map((l) => ({ ...l, scope: `n${l.index}` }));
    expect(automatic(count(model(single)), true)).toBe("block");
  });
  test("a module's name that several layers bear is a scope", () => {
    const list = ["m/norm", "m/norm", "m/norm", "m/add", "m/norm_2", "m/norm_2"].map((name, i) => layer(i, [`t${i}`], [`t${i + 1}`], { name, scope: "m" }));
    expect(build(model(list), { source: false, grouping: "scope" }).root.children.map((n) => `${n.title} ${n.members.length}`)).toEqual(["norm 3", "X 1", "norm_2 2"]);
  });
});
