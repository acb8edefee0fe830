// Placement of the labels of marks, without overlaps of labels and marks.

export interface Mark {
  x: number;
  y: number;
  r: number;
  /** "" for a mark without a label, which labels of others avoid too. */
  text: string;
}

export interface Placed {
  /** Position of the mark in the list. */
  mark: number;
  x: number;
  y: number;
  anchor: "start" | "end" | "middle";
}

export interface Rect {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

const tall = 13;

const meet = (a: Rect, b: Rect) => a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;

/** place puts labels beside, above or below their marks, the first ones first, within
 * the bounds and outside of the taken rectangles. A label without a free place is omitted.
 * y is that of the baseline of the text. */
export function place(marks: Mark[], bounds: Rect, width: (text: string) => number, taken: Rect[] = []): Placed[] {
  const out: Placed[] = [];
  const names: Rect[] = [...taken];
  const body = (m: Mark): Rect => ({ x0: m.x - m.r, y0: m.y - m.r, x1: m.x + m.r, y1: m.y + m.r });
  marks.forEach((m, i) => {
    if (m.text === "") return;
    const w = width(m.text);
    const spots: [Rect, Placed["anchor"]][] = [
      [{ x0: m.x + m.r + 4, x1: m.x + m.r + 4 + w, y0: m.y - tall / 2, y1: m.y + tall / 2 }, "start"],
      [{ x0: m.x - m.r - 4 - w, x1: m.x - m.r - 4, y0: m.y - tall / 2, y1: m.y + tall / 2 }, "end"],
      [{ x0: m.x - w / 2, x1: m.x + w / 2, y0: m.y - m.r - 3 - tall, y1: m.y - m.r - 3 }, "middle"],
      [{ x0: m.x - w / 2, x1: m.x + w / 2, y0: m.y + m.r + 3, y1: m.y + m.r + 3 + tall }, "middle"],
    ];
    const spot = spots.find(([r]) => {
      if (r.x0 < bounds.x0 || r.x1 > bounds.x1 || r.y0 < bounds.y0 || r.y1 > bounds.y1) return false;
      return !names.some((n) => meet(n, r)) && !marks.some((o, j) => j !== i && meet(body(o), r));
    });
    if (!spot) return;
    const [r, anchor] = spot;
    names.push(r);
    out.push({ mark: i, x: anchor === "start" ? r.x0 : anchor === "end" ? r.x1 : m.x, y: r.y1 - 3, anchor });
  });
  return out;
}

/** A text that ends at x, with its baseline at y. */
export interface Ending {
  text: string;
  x: number;
  y: number;
}

/** around returns the rectangle of a text. */
export function around(e: Ending, width: (text: string) => number): Rect {
  return { x0: e.x - width(e.text), x1: e.x, y0: e.y - 10, y1: e.y + 3 };
}

/** rise moves texts up by whole lines until none overlaps another or a taken rectangle. */
export function rise<T extends Ending>(texts: T[], width: (text: string) => number, taken: Rect[] = []): T[] {
  const used = [...taken];
  return texts.map((t) => {
    const at = { ...t };
    for (let n = 0; n <= used.length && used.some((u) => meet(u, around(at, width))); n++) at.y -= tall;
    used.push(around(at, width));
    return at;
  });
}
