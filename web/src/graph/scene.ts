// Places a graph on a plane, with nested layouts of open groups.
import { layered, type Layout } from "./layout";
import type { Edge, Graph, Node } from "./model";

export interface Box {
  node: Node;
  x: number;
  y: number;
  w: number;
  h: number;
  open: boolean;
}

/** All edges from one box to another. */
export interface Line {
  from: Box;
  to: Box;
  edges: Edge[];
  points: [number, number][];
  /** Drawn with corners, because it leads up to the next column. */
  corners: boolean;
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

export interface Scene {
  /** Outer boxes before inner ones. */
  boxes: Box[];
  lines: Line[];
  /** The box of a node: its own or that of the closed group around it. */
  at: (n: Node) => Box | undefined;
  w: number;
  h: number;
}

export const head = 26;
const edge = 14;
/** Minimum size of a closed box; a longer title makes it wider. */
const closed = { layer: [168, 46], group: [180, 54], input: [120, 26], output: [120, 26], source: [130, 30] } as const;
/** Maximum width of a box; longer titles are cut. */
const widest = 330;

interface Placed {
  w: number;
  h: number;
  layout?: Layout;
  /** Index of the edge for each pair of children. */
  pairs: Map<string, number>;
}

/** scene lays out a graph. title returns the width of a box's title. */
export function scene(g: Graph, isOpen: (n: Node) => boolean, aspect: number, title: (n: Node) => number = () => 0): Scene {
  const shown = new Map<Node, Node>();
  const open = new Set<Node>([g.root]);
  const mark = (n: Node, by: Node | undefined) => {
    const o = !by && n.children.length > 0 && (n === g.root || isOpen(n));
    if (o) open.add(n);
    shown.set(n, by ?? n);
    const inner = by ?? (o ? undefined : n);
    for (const c of n.children) mark(c, inner);
  };
  mark(g.root, undefined);

  // Each pair of boxes becomes one line, laid out in the lowest common ancestor.
  const lines = new Map<string, { from: Node; to: Node; edges: Edge[]; level: Node; a: Node; b: Node }>();
  const levels = new Map<Node, [Node, Node][]>();
  for (const e of g.edges) {
    const from = shown.get(e.from)!;
    const to = shown.get(e.to)!;
    if (from === to) continue;
    const k = `${from.id} ${to.id}`;
    const had = lines.get(k);
    if (had) {
      had.edges.push(e);
      continue;
    }
    const up = new Map<Node, Node>(); // ancestor of from: its child on the path
    for (let n = from; n.parent; n = n.parent) up.set(n.parent, n);
    let b = to;
    while (b.parent && !up.has(b.parent)) b = b.parent;
    const level = b.parent;
    if (!level || b === from || up.has(to)) continue; // between a box and its content
    const a = up.get(level)!;
    if (a === b) continue;
    lines.set(k, { from, to, edges: [e], level, a, b });
    if (!levels.has(level)) levels.set(level, []);
    levels.get(level)!.push([a, b]);
  }

  const placed = new Map<Node, Placed>();
  const budget = Math.max(30, 500 / (1 + open.size / 10));
  const measure = (n: Node): Placed => {
    const had = placed.get(n);
    if (had) return had;
    let p: Placed;
    if (!open.has(n)) {
      const [w, h] = closed[n.kind];
      p = { w: Math.min(widest, Math.max(w, Math.ceil(title(n)))), h, pairs: new Map() };
    } else {
      const index = new Map(n.children.map((c, i) => [c, i]));
      const edges: [number, number][] = [];
      const pairs = new Map<string, number>();
      for (const [a, b] of levels.get(n) ?? []) {
        const i = index.get(a)!;
        const j = index.get(b)!;
        if (i >= j || pairs.has(`${i} ${j}`)) continue; // backward edges are drawn straight
        pairs.set(`${i} ${j}`, edges.length);
        edges.push([i, j]);
      }
      const layout = layered(n.children.map(measure), edges, { aspect: n === g.root ? aspect : n.children.length > 8 ? 1.4 : undefined, time: budget });
      const rim = n === g.root ? 0 : edge;
      p = { w: Math.max(layout.w + 2 * rim, n === g.root ? 0 : 150), h: layout.h + (n === g.root ? 0 : head + edge + 6), layout, pairs };
    }
    placed.set(n, p);
    return p;
  };
  measure(g.root);

  const boxes: Box[] = [];
  const boxOf = new Map<Node, Box>();
  const origin = new Map<Node, [number, number]>();
  const put = (n: Node, x: number, y: number) => {
    const p = placed.get(n)!;
    const b: Box = { node: n, x, y, w: p.w, h: p.h, open: open.has(n) };
    boxOf.set(n, b);
    if (n !== g.root) boxes.push(b);
    if (!p.layout) return;
    const rim = n === g.root ? 0 : Math.max(edge, (p.w - p.layout.w) / 2);
    const o: [number, number] = [x + rim, y + (n === g.root ? 0 : head + 6)];
    origin.set(n, o);
    n.children.forEach((c, i) => put(c, o[0] + p.layout!.x[i], o[1] + p.layout!.y[i]));
  };
  put(g.root, 0, 0);

  const out: Line[] = [];
  for (const l of lines.values()) {
    const from = boxOf.get(l.from)!;
    const to = boxOf.get(l.to)!;
    const p = placed.get(l.level)!;
    const o = origin.get(l.level)!;
    const i = l.level.children.indexOf(l.a);
    const j = l.level.children.indexOf(l.b);
    const k = p.pairs.get(`${i} ${j}`);
    const bends = k === undefined ? [] : p.layout!.bends[k].map(([x, y]): [number, number] => [x + o[0], y + o[1]]);
    const points: [number, number][] = [[from.x + from.w / 2, from.y + from.h], ...bends, [to.x + to.w / 2, to.y]];
    let corners = false;
    const xs = points.map((q) => q[0]);
    const ys = points.map((q) => q[1]);
    for (let q = 1; q < points.length; q++) corners ||= points[q][1] < points[q - 1][1] - 1;
    out.push({ from, to, edges: l.edges, points, corners, x0: Math.min(...xs), x1: Math.max(...xs), y0: Math.min(...ys), y1: Math.max(...ys) });
  }
  const root = placed.get(g.root)!;
  return { boxes, lines: out, at: (n) => boxOf.get(shown.get(n) ?? n), w: root.w, h: root.h };
}
