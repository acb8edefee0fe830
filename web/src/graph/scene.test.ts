import { expect, test } from "vitest";
import type { Layer, Profile } from "../data/profile";
import { build } from "./model";
import { scene } from "./scene";

const layer = (index: number, inputs: string[], outputs: string[], more: Partial<Layer> = {}): Layer => ({ index, op: "X", state: "ran", inputs: inputs.map((name) => ({ name })), outputs: outputs.map((name) => ({ name })), ...more });

const p: Profile = {
  schema: "opmeter/profile/v1",
  model: { name: "m" },
  settings: {},
  target: { id: "t", kind: "host" },
  totals: {},
  layers: [
    layer(0, ["x"], ["a"]),
    layer(1, ["a"], ["y"], { op: "If" }),
    layer(2, ["a"], ["t"], { parent: 1, graph: "then" }),
    layer(3, ["t"], ["u"], { parent: 1, graph: "then" }),
    layer(4, ["y"], ["z"]),
  ],
};

test("what is inside lies within", () => {
  const g = build(p, { source: false, grouping: "none" });
  const s = scene(g, () => true, 1.5);
  const owner = s.at(g.byLayer.get(1)!)!;
  for (const i of [2, 3]) {
    const b = s.at(g.byLayer.get(i)!)!;
    expect(b).not.toBe(owner);
    expect(b.x).toBeGreaterThan(owner.x);
    expect(b.x + b.w).toBeLessThan(owner.x + owner.w);
    expect(b.y).toBeGreaterThan(owner.y);
    expect(b.y + b.h).toBeLessThan(owner.y + owner.h);
  }
  expect(s.lines.map((l) => `${l.from.node.id}>${l.to.node.id}`).sort()).toEqual(["l0>l1", "l0>l2", "l1>l4", "l2>l3"]);
});

test("a closed box stands for what it holds", () => {
  const g = build(p, { source: false, grouping: "none" });
  const s = scene(g, () => false, 1.5);
  expect(s.at(g.byLayer.get(3)!)).toBe(s.at(g.byLayer.get(1)!));
  expect(s.lines.map((l) => `${l.from.node.id}>${l.to.node.id}:${l.edges.length}`).sort()).toEqual(["l0>l1:2", "l1>l4:1"]);
});
