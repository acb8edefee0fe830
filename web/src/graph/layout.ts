// Layered (Sugiyama) layout of an acyclic graph: ranks by longest path, order by
// barycentres to reduce crossings, and long chains broken into columns like text. The time
// is limited: it returns the best layout so far.

export interface Size {
  w: number;
  h: number;
}

export interface Layout {
  /** Upper left corners of the nodes. */
  x: Float64Array;
  y: Float64Array;
  w: number;
  h: number;
  /** Intermediate points of each edge, in its direction; empty for a straight one. */
  bends: [number, number][][];
  rank: Int32Array;
}

export interface Options {
  /** Wanted width divided by height; without it ranks are not broken into columns. */
  aspect?: number;
  /** Milliseconds for the ordering. */
  time?: number;
}

const gapX = 22;
const gapY = 30;
const gapColumn = 64;
const thin = 10;
/** Most dummy nodes for long edges; further long edges are straight. */
const mostDummies = 30000;

/** ranks returns the length of the longest path to each node; nodes without inputs get the
 * rank before their first successor. Edges lead from lower to higher numbers. */
export function ranks(n: number, edges: [number, number][]): Int32Array {
  const out: number[][] = Array.from({ length: n }, () => []);
  const fed = new Uint8Array(n);
  for (const [a, b] of edges) {
    out[a].push(b);
    fed[b] = 1;
  }
  const rank = new Int32Array(n);
  for (let a = 0; a < n; a++) for (const b of out[a]) rank[b] = Math.max(rank[b], rank[a] + 1);
  for (let a = n - 1; a >= 0; a--) {
    if (fed[a] || out[a].length === 0) continue;
    let least = Infinity;
    for (const b of out[a]) least = Math.min(least, rank[b]);
    rank[a] = least - 1;
  }
  return rank;
}

interface Net {
  rank: Int32Array;
  rows: number[][];
  up: number[][];
  down: number[][];
  width: Float64Array;
  real: number;
  /** Dummy nodes of each edge, in its direction. */
  chain: number[][];
}

function net(sizes: Size[], edges: [number, number][]): Net {
  const n = sizes.length;
  const own = ranks(n, edges);
  const rank: number[] = Array.from(own);
  const width: number[] = sizes.map((s) => s.w);
  const up: number[][] = Array.from({ length: n }, () => []);
  const down: number[][] = Array.from({ length: n }, () => []);
  const chain: number[][] = [];
  let dummies = 0;
  for (const [a, b] of edges) {
    const mid: number[] = [];
    chain.push(mid);
    const span = own[b] - own[a] - 1;
    if (span > 0 && dummies + span > mostDummies) continue;
    dummies += Math.max(0, span);
    let last = a;
    for (let r = own[a] + 1; r < own[b]; r++) {
      const d = rank.length;
      rank.push(r);
      width.push(thin);
      up.push([last]);
      down.push([]);
      down[last].push(d);
      mid.push(d);
      last = d;
    }
    down[last].push(b);
    up[b].push(last);
  }
  let top = 0;
  for (const r of rank) top = Math.max(top, r);
  const rows: number[][] = Array.from({ length: n ? top + 1 : 0 }, () => []);
  // Initial order: depth first, so that branches stay together.
  const seen = new Uint8Array(rank.length);
  const stack: number[] = [];
  for (let s = n - 1; s >= 0; s--) if (up[s].length === 0) stack.push(s);
  while (stack.length > 0) {
    const v = stack.pop()!;
    if (seen[v]) continue;
    seen[v] = 1;
    rows[rank[v]].push(v);
    for (let i = down[v].length - 1; i >= 0; i--) stack.push(down[v][i]);
  }
  return { rank: Int32Array.from(rank), rows, up, down, width: Float64Array.from(width), real: n, chain };
}

/** crossings counts pairs of edges between two rows that cross. */
export function crossings(rows: number[][], down: number[][]): number {
  let sum = 0;
  for (let r = 0; r + 1 < rows.length; r++) {
    const at = new Map<number, number>();
    rows[r + 1].forEach((v, i) => at.set(v, i));
    const size = rows[r + 1].length + 1;
    const tree = new Int32Array(size + 1);
    let before = 0;
    for (const v of rows[r]) {
      const ends = down[v].map((w) => at.get(w)!).filter((i) => i !== undefined);
      for (const e of ends) {
        let upto = 0;
        for (let i = e + 1; i > 0; i -= i & -i) upto += tree[i];
        sum += before - upto;
      }
      for (const e of ends) {
        for (let i = e + 1; i <= size; i += i & -i) tree[i]++;
        before++;
      }
    }
  }
  return sum;
}

