// Statistics of samples: those of internal/base/stats for a metric, and those that charts
// of the samples need.
import type { Column } from "../data/profile";
import { percent } from "../figures/format";

/** sorted is an ascending copy. */
export function sorted(samples: ArrayLike<number>): Float64Array {
  return Float64Array.from(samples).sort();
}

/** quantile of ascending values, linear between order statistics (type 7 of Hyndman and
 * Fan), as in the program. */
export function quantile(s: ArrayLike<number>, q: number): number {
  const at = q * (s.length - 1);
  const i = Math.floor(at);
  const rest = at - i;
  return rest > 0 ? s[i] + rest * (s[i + 1] - s[i]) : s[i];
}

export interface Histogram {
  edges: ArrayLike<number>;
  counts: ArrayLike<number>;
  /** Rule for the bin width, in words. */
  rule: string;
  /** The last bin is wider and holds all larger samples. */
  tail: boolean;
}

/** Bounds of the number of bins. */
const leastBins = 5;
const mostBins = 80;

/** histogram with the bin width of Freedman and Diaconis, 2·IQR·n^(-1/3), or the number
 * of bins of Sturges where the IQR is 0. A few far outliers would leave a single bar: bins
 * then end three IQR above the upper quartile, and a last, wider bin holds the rest. */
export function histogram(s: ArrayLike<number>): Histogram {
  const n = s.length;
  const lo = s[0];
  const hi = s[n - 1];
  if (!(hi > lo)) return { edges: [lo, hi], counts: [n], rule: "all samples are equal", tail: false };
  const iqr = quantile(s, 0.75) - quantile(s, 0.25);
  let width = (2 * iqr) / Math.cbrt(n);
  let rule = "Freedman–Diaconis";
  if (!(width > 0)) {
    width = (hi - lo) / (Math.log2(n) + 1);
    rule = "Sturges, since half of the samples are equal";
  }
  const fence = quantile(s, 0.75) + 3 * iqr;
  const tail = iqr > 0 && hi > fence && (hi - lo) / width > 1.5 * ((fence - lo) / width) && (fence - lo) / width >= leastBins;
  const end = tail ? fence : hi;
  const bins = Math.min(mostBins, Math.max(leastBins, Math.ceil((end - lo) / width - 1e-9)));
  const edges: number[] = [];
  for (let i = 0; i <= bins; i++) edges.push(i === bins ? end : lo + (i * (end - lo)) / bins);
  const counts = new Array<number>(bins).fill(0);
  if (tail) {
    edges.push(hi);
    counts.push(0);
  }
  for (let i = 0; i < n; i++) {
    const k = s[i] >= end && tail ? bins : Math.min(bins - 1, Math.floor(((s[i] - lo) / (end - lo)) * bins));
    counts[k]++;
  }
  return { edges, counts, rule, tail };
}

export interface Drift {
  /** Change from the first sample to the last, by the median slope, seconds. */
  change: number;
  /** The same relative to the median. */
  relative: number;
  /** Correlation of each sample with the next, -1 to 1. */
  lag1?: number;
}

/** Most points for the slope, whose cost is quadratic. */
const slopePoints = 400;

/** drift is the Theil–Sen slope over the runs: the median of the slopes of all pairs,
 * which is robust against outliers. Of long series it uses medians of equal stretches. */
export function drift(samples: ArrayLike<number>): Drift | undefined {
  const n = samples.length;
  if (n < 6) return undefined;
  const ys = n <= slopePoints ? Array.from(samples) : stretches(samples, slopePoints);
  const slopes: number[] = [];
  for (let i = 0; i < ys.length; i++) for (let j = i + 1; j < ys.length; j++) slopes.push((ys[j] - ys[i]) / (j - i));
  const change = quantile(Float64Array.from(slopes).sort(), 0.5) * (ys.length - 1);
  const median = quantile(sorted(samples), 0.5);
  return { change, relative: median > 0 ? change / median : 0, lag1: lag1(samples) };
}

function stretches(samples: ArrayLike<number>, n: number): number[] {
  const out: number[] = [];
  for (let i = 0; i < n; i++) {
    const part = Array.prototype.slice.call(samples, Math.floor((i * samples.length) / n), Math.floor(((i + 1) * samples.length) / n)) as number[];
    out.push(quantile(Float64Array.from(part).sort(), 0.5));
  }
  return out;
}

