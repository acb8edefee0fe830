// Predicts time, size and loss of a model whose layers are changed, from the measured curves of a
// study, by the rules of its plans (internal/compress/choose): ratios of changes that affect a layer
// multiply, times of layers add up, and losses add up as the metric says.
import { best } from "../figures/quantities";
import { denseTime, ratio } from "./data";
import type { Change, Correction, Layer, Loss, Speed, SpeedPoint, Study } from "./types";

/** Prediction is what changes are expected to give. Undefined figures are unknown. */
export interface Prediction {
  /** Seconds, or operations where they were counted; before is that of the unchanged model. */
  time?: number;
  before?: number;
  /** Bytes of weights. */
  bytes: number;
  bytesBefore: number;
  /** The share of weights that are zero or removed. */
  sparsity: number;
  /** The loss in the unit of the metric: the drop where higher is better, decibels for a ratio. */
  loss?: number;
  /** Layers whose change was not measured: their time or loss is unknown. */
  unknown: number[];
}

type Curve = [number, number][];
const at = (c: Curve | undefined, level: number): number | undefined => {
  for (const [i, [l, v]] of (c ?? []).entries()) {
    if (l === level) return v;
    if (l < level) continue;
    if (i === 0) return undefined;
    const [l0, v0] = c![i - 1];
    return v0 + ((v - v0) * (level - l0)) / (l - l0);
  }
  return undefined;
};
const put = (c: Curve, level: number, v: number) => {
  if (!c.some(([l]) => l === level)) c.push([level, v]);
  c.sort((a, b) => a[0] - b[0]);
};

const kind = (c: Change) => `${c.structure ?? ""}|${c.format ?? ""}`;
const none = (c: Change | undefined) => !c || (!c.structure && !c.format);
const removes = (c: Change) => c.structure === "channel" || c.structure === "filter";

/** A part of the whole time is as uncertain for any change as if it were saved. */
const overhead = 0.1;

/** The fewest models with mixed changes for a fit. */
const fewest = 4;

/** converted is the share of the outputs between int8 layers and others, as if each layer read the
 * one before. */
function converted(layers: Layer[], changes: (Change | undefined)[]): number {
  const sizes = layers.map((l) => (l.macs !== undefined && l.cols > 0 ? l.macs / l.cols : 0));
  const is = (i: number) => changes[i]?.format === "int8";
  let crossed = 0;
  // The size of the input of the first layer is unknown: that of its output stands for it.
  for (let i = 0; i <= layers.length; i++) if (is(i) !== is(i - 1)) crossed += sizes[Math.max(0, i - 1)] ?? 0;
  const all = sizes.reduce((a, b) => a + b, 0);
  return all > 0 ? crossed / all : 0;
}

interface Effect {
  own: Curve;
  others: Map<number, Curve>;
  rest: Curve;
  tied: number[];
}

/** Model has the curves of a study, read once. */
export class Model {
  private readonly effects: Map<string, Effect>[];
  private readonly losses: Map<string, Curve>[];
  private readonly bases: number[];
  private readonly outside: number;
  private readonly whole: number;
  private gain = 1;
  /** Time to convert the outputs of all layers, as a share of the unchanged model's time. */
  private convert = 0;
  private readonly adds: "noise" | "plain";

  constructor(
    readonly study: Study,
    readonly speed: Speed | undefined,
    readonly loss: Loss | undefined,
    /** That of the plan: what an earlier plan taught when it was run. */
    readonly correction: Correction = {},
  ) {
    this.bases = study.layers.map((_, i) => denseTime(speed, i) ?? 0);
    const sum = this.bases.reduce((a, b) => a + b, 0);
    this.whole = (!speed?.counted && best(speed?.latency_s)) || sum;
    this.outside = this.whole - sum;
    this.effects = study.layers.map(() => new Map<string, Effect>());
    this.losses = study.layers.map(() => new Map<string, Curve>());
    this.adds = loss?.metric === "snr_db" ? "noise" : "plain";
    for (const p of speed?.points ?? []) this.addSpeed(p);
    this.addLosses();
    this.fit();
    this.gain *= correction.gain || 1;
  }

  /** Times were measured on a computer: conversions and the factor on savings count. */
  private get measured(): boolean {
    return this.speed?.target === "host" && !this.speed.counted;
  }

