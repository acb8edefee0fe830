// Vertical layout of lanes, counters and group headers.
import { clean } from "../figures/format";
import type { Counter } from "../data/profile";
import { apart, group } from "./clocks";
import { reach } from "./counter";
import type { Bars } from "./model";
import type { LaneData, Row } from "./rows";

/** Placed is a row of bars with its position. */
export interface Placed {
  row: Row;
  y: number;
  h: number;
}

/** Strip is a horizontal strip of the chart. */
export interface Strip {
  id: string;
  kind: "group" | "lane" | "counter" | "stack";
  name: string;
  /** Text in small letters below the name. */
  detail: string;
  y: number;
  h: number;
  /** Height of the band for the name above the rows, in a narrow window. */
  band: number;
  rows: Placed[];
  lanes: LaneData[];
  counter?: Counter;
  /** Group headers: whether the lanes below are shown. */
  open?: boolean;
  group: string;
}

/** Options of a layout. */
export interface Options {
  merged: boolean;
  stacked: boolean;
  /** Closed groups. */
  closed: Set<string>;
  /** Names are above the rows. */
  narrow: boolean;
  /** Higher rows, for heights that show a figure. */
  tall: boolean;
  /** Returns the text below a lane's name. */
  detail: (lanes: LaneData[]) => string;
}

const gap = 3;

/** arrange returns the strips with their positions, and the total height. */
export function arrange(bars: Bars, o: Options): { strips: Strip[]; height: number } {
  const strips: Strip[] = [];
  let y = 0;
  const put = (s: Omit<Strip, "y" | "band">, h: number) => {
    const band = o.narrow && s.kind !== "group" ? 20 : 0;
    strips.push({ ...s, name: clean(s.name), detail: clean(s.detail), y, h: h + band, band });
    y += h + band;
    return strips[strips.length - 1];
  };
  const lane = (lanes: LaneData[], name: string, group: string) => {
    const many = lanes.length > 1;
    const rows = lanes.flatMap((l) => l.rows);
    const h = o.tall ? 34 : many ? Math.max(9, Math.min(24, Math.floor(72 / rows.length))) : rows.length > 1 ? 19 : 27;
    const s = put(
      { id: `lane ${lanes.map((l) => l.id).join(" ")}`, kind: "lane", name, detail: o.detail(lanes), h: 0, rows: [], lanes, group },
      Math.max(o.narrow ? 0 : 34, rows.length * (h + (h > 12 ? 1 : 0)) + 2 * gap),
    );
    const high = rows.length * (h + (h > 12 ? 1 : 0));
    let top = s.y + s.band + Math.max(gap, Math.floor((s.h - s.band - high) / 2));
    for (const row of rows) {
      s.rows.push({ row, y: top, h });
      top += h + (h > 12 ? 1 : 0);
    }
  };
  const counter = (c: Counter, i: number) =>
    put({ id: `counter ${i}`, kind: "counter", name: c.name, detail: reach(c), h: 0, rows: [], lanes: [], counter: c, group: group(bars.fixes, c) }, 48);

  const counters = bars.timeline.counters ?? [];
  if (o.stacked) {
    const moving = bars.lanes.filter((l) => l.lane.moved_bytes);
    if (moving.length > 0) put({ id: "stack", kind: "stack", name: "Bandwidth", detail: "stacked by core", h: 0, rows: [], lanes: stackable(moving), group: "" }, 132);
  }
  if (o.merged) {
    const kinds = new Map<string, LaneData[]>();
    for (const l of bars.lanes) {
      // Lanes of clocks that are not comparable are never merged.
      const clock = apart(bars.fixes, l.lane.clock) ? (l.lane.clock ?? "") : "";
      const key = `${l.lane.kind} ${l.lane.name} ${clock}`;
      kinds.set(key, [...(kinds.get(key) ?? []), l]);
    }
    for (const lanes of kinds.values()) {
      const cores = new Set(lanes.map((l) => l.lane.group ?? ""));
      const clock = apart(bars.fixes, lanes[0].lane.clock) ? ` (clock ${lanes[0].lane.clock})` : "";
      lane(lanes, lanes[0].lane.name + (cores.size > 1 ? ` × ${cores.size}` : "") + clock, "");
    }
    counters.forEach((c, i) => {
      const s = counter(c, i);
      if (c.group) s.name = clean(`${c.group} ${c.name}`);
    });
    return { strips, height: y };
  }
  const groups = new Map<string, { lanes: LaneData[]; counters: [Counter, number][] }>();
  const of = (name: string) => {
    let g = groups.get(name);
    if (!g) groups.set(name, (g = { lanes: [], counters: [] }));
    return g;
  };
  for (const l of bars.lanes) of(bars.group(l)).lanes.push(l);
  counters.forEach((c, i) => of(group(bars.fixes, c)).counters.push([c, i]));
  for (const [name, g] of groups) {
    if (name !== "") {
      const open = !o.closed.has(name);
      put({ id: `group ${name}`, kind: "group", name, detail: o.detail(g.lanes), h: 0, rows: [], lanes: g.lanes, open, group: name }, 26);
      if (!open) continue;
    }
    for (const l of g.lanes) lane([l], l.lane.name, name);
    for (const [c, i] of g.counters) counter(c, i);
  }
  return { strips, height: y };
}

/** stackable returns the lanes whose bytes add up: lanes of units if present, since lanes
 * of layers and iterations repeat their bytes. */
export function stackable(lanes: LaneData[]): LaneData[] {
  const units = lanes.filter((l) => l.lane.kind === "engine" || l.lane.kind === "stream");
  if (units.length > 0) return units;
  const kind = lanes[0]?.lane.kind;
  return lanes.filter((l) => l.lane.kind === kind);
}
