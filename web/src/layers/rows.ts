// Filters, sorts and groups the rows of the layer table.
import { total, type LayerColumn } from "../figures/columns";
import { options } from "../figures/words";
import type { Layer } from "../data/profile";

/** Group is a row for several layers. */
export interface Group {
  group: string;
  layers: Layer[];
}

/** Order is a sort order: by a column, ascending or descending. */
export interface Order {
  column: LayerColumn;
  down: boolean;
}

/** Wanted holds the filters; empty ones match all layers. */
export interface Wanted {
  /** Words that all occur in the layer. */
  words: string;
  op: string;
  scope: string;
  /** Processing unit, as in the profile. */
  on: string;
  state: string;
  timed: boolean;
  only: number[] | undefined;
}

/** distinct lists the distinct values, sorted. */
export function distinct(layers: Layer[], of: (l: Layer) => string | undefined): string[] {
  return [...new Set(layers.map(of).filter((s): s is string => !!s))].sort();
}

/** haystack returns the searchable text of each layer. */
export function haystack(layers: Layer[]): string[] {
  return layers.map((l) =>
    [l.index, l.name, l.op, options(l), l.scope, l.kernel, ...(l.outputs ?? []).flatMap((t) => [t.dtype, t.shape?.join("x"), t.name]), ...(l.inputs ?? []).flatMap((t) => [t.shape?.join("x")])]
      .join(" ")
      .toLowerCase(),
  );
}

/** keep filters layers; texts are their searchable texts. */
export function keep(layers: Layer[], texts: string[], w: Wanted): Layer[] {
  const words = w.words.toLowerCase().replaceAll("×", "x").split(/\s+/).filter(Boolean);
  const only = w.only && new Set(w.only);
  return layers.filter(
    (l) =>
      (!w.op || l.op === w.op) &&
      (!w.scope || l.scope === w.scope) &&
      (!w.on || l.placement?.on === w.on) &&
      (!w.state || l.state === w.state) &&
      (!w.timed || !!l.latency_s) &&
      (!only || only.has(l.index)) &&
      words.every((x) => texts[l.index].includes(x)),
  );
}

function compare(a: number | string | undefined, b: number | string | undefined, down: boolean): number {
  // Unknown values sort last in both directions.
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  const d = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return down ? -d : d;
}

/** order sorts layers. */
export function order(layers: Layer[], by: Order | undefined): Layer[] {
  if (!by) return layers;
  const keys = new Map(layers.map((l) => [l, by.column.value(l)]));
  return layers.toSorted((a, b) => compare(keys.get(a), keys.get(b), by.down) || a.index - b.index);
}

/** groups collects layers with equal keys, sorted by their sums. */
export function groups(layers: Layer[], of: (l: Layer) => string, by: Order | undefined): Group[] {
  const found = new Map<string, Layer[]>();
  for (const l of layers) {
    const k = of(l);
    const g = found.get(k);
    if (g) g.push(l);
    else found.set(k, [l]);
  }
  const list = [...found].map(([group, layers]) => ({ group, layers }));
  if (!by) return list;
  const { column, down } = by;
  const keys = new Map(list.map((g) => [g, column.left ? g.group : column.key === "index" ? g.layers[0].index : total(column, g.layers).value]));
  return list.toSorted((a, b) => compare(keys.get(a), keys.get(b), down));
}
