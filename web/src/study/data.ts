// Data of the views of a compression study.
import { best } from "../figures/quantities";
import { cause, change as changeText, format, level, limit, structure } from "./words";
import type { Change, Layer, Loss, LossPoint, Plan, Speed, SpeedPoint, Study } from "./types";

/** key identifies a change. */
export function key(c: Change): string {
  return `${c.structure ?? ""} ${c.level ?? 0} ${c.format ?? ""}`;
}

/** distinct lists the changes of points, each once. */
export function distinct(points: { change: Change }[] | undefined): Change[] {
  return [...new Map((points ?? []).map((p) => [key(p.change), p.change])).values()];
}

/** Curve is one kind of change at increasing levels. */
export interface Curve<P> {
  structure: string;
  format: string;
  points: P[];
}

/** curves collects the points of a layer by structure and format, by increasing level. */
export function curves<P extends { layer: number; change: Change }>(points: P[] | undefined, layer: number): Curve<P>[] {
  const by = new Map<string, Curve<P>>();
  for (const p of points ?? []) {
    if (p.layer !== layer) continue;
    const structure = p.change.structure ?? "";
    const format = p.change.format ?? "";
    const k = `${structure}|${format}`;
    let c = by.get(k);
    if (!c) by.set(k, (c = { structure, format, points: [] }));
    c.points.push(p);
  }
  for (const c of by.values()) c.points.sort((a, b) => (a.change.level ?? 0) - (b.change.level ?? 0));
  return [...by.values()];
}

/** Row holds the figures of a layer for one speed, loss and plan. */
export interface Row {
  index: number;
  layer: Layer;
  dense?: number;
  share?: number;
  /** The point with the largest gain. */
  fastest?: SpeedPoint;
  fastestRatio?: number;
  /** The time with the plan's change divided by that without. */
  planRatio?: number;
  chosen?: Change;
  after?: number;
  loss: LossPoint[];
  verdict: string;
}

/** ratio is the time with a change divided by the time without. */
export function ratio(p: SpeedPoint, dense: number | undefined): number | undefined {
  const r = best(p.ratio);
  if (r !== undefined) return r;
  const t = best(p.latency_s);
  return t !== undefined && dense ? t / dense : undefined;
}

/** denseTime is the time of the unchanged layer in seconds, or its operations where no time
 * was measured. */
export function denseTime(s: Speed | undefined, layer: number): number | undefined {
  const t = s?.layers?.find((l) => l.layer === layer);
  return t && (best(t.latency_s) ?? t.ops);
}

/** gained is the time with a change divided by the time without, over the layer and all
 * layers that the change makes smaller. */
export function gained(s: Speed | undefined, p: SpeedPoint): number | undefined {
  const dense = denseTime(s, p.layer);
  const own = ratio(p, dense);
  if (own === undefined || dense === undefined || !p.others?.length) return own;
  let before = dense;
  let after = own * dense;
  for (const o of p.others) {
    const t = denseTime(s, o.layer);
    const r = best(o.ratio);
    if (t === undefined || r === undefined) continue;
    before += t;
    after += r * t;
  }
  return before > 0 ? after / before : own;
}

/** gains tells whether a change makes a layer faster for certain: a kernel exists, some work is left,
 * and the interval of a measurement ends below 1. The table in the terminal has the same rule. */
function gains(s: Speed | undefined, p: SpeedPoint, r: number | undefined): boolean {
  if (r === undefined || p.cause || r <= 0 || r >= 1) return false;
  const ends = p.ratio?.ci95 ?? p.ratio?.band;
  return !(ends && !p.others?.length && ends[1] >= 1 && s?.target === "host");
}

/** byLayer collects points by layer. */
function byLayer<P extends { layer: number }>(points: P[] | undefined): Map<number, P[]> {
  const by = new Map<number, P[]>();
  for (const p of points ?? []) {
    const list = by.get(p.layer);
    if (list) list.push(p);
    else by.set(p.layer, [p]);
  }
  return by;
}