  private addSpeed(p: SpeedPoint) {
    const of = this.effects[p.layer];
    if (!of) return;
    let own = ratio(p, denseTime(this.speed, p.layer));
    if (own !== undefined && this.measured && !p.others?.length && (p.cause === "no_kernel" || p.cause === "unsettled")) own = 1;
    if (own === undefined) return;
    const k = kind(p.change);
    let e = of.get(k);
    if (!e) of.set(k, (e = { own: p.change.format ? [] : [[0, 1]], others: new Map(), rest: p.change.format ? [] : [[0, 0]], tied: [] }));
    const level = p.change.level ?? 0;
    put(e.own, level, own);
    e.tied = p.with ?? [];
    for (const o of p.others ?? []) {
      const r = best(o.ratio);
      if (r === undefined) continue;
      if (!e.others.has(o.layer)) e.others.set(o.layer, p.change.format ? [] : [[0, 1]]);
      put(e.others.get(o.layer)!, level, r);
    }
    const rest = best(p.rest_s);
    if (rest !== undefined) put(e.rest, level, rest);
  }

  private addLosses() {
    const base = best(this.loss?.base);
    const higher = this.loss?.higher || this.loss?.metric === "cosine" || this.loss?.metric === "top1";
    const from = higher ? (base ?? (this.loss?.higher ? undefined : 1)) : (base ?? 0);
    for (const p of this.loss?.points ?? []) {
      const v = best(p.value);
      if (v === undefined || none(p.change) || !this.losses[p.layer]) continue;
      let x: number;
      if (this.adds === "noise") x = 10 ** (-v / 10);
      else if (from === undefined) continue;
      else x = Math.max(0, higher ? from - v : v - from);
      // Layers that change together have one loss, at the first of them.
      if (p.with?.length && Math.min(...p.with) < p.layer) x = 0;
      x = x * (this.correction.loss || 1) + (this.correction.extra ?? 0);
      const k = kind(p.change);
      if (!this.losses[p.layer].has(k)) this.losses[p.layer].set(k, !p.change.format && p.change.structure !== "2:4" ? [[0, 0]] : []);
      put(this.losses[p.layer].get(k)!, p.change.level ?? 0, x);
    }
    // A structure with a format loses what both lose, unless that was measured.
    for (const all of this.losses) {
      for (const [s, curve] of [...all]) {
        for (const [f, flat] of [...all]) {
          const both = s.slice(0, -1) + f;
          if (s.endsWith("|") && f.startsWith("|") && !all.has(both)) all.set(both, curve.map(([l, v]) => [l, v + flat[0][1]]));
        }
      }
    }
  }

  /** fit finds the factor on savings and the time of conversions from the models with mixed
   * changes, by least squares. Errors of a model grow with its savings. */
  private fit() {
    if (!this.measured || best(this.speed?.latency_s) === undefined || this.whole <= 0) return;
    let [n, ss, sc, cc, es, ec] = [0, 0, 0, 0, 0, 0];
    for (const m of this.speed?.mixed ?? []) {
      const ratio = best(m.ratio);
      const t = this.sum(m.changes);
      if (ratio === undefined || t === undefined) continue;
      const scale = t.saved / this.whole + overhead;
      const [e, s, c] = [(ratio - t.time / this.whole) / scale, t.saved / this.whole / scale, converted(this.study.layers, m.changes) / scale];
      n++;
      ss += s * s;
      sc += s * c;
      cc += c * c;
      es += e * s;
      ec += e * c;
    }
    if (n < fewest) return;
    const d = ss * cc - sc * sc;
    const [a, b] = d > 1e-9 * ss * cc ? [(es * cc - ec * sc) / d, (ec * ss - es * sc) / d] : [0, -1];
    if (b >= 0) [this.gain, this.convert] = [1 - a, b];
    else if (ss > 0) this.gain = 1 - es / ss;
  }

  /** kinds lists structures and formats that were measured for a layer, as changes without a level. */
  kinds(layer: number): Change[] {
    return [...this.effects[layer].keys()].map((k) => {
      const [structure, format] = k.split("|");
      return { ...(structure && { structure }), ...(format && { format }) };
    });
  }

  /** highest is the highest level at which a change was measured, undefined for none. */
  highest(layer: number, c: Change): number | undefined {
    return this.effects[layer].get(kind(c))?.own.at(-1)?.[0];
  }

  /** lossCurve is the loss of a layer by level. */
  lossCurve(layer: number, c: Change): [number, number][] {
    return this.losses[layer].get(kind(c)) ?? [];
  }

