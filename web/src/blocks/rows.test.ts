import { expect, test } from "vitest";
import type { Layer, Profile } from "../data/profile";
import { rowsOf, starred, visible } from "./rows";

const layer = (index: number, op: string, name: string, state: Layer["state"] = "ran"): Layer => ({ index, op, name, state });

const profile = {
  layers: [layer(0, "Gather", "embed"), ...[0, 1].flatMap((i) => [layer(1 + 3 * i, "Attention", `l.${i}/a7`), layer(2 + 3 * i, "MoE", `l.${i}/m7`), layer(3 + 3 * i, "Relu", "", "fused")]), layer(7, "Softmax", "s"), layer(8, "Shape", "", "folded")],
  blocks: [
    { count: 1, part: "embedding", layers: [{ layers: [0], part: "embedding" }] },
    {
      count: 2,
      parts: [{ name: "attention" }, { name: "experts", active_params: 5 }],
      layers: [{ layers: [1, 4], part: "attention" }, { layers: [2, 5], with: [3, 6], part: "experts" }],
    },
  ],
} as unknown as Profile;

test("rows hold each layer once, with parts and layers inside", () => {
  const rows = rowsOf(profile);
  expect(rows.map((r) => [r.name, r.layers])).toEqual([
    ["embedding", [0]],
    ["2 × block of 2 layers", [1, 4, 2, 5, 3, 6]],
    ["layers outside of blocks", [7]],
  ]);
  expect(rows[1].inside.map((r) => [r.name, r.active, r.inside.map((l) => [l.name, l.of, l.layers])])).toEqual([
    ["attention", undefined, [["Attention", "l.*/a7", [1, 4]]]],
    ["experts", 10, [["MoE", "l.*/m7", [2, 5, 3, 6]]]],
  ]);
});

test("open rows show what is inside, the largest first", () => {
  const rows = rowsOf(profile);
  const names = (open: string[]) => visible(rows, new Set(open), (r) => r.layers.length).map((r) => `${r.level} ${r.name}`);
  expect(names([])).toEqual(["0 2 × block of 2 layers", "0 embedding", "0 layers outside of blocks"]);
  expect(names(["1", "1.experts"])).toEqual(["0 2 × block of 2 layers", "1 experts", "2 MoE", "1 attention", "0 embedding", "0 layers outside of blocks"]);
});

test("names have stars for numbers that differ", () => {
  expect(starred(["l.0/up_3", "l.1/up_3", "l.12/up_3"])).toBe("l.*/up_3");
  expect(starred(["up", "down"])).toBe("up");
  expect(starred([])).toBe("");
});
