// Dependencies between bars.
import type { Link } from "../data/profile";
import type { Bars } from "./model";
import type { Range } from "./range";
import type { LaneData, Row } from "./rows";

/** Arrows holds the dependencies. */
export class Arrows {
  /** Links sorted by the end of the awaited bar, and by the start of the
   * waiting one, with these times. */
  private byEnd: Int32Array;
  private byStart: Int32Array;
  private ends: Float64Array;
  private starts: Float64Array;

  constructor(
    readonly bars: Bars,
    readonly links: Link[],
  ) {
    this.ends = Float64Array.from(links, (l) => bars.lanes[l.from_lane].starts[l.from_bar] + bars.lanes[l.from_lane].durations[l.from_bar]);
    this.starts = Float64Array.from(links, (l) => bars.lanes[l.to_lane].starts[l.to_bar]);
    this.byEnd = Int32Array.from(links.keys()).sort((a, b) => this.ends[a] - this.ends[b]);
    this.byStart = Int32Array.from(links.keys()).sort((a, b) => this.starts[a] - this.starts[b]);
  }

  /** within lists links that start or end in a range, about most of them by skipping, and
   * returns their total number. */
  within(r: Range, most: number): { list: number[]; count: number } {
    const from = (order: Int32Array, times: Float64Array, t: number) => {
      let [lo, hi] = [0, order.length];
      while (lo < hi) {
        const mid = (lo + hi) >>> 1;
        if (times[order[mid]] >= t) hi = mid;
        else lo = mid + 1;
      }
      return lo;
    };
    const [a, b] = [from(this.byStart, this.starts, r.t0), from(this.byStart, this.starts, r.t1)];
    const [c, d] = [from(this.byEnd, this.ends, r.t0), from(this.byEnd, this.ends, r.t1)];
    const every = Math.max(1, Math.ceil((b - a + d - c) / most));
    const list: number[] = [];
    let count = b - a;
    for (let j = a; j < b; j += every) list.push(this.byStart[j]);
    for (let j = c; j < d; j++) {
      const i = this.byEnd[j];
      // Links that also end in the range are listed above.
      if (this.starts[i] >= r.t0 && this.starts[i] < r.t1) continue;
      count++;
      if (j % every === 0) list.push(i);
    }
    return { list, count };
  }
}

/** rowOf is the row of a lane's bar. */
export function rowOf(l: LaneData, bar: number): Row {
  return l.rows[l.depth ? l.depth[bar] : 0];
}