  /** layerTime is the time of a layer with a change of its own, undefined where it was not measured. */
  layerTime(layer: number, c: Change | undefined): number | undefined {
    const r = none(c) ? 1 : at(this.effects[layer].get(kind(c!))?.own, c!.level ?? 0);
    return r === undefined || !this.bases[layer] ? undefined : r * this.bases[layer];
  }

  /** tied are the layers that must have the same change. */
  tied(layer: number, c: Change): number[] {
    return this.effects[layer].get(kind(c))?.tied ?? [];
  }

  /** sum adds the times of layers up, and how far they change. */
  private sum(changes: (Change | undefined)[], unknown: number[] = []): { time: number; saved: number } | undefined {
    const of = this.bases.map(() => 1);
    let rest = 0;
    let complete = this.whole > 0;
    const by = (r: number) => Math.max(0, 1 - this.gain * (1 - r));
    changes.forEach((c, i) => {
      if (none(c) || i >= of.length) return;
      const e = this.effects[i].get(kind(c!));
      const own = at(e?.own, c!.level ?? 0);
      if (own === undefined) {
        complete = false;
        unknown.push(i);
        return;
      }
      of[i] *= by(own);
      for (const [o, curve] of e!.others) of[o] *= by(at(curve, c!.level ?? 0) ?? 1);
      rest += this.gain * (at(e!.rest, c!.level ?? 0) ?? 0);
    });
    if (!complete) return undefined;
    const outside = Math.max(Math.min(0, this.outside), this.outside + rest);
    return {
      time: outside + of.reduce((sum, r, i) => sum + r * this.bases[i], 0),
      saved: Math.abs(outside - this.outside) + of.reduce((sum, r, i) => sum + Math.abs(1 - r) * this.bases[i], 0),
    };
  }

  private time(changes: (Change | undefined)[], unknown: number[] = []): number | undefined {
    const t = this.sum(changes, unknown);
    return t && (t.saved > 0 ? t.time + this.convert * this.whole * converted(this.study.layers, changes) : t.time);
  }

  private lossOf(changes: (Change | undefined)[], unknown: number[]): number | undefined {
    if (!this.loss) return undefined;
    let sum = 0;
    let complete = true;
    changes.forEach((c, i) => {
      if (none(c)) return;
      const v = at(this.losses[i].get(kind(c!)), c!.level ?? 0);
      if (v !== undefined) sum += v;
      else {
        complete = false;
        if (!unknown.includes(i)) unknown.push(i);
      }
    });
    if (!complete) return undefined;
    return this.adds === "noise" ? (sum > 0 ? -10 * Math.log10(sum) : undefined) : sum;
  }

  /** predict gives the effect of a change for each layer. */
  predict(changes: (Change | undefined)[]): Prediction {
    const unknown: number[] = [];
    const time = this.time(changes, unknown);
    const loss = this.lossOf(changes, unknown);
    let bytes = 0;
    let bytesBefore = 0;
    let zeros = 0;
    let weights = 0;
    this.study.layers.forEach((l, i) => {
      const c = changes[i] ?? {};
      bytes += bytesOf(l, c);
      bytesBefore += bytesOf(l, {});
      const n = l.rows * l.cols;
      weights += n;
      zeros += c.structure ? Math.max(l.zeros, Math.round((c.level ?? 0) * n)) : l.zeros;
    });
    return { time, before: this.whole > 0 ? this.whole : undefined, bytes, bytesBefore, sparsity: weights > 0 ? zeros / weights : 0, loss, unknown };
  }
}

const bits: Record<string, number> = { int8: 8, uint8: 8, int4: 4, uint4: 4, int16: 16, float16: 16, bfloat16: 16, float64: 64, int64: 64 };

/** bytesOf is the stored size of weights and bias with a change. Zeros are stored, too; removed
 * filters and channels are not. */
export function bytesOf(l: Layer, c: Change): number {
  let n = l.rows * l.cols;
  const weights = n;
  if (removes(c)) n -= Math.round((c.level ?? 0) * n);
  const own = bits[l.type.toLowerCase()] ?? 32;
  let [width, scales] = [own, 0];
  if (c.format === "int8" || c.format === "w8") [width, scales] = [8, 4 * l.rows];
  else if (c.format === "dynamic8") [width, scales] = [8, 4];
  else if (c.format === "w4") [width, scales] = [4, 4 * l.rows];
  else if (c.format === "float16") width = 16;
  if (width >= own) [width, scales] = [own, 0];
  return Math.floor((n * width + 7) / 8) + scales + 4 * Math.max(0, l.params - weights);
}
