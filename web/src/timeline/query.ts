// Queries of bars for tables and panels.
import { bytes, clean, percent, seconds, si } from "../figures/format";
import { apart, own, words } from "./clocks";
import type { Strip } from "./layout";
import type { Found, Spot } from "./chart";
import type { Bars } from "./model";
import { dim } from "./palette";
import type { Range } from "./range";
import { laneName, type LaneData, type Row } from "./rows";

/** rowsOf lists the visible rows. */
export function rowsOf(strips: Strip[]): Row[] {
  return strips.flatMap((s) => s.rows.map((r) => r.row));
}

/** inView counts the bars of rows within a range. */
export function inView(rows: Row[], r: Range): number {
  let n = 0;
  for (const row of rows) n += row.pyramid?.between(r.t0, r.t1).count ?? 0;
  return n;
}

/** firstBars lists the first bars within a range, in the order of their starts. */
export function firstBars(rows: Row[], r: Range, most: number): Spot[] {
  const out: Spot[] = [];
  for (const row of rows) {
    const to = row.to(r.t1);
    let n = 0;
    for (let k = row.from(r.t0); k < to && n < most; k++) {
      if (row.lane.slot[row.bar(k)] >= dim) continue;
      out.push({ row, k });
      n++;
    }
  }
  return out.sort((a, b) => a.row.start(a.k) - b.row.start(b.k)).slice(0, most);
}

/** Part is the share of a category. */
export interface Part {
  name: string;
  slot: number;
  count: number;
  seconds: number;
  share: number;
}

/** parts sums the time of categories over the bars of lanes within a range; a bar counts
 * without its inner bars. Undefined for more than most bars. */
export function parts(bars: Bars, lanes: LaneData[], r: Range, most: number): Part[] | undefined {
  const rows = lanes.flatMap((l) => l.rows);
  let n = 0;
  for (const row of rows) n += Math.max(0, row.to(r.t1) - row.from(r.t0));
  if (n > most) return undefined;
  const time = new Float64Array(bars.categories.length);
  const count = new Float64Array(bars.categories.length);
  for (const row of rows) {
    const { lane } = row;
    const to = row.to(r.t1);
    for (let k = row.from(r.t0); k < to; k++) {
      const i = row.bar(k);
      if (lane.slot[i] >= dim) continue;
      const c = lane.category[i];
      count[c]++;
      const d = lane.durations[i];
      const own = lane.self ? lane.self[i] : d;
      const inside = Math.min(r.t1, lane.starts[i] + d) - Math.max(r.t0, lane.starts[i]);
      // A bar at the edge counts in proportion.
      time[c] += d > 0 ? own * Math.min(1, inside / d) : 0;
    }
  }
  let sum = 0;
  for (const t of time) sum += t;
  return bars.categories
    .map((c, i) => ({ name: c.name, slot: c.slot, count: count[i], seconds: time[i], share: sum > 0 ? time[i] / sum : 0 }))
    .filter((p) => p.count > 0)
    .sort((a, b) => b.seconds - a.seconds || b.count - a.count);
}

/** Measured holds the sums of a lane between two times. */
export interface Measured {
  name: string;
  count: number;
  busy: number;
  bytes: number;
}

/** measure sums each lane between two times. */
export function measure(lanes: LaneData[], r: Range): Measured[] {
  return lanes.map((l) => {
    const out = { name: laneName(l.lane), count: 0, busy: 0, bytes: 0 };
    for (const row of l.rows) {
      const s = row.pyramid?.between(r.t0, r.t1);
      if (!s) continue;
      out.count += s.count;
      out.bytes += s.bytes;
      // The time of inner bars is part of the outer ones.
      if (row.depth === 0) out.busy += s.busy;
    }
    return out;
  });
}

/** facts returns the known figures of a bar. */
export function facts(bars: Bars, spot: Spot): [string, string][] {
  const l = spot.row.lane;
  const i = spot.row.bar(spot.k);
  const { lane } = l;
  const d = l.durations[i];
  const out: [string, string][] = [];
  const put = (name: string, v: string | undefined) => {
    if (v) out.push([name, v]);
  };
  const at = (c: ArrayLike<number> | undefined) => (c && c[i] >= 0 ? c[i] : undefined);
  // Times that are not comparable are shown in their own clock.
  const other = apart(bars.fixes, lane.clock);
  const stamp = (t: number) => exact(other ? own(other, t) : t);
  put("Begin", stamp(l.starts[i]));
  put("End", stamp(l.starts[i] + d));
  put("Duration", seconds(d));
  if (l.self && l.self[i] < d) put("Without inner bars", seconds(l.self[i]));
  const stall = at(lane.stalls_s);
  if (stall !== undefined) put("Stalled", `${seconds(stall)}${d > 0 ? ` (${percent(stall / d)})` : ""}`);
  const moved = at(lane.moved_bytes);
  if (moved !== undefined) {
    put("Moved", bytes(moved));
    if (d > 0) put("Bandwidth", si(moved / d, "B/s"));
  }
  put("Direction", (at(lane.directions) !== undefined && bars.text(lane.directions![i])) || undefined);
  put("Utilisation", percent(at(lane.utilisation)));
  put("Type", bars.type(l, i));
  const layer = at(lane.layers);
  if (layer !== undefined) put("Layer", `${layer} ${bars.layerName(layer)}`);
  const subnet = at(lane.subnets);
  if (subnet !== undefined) put("Subnet", clean(bars.timeline.subnets?.[subnet]));
  const iteration = at(lane.iterations);
  if (iteration !== undefined) put("Iteration", String(iteration));
  for (const key of Object.keys(lane.figures ?? {})) {
    const v = at(lane.figures![key]);
    const { name, show } = bars.figure(key);
    if (v !== undefined) put(name, show(v));
  }
  put("Lane", laneName(lane));
  const fix = lane.clock ? bars.fixes.get(lane.clock) : undefined;
  if (fix) put("Clock", words(fix));
  return out;
}

/** exact writes a time with nanoseconds. */
export function exact(t: number): string {
  if (Math.abs(t) >= 1) return `${t.toFixed(9)} s`;
  if (Math.abs(t) >= 1e-3) return `${(t * 1e3).toFixed(6)} ms`;
  return `${(t * 1e6).toFixed(3)} µs`;
}

/** size is the number of listed bars. */
export function size(f: Found | undefined): number {
  let n = 0;
  for (const list of f?.values() ?? []) n += list.length;
  return n;
}
