// Data of the roofline chart: operation rate of each layer against the limits of
// arithmetic and memory. The limits and the bottleneck of a layer come from the profile.
import { best, reached } from "../figures/quantities";
import type { Layer, Target } from "../data/profile";
import type { Scale } from "./scale";

/** The bottleneck of a layer. */
export type Bound = "memory" | "compute" | "overhead" | "unknown";

export interface Point {
  layer: number;
  /** Operations and bytes moved in one inference, over all calls. */
  ops?: number;
  bytes?: number;
  seconds: number;
  /** Operations per byte; absent without bytes or operations. */
  intensity?: number;
  /** Operations per second, and bytes per second. */
  rate?: number;
  bandwidth?: number;
  /** Fraction of the time of all layers. */
  share: number;
  /** Highest operation rate that the layer's limits allow at this intensity. */
  roof?: number;
  /** Element type and level of memory of its limits. */
  dtype?: string;
  level?: string;
  /** Utilisation: least time by the roofline divided by the time taken; above 1 when the
   * layer exceeds it. */
  use?: number;
  bound?: Bound;
}

/** One line of the roofline: an arithmetic peak or a memory bandwidth. */
export interface Line {
  name: string;
  rate: number;
}

export interface Roofline {
  points: Point[];
  /** Flat lines, by element type, and slopes, by level of memory; the highest first. */
  peaks: Line[];
  levels: Line[];
  /** The highest peak and bandwidth. */
  peakOps?: number;
  peakBytes?: number;
  /** Intensity at which the highest peak and bandwidth meet. */
  ridge?: number;
  /** Layers with a time that the chart omits: work unknown, or zero. */
  unknown: number[];
  workless: number[];
  /** Utilisation of all layers that have one, and the fraction of the whole time that
   * they make up. */
  use?: number;
  covered?: number;
  /** The highest operation rate of a layer. */
  bestRate?: number;
}

export function roofline(layers: Layer[], target: Target): Roofline {
  const points: Point[] = [];
  const unknown: number[] = [];
  const workless: number[] = [];
  let total = 0;
  for (const l of layers) {
    const seconds = best(l.latency_s);
    if (seconds === undefined || !(seconds > 0) || !reached(l)) continue;
    total += seconds;
    const ops = l.ops;
    const bytes = l.bytes_read === undefined || l.bytes_written === undefined ? undefined : l.bytes_read + l.bytes_written;
    const p: Point = { layer: l.index, ops, bytes, seconds, share: 0 };
    if (ops !== undefined) p.rate = ops / seconds;
    if (bytes !== undefined) p.bandwidth = bytes / seconds;
    if (ops !== undefined && bytes !== undefined && bytes > 0) p.intensity = ops / bytes;
    const r = l.roof;
    if (r) {
      [p.use, p.bound, p.dtype, p.level] = [r.use, r.bound, r.dtype, r.level];
      if (p.intensity && r.ops_per_second) p.roof = r.bytes_per_second ? Math.min(r.ops_per_second, p.intensity * r.bytes_per_second) : r.ops_per_second;
    }
    points.push(p);
    if (ops === undefined || bytes === undefined) unknown.push(l.index);
    else if (!(ops > 0) || !(bytes > 0)) workless.push(l.index);
  }
  let covered = 0;
  let atRoof = 0;
  let bestRate = 0;
  for (const p of points) {
    p.share = p.seconds / total;
    bestRate = Math.max(bestRate, p.rate ?? 0);
    if (p.use !== undefined) {
      covered += p.seconds;
      atRoof += p.use * p.seconds;
    }
  }
  // Peaks of element types that no layer computes in say nothing about the model.
  const used = new Set(points.map((p) => p.dtype).filter(Boolean));
  const peaks = lines((target.peaks ?? []).filter((k) => used.size === 0 || used.has(k.dtype)).map((k) => ({ name: k.dtype, rate: k.ops_per_second })), target.peak_ops_per_second, "arithmetic");
  const levels = lines((target.levels ?? []).map((k) => ({ name: k.name, rate: k.bytes_per_second })), target.peak_bytes_per_second, "memory");
  const peakOps = peaks[0]?.rate;
  const peakBytes = levels[0]?.rate;
  return {
    points,
    peaks,
    levels,
    peakOps,
    peakBytes,
    ridge: peakOps && peakBytes ? peakOps / peakBytes : undefined,
    unknown,
    workless,
    use: covered > 0 ? atRoof / covered : undefined,
    covered: covered > 0 ? covered / total : undefined,
    bestRate: bestRate > 0 ? bestRate : undefined,
  };
}

/** lines returns the known rates, the highest first; without a list, the single rate. */
function lines(list: Line[], one: number | undefined, name: string): Line[] {
  const known = list.length > 0 ? list : one !== undefined ? [{ name, rate: one }] : [];
  return known.filter((l) => l.rate > 0).sort((a, b) => b.rate - a.rate);
}

/** relative is the rate divided by that of the fastest layer, for targets without known
 * limits. */
export function relative(r: Roofline, p: Point): number | undefined {
  return r.bestRate && p.rate !== undefined ? p.rate / r.bestRate : undefined;
}

/** outline is the path of the roofline of an arithmetic peak and a memory bandwidth, from the left end
 * of the scales to the right one; "" if it is outside of them. */
export function outline(ops: number | undefined, bytes: number | undefined, x: Scale, y: Scale): string {
  if (!ops) return "";
  const [[start, end], [low]] = [x.domain, y.domain];
  if (!bytes) return `M${x(start)},${y(ops)}H${x(end)}`;
  // The slope may leave the chart at the bottom or at the left, or be outside of it.
  const foot = Math.max(start, low / bytes);
  const at = ops / bytes;
  if (foot >= end) return "";
  if (at >= end) return `M${x(foot)},${y(foot * bytes)}L${x(end)},${y(end * bytes)}`;
  return at <= foot ? `M${x(start)},${y(ops)}H${x(end)}` : `M${x(foot)},${y(foot * bytes)}L${x(at)},${y(ops)}H${x(end)}`;
}
