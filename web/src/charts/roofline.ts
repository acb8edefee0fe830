// What the roofline shows: how fast each layer ran against what arithmetic and
// memory of the target allow.
import { best } from "../figures/quantities";
import type { Layer, Roof, Target } from "../data/profile";

/** What keeps a layer from being faster, as the profile says. */
export type Bound = NonNullable<Roof["bound"]>;

export interface Point {
  layer: number;
  /** Operations and bytes moved in one inference, over all calls. */
  ops?: number;
  bytes?: number;
  seconds: number;
  /** Operations a byte; absent without bytes or operations. */
  intensity?: number;
  /** Operations a second, and bytes a second. */
  rate?: number;
  bandwidth?: number;
  /** Part of the time of all layers. */
  share: number;
  /** Most operations a second that the limits of this layer allow at its intensity, and
   * what these limits are: the element type and the level of the memory. */
  roof?: number;
  dtype?: string;
  level?: string;
  /** Time at the roof as a part of the time taken; above 1 when the layer exceeds it. */
  use?: number;
  bound?: Bound;
}

/** Limit is the rate of an element type, or of a level of the memory. */
export interface Limit {
  /** "" where the target has one only. */
  name: string;
  rate: number;
}

export interface Roofline {
  points: Point[];
  /** Limits that layers are judged by, the highest first. */
  peaks: Limit[];
  levels: Limit[];
  /** Intensity at which the limits meet, where there is one of each. */
  ridge?: number;
  /** Layers with a time that have no place on the chart, by reason. */
  unknown: number[];
  workless: number[];
  /** Time at the roof of all layers with one as a part of their time, and the part of
   * the whole time that they make up. */
  use?: number;
  covered?: number;
  /** The best rate of any layer. */
  bestRate?: number;
}

export function roofline(layers: Layer[], target: Target): Roofline {
  const peaks = new Map<string, number>();
  const levels = new Map<string, number>();
  const points: Point[] = [];
  const unknown: number[] = [];
  const workless: number[] = [];
  let total = 0;
  for (const l of layers) {
    const seconds = best(l.latency_s);
    if (seconds === undefined || !(seconds > 0)) continue;
    total += seconds;
    const ops = l.ops;
    const bytes = l.bytes_read === undefined || l.bytes_written === undefined ? undefined : l.bytes_read + l.bytes_written;
    const p: Point = { layer: l.index, ops, bytes, seconds, share: 0 };
    if (ops !== undefined) p.rate = ops / seconds;
    if (bytes !== undefined) p.bandwidth = bytes / seconds;
    if (ops !== undefined && bytes !== undefined && bytes > 0) p.intensity = ops / bytes;
    const r = l.roof;
    if (r) {
      Object.assign(p, { use: r.use, bound: r.bound, dtype: r.dtype, level: r.level });
      if (r.ops_per_second) peaks.set(r.dtype ?? "", r.ops_per_second);
      if (r.bytes_per_second) levels.set(r.level ?? "", r.bytes_per_second);
      if (p.intensity) p.roof = Math.min(r.ops_per_second ?? Infinity, r.bytes_per_second === undefined ? Infinity : p.intensity * r.bytes_per_second);
      if (p.roof === Infinity) p.roof = undefined;
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
  // Limits of a target that no layer could be judged by.
  if (peaks.size === 0 && positive(target.peak_ops_per_second)) peaks.set("", target.peak_ops_per_second!);
  if (levels.size === 0 && positive(target.peak_bytes_per_second)) levels.set("memory", target.peak_bytes_per_second!);
  const list = (m: Map<string, number>): Limit[] => [...m].map(([name, rate]) => ({ name, rate })).sort((a, b) => b.rate - a.rate);
  const [ops, bytes] = [list(peaks), list(levels)];
  return {
    points,
    peaks: ops,
    levels: bytes,
    ridge: ops.length === 1 && bytes.length === 1 ? ops[0].rate / bytes[0].rate : undefined,
    unknown,
    workless,
    use: covered > 0 ? atRoof / covered : undefined,
    covered: covered > 0 ? covered / total : undefined,
    bestRate: bestRate > 0 ? bestRate : undefined,
  };
}

function positive(v: number | undefined): number | undefined {
  return v !== undefined && v > 0 ? v : undefined;
}

/** A third bar for charts without peaks: the rate as a part of the best layer's. */
export function relative(r: Roofline, p: Point): number | undefined {
  return r.bestRate && p.rate !== undefined ? p.rate / r.bestRate : undefined;
}
