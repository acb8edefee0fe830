// Scales of charts: from figures to positions, with round marks.

export interface Scale {
  (v: number): number;
  invert(p: number): number;
  /** About n round figures of the domain; of a log scale powers of ten, with 2 and 5
   * where there is room. */
  ticks(n: number): number[];
  domain: [number, number];
}

export function linear(from: number, to: number, start: number, end: number): Scale {
  const span = to - from || 1;
  const scale = (v: number) => start + ((v - from) / span) * (end - start);
  return Object.assign(scale, {
    invert: (p: number) => from + ((p - start) / (end - start || 1)) * span,
    ticks: (n: number) => {
      const step = round((to - from) / Math.max(1, n));
      if (!(step > 0)) return [from];
      const out: number[] = [];
      for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) out.push(i * step);
      return out;
    },
    domain: [from, to] as [number, number],
  });
}

/** round gives the next of 1, 2, 5, 10, … that is not smaller. */
export function round(v: number): number {
  if (!(v > 0) || !Number.isFinite(v)) return 0;
  const p = 10 ** Math.floor(Math.log10(v));
  for (const f of [1, 2, 5, 10]) if (v <= f * p * (1 + 1e-9)) return f * p;
  return 10 * p;
}

/** log is a scale for figures above zero. */
export function log(from: number, to: number, start: number, end: number): Scale {
  const inner = linear(Math.log10(from), Math.log10(to), start, end);
  return Object.assign((v: number) => inner(Math.log10(v)), {
    invert: (p: number) => 10 ** inner.invert(p),
    ticks: (n: number) => {
      const lo = Math.log10(from);
      const hi = Math.log10(to);
      const decades = hi - lo;
      const every = Math.max(1, Math.ceil(decades / n));
      const steps = every > 1 || decades * 1.5 > n ? [1] : decades * 3 > n * 1.2 ? [1, 3] : [1, 2, 5];
      const out: number[] = [];
      for (let e = Math.floor(lo); e <= Math.ceil(hi); e++) {
        if (every > 1 && e % every !== 0) continue;
        for (const s of steps) {
          const v = e < 0 ? s / 10 ** -e : s * 10 ** e;
          if (v >= from * (1 - 1e-9) && v <= to * (1 + 1e-9)) out.push(v);
        }
      }
      return out;
    },
    domain: [from, to] as [number, number],
  });
}

/** extent is the least and the largest of the figures, undefined without any. */
export function extent(vs: Iterable<number>): [number, number] | undefined {
  let lo = Infinity;
  let hi = -Infinity;
  for (const v of vs) {
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  return lo <= hi ? [lo, hi] : undefined;
}
