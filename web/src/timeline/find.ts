// Navigation between bars: of a layer, matches of a search, dependencies, neighbours.
import type { Link } from "../data/profile";
import { type Found, type Spot } from "./chart";
import { occurrences } from "./occurrences";
import { rowOf } from "./arrows";
import type { Bars } from "./model";
import { dim, hidden } from "./palette";
import type { Row } from "./rows";

/** ofLayer lists the visible bars of a layer. */
export function ofLayer(bars: Bars, layer: number): Found {
  return occurrences(
    bars,
    (l) => l.lane.layers !== undefined,
    (l, i) => l.lane.layers![i] === layer && l.slot[i] !== hidden,
  );
}

/** withWord lists the visible bars with a word, in lower case, in their name, type, layer
 * or direction. */
export function withWord(bars: Bars, word: string): Found {
  const hit = (s: string | undefined) => s !== undefined && s.toLowerCase().includes(word);
  const names = (bars.timeline.names ?? []).map(hit);
  const layers = bars.profile.layers.map((l) => hit(l.name) || hit(l.op));
  return occurrences(
    bars,
    () => true,
    (l, i) => {
      if (l.slot[i] === hidden) return false;
      const { labels, types, layers: of, directions } = l.lane;
      const at = (c: ArrayLike<number> | undefined) => (c ? c[i] : -1);
      return (at(labels) >= 0 && names[at(labels)]) || (at(types) >= 0 && names[at(types)]) || (at(of) >= 0 && layers[at(of)]) || (at(directions) >= 0 && names[at(directions)]);
    },
  );
}

/** most is the largest number of listed dependencies of a bar on each side. */
const most = 20;

/** partners returns the bars that a bar waited for and those that waited for it. */
export function partners(bars: Bars, links: Link[], of: Spot): { before: Spot[]; after: Spot[] } {
  const lane = of.row.lane.id;
  const bar = of.row.bar(of.k);
  const spot = (l: number, i: number): Spot => {
    const row = rowOf(bars.lanes[l], i);
    return { row, k: row.find(i) };
  };
  const before: Spot[] = [];
  const after: Spot[] = [];
  for (const l of links) {
    if (l.to_lane === lane && l.to_bar === bar && before.length < most) before.push(spot(l.from_lane, l.from_bar));
    if (l.from_lane === lane && l.from_bar === bar && after.length < most) after.push(spot(l.to_lane, l.to_bar));
  }
  return { before, after };
}

/** beside is the next bar of the same row that passes the filters, with by -1 the previous
 * one. */
export function beside({ row, k }: Spot, by: 1 | -1): Spot | undefined {
  let j = k + by;
  while (j >= 0 && j < row.n && row.lane.slot[row.bar(j)] >= dim) j += by;
  return j >= 0 && j < row.n ? { row, k: j } : undefined;
}

/** at is the bar of a row at a time, or the next one. */
export function at(row: Row, t: number): Spot {
  return { row, k: Math.min(row.n - 1, row.from(t)) };
}

/** across is the bar at the same time in the next row with bars, with by -1 in the previous
 * one. */
export function across(rows: Row[], { row, k }: Spot, by: 1 | -1): Spot | undefined {
  const t = (row.start(k) + row.end(k)) / 2;
  for (let i = rows.indexOf(row) + by; i >= 0 && i < rows.length; i += by) if (rows[i].n > 0) return at(rows[i], t);
  return undefined;
}
