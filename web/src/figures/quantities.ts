// Figures of layers and of the whole model by the table of quantities in the page. The
// table defines name, unit and quotients, so that a new figure needs no code here.
import type { Layer, Metric, Profile, Quantity, Totals } from "../data/profile";
import { blank } from "./words";

/** best is the figure to show of a metric: median, else mean, minimum. */
export function best(m: Metric | undefined): number | undefined {
  return m?.median ?? m?.mean ?? m?.min;
}

/** interval is the interval of the best figure: the band of an estimate, or else the
 * confidence interval. One that does not enclose the figure belongs to another statistic. */
export function interval(m: Metric | undefined): [number, number] | undefined {
  return encloses(m?.band ?? m?.ci95, best(m));
}

/** encloses returns an interval if a value lies in it, but for rounding. */
export function encloses(ends: [number, number] | undefined, v: number | undefined): [number, number] | undefined {
  if (!ends || v === undefined) return undefined;
  const slack = 1e-9 * Math.abs(v);
  return v >= ends[0] - slack && v <= ends[1] + slack ? ends : undefined;
}

/** counters are the keys of the time and of the counts that replace an unknown time. */
export const counters = ["latency_s", "cpu_cycles", "instructions", "ticks"] as const;

/** counted is the best figure of a metric under a key. */
export function counted(of: Layer | Totals, key: (typeof counters)[number]): number | undefined {
  const v = stored(of, key);
  return typeof v === "number" ? v : best(v);
}

/** stored returns the value of a layer or of the totals under a key: a metric, or a
 * number for counts and fractions. */
export function stored(of: Layer | Totals, key: string): Metric | number | undefined {
  const v = (of as unknown as Record<string, unknown>)[key];
  if (typeof v === "number") return v;
  if (typeof v === "object" && v !== null && "kind" in v && best(v as Metric) !== undefined) return v as Metric;
  if (key.startsWith("sparsity_") && "sparsity" in of) {
    const part = (of.sparsity as unknown as Record<string, unknown>)[key.slice("sparsity_".length)];
    if (typeof part === "number") return part;
  }
  return of.figures?.[key];
}

/** reached reports whether an inference called a layer: others are in no sum. */
export const reached = (l: Layer): boolean => l.state !== "not_reached";

/** shared is the part of a layer's count that another layer has too. Sums leave it out. */
export function shared(l: Layer, key: string): number {
  return (key === "params" ? l.shared_params : key === "weights_bytes" ? l.shared_weights_bytes : undefined) ?? 0;
}

/** Figures reads figures by the table of quantities. */
export class Figures {
  readonly known: Map<string, Quantity>;

  constructor(readonly list: Quantity[]) {
    this.known = new Map(list.map((q) => [q.key, q]));
  }

  /** value is the figure to show, undefined where it is unknown. A quotient is known if
   * all of its parts are and the divisor is above zero. */
  value(of: Layer | Totals, key: string): number | undefined {
    const q = this.known.get(key);
    if (q?.of?.length) {
      const over = this.parts(of, q.of);
      const under = this.parts(of, q.per ?? []);
      return over === undefined || under === undefined ? undefined : quotient(over, under);
    }
    const v = stored(of, key);
    return typeof v === "number" ? v : best(v);
  }

  /** metric is the figure with its provenance and spread, where it has them. */
  metric(of: Layer | Totals, key: string): Metric | undefined {
    if (this.known.get(key)?.of?.length) return undefined;
    const v = stored(of, key);
    return typeof v === "number" ? undefined : v;
  }

  private parts(of: Layer | Totals, keys: string[]): number | undefined {
    let sum = 0;
    for (const k of keys) {
      const v = this.value(of, k);
      if (v === undefined) return undefined;
      sum += v;
    }
    return sum;
  }

  /** sum adds up a figure over the layers that an inference reached, undefined where none
   * is known or the figure does not add up. Weights of several layers count once. A quotient is that of the sums over the layers that have all its parts,
   * so that a rate leaves out work without a time. */
  sum(all: Layer[], key: string): number | undefined {
    const layers = all.filter(reached);
    const q = this.known.get(key);
    if (q?.of?.length) {
      let [over, under] = [0, 0];
      for (const l of layers) {
        const [a, b] = [this.parts(l, q.of), this.parts(l, q.per ?? [])];
        if (a === undefined || b === undefined) continue;
        over += a;
        under += b;
      }
      return quotient(over, under);
    }
    if (!q?.adds) return undefined;
    let s: number | undefined;
    for (const l of layers) {
      const v = this.value(l, key);
      if (v !== undefined) s = (s ?? 0) + v - shared(l, key);
    }
    return s;
  }

  /** rate is a quotient of the whole model. It leaves out the work of layers that did not
   * run or have no time. */
  rate(p: Profile, key: string): number | undefined {
    return this.value(took(p), key);
  }
}

function quotient(over: number, under: number): number | undefined {
  const v = over / under;
  return under > 0 && Number.isFinite(v) ? v : undefined;
}

/** took returns the totals without the work of layers that have no part in the time. */
export function took(p: Profile): Totals {
  const t = { ...p.totals };
  const out = p.layers.filter((l) => blank(l) && !l.constant);
  for (const k of ["ops", "macs", "bytes_read", "bytes_written"] as const) {
    if (t[k] !== undefined) t[k] = Math.max(0, out.reduce((n, l) => n - (l[k] ?? 0), t[k]));
  }
  return t;
}
