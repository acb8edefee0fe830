// Rows of repeated blocks: blocks with their parts and layers inside, as `--by block` has them.
import type { Metric, Profile } from "../data/profile";
import type { Figures } from "../figures/quantities";
import { elsewhere } from "../figures/words";

export interface Row {
  /** Unique in the table. */
  id: string;
  name: string;
  /** Name of equal layers, with * for numbers that differ. */
  of?: string;
  level: number;
  /** Indices of all layers of the row, those of every block. */
  layers: number[];
  /** Number of equal blocks. */
  count: number;
  /** Times of one block by key. */
  figures?: Record<string, Metric>;
  /** Parameters that a token uses, of all blocks; absent if it uses all. */
  active?: number;
  /** The layer, or the first of equal ones, to select. */
  layer?: number;
  inside: Row[];
}

/** starred returns a name with * for the numbers that other names have otherwise. A name that
 * differs in more than numbers stays as it is. */
export function starred(names: string[]): string {
  const [first, ...others] = names;
  if (first === undefined) return "";
  const texts = (s: string) => s.split(/\d+/).join("\0");
  if (others.some((o) => texts(o) !== texts(first))) return first;
  const numbers = names.map((n) => n.match(/\d+/g) ?? []);
  let k = -1;
  return first.replace(/\d+/g, (n) => (k++, numbers.every((list) => list[k] === n) ? n : "*"));
}

/** rowsOf returns the outermost rows: every layer that takes time is in one of them. */
export function rowsOf(p: Profile): Row[] {
  const used = new Set<number>();
  const rows = (p.blocks ?? []).map((b, i): Row => {
    const leaves = b.layers.map((l, k): Row & { part?: string } => {
      const all = [...l.layers, ...(l.with ?? [])];
      all.forEach((x) => used.add(x));
      const first = p.layers[l.layers[0]];
      return { id: `${i}.${k}`, name: first.op, of: starred(l.layers.map((x) => p.layers[x].name ?? "")), level: 1, layers: all, count: b.count, figures: l.figures, layer: first.index, inside: [], part: l.part };
    });
    const parts = (b.parts ?? []).map((x): Row => {
      const inside = leaves.filter((l) => l.part === x.name).map((l) => ({ ...l, level: 2 }));
      return { id: `${i}.${x.name}`, name: x.name, level: 1, layers: inside.flatMap((l) => l.layers), count: b.count, figures: x.figures, active: x.active_params === undefined ? undefined : x.active_params * b.count, inside };
    });
    const size = b.layers.length;
    const name = b.count === 1 ? (b.part ?? "layers") : size === 1 ? `${b.count} × ${leaves[0].name}` : `${b.count} × block of ${size} layers`;
    return { id: String(i), name, level: 0, layers: leaves.flatMap((l) => l.layers), count: b.count, figures: b.figures, inside: parts.length > 0 ? parts : leaves };
  });
  const rest = p.layers.filter((l) => !used.has(l.index) && !elsewhere(l));
  if (rest.length > 0) {
    const inside = rest.map((l): Row => ({ id: `layer ${l.index}`, name: l.op, of: l.name, level: 1, layers: [l.index], count: 1, layer: l.index, inside: [] }));
    rows.push({ id: "rest", name: "layers outside of blocks", level: 0, layers: rest.map((l) => l.index), count: 1, inside });
  }
  return rows;
}

/** visible lists the rows of open rows, each level by a figure, the largest first. */
export function visible(rows: Row[], open: { has(id: string): boolean }, size: (r: Row) => number): Row[] {
  return rows.toSorted((a, b) => size(b) - size(a)).flatMap((r) => [r, ...(open.has(r.id) ? visible(r.inside, open, size) : [])]);
}

/** sum adds up a figure over the layers of a row. */
export function sum(p: Profile, figures: Figures, r: Row, key: string): number | undefined {
  return figures.sum(r.layers.map((i) => p.layers[i]), key);
}
