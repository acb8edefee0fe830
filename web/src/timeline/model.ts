// The bars of a timeline: names, colours and filters.
import { clean } from "../figures/format";
import { shower } from "../figures/columns";
import type { Profile, Quantity, Timeline } from "../data/profile";
import { align, group, type Fix } from "./clocks";
import { extent } from "./extent";
import { assign, dim, hidden, own, plain, slots as slotCount } from "./palette";
import { Pyramid } from "./pyramid";
import type { Range } from "./range";
import { amount, LaneData, type HeightBy, type Row } from "./rows";

/** breathe yields to the browser after a long computation. */
export function breathe(ms = 40): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < ms) return undefined;
    return new Promise((done) =>
      setTimeout(() => {
        since = performance.now();
        done();
      }),
    );
  };
}

/** chunk is the number of bars between checks of the time. */
const chunk = 1 << 17;

/** ColourBy is the property that the colour of a bar shows. */
export type ColourBy = "type" | "name" | "layer" | "subnet" | "iteration" | "direction" | "core";
export const colourings: ColourBy[] = ["type", "name", "layer", "subnet", "iteration", "direction", "core"];

/** Category is the set of bars with a colour. */
export interface Category {
  name: string;
  slot: number;
}

/** Filters select bars. */
export interface Filters {
  op: string;
  layer: number;
  subnet: number;
  iteration: number;
  direction: number;
  /** Bounds of the duration in seconds. */
  least: number | undefined;
  most: number | undefined;
  /** Whether other bars are dimmed or hidden. */
  others: "dim" | "hide";
}

export const noFilters: Filters = { op: "", layer: -1, subnet: -1, iteration: -1, direction: -1, least: undefined, most: undefined, others: "dim" };

/** active reports whether any filter is set. */
export function active(f: Filters): boolean {
  return f.op !== "" || f.layer >= 0 || f.subnet >= 0 || f.iteration >= 0 || f.direction >= 0 || f.least !== undefined || f.most !== undefined;
}

/** Bars is the whole timeline. */
export class Bars {
  readonly lanes: LaneData[];
  readonly bounds: Range;
  readonly total: number;
  private readonly quantities: Map<string, Quantity>;
  categories: Category[] = [];

  private constructor(
    readonly profile: Profile,
    readonly timeline: Timeline,
    lanes: LaneData[],
    /** Conversions of clocks other than the timeline's. */
    readonly fixes: Map<string, Fix>,
    quantities: Quantity[],
  ) {
    this.quantities = new Map(quantities.map((q) => [q.key, q]));
    this.lanes = lanes;
    this.bounds = extent(timeline);
    let total = 0;
    for (const l of lanes) total += l.n;
    this.total = total;
  }

  /** make reads the lanes without blocking the thread for long. quantities describe figures
   * of bars. */
  static async make(profile: Profile, recorded: Timeline, quantities: Quantity[] = [], progress?: (done: number) => void): Promise<Bars> {
    const { timeline, fixes } = align(recorded);
    const pause = breathe();
    const lanes: LaneData[] = [];
    for (const [i, l] of timeline.lanes.entries()) {
      lanes.push(new LaneData(l, i));
      progress?.((i + 1) / timeline.lanes.length);
      await pause();
    }
    return new Bars(profile, timeline, lanes, fixes, quantities);
  }