/** rows returns one row per layer. */
export function rows(study: Study, speed: Speed | undefined, loss: Loss | undefined, plan: Plan | undefined): Row[] {
  const total = speed?.layers?.reduce((sum, l) => sum + (best(l.latency_s) ?? l.ops ?? 0), 0) ?? 0;
  const whole = Math.max(best(speed?.latency_s) ?? 0, total);
  const speeds = byLayer(speed?.points);
  const losses = byLayer(loss?.points);
  return study.layers.map((layer, index) => {
    const dense = denseTime(speed, index);
    let fastest: SpeedPoint | undefined;
    let fastestRatio: number | undefined;
    for (const p of speeds.get(index) ?? []) {
      const r = gained(speed, p);
      if (gains(speed, p, r) && (fastestRatio === undefined || r! < fastestRatio)) [fastest, fastestRatio] = [p, r];
    }
    const choice = plan?.choices.find((c) => c.layer === index);
    const chosenPoint = choice && (speeds.get(index) ?? []).find((p) => key(p.change) === key(choice.change) && !p.cause);
    const changed = choice?.change.structure || choice?.change.format;
    const row: Row = {
      index,
      layer,
      dense,
      share: dense !== undefined && whole > 0 ? dense / whole : undefined,
      fastest,
      fastestRatio,
      planRatio: chosenPoint ? gained(speed, chosenPoint) : changed && choice?.time_s && dense ? choice.time_s / dense : undefined,
      chosen: choice?.change,
      after: choice?.time_s ?? (choice && !choice.change.structure && !choice.change.format ? dense : undefined),
      loss: (losses.get(index) ?? []).toSorted((a, b) => (a.change.level ?? 0) - (b.change.level ?? 0)),
      verdict: "",
    };
    row.verdict = verdict(row, speed, choice?.cause, speeds.get(index));
    return row;
  });
}

/** verdict summarises a row in words. */
function verdict(r: Row, speed: Speed | undefined, why: string | undefined, points: SpeedPoint[] | undefined): string {
  if (r.layer.fixed) return `Unchanged: ${cause(r.layer.fixed)}.`;
  if (r.chosen && (r.chosen.structure || r.chosen.format)) {
    const gain = r.planRatio && r.planRatio < 1 ? `, ${(1 / r.planRatio).toFixed(2)} times as fast` : "";
    return `${changeText(r.chosen)}${gain}.`.replace(/^./, (c) => c.toUpperCase());
  }
  if (why) return `Unchanged: ${cause(why)}.`;
  if (r.fastestRatio !== undefined) return `Up to ${(1 / r.fastestRatio).toFixed(1)} times as fast, whatever it loses.`;
  const causes = [...new Set((points ?? []).map((p) => p.cause).filter(Boolean))];
  if (causes.length > 0) return `${cause(causes[0])}.`.replace(/^./, (c) => c.toUpperCase());
  const l = limit(speed?.layers?.find((t) => t.layer === r.index)?.limit);
  return points?.length ? `No change makes a kernel faster${l ? `; ${l}` : ""}.` : "";
}

/** refusals says why changes of a layer gain nothing, and at which levels. */
export function refusals(points: SpeedPoint[] | undefined, layer: number): string[] {
  const levels = new Map<string, number[]>();
  for (const p of points ?? []) {
    if (p.layer !== layer || !p.cause) continue;
    const what = [p.change.structure ? structure(p.change.structure) : "", format(p.change.format)].filter(Boolean).join(", ");
    const k = `${what}|${cause(p.cause)}`;
    levels.set(k, [...(levels.get(k) ?? []), ...(p.change.structure ? [p.change.level ?? 0] : [])]);
  }
  return [...levels].map(([k, list]) => {
    const [what, why] = k.split("|");
    return `${what}${list.length > 0 ? ` at ${list.toSorted((a, b) => a - b).map(level).join(", ")}` : ""}: ${why}`;
  });
}

/** Optimisable splits the time by what compression can reduce. */
export interface Optimisable {
  /** Seconds or operations of layers that gain, of layers with weights that do not, and of
   * layers without weights. */
  gains: number;
  none: number;
  others: number;
  whole: number;
}

/** optimisable splits the time of an inference; undefined if that is unknown. */
export function optimisable(list: Row[], speed: Speed | undefined): Optimisable | undefined {
  if (!speed) return undefined;
  let gains = 0;
  let none = 0;
  for (const r of list) {
    if (r.dense === undefined) continue;
    if (r.fastestRatio !== undefined) gains += r.dense;
    else none += r.dense;
  }
  const whole = Math.max(best(speed.latency_s) ?? 0, gains + none);
  return whole > 0 ? { gains, none, others: Math.max(0, whole - gains - none), whole } : undefined;
}

/** Bar is a figure of a layer or of an operator. */
export interface Bar {
  name: string;
  value: number;
  /** Position in the study, -1 for an operator. */
  layer: number;
}

/** grouped sums bars by operator. */
export function grouped(bars: Bar[], study: Study): Bar[] {
  const sums = new Map<string, number>();
  for (const b of bars) {
    const op = study.layers[b.layer].op;
    sums.set(op, (sums.get(op) ?? 0) + b.value);
  }
  return [...sums].map(([name, value]) => ({ name, value, layer: -1 })).sort((a, b) => b.value - a.value);
}
