// Scales of charts: from values to positions, with round ticks.
import { scaleLinear, scaleLog } from "d3-scale";

export interface Scale {
  (v: number): number;
  invert(p: number): number;
  /** About n round values of the domain; of a log scale powers of ten, with 2 and 5 where
   * they fit. */
  ticks(n: number): number[];
  domain: [number, number];
}

export function linear(from: number, to: number, start: number, end: number): Scale {
  const s = scaleLinear([from, to], [start, end]);
  return Object.assign((v: number) => s(v), { invert: (p: number) => s.invert(p), ticks: (n: number) => s.ticks(n), domain: [from, to] as [number, number] });
}

/** log is a logarithmic scale for values above zero. */
export function log(from: number, to: number, start: number, end: number): Scale {
  const s = scaleLog([from, to], [start, end]);
  return Object.assign((v: number) => s(v), {
    invert: (p: number) => s.invert(p),
    ticks: (n: number) => {
      // The library returns nine ticks per decade, which are too many.
      const all = s.ticks(n);
      for (const keep of [[1, 2, 5], [1, 3], [1]]) {
        const some = all.filter((v) => keep.includes(Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9))));
        if (some.length > 0 && some.length <= n * 1.5) return some;
      }
      return all.filter((_, i) => i % Math.ceil(all.length / n) === 0);
    },
    domain: [from, to] as [number, number],
  });
}

/** extent returns minimum and maximum, undefined for an empty list. */
export function extent(vs: Iterable<number>): [number, number] | undefined {
  let lo = Infinity;
  let hi = -Infinity;
  for (const v of vs) {
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  return lo <= hi ? [lo, hi] : undefined;
}