  // Invisible characters of names are escaped, once per name.
  private texts: string[] = [];
  private layerTexts: string[] = [];
  layerName(i: number): string {
    const l = this.profile.layers[i];
    return l ? (this.layerTexts[i] ??= clean(l.name || l.op)) : "";
  }
  text(i: number): string {
    return (this.texts[i] ??= clean(this.timeline.names?.[i]));
  }
  /** type is the kind of work of a bar, "" if unknown. */
  type(l: LaneData, i: number): string {
    const t = l.lane.types?.[i] ?? -1;
    if (t >= 0) return this.text(t);
    const layer = l.lane.layers?.[i] ?? -1;
    return layer >= 0 ? clean(this.profile.layers[layer].op) : "";
  }
  /** name is the text of a bar. */
  name(l: LaneData, i: number): string {
    const t = l.lane.labels?.[i] ?? -1;
    if (t >= 0) return this.text(t);
    const layer = l.lane.layers?.[i] ?? -1;
    if (layer >= 0) return this.layerName(layer);
    if (l.lane.kind === "subnet" && (l.lane.subnets?.[i] ?? -1) >= 0) return clean(this.timeline.subnets?.[l.lane.subnets![i]]);
    if (l.lane.kind === "iteration" && (l.lane.iterations?.[i] ?? -1) >= 0) return `Iteration ${l.lane.iterations![i]}`;
    return this.type(l, i) || l.lane.kind;
  }

  /** group is the heading of a lane. */
  group(l: LaneData): string {
    return group(this.fixes, l.lane);
  }

  /** figures lists the figures of bars besides times and bytes. */
  figures(): string[] {
    return [...new Set(this.lanes.flatMap((l) => Object.keys(l.lane.figures ?? {})))].sort();
  }
  /** figure returns name and formatter of a figure of bars. */
  figure(key: string): { name: string; show: (v: number) => string } {
    const q = this.quantities.get(key) ?? { key, name: key };
    const name = clean(q.name);
    return { name: name === "" ? clean(key) : name[0].toUpperCase() + name.slice(1), show: shower(q) };
  }

  /** colour sets the category of each bar; rank as in assign. */
  async colour(by: ColourBy, rank?: (name: string) => number) {
    const pause = breathe();
    const ids = new Map<string, number>();
    const id = (name: string): number => {
      let k = ids.get(name);
      if (k === undefined) ids.set(name, (k = Math.min(ids.size, 65535)));
      return k;
    };
    // The category is computed once per distinct value of a column.
    const named = (names: string[] | undefined) => Int32Array.from(names ?? [], id);
    for (const l of this.lanes) {
      const other = id(by === "type" || by === "name" ? l.lane.kind : "");
      const core = id(l.lane.group ?? "");
      const { category, n } = l;
      const { types, layers, subnets, iterations, directions } = l.lane;
      const { labels } = l.lane;
      const typeIds = by === "type" && types ? named(this.timeline.names) : undefined;
      const labelIds = by === "name" && labels ? named(this.timeline.names) : undefined;
      const layerIds = layers && (by === "type" || by === "name" || by === "layer") ? Int32Array.from(this.profile.layers, (x, i) => id(by === "type" ? x.op : by === "name" ? x.name || x.op : `${i} ${x.name || x.op}`)) : undefined;
      const directionIds = by === "direction" && directions ? named(this.timeline.names) : undefined;
      const subnetIds = by === "subnet" && subnets ? named(this.timeline.subnets) : undefined;
      for (let lo = 0; lo < n; lo += chunk) {
        const hi = Math.min(n, lo + chunk);
        if (by === "core") category.fill(core, lo, hi);
        else {
          for (let i = lo; i < hi; i++) {
            let c = other;
            if (layerIds && layers![i] >= 0) c = layerIds[layers![i]];
            if (typeIds && types![i] >= 0) c = typeIds[types![i]];
            else if (labelIds && labels![i] >= 0) c = labelIds[labels![i]];
            else if (directionIds && directions![i] >= 0) c = directionIds[directions![i]];
            else if (subnetIds && subnets![i] >= 0) c = subnetIds[subnets![i]];
            else if (by === "iteration" && iterations && iterations[i] >= 0) c = id(`Iteration ${iterations[i]}`);
            category[i] = c;
          }
        }
        await pause();
      }
    }
    const names = [...ids.keys()].slice(0, 65536);
    const time = new Float64Array(names.length);
    if (names.length > slotCount - own) {
      for (const l of this.lanes) {
        const { category, n } = l;
        // Lanes of units get more colours than lanes of layers.
        const own = l.self ?? l.durations;
        const scale = l.lane.kind === "engine" || l.lane.kind === "stream" || l.lane.kind === "thread" ? 10 : 1;
        for (let lo = 0; lo < n; lo += chunk) {
          const hi = Math.min(n, lo + chunk);
          for (let i = lo; i < hi; i++) time[category[i]] += own[i] * scale;
          await pause();
        }
      }
    }
    const slot = assign(
      names.filter((x) => x !== ""),
      (x) => time[ids.get(x)!],
      rank,
    );
    this.categories = names.map((name) => ({ name: clean(name) || "none", slot: slot.get(name) ?? plain }));
  }

