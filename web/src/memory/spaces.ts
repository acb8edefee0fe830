// Accesses to a memory by time and address. The axis leaves out addresses without
// partitions or accesses, since allocations may be far apart.
import type { TimelineMemory } from "../data/profile";
import type { Range } from "../timeline/range";

/** Part is a bank, an allocation, or a range of accesses outside of them. */
export interface Part {
  name: string;
  address: number;
  bytes: number;
  /** Position on the axis, bytes from its start. */
  at: number;
  /** Not among the source's partitions. */
  added: boolean;
}

interface Segment {
  from: number;
  to: number;
  at: number;
}

/** Accesses to show. */
export type Which = "all" | "read" | "write";

/** union joins overlapping and adjacent ranges; the input is sorted by from. */
function union(list: { from: number; to: number }[]): { from: number; to: number }[] {
  const out: { from: number; to: number }[] = [];
  for (const s of list) {
    const last = out[out.length - 1];
    if (last && s.from <= last.to) last.to = Math.max(last.to, s.to);
    else out.push({ ...s });
  }
  return out;
}

export class Space {
  readonly n: number;
  readonly parts: Part[];
  /** Length of the address axis, bytes. */
  readonly bytes: number;
  private segments: Segment[] = [];
  /** Running maximum of the ends. */
  private latest: Float64Array;
  /** Position of each access on the axis. */
  readonly low: Float64Array;

  constructor(readonly space: TimelineMemory) {
    const { starts_s: starts, ends_s: ends, address_bytes: addresses, size_bytes: sizes } = space;
    this.n = starts?.length ?? 0;
    const parts = [...(space.partitions ?? [])].sort((a, b) => a.address_bytes - b.address_bytes);
    const known = union(parts.map((p) => ({ from: p.address_bytes, to: p.address_bytes + p.bytes })));
    const outside: { from: number; to: number }[] = [];
    this.latest = new Float64Array(this.n);
    let last = -Infinity;
    for (let i = 0; i < this.n; i++) {
      last = Math.max(last, ends![i]);
      this.latest[i] = last;
      const from = addresses![i];
      const to = from + sizes![i];
      // The last range that begins at or before the access.
      let [lo, hi] = [0, known.length];
      while (lo < hi) {
        const mid = (lo + hi) >>> 1;
        if (known[mid].from > from) hi = mid;
        else lo = mid + 1;
      }
      const s = known[lo - 1];
      if (!s || to > s.to) outside.push({ from: s ? Math.max(from, Math.min(s.to, to)) : from, to });
    }
    const extra = union(outside.filter((o) => o.to > o.from).sort((a, b) => a.from - b.from));
    const all = union([...known, ...extra].sort((a, b) => a.from - b.from));
    let sum = 0;
    for (const s of all) {
      this.segments.push({ ...s, at: sum });
      sum += s.to - s.from;
    }
    this.bytes = Math.max(1, sum);
    this.parts = [
      ...parts.map((p) => ({ name: p.name, address: p.address_bytes, bytes: p.bytes, at: this.place(p.address_bytes), added: false })),
      ...extra.map((e) => ({ name: "other", address: e.from, bytes: e.to - e.from, at: this.place(e.from), added: true })),
    ].sort((a, b) => a.at - b.at);
    this.low = new Float64Array(this.n);
    for (let i = 0; i < this.n; i++) this.low[i] = this.place(addresses![i]);
  }

  /** place returns the position of an address on the axis. */
  place(address: number): number {
    let [lo, hi] = [0, this.segments.length];
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      if (this.segments[mid].from > address) hi = mid;
      else lo = mid + 1;
    }
    const s = this.segments[lo - 1];
    return s ? s.at + Math.min(address, s.to) - s.from : 0;
  }

  /** address returns the address at a position on the axis. */
  address(place: number): number {
    const s = this.segments.findLast((x) => x.at <= place);
    return s ? s.from + place - s.at : 0;
  }

  /** within returns the range of accesses that may overlap a range of time. */
  within(r: Range): [number, number] {
    const first = (list: ArrayLike<number>, v: number) => {
      let [lo, hi] = [0, this.n];
      while (lo < hi) {
        const mid = (lo + hi) >>> 1;
        if (list[mid] > v) hi = mid;
        else lo = mid + 1;
      }
      return lo;
    };
    if (this.n === 0) return [0, 0];
    return [first(this.latest, r.t0), first(this.space.starts_s!, r.t1)];
  }

  /** density is the mean number of bytes being accessed in each of n equal parts of a
   * range, from every stride-th access and scaled up. */
  density(r: Range, n: number, stride: number): { read: Float64Array; write: Float64Array } {
    const read = new Float64Array(n);
    const write = new Float64Array(n);
    const [a, b] = this.within(r);
    const { starts_s: starts, ends_s: ends, size_bytes: sizes, writes } = this.space;
    const cell = (r.t1 - r.t0) / n;
    for (let i = a; i < b; i += stride) {
      const from = Math.max(r.t0, starts![i]);
      const to = Math.min(r.t1, ends![i]);
      if (to <= from) continue;
      const out = writes![i] ? write : read;
      const size = (sizes![i] * stride) / cell;
      const x0 = Math.min(n - 1, Math.floor((from - r.t0) / cell));
      const x1 = Math.min(n - 1, Math.floor((to - r.t0) / cell));
      if (x0 === x1) out[x0] += size * (to - from);
      else {
        out[x0] += size * (r.t0 + (x0 + 1) * cell - from);
        for (let x = x0 + 1; x < x1; x++) out[x] += size * cell;
        out[x1] += size * (to - r.t0 - x1 * cell);
      }
    }
    return { read, write };
  }

  /** use is the access time of each of n equal parts of an address range. A part counts in
   * proportion to the bytes that an access covers. */
  use(r: Range, from: number, to: number, n: number, which: Which, stride: number): Float64Array {
    const rise = new Float64Array(n + 2);
    const out = new Float64Array(n);
    const [a, b] = this.within(r);
    const { starts_s: starts, ends_s: ends, size_bytes: sizes, writes } = this.space;
    const cell = (to - from) / n;
    // Each access adds a trapezium: partial at its two ends, whole between.
    for (let i = a; i < b; i += stride) {
      if (which !== "all" && (writes![i] !== 0) !== (which === "write")) continue;
      const time = (Math.min(r.t1, ends![i]) - Math.max(r.t0, starts![i])) * stride;
      if (time <= 0) continue;
      const lo = Math.max(0, (this.low[i] - from) / cell);
      const hi = Math.min(n, (this.low[i] + sizes![i] - from) / cell);
      if (hi <= lo) continue;
      const [y0, y1] = [Math.floor(lo), Math.min(n - 1, Math.floor(hi))];
      if (y0 === y1) out[y0] += time * (hi - lo);
      else {
        out[y0] += time * (y0 + 1 - lo);
        out[y1] += time * (hi - y1);
        rise[y0 + 1] += time;
        rise[y1] -= time;
      }
    }
    let sum = 0;
    for (let y = 0; y < n; y++) {
      sum += rise[y];
      out[y] += sum;
    }
    return out;
  }
}
