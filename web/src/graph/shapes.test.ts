import { expect, test } from "vitest";
import type { Edge, Node } from "./model";
import type { Box, Line } from "./scene";
import { places, text } from "./shapes";

const node = (id: string): Node => ({ id, kind: "layer", layer: 0, title: id, members: [], children: [], order: 0 });
const box = (id: string, x: number, y: number): Box => ({ node: node(id), x, y, w: 100, h: 40, open: false });
const edge = (from: Box, to: Box, name: string, shape?: number[]): Edge => ({ from: from.node, to: to.node, tensor: { name, shape } });
function line(from: Box, to: Box, ...edges: Edge[]): Line {
  const points: [number, number][] = [[from.x + 50, from.y + 40], [to.x + 50, to.y]];
  return { from, to, edges, points, corners: false, x0: 0, x1: 0, y0: 0, y1: 0 };
}

const a = box("a", 100, 0);
const b = box("b", 0, 80);
const c = box("c", 200, 80);
const wide = (t: string) => 6 * t.length;

test("a line tells its first shape and how many tensors there are beside", () => {
  expect(text(line(a, b, edge(a, b, "t", [1, -1, 8])))).toBe("1×?×8");
  expect(text(line(a, b, edge(a, b, "t", [1]), edge(a, b, "u", [2, 3])))).toBe("1 +1");
  expect(text(line(a, b, edge(a, b, "t", [1]), edge(a, b, "t", [1])))).toBe("1");
  expect(text(line(a, b, edge(a, b, "t")))).toBe("");
});

test("a shape that leaves a box twice stands once; another stands too", () => {
  expect(places([line(a, b, edge(a, b, "t", [8])), line(a, c, edge(a, c, "t", [8]))], [a, b, c], wide)).toHaveLength(1);
  const two = places([line(a, b, edge(a, b, "t", [8])), line(a, c, edge(a, c, "u", [9, 9]))], [a, b, c], wide);
  expect(two.map((p) => p.text)).toEqual(["8", "9×9"]);
});

test("no text lies on a box or on another text", () => {
  const boxes = [a, b, c, ...Array.from({ length: 30 }, (_, i) => box(`x${i}`, (i % 6) * 110, 160 + 70 * Math.floor(i / 6)))];
  const lines = boxes.flatMap((p, i) => boxes.slice(i + 1).map((q) => line(p, q, edge(p, q, `${i}`, [i, q.x, q.y]))));
  const put = places(lines, boxes, wide).map((p) => ({ x: p.x, y: p.y - 6, w: wide(p.text), h: 12 }));
  expect(put.length).toBeGreaterThan(5);
  const meet = (p: { x: number; y: number; w: number; h: number }, q: typeof p) => p.x < q.x + q.w && q.x < p.x + p.w && p.y < q.y + q.h && q.y < p.y + p.h;
  put.forEach((p, i) => {
    expect(boxes.some((o) => meet(p, o))).toBe(false);
    expect(put.slice(i + 1).some((o) => meet(p, o))).toBe(false);
  });
});