  /** passes returns a predicate of bars; undefined if no filter is set. */
  passes(f: Filters): ((l: LaneData, i: number) => boolean) | undefined {
    if (!active(f)) return undefined;
    const names = this.timeline.names ?? [];
    const typeOk = names.map((x) => x === f.op);
    const layerOk = this.profile.layers.map((x) => x.op === f.op);
    return (l, i) => {
      const d = l.durations[i];
      if (f.least !== undefined && d < f.least) return false;
      if (f.most !== undefined && d > f.most) return false;
      const { types, layers, subnets, iterations, directions } = l.lane;
      if (f.layer >= 0 && layers?.[i] !== f.layer) return false;
      if (f.subnet >= 0 && subnets?.[i] !== f.subnet) return false;
      if (f.iteration >= 0 && iterations?.[i] !== f.iteration) return false;
      if (f.direction >= 0 && directions?.[i] !== f.direction) return false;
      if (f.op !== "") {
        const t = types?.[i] ?? -1;
        if (t >= 0) return typeOk[t];
        const layer = layers?.[i] ?? -1;
        return layer >= 0 && layerOk[layer];
      }
      return true;
    };
  }

  /** build applies colours and filters and rebuilds the pyramids. The old ones remain in use
   * until the new ones are complete. */
  async build(f: Filters, height: HeightBy) {
    const pause = breathe();
    const pass = this.passes(f);
    const slots = Uint8Array.from(this.categories, (c) => c.slot);
    const left = f.others === "dim" ? dim : hidden;
    const made: [Row, Pyramid][] = [];
    const peak = height ? this.peak(height) : undefined;
    for (const l of this.lanes) {
      const { slot, category, n } = l;
      for (let lo = 0; lo < n; lo += chunk) {
        const hi = Math.min(n, lo + chunk);
        if (pass) for (let i = lo; i < hi; i++) slot[i] = pass(l, i) ? slots[category[i]] : left;
        else for (let i = lo; i < hi; i++) slot[i] = slots[category[i]];
        await pause();
      }
      for (const row of l.rows) {
        const p = new Pyramid(row, height && peak ? { by: height, peak: peak.get(l) ?? 0 } : undefined);
        for (let lo = 0; lo < row.n; lo += chunk) {
          p.add(Math.min(row.n, lo + chunk));
          await pause();
        }
        p.finish();
        made.push([row, p]);
      }
    }
    for (const [row, p] of made) row.pyramid = p;
  }

  /** peak is the largest height of the lanes of a kind and name, so that a unit has the same
   * scale on all cores. */
  private peak(by: HeightBy): Map<LaneData, number> {
    if (by === "utilisation") return new Map(this.lanes.map((l) => [l, 1]));
    const most = new Map<string, number>();
    const key = (l: LaneData) => `${l.lane.kind} ${l.lane.name}`;
    for (const l of this.lanes) {
      const known = amount(l.lane, by);
      let m = most.get(key(l)) ?? 0;
      for (let i = 0; i < l.n; i++) {
        const v = known(i);
        if (v > m && Number.isFinite(v)) m = v;
      }
      most.set(key(l), m);
    }
    return new Map(this.lanes.map((l) => [l, most.get(key(l)) ?? 0]));
  }
}
