// Where the names of marks stand so that none lies on another name or on a mark.

export interface Mark {
  x: number;
  y: number;
  r: number;
  /** "" for a mark without a name, which others keep clear of. */
  text: string;
}

export interface Placed {
  /** Position of the mark in the list. */
  mark: number;
  x: number;
  y: number;
  anchor: "start" | "end" | "middle";
}

interface Rect {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

const tall = 13;

const meet = (a: Rect, b: Rect) => a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;

/** place puts names beside, above or below their marks, the first ones first, within
 * the bounds. A name without a free place is left out. y is that of the line of
 * writing. */
export function place(marks: Mark[], bounds: Rect, width: (text: string) => number): Placed[] {
  const out: Placed[] = [];
  const names: Rect[] = [];
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
    for (const [r, anchor] of spots) {
      if (r.x0 < bounds.x0 || r.x1 > bounds.x1 || r.y0 < bounds.y0 || r.y1 > bounds.y1) continue;
      if (names.some((n) => meet(n, r)) || marks.some((o, j) => j !== i && meet(body(o), r))) continue;
      names.push(r);
      out.push({ mark: i, x: anchor === "start" ? r.x0 : anchor === "end" ? r.x1 : m.x, y: r.y1 - 3, anchor });
      break;
    }
  });
  return out;
}
