// Statistics of the samples of a layer, whether the page holds the samples themselves or
// a distribution.
import { plural } from "../figures/format";
import type { Distribution } from "../data/load";
import type { Column, Lane, Metric, Timeline } from "../data/profile";
import { fences, histogram, quantile, sorted, type Fences, type Histogram } from "./stats";

/** Shown describes the distribution of a time. */
export interface Shown {
  /** Source of the figures in words. */
  source: string;
  n: number;
  /** Number of all runs where the samples are a random selection of them. */
  of?: number;
  /** Samples in run order, if available. */
  samples?: Column;
  /** Otherwise minimum, median and maximum of stretches of runs. */
  stretches?: Distribution;
  histogram: Histogram;
  quantile: (q: number) => number;
  fences: Fences;
  /** True if the number of outliers is exact. */
  counted: boolean;
}

/** fromSamples describes individual samples; runs is the number of runs that they were
 * selected from. */
export function fromSamples(samples: Column, source: string, runs?: number): Shown {
  const s = sorted(samples);
  return { source, n: s.length, of: runs !== undefined && runs > s.length ? runs : undefined, samples, histogram: histogram(s), quantile: (q) => quantile(s, q), fences: fences(s), counted: true };
}

/** Least number of samples for a histogram and for drift. */
export const leastForShape = 12;

/** amount writes the number of samples: "20 samples", "1,000 of 100,000 runs". */
export function amount(s: Shown): string {
  return s.of === undefined ? plural(s.n, "sample") : `${s.n.toLocaleString("en-GB")} of ${plural(s.of, "run")}`;
}

/** bounded reports whether n samples are enough for a percentile. */
export const bounded = (n: number, q: number) => n * Math.min(q, 1 - q) >= 0.99 || q === 0 || q === 1;

/** fromDistribution describes samples that the page holds as histogram, quantiles and
 * stretches. Outliers are counted by whole bins, so their number is approximate. */
export function fromDistribution(d: Distribution): Shown {
  const q = (p: number) => quantile(d.quantiles_s, p);
  const iqr = q(0.75) - q(0.25);
  const f: Fences = { low: q(0.25) - 1.5 * iqr, high: q(0.75) + 1.5 * iqr, below: 0, above: 0 };
  for (let i = 0; i < d.counts.length; i++) {
    if (d.edges_s[i + 1] <= f.low) f.below += d.counts[i];
    else if (d.edges_s[i] >= f.high) f.above += d.counts[i];
  }
  return {
    source: "the distribution of all samples, computed when the page was written",
    n: d.n,
    stretches: d,
    histogram: { edges: d.edges_s, counts: d.counts, rule: "chosen when the page was written", tail: d.counts.length > 1 && lastIsWider(d.edges_s) },
    quantile: q,
    fences: f,
    counted: false,
  };
}

function lastIsWider(e: Column): boolean {
  const n = e.length;
  return n > 2 && e[n - 1] - e[n - 2] > 1.5 * (e[1] - e[0]);
}

/** ceiling is the upper end of charts that omit the farthest samples. */
export function ceiling(s: Shown): number {
  return Math.min(s.quantile(1), s.fences.high + 2 * (s.fences.high - s.fences.low));
}

/** byLayer returns the durations of each layer from the lane where it takes the most
 * time, summed per inference where that is recorded. Key -1 is the whole inference. */
export function byLayer(t: Timeline | undefined): Map<number, Float32Array> {
  const out = new Map<number, Float32Array>();
  const most = new Map<number, number>();
  const put = (layer: number, values: number[]) => {
    let sum = 0;
    for (const v of values) sum += v;
    if (values.length > 1 && sum > (most.get(layer) ?? 0)) {
      most.set(layer, sum);
      out.set(layer, Float32Array.from(values));
    }
  };
  for (const lane of t?.lanes ?? []) {
    if (lane.kind === "iteration") put(-1, Array.from(lane.durations_s));
    if (lane.kind === "layer" && lane.layers) for (const [layer, values] of inLane(lane)) put(layer, values);
  }
  return out;
}

function inLane(lane: Lane): Map<number, number[]> {
  const values = new Map<number, number[]>();
  const last = new Map<number, number>();
  for (let i = 0; i < lane.durations_s.length; i++) {
    const layer = lane.layers![i];
    if (layer < 0) continue;
    let v = values.get(layer);
    if (!v) values.set(layer, (v = []));
    const run = lane.iterations?.[i] ?? -1;
    if (run >= 0 && v.length > 0 && last.get(layer) === run) v[v.length - 1] += lane.durations_s[i];
    else v.push(lane.durations_s[i]);
    last.set(layer, run);
  }
  return values;
}

/** Box holds the known figures of a metric for a box plot. */
export interface Box {
  marks: { name: string; at: number }[];
  ci?: [number, number];
  band?: [number, number];
}

export function box(m: Metric): Box {
  const names = { min: "min", median: "median", mean: "mean", p90: "p90", p95: "p95", p99: "p99", max: "max" } as const;
  const marks = (Object.keys(names) as (keyof typeof names)[]).filter((k) => m[k] !== undefined).map((k) => ({ name: names[k], at: m[k]! }));
  return { marks, ci: m.ci95, band: m.band };
}

/** spread is MAD × 1.4826 / median, from the metric or the samples. */
export function spread(m: Metric | undefined, s?: Shown): number | undefined {
  if (m?.mad !== undefined && m.median) return (1.4826 * m.mad) / m.median;
  if (s) {
    const mid = s.quantile(0.5);
    // Equal to the scaled MAD for a symmetric distribution.
    return mid > 0 ? (1.4826 * (s.quantile(0.75) - s.quantile(0.25))) / 2 / mid : undefined;
  }
  if (m?.stddev !== undefined && m.mean) return m.stddev / m.mean;
  return undefined;
}