/** lag1 is the autocorrelation of the samples at a lag of one run. */
export function lag1(samples: ArrayLike<number>): number | undefined {
  const n = samples.length;
  if (n < 6) return undefined;
  let mean = 0;
  for (let i = 0; i < n; i++) mean += samples[i];
  mean /= n;
  let top = 0;
  let bottom = 0;
  for (let i = 0; i < n; i++) {
    bottom += (samples[i] - mean) ** 2;
    if (i > 0) top += (samples[i] - mean) * (samples[i - 1] - mean);
  }
  return bottom > 0 ? top / bottom : undefined;
}

export interface Fences {
  low: number;
  high: number;
  below: number;
  above: number;
}

/** fences are Tukey's inner fences, 1.5 IQR outside the quartiles. */
export function fences(s: ArrayLike<number>): Fences {
  const q1 = quantile(s, 0.25);
  const q3 = quantile(s, 0.75);
  const f = { low: q1 - 1.5 * (q3 - q1), high: q3 + 1.5 * (q3 - q1), below: 0, above: 0 };
  for (let i = 0; i < s.length; i++) {
    if (s[i] < f.low) f.below++;
    else if (s[i] > f.high) f.above++;
  }
  return f;
}

/** Modes holds the medians of two groups of samples. */
export interface Modes {
  low: number;
  high: number;
  /** Fraction of the samples in the upper group. */
  part: number;
}

/** modes looks for two groups: the split of the ascending samples with the least variance
 * within both, if their medians are more than 4 spreads and 1 % apart and each has a
 * tenth of the samples. A heuristic, not a test. */
export function modes(s: ArrayLike<number>): Modes | undefined {
  const n = s.length;
  if (n < 20) return undefined;
  // Without the extreme samples.
  const from = Math.floor(n * 0.01);
  const to = n - from;
  let sum = 0;
  let squares = 0;
  const shift = s[from];
  for (let i = from; i < to; i++) {
    sum += s[i] - shift;
    squares += (s[i] - shift) ** 2;
  }
  let left = 0;
  let leftSquares = 0;
  let least = Infinity;
  let cut = 0;
  for (let i = from; i < to - 1; i++) {
    left += s[i] - shift;
    leftSquares += (s[i] - shift) ** 2;
    const a = i + 1 - from;
    const b = to - from - a;
    if (a < 0.1 * n || b < 0.1 * n) continue;
    const within = leftSquares - left ** 2 / a + (squares - leftSquares - (sum - left) ** 2 / b);
    if (within < least) {
      least = within;
      cut = i + 1;
    }
  }
  if (cut === 0) return undefined;
  const part = (lo: number, hi: number) => Array.prototype.slice.call(s, lo, hi) as number[];
  const a = part(from, cut);
  const b = part(cut, to);
  const low = quantile(a, 0.5);
  const high = quantile(b, 0.5);
  const spread = (v: number[], m: number) => quantile(Float64Array.from(v, (x) => Math.abs(x - m)).sort(), 0.5) * 1.4826;
  const wide = Math.max(spread(a, low), spread(b, high));
  if (!(high - low > 4 * wide) || high - low < 0.01 * low) return undefined;
  // Two groups leave a gap; two halves of one distribution do not.
  if (s[cut] - s[cut - 1] < 0.2 * (high - low)) return undefined;
  return { low, high, part: (n - cut) / n };
}

/** thin is the envelope of a long series for a small chart: minimum and maximum of each
 * of n stretches. */
export function thin(samples: Column | number[], n: number): { lo: number[]; hi: number[] } {
  const lo: number[] = [];
  const hi: number[] = [];
  const count = Math.min(n, samples.length);
  for (let i = 0; i < count; i++) {
    let a = Infinity;
    let b = -Infinity;
    for (let j = Math.floor((i * samples.length) / count); j < Math.floor(((i + 1) * samples.length) / count); j++) {
      a = Math.min(a, samples[j]);
      b = Math.max(b, samples[j]);
    }
    lo.push(a);
    hi.push(b);
  }
  return { lo, hi };
}

/** signed writes a fraction in per cent with its sign. */
export function signed(v: number | undefined): string {
  return v === undefined ? "" : `${v > 0 ? "+" : v < 0 ? "−" : ""}${percent(Math.abs(v))}`;
}
