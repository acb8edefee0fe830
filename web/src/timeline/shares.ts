// Data of the legend: shares of the time of some lanes by colour.
import { clean } from "../figures/format";
import type { Bars } from "./model";
import { parts, type Part } from "./query";
import type { Range } from "./range";
import type { LaneData } from "./rows";

/** Scope is a set of lanes for shares: all of a kind, or a unit of all cores. */
export interface Scope {
  value: string;
  text: string;
  lanes: LaneData[];
}

export function scopesOf(bars: Bars): Scope[] {
  const out: Scope[] = [];
  for (const k of new Set(bars.lanes.map((l) => l.lane.kind))) {
    const lanes = bars.lanes.filter((l) => l.lane.kind === k);
    out.push({ value: k, text: `${k} lanes`, lanes });
    const names = [...new Set(lanes.map((l) => l.lane.name))];
    if (names.length > 1) for (const n of names.slice(0, 40)) out.push({ value: `${k}/${n}`, text: `${k}: ${clean(n).slice(0, 40)}`, lanes: lanes.filter((l) => l.lane.name === n) });
  }
  return out;
}

/** detailed lists the kinds of lanes, the most detailed first. */
const detailed: string[] = ["engine", "stream", "thread", "layer", "host", "layer group", "subnet", "iteration"];

/** scopeOf is the selected scope, or the most detailed one. */
export function scopeOf(scopes: Scope[], chosen: string): Scope | undefined {
  const of = (value: string | undefined) => scopes.find((x) => x.value === value);
  return of(chosen) ?? of(detailed.find((k) => of(k)));
}

/** Shares caches the sums over the whole recording, which replace those of a range with too
 * many bars. */
export class Shares {
  #key = "";
  #totals: Part[] = [];

  /** of sums a range, or all with whole set; built counts the colourings. */
  of(bars: Bars, scope: Scope | undefined, r: Range, built: number): { list: Part[]; whole: boolean } {
    const lanes = scope?.lanes ?? [];
    const here = parts(bars, lanes, r, 1_500_000);
    if (here) return { list: here, whole: false };
    const key = `${scope?.value} ${built}`;
    if (this.#key !== key) {
      this.#key = key;
      this.#totals = parts(bars, lanes, bars.bounds, Infinity) ?? [];
    }
    return { list: this.#totals, whole: true };
  }
}
