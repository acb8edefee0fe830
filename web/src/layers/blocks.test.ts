import { describe, expect, test } from "vitest";
import type { Layer } from "../data/profile";
import { blocksOf, connected, named } from "./blocks";

describe("by names", () => {
  test("repeated parts become blocks", () => {
    expect(named(["enc/layer.0/att/q", "enc/layer.0/ff", "enc/layer.1/att/q", "enc/layer.1/ff", "head"])).toEqual(["enc/layer.0", "enc/layer.0", "enc/layer.1", "enc/layer.1", ""]);
  });
  test("numbered single layers are not blocks", () => {
    expect(named(["model/conv2d", "model/conv2d_1", "model/conv2d_2"])).toEqual(["", "", ""]);
  });
  test("the outermost of several counts", () => {
    expect(named(["s1/b1/c", "s1/b2/c", "s2/b1/c", "s2/b2/c", "s1/b1/d", "s2/b2/d"])[0]).toBe("s1");
  });
  test("one number is not a repetition", () => {
    expect(named(["net0/a", "net0/b"])).toEqual(["", ""]);
  });
});

/** chain makes layers from "op in,in > out" with a star after operators with weights. */
function chain(...lines: string[]): Layer[] {
  return lines.map((line, index) => {
    const [op, ins, , out] = line.split(" ");
    return { index, op: op.replace("*", ""), state: "ran", params: op.endsWith("*") ? 1 : 0, inputs: ins.split(",").map((name) => ({ name })), outputs: [{ name: out }] };
  });
}

/** sizes is the number of layers of each block, in order; 0 stands for layers of none. */
function sizes(labels: string[]): Record<string, number> {
  const out: Record<string, number> = {};
  for (const l of labels) out[l] = (out[l] ?? 0) + 1;
  return out;
}

describe("by connections", () => {
  const residual = (n: number) =>
    chain("conv* x > t0", ...Array.from({ length: n }, (_, i) => [`dw* t${i} > a${i}`, `pw* a${i} > b${i}`, `add b${i},t${i} > t${i + 1}`]).flat(), `dense* t${n} > y`);

  test.each([2, 17, 700])("%i residual blocks of three", (n) => {
    const got = sizes(connected(residual(n)));
    expect(got[""]).toBe(2);
    delete got[""];
    expect(Object.keys(got)).toEqual(Array.from({ length: n }, (_, i) => `block ${i + 1}`));
    expect(new Set(Object.values(got))).toEqual(new Set([3]));
  });
  test("a block may begin with the model's input", () => {
    expect(sizes(connected(residual(4).slice(1, 13).map((l, index) => ({ ...l, index }))))).toEqual({ "block 1": 3, "block 2": 3, "block 3": 3, "block 4": 3 });
  });
  test("what is needed all along is not a branch", () => {
    const n = 60;
    const body = chain("mask m > k", "conv* x > t0", ...Array.from({ length: n }, (_, i) => [`q* t${i} > a${i}`, `mul a${i},k > b${i}`, `add b${i},t${i} > t${i + 1}`]).flat());
    const got = sizes(connected(body));
    delete got[""];
    expect(Object.values(got).filter((v) => v === 3)).toHaveLength(n);
  });
  test("two parts that alternate are one block", () => {
    const n = 5;
    const body = chain("in* x > t0", ...Array.from({ length: n }, (_, i) => [`q* t${i} > a${i}`, `add a${i},t${i} > s${i}`, `f* s${i} > b${i}`, `g* b${i} > c${i}`, `sum c${i},s${i} > t${i + 1}`]).flat());
    const got = sizes(connected(body));
    delete got[""];
    expect(Object.values(got)).toEqual([5, 5, 5, 5, 5]);
  });
  test("a chain goes by weights, and pairs that come again are one", () => {
    const pairs = chain("dw* x > a", "pw* a > b", "dw* b > c", "pw* c > d", "dw* d > e", "pw* e > f", "pool f > g", "dense* g > y");
    expect(sizes(connected(pairs.slice(0, 6)))).toEqual({ "block 1": 2, "block 2": 2, "block 3": 2 });
    expect(sizes(connected(chain("conv* x > a", "relu a > b", "conv* b > c", "relu c > d")))).toEqual({ "block 1": 2, "block 2": 2 });
  });
  test("bodies are cut by themselves, and nothing loops", () => {
    const body = residual(3).map((l) => ({ ...l, parent: 99, graph: "then" }));
    expect(Object.keys(sizes(connected(body)))).toHaveLength(4);
    expect(connected([])).toEqual([]);
    expect(connected(chain("a t > t", "b t > t"))).toHaveLength(2);
  });
});

test("names come first where they cover half of the layers", () => {
  const list = chain("a* x > b", "c b > d", "e* d > f", "g f > y");
  const of = (...names: string[]) => blocksOf(list.map((l, i) => ({ ...l, name: names[i] })));
  expect(of("m/1/a", "m/1/b", "m/2/a", "m/2/b")).toEqual(["m/1", "m/1", "m/2", "m/2"]);
  expect(of("p", "q", "r", "s")).toEqual(["block 1", "block 1", "block 2", "block 2"]);
});