function order(g: Net, time: number) {
  const until = performance.now() + time;
  let best = g.rows.map((r) => r.slice());
  let least = crossings(best, g.down);
  const at = new Float64Array(g.rank.length);
  for (const row of g.rows) row.forEach((v, i) => (at[v] = i));
  let idle = 0;
  for (let sweep = 0; sweep < 24 && least > 0 && idle < 5 && performance.now() < until; sweep++) {
    const forward = sweep % 2 === 0;
    const near = forward ? g.up : g.down;
    for (let k = 0; k < g.rows.length; k++) {
      const row = g.rows[forward ? k : g.rows.length - 1 - k];
      const key = new Map<number, number>();
      for (const v of row) {
        if (near[v].length === 0) continue;
        let s = 0;
        for (const w of near[v]) s += at[w];
        key.set(v, s / near[v].length);
      }
      // Nodes without neighbours keep their places.
      const moved = row.filter((v) => key.has(v)).sort((a, b) => key.get(a)! - key.get(b)! || at[a] - at[b]);
      let i = 0;
      for (let j = 0; j < row.length; j++) if (key.has(row[j])) row[j] = moved[i++];
      row.forEach((v, j) => (at[v] = j));
    }
    const c = crossings(g.rows, g.down);
    if (c < least) {
      least = c;
      best = g.rows.map((r) => r.slice());
      idle = 0;
    } else idle++;
  }
  g.rows = best;
}

/** spaced moves wanted positions apart by least squares, so that each is at least gap[i]
 * right of the previous one (pool adjacent violators). */
export function spaced(wish: number[], weight: number[], gap: number[]): number[] {
  const n = wish.length;
  const shift: number[] = [];
  let sum = 0;
  for (let i = 0; i < n; i++) {
    if (i > 0) sum += gap[i];
    shift.push(sum);
  }
  const mean: number[] = [];
  const mass: number[] = [];
  const count: number[] = [];
  for (let i = 0; i < n; i++) {
    mean.push(wish[i] - shift[i]);
    mass.push(weight[i]);
    count.push(1);
    while (mean.length > 1 && mean[mean.length - 2] > mean[mean.length - 1]) {
      const m = mean.pop()!;
      const w = mass.pop()!;
      const c = count.pop()!;
      const k = mean.length - 1;
      mean[k] = (mean[k] * mass[k] + m * w) / (mass[k] + w);
      mass[k] += w;
      count[k] += c;
    }
  }
  const out: number[] = [];
  for (let k = 0; k < mean.length; k++) for (let c = 0; c < count[k]; c++) out.push(mean[k] + shift[out.length]);
  return out;
}

/** place returns the x of the centre of every node and dummy node. */
function place(g: Net, time: number): Float64Array {
  const until = performance.now() + time;
  const x = new Float64Array(g.rank.length);
  const gaps = g.rows.map((row) => row.map((v, i) => (i === 0 ? 0 : (g.width[row[i - 1]] + g.width[v]) / 2 + gapX)));
  g.rows.forEach((row, r) => {
    let at = 0;
    row.forEach((v, i) => {
      at += gaps[r][i];
      x[v] = at;
    });
    for (const v of row) x[v] -= at / 2;
  });
  const passes = 8;
  for (let pass = 0; pass < passes && performance.now() < until; pass++) {
    const forward = pass % 2 === 0;
    for (let k = 0; k < g.rows.length; k++) {
      const r = forward ? k : g.rows.length - 1 - k;
      const row = g.rows[r];
      const wish: number[] = [];
      const weight: number[] = [];
      for (const v of row) {
        // The last passes use both neighbours, which centres nodes over their branches.
        const near = pass >= passes - 2 ? g.up[v].concat(g.down[v]) : forward ? g.up[v] : g.down[v];
        let s = 0;
        let m = 0;
        for (const w of near) {
          // Long edges should be straight.
          const f = v >= g.real && w >= g.real ? 6 : v >= g.real || w >= g.real ? 2 : 1;
          s += f * x[w];
          m += f;
        }
        wish.push(m > 0 ? s / m : x[v]);
        weight.push(m > 0 ? m : 0.1);
      }
      spaced(wish, weight, gaps[r]).forEach((p, i) => (x[row[i]] = p));
    }
  }
  return x;
}

interface Column {
  from: number;
  to: number;
  left: number;
  right: number;
}

