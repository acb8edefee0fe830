// What the views of a comparison share: the run that is compared, the rows with filters and
// order, and the selected row. All of it is in the address.
import { get, set } from "../page/state.svelte";
import { items, keep, order } from "./data";
import type { Comparison, Table } from "./types";
import type { Shower } from "../figures/columns";
import { counts, formatter } from "./words";

/** Orders that the command names, by column. */
const orders: Record<string, string> = { index: "index", time: "-most", difference: "-part" };

function position(name: string, from: number, to: number, otherwise: number): number {
  const n = Number.parseInt(get(name), 10);
  return n >= from && n < to ? n : otherwise;
}

/** The comparison of the page; set once, before the views are created. */
export let seen: Seen;

export function setComparison(doc: Comparison) {
  if (doc.comparison.groups?.some((g) => g.ratios.some((r) => r.verdict === "more" || r.verdict === "less"))) counts();
  seen = new Seen(doc);
}

class Seen {
  readonly table: Table;
  /** Formats a figure of the table. */
  readonly show: Shower;

  constructor(readonly doc: Comparison) {
    this.table = doc.comparison;
    this.show = formatter(this.table.unit);
  }

  /** The run that is compared with the first one. */
  readonly run = $derived.by(() => position("run", 1, this.table.runs.length, 1));
  /** The figures of the rows do not compare: signs and colours of verdicts are left out. */
  readonly apart = $derived.by(() => this.table.runs[this.run]?.why_not?.[this.table.topic] !== undefined);
  readonly waterfall = $derived.by(() => this.table.waterfalls?.find((w) => w.run === this.run));
  /** The step of the waterfall whose rows are shown, undefined for all. */
  readonly step = $derived.by(() => this.waterfall?.steps[position("step", 0, this.waterfall.steps.length, -1)]);
  readonly all = $derived.by(() => items(this.doc, this.run));
  readonly filtered = $derived.by(() => keep(this.all, { words: get("q"), status: get("status"), kind: get("kind"), op: get("op"), only: this.step && (this.step.groups ?? []) }));
  readonly sort = $derived.by(() => get("sort") || orders[this.doc.sort ?? ""] || "-part");
  private readonly ordered = $derived.by(() => order(this.filtered, this.sort));
  /** The rows of the table, in their order. */
  readonly rows = $derived.by(() => (this.doc.top && !get("all") ? this.ordered.slice(0, this.doc.top) : this.ordered));
  /** Position of the selected group, -1 for none. */
  readonly row = $derived.by(() => position("row", 0, this.all.length, -1));

  select(row: number) {
    set({ row: row < 0 ? "" : String(row) });
  }

  /** move selects the row before or after in the order of the table. */
  move(by: number) {
    const at = this.rows.findIndex((i) => i.at === this.row);
    const to = this.rows[at < 0 ? 0 : at + by];
    if (to) this.select(to.at);
  }

  ariaSort(key: string): "ascending" | "descending" | undefined {
    return this.sort === key ? "ascending" : this.sort === `-${key}` ? "descending" : undefined;
  }

  /** sortBy sorts by a column: figures from the largest, words from A, then the other way. */
  sortBy(key: string, words: boolean) {
    const [first, other] = words ? [key, `-${key}`] : [`-${key}`, key];
    set({ sort: this.sort === first ? other : first });
  }
}
