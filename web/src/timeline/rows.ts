// The bars of a lane as rows: each row is sorted by time and without overlaps, so that
// binary search finds the visible bars.
import { clean } from "../figures/format";
import type { Column, Lane } from "../data/profile";

/** Sums over bars that pass the filters. */
export interface Sums {
  count: number;
  /** Seconds. */
  busy: number;
  bytes: number;
}

/** Emit receives bars and nodes in the order of time. node is 0 for a bar. */
export type Emit = (start: number, end: number, k: number, level: number, busy: number, slot: number, most: number, height: number) => void;

/** Levels is the read side of a pyramid: the bars of a row at several levels of detail. */
export interface Levels {
  walk(t0: number, t1: number, pixel: number, emit: Emit): void;
  before(k: number): Sums;
  until(t: number): Sums;
  between(t0: number, t1: number): Sums;
}

/** Row is one level of nesting of a lane. */
export class Row {
  pyramid: Levels | undefined;
  constructor(
    readonly lane: LaneData,
    readonly depth: number,
    /** Positions in the lane, undefined if the lane has only this row. */
    readonly index: Int32Array | undefined,
    readonly n: number,
  ) {}

  /** bar is the position in the lane of the row's k-th bar. */
  bar(k: number): number {
    return this.index ? this.index[k] : k;
  }
  start(k: number): number {
    return this.lane.starts[this.bar(k)];
  }
  end(k: number): number {
    const i = this.bar(k);
    return this.lane.starts[i] + this.lane.durations[i];
  }
  /** from is the first bar that ends after t. */
  from(t: number): number {
    let [lo, hi] = [0, this.n];
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      if (this.end(mid) > t) hi = mid;
      else lo = mid + 1;
    }
    // Bars without length are visible at their start.
    while (lo > 0 && this.start(lo - 1) >= t) lo--;
    return lo;
  }
  /** to is the first bar that starts at or after t. */
  to(t: number): number {
    let [lo, hi] = [0, this.n];
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      if (this.start(mid) >= t) hi = mid;
      else lo = mid + 1;
    }
    return lo;
  }
  /** find returns the k whose bar is i of the lane, -1 if it is in another row. */
  find(i: number): number {
    if (!this.index) return i;
    let [lo, hi] = [0, this.n];
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      if (this.index[mid] >= i) hi = mid;
      else lo = mid + 1;
    }
    return this.index[lo] === i ? lo : -1;
  }
}

/** LaneData is a lane of the profile with derived data. */
export class LaneData {
  readonly starts: Column;
  readonly durations: Column;
  readonly n: number;
  readonly rows: Row[];
  /** Depth of each bar, undefined if all are 0. */
  readonly depth: Uint8Array | undefined;
  /** Time of each bar without its inner bars, undefined if there are no inner bars. */
  readonly self: Float32Array | undefined;
  /** Busy time of the lane. */
  readonly busy: number;
  /** Latest end. */
  readonly end: number;
  /** Category of each bar, index in Colouring.categories. */
  category: Uint16Array;
  /** Slot of each bar: colour, dimmed or hidden. */
  slot: Uint8Array;

  constructor(
    readonly lane: Lane,
    /** Position in Timeline.lanes. */
    readonly id: number,
  ) {
    this.starts = lane.starts_s;
    this.durations = lane.durations_s;
    this.n = this.starts.length;
    this.category = new Uint16Array(this.n);
    this.slot = new Uint8Array(this.n);
    const { starts, durations, n } = this;
    // Durations are rounded to 24 bits, so that a bar may seem to overlap the next one; an
    // inner bar starts well before the end of the outer one.
    const ends = new Float64Array(256);
    const open = new Int32Array(256);
    const counts = new Uint32Array(256);
    let depth: Uint8Array | undefined;
    let self: Float32Array | undefined;
    let level = 0;
    let busy = 0;
    let last = 0;
    for (let i = 0; i < n; i++) {
      const s = starts[i];
      while (level > 0 && ends[level - 1] <= s) level--;
      const d = durations[i];
      const e = s + d;
      if (level === 0) {
        busy += d;
        if (e > last) last = e;
      } else {
        depth ??= new Uint8Array(n);
        if (!self) {
          self = new Float32Array(n);
          for (let j = 0; j < i; j++) self[j] = durations[j];
        }
        depth[i] = level;
        const outer = open[level - 1];
        self[outer] = Math.max(0, self[outer] - d);
      }
      if (self) self[i] = d;
      counts[level]++;
      ends[level] = e - 0.5e-9 - d * 1.2e-7;
      open[level] = i;
      if (level < 255) level++;
    }
    this.busy = busy;
    this.end = last;
    this.depth = depth;
    this.self = self;
    if (!depth) {
      this.rows = [new Row(this, 0, undefined, n)];
      return;
    }
    const lists: Int32Array[] = [];
    for (let d = 0; d < 256 && counts[d]; d++) lists.push(new Int32Array(counts[d]));
    const fill = new Uint32Array(lists.length);
    for (let i = 0; i < n; i++) lists[depth[i]][fill[depth[i]]++] = i;
    this.rows = lists.map((index, d) => new Row(this, d, index, index.length));
  }
}

/** HeightBy is the figure that the height of a bar shows. */
export type HeightBy = "" | "bandwidth" | "utilisation" | `figure ${string}`;

/** laneName names a lane with its core or device. */
export function laneName(l: Lane): string {
  return clean((l.group ? `${l.group} ` : "") + l.name);
}

/** amount returns the values for the heights of a lane's bars, -1 where unknown. */
export function amount(lane: Lane, by: HeightBy): (i: number) => number {
  if (by === "utilisation") return (i) => lane.utilisation?.[i] ?? -1;
  if (by === "bandwidth") {
    return (i) => {
      const [b, d] = [lane.moved_bytes?.[i] ?? -1, lane.durations_s[i]];
      return b < 0 || d <= 0 ? -1 : b / d;
    };
  }
  const column = lane.figures?.[by.slice("figure ".length)];
  return (i) => column?.[i] ?? -1;
}

/** rates returns the heights of a lane's bars as fractions of peak, -1 where unknown. */
export function rates(lane: Lane, by: HeightBy, peak: number): (i: number) => number {
  const known = amount(lane, by);
  return (i) => {
    const v = known(i);
    return v < 0 || peak <= 0 ? -1 : Math.min(1, v / peak);
  };
}
