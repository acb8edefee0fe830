// Figures of a memory plan: live tensors at each step, and the peak.
import type { Buffer, Profile } from "../data/profile";

/** Alive holds the size of the live buffers by step, in bytes. */
export interface Alive {
  tensors: Float64Array;
  scratch: Float64Array;
  /** The first step with the largest sum; -1 for an empty plan. */
  peak: number;
  /** The sum there. */
  bytes: number;
}

/** steps is the number of steps of a memory plan, at least least. */
export function steps(plan: Buffer[], least = 0): number {
  let n = least;
  for (const p of plan) n = Math.max(n, p.last + 1);
  return n;
}

/** layerAt is the layer that runs at a step, -1 for none: steps of TensorFlow Lite Micro's
 * plan are allocation scopes, and outputs stay live for a step after the last layer. */
export function layerAt(p: Profile, step: number): number {
  const list = p.memory?.step_layers;
  const layer = step < 0 ? -1 : list ? (list[step] ?? -1) : step;
  return layer >= 0 && layer < p.layers.length ? layer : -1;
}

/** stepOf is the step at which a layer runs, -1 for none. A layer in a body has the step
 * of its owner in the main graph. */
export function stepOf(p: Profile, layer: number): number {
  for (let n = 0; n < 64 && p.layers[layer]?.parent !== undefined; n++) layer = p.layers[layer].parent!;
  const list = p.memory?.step_layers;
  return list ? Array.prototype.indexOf.call(list, layer) : layer;
}

/** running is the number of steps of a memory plan up to the last one with a layer. */
export function running(p: Profile, plan: Buffer[]): number {
  let n = steps(plan);
  while (n > 1 && layerAt(p, n - 1) < 0) n--;
  return n;
}

/** envelope is minimum and maximum of the live size in each of n equal parts of the steps
 * from a to b, for a chart with more steps than pixels. */
export function envelope(alive: Alive, a: number, b: number, n: number): { least: Float64Array; most: Float64Array } {
  const out = { least: new Float64Array(n), most: new Float64Array(n) };
  for (let i = 0; i < n; i++) {
    const from = Math.max(0, Math.floor(a + (i * (b - a)) / n));
    const to = Math.min(alive.tensors.length, Math.max(from + 1, Math.ceil(a + ((i + 1) * (b - a)) / n)));
    let [lo, hi] = [Infinity, 0];
    for (let s = from; s < to; s++) {
      lo = Math.min(lo, alive.tensors[s] + alive.scratch[s]);
      hi = Math.max(hi, alive.tensors[s] + alive.scratch[s]);
    }
    out.least[i] = lo === Infinity ? 0 : lo;
    out.most[i] = hi;
  }
  return out;
}

/** alive sums the sizes of the live buffers at each step. */
export function alive(plan: Buffer[], n: number): Alive {
  const tensors = new Float64Array(n + 1);
  const scratch = new Float64Array(n + 1);
  for (const p of plan) {
    const to = p.scratch ? scratch : tensors;
    if (p.first < 0 || p.first > p.last) continue;
    to[p.first] += p.bytes;
    to[p.last + 1] -= p.bytes;
  }
  let [peak, bytes] = [-1, 0];
  for (let i = 0; i < n; i++) {
    if (i > 0) {
      tensors[i] += tensors[i - 1];
      scratch[i] += scratch[i - 1];
    }
    if (tensors[i] + scratch[i] > bytes) {
      bytes = tensors[i] + scratch[i];
      peak = i;
    }
  }
  return { tensors: tensors.slice(0, n), scratch: scratch.slice(0, n), peak, bytes };
}

/** at lists the positions of the live buffers at a step, the largest first. */
export function at(plan: Buffer[], step: number): number[] {
  return [...plan.keys()].filter((i) => plan[i].first <= step && step <= plan[i].last).sort((a, b) => plan[b].bytes - plan[a].bytes || a - b);
}

/** top is the end of the highest buffer. */
export function top(plan: Buffer[]): number {
  let t = 0;
  for (const p of plan) t = Math.max(t, p.offset_bytes + p.bytes);
  return t;
}

/** highest is the end of the highest buffer at each step: the size of arena needed. */
export function highest(plan: Buffer[], n: number): Float64Array {
  const out = new Float64Array(n);
  for (const p of plan) for (let s = Math.max(0, p.first); s <= p.last && s < n; s++) out[s] = Math.max(out[s], p.offset_bytes + p.bytes);
  return out;
}

/** find returns the buffer at a step and an offset, the last one if several overlap; -1
 * for none. */
export function find(plan: Buffer[], step: number, offset: number): number {
  for (let i = plan.length - 1; i >= 0; i--) {
    const p = plan[i];
    if (p.first <= step && step <= p.last && p.offset_bytes <= offset && offset < p.offset_bytes + p.bytes) return i;
  }
  return -1;
}
