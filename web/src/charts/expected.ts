// Compares times with a baseline, and accelerator cycles with those of a simulator.
import { best } from "../figures/quantities";
import type { Layer, Metric } from "../data/profile";

export interface Pair {
  layer: number;
  /** The figure and its baseline. */
  have: number;
  want: number;
  /** have / want, and have - want. */
  ratio: number;
  difference: number;
  band?: [number, number];
  /** Whether have is within the band. */
  inside?: boolean;
}

export interface Comparison {
  pairs: Pair[];
  have: number;
  want: number;
  /** Median of the ratios. */
  ratio?: number;
  /** Layers with a band, and those inside it. */
  banded: number;
  inside: number;
  /** Layers with only one of the two figures. */
  onlyHave: number[];
  onlyWant: number[];
}

export function compare(layers: Layer[], have: (l: Layer) => Metric | undefined, want: (l: Layer) => Metric | undefined): Comparison {
  const c: Comparison = { pairs: [], have: 0, want: 0, banded: 0, inside: 0, onlyHave: [], onlyWant: [] };
  for (const l of layers) {
    const h = best(have(l));
    const w = best(want(l));
    if (h === undefined && w === undefined) continue;
    if (h === undefined) {
      c.onlyWant.push(l.index);
      continue;
    }
    if (w === undefined) {
      c.onlyHave.push(l.index);
      continue;
    }
    const band = want(l)!.band;
    const p: Pair = { layer: l.index, have: h, want: w, ratio: w > 0 ? h / w : Number.NaN, difference: h - w };
    if (band) {
      p.band = band;
      p.inside = h >= band[0] && h <= band[1];
      c.banded++;
      if (p.inside) c.inside++;
    }
    c.pairs.push(p);
    c.have += h;
    c.want += w;
  }
  const ratios = c.pairs.map((p) => p.ratio).filter((r) => Number.isFinite(r)).sort((a, b) => a - b);
  if (ratios.length > 0) c.ratio = (ratios[(ratios.length - 1) >> 1] + ratios[ratios.length >> 1]) / 2;
  return c;
}

/** times writes a ratio, such as "1.23 ×". */
export function times(r: number): string {
  if (!Number.isFinite(r)) return "";
  return `${r >= 100 ? r.toFixed(0) : r >= 10 ? r.toFixed(1) : r >= 0.1 ? r.toFixed(2) : r.toPrecision(2)} ×`;
}