/** columns breaks the rows into k columns of similar height, where few edges cross. */
function columns(k: number, tops: number[], heights: number[], cross: number[]): [number, number][] {
  const n = heights.length;
  const total = tops[n - 1] + heights[n - 1];
  const cuts = [0];
  for (let c = 1; c < k; c++) {
    const want = (total * c) / k;
    const reach = (total / k) * 0.22;
    let best = -1;
    let least = Infinity;
    for (let r = cuts[cuts.length - 1] + 1; r < n; r++) {
      const off = Math.abs(tops[r] - want);
      if (off > reach && !(best < 0 && tops[r] > want)) continue;
      const cost = cross[r] + (2 * off) / reach;
      if (cost < least) {
        least = cost;
        best = r;
      }
    }
    if (best < 0) break;
    cuts.push(best);
  }
  return cuts.map((c, i) => [c, i + 1 < cuts.length ? cuts[i + 1] : n]);
}

export function layered(sizes: Size[], edges: [number, number][], o: Options = {}): Layout {
  const n = sizes.length;
  const time = o.time ?? 200;
  const g = net(sizes, edges);
  order(g, time);
  const mid = place(g, time);
  const heights = g.rows.map((row) => row.reduce((m, v) => Math.max(m, v < n ? sizes[v].h : 0), 0));
  // Number of edges that enter each row, for the space above it and the cost of a cut.
  const cross = g.rows.map((_, r) => (r === 0 ? 0 : g.rows[r - 1].reduce((s, v) => s + g.down[v].length, 0)));
  const tops: number[] = [];
  let at = 0;
  heights.forEach((h, r) => {
    if (r > 0) at += gapY + Math.min(40, 2.5 * Math.max(0, cross[r] - 1));
    tops.push(at);
    at += h;
  });
  const extentOf = ([from, to]: [number, number]): Column => {
    let left = Infinity;
    let right = -Infinity;
    for (let r = from; r < to; r++) {
      for (const v of g.rows[r]) {
        left = Math.min(left, mid[v] - g.width[v] / 2);
        right = Math.max(right, mid[v] + g.width[v] / 2);
      }
    }
    return { from, to, left, right };
  };
  const dims = (cols: Column[]) => ({
    w: cols.reduce((s, c) => s + c.right - c.left, 0) + gapColumn * (cols.length - 1),
    h: cols.reduce((m, c) => Math.max(m, tops[c.to - 1] + heights[c.to - 1] - tops[c.from]), 0),
  });
  let cols: Column[] = n > 0 ? [extentOf([0, g.rows.length])] : [];
  if (o.aspect && g.rows.length > 3) {
    let least = Infinity;
    for (let k = 1; k <= Math.min(40, g.rows.length); k++) {
      const tried = columns(k, tops, heights, cross).map(extentOf);
      const d = dims(tried);
      // The best one has the largest scale in a window of that shape.
      const off = Math.max(d.w / o.aspect, d.h);
      if (off < least * 0.97) {
        least = off;
        cols = tried;
      }
    }
  }
  const size = n > 0 ? dims(cols) : { w: 0, h: 0 };
  const columnOf = new Int32Array(g.rows.length);
  const dx: number[] = [];
  let left = 0;
  cols.forEach((c, i) => {
    for (let r = c.from; r < c.to; r++) columnOf[r] = i;
    dx.push(left - c.left);
    left += c.right - c.left + gapColumn;
  });
  const rowY = (r: number) => tops[r] - tops[cols[columnOf[r]].from];
  const px = (v: number) => mid[v] + dx[columnOf[g.rank[v]]];
  const x = new Float64Array(n);
  const y = new Float64Array(n);
  for (let v = 0; v < n; v++) {
    x[v] = px(v) - sizes[v].w / 2;
    y[v] = rowY(g.rank[v]) + (heights[g.rank[v]] - sizes[v].h) / 2;
  }
  const bends = edges.map(([a, b], e) => {
    const points: [number, number][] = [];
    let last = a;
    for (const v of [...g.chain[e], b]) {
      const r = g.rank[last];
      const s = g.rank[v];
      if (columnOf[r] !== columnOf[s]) {
        // Down below the row, up next to the column, and in from above.
        const gutter = dx[columnOf[s]] + cols[columnOf[s]].left - gapColumn / 2 + ((e % 5) - 2) * 6;
        const foot = rowY(r) + heights[r] + 14;
        points.push([px(last), foot], [gutter, foot], [gutter, -14], [px(v), -14]);
      }
      if (v !== b) {
        points.push([px(v), rowY(s)]);
        if (heights[s] > 0) points.push([px(v), rowY(s) + heights[s]]);
      }
      last = v;
    }
    return points;
  });
  return { x, y, w: size.w, h: size.h, bends, rank: g.rank.slice(0, n) };
}
