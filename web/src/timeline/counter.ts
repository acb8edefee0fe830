// Counters over time: minimum and maximum between two times, without reading each sample.
import type { Counter } from "../data/profile";
import { bytes, clean, si } from "../figures/format";

const fan = 16;

export class Steps {
  private low: Float64Array[] = [];
  private high: Float64Array[] = [];
  readonly least: number;
  readonly most: number;

  constructor(readonly counter: Counter) {
    let [lo, hi]: [ArrayLike<number>, ArrayLike<number>] = [counter.values, counter.values];
    while (lo.length > fan) {
      const n = Math.ceil(lo.length / fan);
      const [a, b] = [new Float64Array(n).fill(Infinity), new Float64Array(n).fill(-Infinity)];
      for (let i = 0; i < lo.length; i++) {
        const j = Math.floor(i / fan);
        if (lo[i] < a[j]) a[j] = lo[i];
        if (hi[i] > b[j]) b[j] = hi[i];
      }
      this.low.push(a);
      this.high.push(b);
      [lo, hi] = [a, b];
    }
    let [least, most] = [Infinity, -Infinity];
    for (let i = 0; i < lo.length; i++) {
      least = Math.min(least, lo[i]);
      most = Math.max(most, hi[i]);
    }
    this.least = least;
    this.most = most;
  }

  /** at is the last sample at or before t, -1 before the first. */
  at(t: number): number {
    const times = this.counter.times_s;
    let [lo, hi] = [0, times.length];
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      if (times[mid] > t) hi = mid;
      else lo = mid + 1;
    }
    return lo - 1;
  }

  /** span is minimum and maximum of samples a to b, both included. */
  span(a: number, b: number): [number, number] {
    let [least, most] = [Infinity, -Infinity];
    const { values } = this.counter;
    let k = a;
    while (k <= b) {
      let level = -1;
      let size = 1;
      while (level + 1 < this.low.length && k % (size * fan) === 0 && k + size * fan - 1 <= b) {
        level++;
        size *= fan;
      }
      const j = k / size;
      least = Math.min(least, level < 0 ? values[k] : this.low[level][j]);
      most = Math.max(most, level < 0 ? values[k] : this.high[level][j]);
      k += size;
    }
    return [least, most];
  }
}

/** figure formats a counter's value. */
export function figure(v: number, unit: string | undefined): string {
  return unit === "B" ? bytes(v) : si(v, unit ?? "");
}

/** reach is the range of the axis of a counter. */
export function reach(c: Counter): string {
  if (c.values.length === 0) return clean(c.unit);
  let [least, most] = [0, -Infinity];
  for (const v of c.values) {
    least = Math.min(least, v);
    most = Math.max(most, v);
  }
  return `${figure(least, c.unit)} to ${figure(most, c.unit)}`;
}
