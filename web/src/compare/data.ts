// Rows, sums and the waterfall of a comparison, as the page shows them.
import type { Layer, Profile } from "../data/profile";
import { producers } from "../graph/model";
import { shape } from "../figures/format";
import { direction, looks, statuses, type Status } from "./words";
import type { Comparison, Group, Kind, Waterfall } from "./types";

/** A row of the table, seen from one run. */
export interface Item {
  /** Position in the list of groups. */
  at: number;
  group: Group;
  /** Undefined where neither the first run nor this one has the layers. */
  status: Status | undefined;
  kind: Kind | undefined;
  /** The layers are not known to belong together. */
  uncertain: boolean;
  /** Difference to the first run, undefined where it is unknown. */
  part: number | undefined;
  /** Searchable text. */
  text: string;
}

/** indices are the layers of a group in a run. */
export const indices = (g: Group, run: number): number[] => g.layers[run] ?? [];

/** statusOf is what became of a group from the first run to another one. */
export function statusOf(g: Group, run: number): Status | undefined {
  const [a, b] = [indices(g, 0).length, indices(g, run).length];
  if (a === 0) return b === 0 ? undefined : "inserted";
  if (b === 0) return "removed";
  const v = g.ratios[run]?.verdict;
  return direction(v) > 0 ? "slower" : direction(v) < 0 ? "faster" : v === "alike" || v === "incomparable" ? v : "open";
}

/** items lists the rows seen from a run. */
export function items(c: Comparison, run: number): Item[] {
  return (c.comparison.groups ?? []).map((group, at) => {
    const status = statusOf(group, run);
    const match = group.matches?.[run] ?? group;
    const kind = status === "inserted" || status === "removed" ? status : match.kind === "inserted" || match.kind === "removed" ? undefined : match.kind;
    return { at, group, status, kind, uncertain: match.certain === false && status !== "inserted" && status !== "removed", part: group.contributions?.[run] ?? undefined, text: haystack(c, group, at) };
  });
}

function haystack(c: Comparison, g: Group, at: number): string {
  const words: (string | undefined)[] = [`#${at}`, g.op, g.name];
  c.layers.forEach((layers, k) => {
    for (const i of indices(g, k)) {
      const l = layers[i];
      if (l) words.push(l.op, l.name, l.kernel, ...(l.outputs ?? []).map((t) => `${t.dtype} ${(t.shape ?? []).join("x")}`));
    }
  });
  return words.join(" ").toLowerCase();
}

/** still reports whether a status is not that of a change. */
export const still = (s: Status): boolean => s === "alike" || s === "open" || s === "incomparable";

/** Filters of the rows; empty ones match all. */
export interface Wanted {
  words: string;
  status: string;
  kind: string;
  op: string;
  /** Positions of groups. */
  only?: number[];
}

/** keep filters rows. */
export function keep(list: Item[], w: Wanted): Item[] {
  const words = w.words.toLowerCase().replaceAll("×", "x").split(/\s+/).filter(Boolean);
  const only = w.only && new Set(w.only);
  return list.filter(
    (i) =>
      (!w.status || (w.status === "changed" ? i.status !== undefined && !still(i.status) : i.status === w.status)) &&
      (!w.kind || (w.kind === "uncertain" ? i.uncertain : i.kind === w.kind)) &&
      (!w.op || i.group.op === w.op) &&
      (!only || only.has(i.at)) &&
      words.every((x) => i.text.includes(x)),
  );
}

/** valueOf is what a column sorts by: number, status, kind, op, name, part, run:K or ratio:K. */
export function valueOf(i: Item, key: string): number | string | undefined {
  const [name, k] = key.split(":");
  const g = i.group;
  switch (name) {
    case "index":
      return i.at;
    case "status":
      return i.status && statuses.indexOf(i.status);
    case "kind":
      return i.kind;
    case "op":
      return g.op;
    case "name":
      return g.name;
    case "part":
      return i.part === undefined ? undefined : Math.abs(i.part);
    case "most":
      return g.figures.reduce<number | undefined>((m, f) => (f.value === undefined ? m : Math.max(m ?? 0, f.value)), undefined);
    case "run":
      return g.figures[Number(k)]?.value;
    case "ratio":
      return g.ratios[Number(k)]?.value;
  }
  return undefined;
}

