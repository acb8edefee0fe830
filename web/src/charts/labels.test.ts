import { expect, test } from "vitest";
import { around, place, rise, type Mark } from "./labels";

const bounds = { x0: 0, y0: 0, x1: 800, y1: 400 };
const wide = (t: string) => 6 * t.length;

test("a label is next to its mark, at the other side where the chart ends", () => {
  expect(place([{ x: 100, y: 100, r: 10, text: "#1 ADD" }], bounds, wide)).toMatchObject([{ mark: 0, x: 114, anchor: "start" }]);
  expect(place([{ x: 780, y: 100, r: 10, text: "#1 ADD" }], bounds, wide)).toMatchObject([{ mark: 0, x: 766, anchor: "end" }]);
});

test("no label overlaps a label or a mark", () => {
  // Marks in clusters, as layers of one kind make them.
  const marks: Mark[] = Array.from({ length: 60 }, (_, i) => ({ x: 60 + ((i * 37) % 700), y: 40 + ((i * 61) % 330), r: 4 + (i % 7) * 3, text: i < 40 ? `#${i} DEPTHWISE_CONV_2D` : "" }));
  const got = place(marks, bounds, wide);
  expect(got.length).toBeGreaterThan(3);
  const rect = (p: (typeof got)[number]) => {
    const w = wide(marks[p.mark].text);
    const x0 = p.anchor === "start" ? p.x : p.anchor === "end" ? p.x - w : p.x - w / 2;
    return { x0, x1: x0 + w, y0: p.y - 9, y1: p.y + 2 };
  };
  const meet = (a: ReturnType<typeof rect>, b: typeof a) => a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;
  got.forEach((p, i) => {
    const r = rect(p);
    expect(got.slice(i + 1).some((o) => meet(r, rect(o)))).toBe(false);
    expect(marks.some((m) => meet(r, { x0: m.x - m.r, x1: m.x + m.r, y0: m.y - m.r, y1: m.y + m.r }))).toBe(false);
    expect(r.x0).toBeGreaterThanOrEqual(0);
    expect(r.x1).toBeLessThanOrEqual(800);
  });
});

test("labels stay clear of taken rectangles", () => {
  const mark = { x: 100, y: 100, r: 10, text: "#1 ADD" };
  const right = { x0: 110, x1: 200, y0: 90, y1: 110 };
  const all = { x0: 0, x1: 800, y0: 0, y1: 400 };
  expect(place([mark], bounds, wide, [right])).toMatchObject([{ anchor: "end" }]);
  expect(place([mark], bounds, wide, [all])).toEqual([]);
});

test("marks in one place get a label at each side at most", () => {
  const got = place([1, 2, 3, 4, 5, 6].map((i) => ({ x: 200, y: 200, r: 8, text: `#${i} CONV_2D` })), bounds, wide);
  expect(new Set(got.map((p) => `${p.x} ${p.y} ${p.anchor}`)).size).toBe(got.length);
  expect(got.length).toBeLessThanOrEqual(4);
});

test("texts in one place rise above each other and above what is there", () => {
  const taken = around({ text: "196 Gop/s", x: 780, y: 94 }, wide);
  const got = rise([{ text: "L1", x: 400, y: 94 }, { text: "L2", x: 404, y: 94 }, { text: "L3", x: 408, y: 94 }, { text: "memory", x: 770, y: 94 }, { text: "far", x: 100, y: 94 }], wide, [taken]);
  expect(got.map((l) => l.y)).toEqual([94, 81, 68, 81, 94]);
});
