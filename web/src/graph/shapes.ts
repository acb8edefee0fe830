// Shapes of tensors on the edges, at a zoom at which they are readable.
import { shape } from "../figures/format";
import type { Box, Line } from "./scene";

/** Least zoom for shapes. */
export const near = 0.8;

interface Rect {
  x: number;
  y: number;
  w: number;
  h: number;
}

const tall = 13;

const meet = (a: Rect, b: Rect) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

/** text is the shape on a line, "" if unknown. */
export function text(l: Line): string {
  // A group may read the same tensor several times.
  const known = [...new Map(l.edges.map((e) => [e.tensor?.name, shape(e.tensor?.shape)])).values()].filter(Boolean);
  return known.length === 0 ? "" : known.length === 1 ? known[0] : `${known[0]} +${known.length - 1}`;
}

/** places returns the position of the text of each line: at its start, or at its end where
 * that is taken, and none if both are taken. A shape that leaves a box along several lines
 * is written once. */
export function places(lines: Line[], boxes: Box[], width: (text: string) => number): { x: number; y: number; text: string }[] {
  const out: { x: number; y: number; text: string }[] = [];
  const taken: Rect[] = boxes.map((b) => ({ x: b.x, y: b.y, w: b.w, h: b.open ? 26 : b.h }));
  const begun = new Map<Box, Set<string>>();
  for (const l of lines) {
    const t = text(l);
    const said = begun.get(l.from) ?? new Set();
    begun.set(l.from, said);
    if (t === "" || said.has(t)) continue;
    const [a, b] = [l.points[0], l.points[l.points.length - 1]];
    const w = width(t) + 4;
    const spots: Rect[] = [
      { x: a[0] + 5, y: a[1] + 5, w, h: tall },
      { x: a[0] - 5 - w, y: a[1] + 5, w, h: tall },
      { x: b[0] + 7, y: b[1] - 9 - tall, w, h: tall },
    ];
    const free = spots.find((s) => !taken.some((o) => meet(o, s)));
    if (!free) continue;
    taken.push(free);
    said.add(t);
    out.push({ x: free.x + 2, y: free.y + tall / 2, text: t });
  }
  return out;
}

/** shapes draws the texts. */
export function shapes(ctx: CanvasRenderingContext2D, lines: Line[], boxes: Box[], ink: string, ground: string) {
  ctx.font = "10.5px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  for (const p of places(lines, boxes, (t) => ctx.measureText(t).width)) {
    ctx.globalAlpha = 0.85;
    ctx.fillStyle = ground;
    ctx.fillRect(p.x - 2, p.y - tall / 2, ctx.measureText(p.text).width + 4, tall);
    ctx.globalAlpha = 1;
    ctx.fillStyle = ink;
    ctx.fillText(p.text, p.x, p.y + 0.5);
  }
}