/** order sorts rows by a key, "-" before it for descending; unknown values come last. */
export function order(list: Item[], by: string): Item[] {
  const down = by.startsWith("-");
  const key = down ? by.slice(1) : by;
  const keys = new Map(list.map((i) => [i, valueOf(i, key)]));
  return list.toSorted((x, y) => {
    const [a, b] = [keys.get(x), keys.get(y)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined) || x.at - y.at;
    const d = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    return (down ? -d : d) || x.at - y.at;
  });
}

/** sum adds up known values, undefined if all are unknown. */
export function sum(vs: (number | undefined)[]): { value: number | undefined; missing: number } {
  let value: number | undefined;
  let missing = 0;
  for (const v of vs) {
    if (v === undefined) missing++;
    else value = (value ?? 0) + v;
  }
  return { value, missing };
}

/** A line of the waterfall: a total, a step from one level to the next, or the rest. */
export interface Level {
  what: "total" | "step" | "rest";
  label: string;
  /** Levels before and after; of a total the first is 0. */
  from: number;
  to: number;
  value: number;
  groups: number[];
  /** Position of the step, -1 for others. */
  step: number;
}

/** levels lists the lines of a waterfall in order: they add up. */
export function levels(w: Waterfall, first: string, last: string): Level[] {
  const out: Level[] = [{ what: "total", label: first, from: 0, to: w.from, value: w.from, groups: [], step: -1 }];
  let at = w.from;
  w.steps.forEach((s, step) => {
    out.push({ what: "step", label: s.label, from: at, to: at + s.value, value: s.value, groups: s.groups ?? [], step });
    at += s.value;
  });
  // Sums in another order differ by rounding.
  const rest = Math.abs(w.rest) > 1e-9 * Math.max(Math.abs(w.from), Math.abs(w.to)) ? w.rest : 0;
  out.push({ what: "rest", label: "Rest: not in any row", from: at, to: at + rest, value: rest, groups: [], step: -1 });
  out.push({ what: "total", label: last, from: 0, to: w.to, value: w.to, groups: [], step: -1 });
  return out;
}

/** levelSign marks a step or the rest: "?" where all of its rows are undecided. */
export function levelSign(l: Level, groups: Group[], run: number): string {
  if (l.groups.length > 0 && l.groups.every((i) => groups[i] && statusOf(groups[i], run) === "open")) return looks.open.sign;
  return l.value > 0 ? "▲" : l.value < 0 ? "▼" : "";
}

/** tally counts the rows by status. */
export function tally(list: Item[]): Map<Status, number> {
  const out = new Map<Status, number>();
  for (const i of list) if (i.status) out.set(i.status, (out.get(i.status) ?? 0) + 1);
  return out;
}

/** summary describes several rows in a box: its status is that of the rows that change most. */
export function summary(list: Item[]): { status: Status | undefined; text: string; part: number | undefined } {
  const counts = tally(list);
  const weight = new Map<Status, number>();
  for (const i of list) if (i.status) weight.set(i.status, (weight.get(i.status) ?? 0) + Math.abs(i.part ?? 0));
  const changed = statuses.filter((s) => !still(s) && counts.has(s)).sort((a, b) => weight.get(b)! - weight.get(a)!);
  const status = changed[0] ?? (["incomparable", "open", "alike"] as const).find((s) => counts.has(s));
  const text = list.length === 1 ? "" : changed.map((s) => `${looks[s].sign}${counts.get(s)}`).join(" ");
  return { status, text, part: sum(list.map((i) => i.part)).value };
}

/** merged is the graph of the rows of two runs as a profile without figures: a layer for each
 * row, in an order in which data flow forward, and an edge where either run has one. rows are
 * the positions of the groups. */
