// What the roofline shows: how fast each layer ran against what arithmetic and
// memory of the target allow.
import { best } from "../figures/quantities";
import type { Layer, Target } from "../data/profile";

/** What keeps a layer from being faster, as far as the two peaks tell. */
export type Bound = "memory" | "compute" | "overhead";

/** Below this part of the roof neither peak explains the time of a layer. */
export const overheadBelow = 0.1;

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
  /** Most operations a second that the peaks allow at this intensity. */
  roof?: number;
  /** Time at the roof as a part of the time taken; above 1 when the layer exceeds it. */
  use?: number;
  bound?: Bound;
}

export interface Roofline {
  points: Point[];
  peakOps?: number;
  peakBytes?: number;
  /** Intensity at which both limits meet. */
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
  const peakOps = positive(target.peak_ops_per_second);
  const peakBytes = positive(target.peak_bytes_per_second);
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
    limits(p, peakOps, peakBytes);
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
  return {
    points,
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

function positive(v: number | undefined): number | undefined {
  return v !== undefined && v > 0 ? v : undefined;
}

/** limits sets roof, use and bound. A single known peak gives a roof, but does not
 * tell memory and arithmetic apart. */
function limits(p: Point, peakOps: number | undefined, peakBytes: number | undefined) {
  const byOps = peakOps && p.ops !== undefined ? p.ops / peakOps : undefined;
  const byBytes = peakBytes && p.bytes !== undefined ? p.bytes / peakBytes : undefined;
  if (peakOps && p.intensity !== undefined && p.intensity > 0) p.roof = peakBytes ? Math.min(peakOps, p.intensity * peakBytes) : peakOps;
  if ((peakOps && byOps === undefined) || (peakBytes && byBytes === undefined)) return;
  const least = Math.max(byOps ?? 0, byBytes ?? 0);
  if (byOps === undefined && byBytes === undefined) return;
  p.use = least / p.seconds;
  if (byOps === undefined || byBytes === undefined) return;
  p.bound = p.use < overheadBelow ? "overhead" : byBytes > byOps ? "memory" : "compute";
}

/** A third bar for charts without peaks: the rate as a part of the best layer's. */
export function relative(r: Roofline, p: Point): number | undefined {
  return r.bestRate && p.rate !== undefined ? p.rate / r.bestRate : undefined;
}