export function merged(c: Comparison, run: number): { profile: Profile; rows: number[] } {
  const groups = c.comparison.groups ?? [];
  const shown = groups.flatMap((g, i) => (statusOf(g, run) ? [i] : []));
  const before = new Map<number, Map<number, string>>(); // row: rows before it, with type and shape
  for (const i of shown) before.set(i, new Map());
  const place = new Map<number, number>();
  for (const k of run === 0 ? [0] : [0, run]) {
    const layers = c.layers[k] ?? [];
    const row = new Map<number, number>();
    for (const i of shown) for (const l of indices(groups[i], k)) row.set(l, i);
    const writer = producers(layers, new Set());
    const seen = new Map<number, Set<number>>();
    /** sources are the rows of a layer: its own, or those that one without a row passes on. */
    const sources = (i: number): Iterable<number> => {
      const own = row.get(i);
      if (own !== undefined) return [own];
      const had = seen.get(i);
      if (had) return had;
      const out = new Set<number>();
      seen.set(i, out);
      for (const m of inputs(layers[i], writer)) for (const r of sources(m.from)) out.add(r);
      return out;
    };
    for (const l of layers) {
      const to = row.get(l.index);
      if (to === undefined) {
        sources(l.index); // in this order, so that the recursion is shallow
        continue;
      }
      if (!place.has(to)) place.set(to, k === 0 ? l.index : Infinity);
      for (const m of inputs(l, writer)) {
        for (const from of sources(m.from)) if (from !== to && !before.get(to)!.has(from)) before.get(to)!.set(from, m.what);
      }
    }
  }
  const rows = sorted(shown, before, place);
  const at = new Map(rows.map((r, i) => [r, i]));
  const name = (r: number) => `#${r} ${groups[r].op}`;
  const layers = rows.map((r, index): Layer => {
    const g = groups[r];
    const origin = [0, run].map((k) => c.layers[k]?.[indices(g, k)[0]]).find(Boolean);
    return {
      index,
      op: g.op,
      name: g.name,
      scope: origin?.scope,
      state: "ran",
      inputs: [...before.get(r)!].filter(([from]) => at.get(from)! < index).map(([from, what]) => ({ name: name(from), dtype: what }) as NonNullable<Layer["inputs"]>[number]),
      outputs: [{ name: name(r) } as NonNullable<Layer["outputs"]>[number]],
    } as Layer;
  });
  return { profile: { model: { name: c.title }, layers } as unknown as Profile, rows };
}

function inputs(l: Layer | undefined, writer: ReturnType<typeof producers>): { from: number; what: string }[] {
  return (l?.inputs ?? []).flatMap((t) => {
    if (!t.name || t.absent || t.constant) return [];
    const from = writer(t.name, l!);
    return from === undefined || from < 0 ? [] : [{ from, what: [t.dtype, shape(t.shape)].filter(Boolean).join(" ") }];
  });
}

/** sorted orders rows so that those before come first, else as the first run does; a row that
 * only the other run has follows those before it. Where rows lead back, the first one of the
 * rest comes next. */
function sorted(rows: number[], before: Map<number, Map<number, string>>, place: Map<number, number>): number[] {
  const after = new Map<number, number[]>(rows.map((r) => [r, []]));
  const open = new Map<number, number>();
  for (const r of rows) {
    open.set(r, before.get(r)!.size);
    for (const from of before.get(r)!.keys()) after.get(from)!.push(r);
  }
  const out: number[] = [];
  const done = new Set<number>();
  const ready = rows.filter((r) => open.get(r) === 0);
  const at = (r: number) => place.get(r) ?? Infinity;
  while (out.length < rows.length) {
    let best = -1;
    for (let i = 0; i < ready.length; i++) if (best < 0 || at(ready[i]) < at(ready[best])) best = i;
    const r = best >= 0 ? ready.splice(best, 1)[0] : rows.filter((x) => !done.has(x)).reduce((a, b) => (at(b) < at(a) ? b : a));
    if (done.has(r)) continue;
    done.add(r);
    out.push(r);
    for (const n of after.get(r)!) {
      open.set(n, open.get(n)! - 1);
      if (open.get(n) === 0 && !done.has(n)) {
        if (at(n) === Infinity) place.set(n, at(r) + 0.5);
        ready.push(n);
      }
    }
  }
  return out;
}
