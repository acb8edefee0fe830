// State of the layer table in the address: columns, rows, sort order and groups.
import { SvelteSet } from "svelte/reactivity";
import { about, total, type LayerColumn } from "../figures/columns";
import type { Layer } from "../data/profile";
import { get, offered, profile, set } from "../page/state.svelte";
import { blocksOf } from "./blocks";
import { distinct, groups, haystack, keep, order, type Group, type Order } from "./rows";

export type Item = Group | { layer: Layer };

const layers = () => profile.layers;

export class Chosen {
  readonly offered = offered(layers());
  readonly abouts = new Map(this.offered.map((c) => [c.key, about(c, layers())]));
  readonly ops = distinct(layers(), (l) => l.op);
  readonly scopes = distinct(layers(), (l) => l.scope);
  readonly groupings: { key: string; name: string; of: (l: Layer) => string }[];
  /** Default columns. */
  private readonly standard: LayerColumn[];
  private readonly texts = haystack(layers());
  /** The slowest layers come first where times are known. */
  private readonly time = this.offered.find((c) => c.key === "latency_s");

  constructor(private readonly printing: boolean) {
    // Fewer columns in a narrow window.
    const narrow = innerWidth < 700;
    this.standard = this.offered.filter(
      (c) =>
        (c.first && !(narrow && (c.key === "name" || c.key === "output"))) ||
        (c.key === "ops" && !this.offered.some((o) => o.key === "macs")) ||
        (c.key === "interval" && layers().some((l) => l.latency_s?.band)),
    );
    const block = blocksOf(layers());
    this.groupings = [
      { key: "op", name: "Operator", of: (l: Layer) => l.op },
      { key: "scope", name: "Scope", of: (l: Layer) => l.scope || "(no scope)" },
      { key: "block", name: "Block", of: (l: Layer) => block[l.index] || "(no block)" },
    ].filter((g) => g.key === "op" || (g.key === "scope" ? this.scopes.length > 1 : block.some((b) => b)));
  }

  readonly grouping = $derived.by(() => this.groupings.find((g) => g.key === get("group")));
  readonly finding = $derived(get("finding") === "" ? undefined : profile.findings?.[Number(get("finding"))]);
  readonly rows = $derived.by(() =>
    keep(layers(), this.texts, { words: get("q"), op: get("op"), scope: get("scope"), on: get("on"), state: get("state"), timed: !!get("timed"), only: this.finding?.layers }),
  );
  readonly sort = $derived.by((): Order | undefined => {
    const s = get("sort");
    const column = this.offered.find((c) => c.key === s.replace(/^-/, ""));
    if (column) return { column, down: s.startsWith("-") };
    return this.time && !this.printing ? { column: this.time, down: true } : undefined;
  });

  /** Open groups. */
  readonly opened = new SvelteSet<string>();
  readonly items = $derived.by((): Item[] => {
    if (!this.grouping) return this.sorted(this.rows).map((layer) => ({ layer }));
    const list = groups(this.rows, this.grouping.of, this.sort);
    return list.flatMap((g): Item[] => [g, ...(this.printing || this.opened.has(g.group) ? this.sorted(g.layers).map((layer) => ({ layer })) : [])]);
  });
  readonly columns = $derived.by(() => {
    if (get("cols")) return this.offered.filter((c) => get("cols").split(",").includes(c.key));
    // Closed groups have neither names nor shapes.
    const closed = this.grouping && !this.printing && this.items.every((it) => "group" in it);
    return closed ? this.standard.filter((c) => !c.left || c.key === "op") : this.standard;
  });
  readonly sums = $derived.by(() => new Map(this.columns.map((c) => [c.key, total(c, this.rows)])));

  sorted(list: Layer[]): Layer[] {
    return order(list, this.sort);
  }
  toggle(group: string) {
    if (!this.opened.delete(group)) this.opened.add(group);
  }
  /** sortBy sorts by a column, then reverses the order, then restores the default. */
  sortBy(c: LayerColumn) {
    const first = c.left || c.key === "index" ? c.key : `-${c.key}`;
    const second = first.startsWith("-") ? c.key : `-${c.key}`;
    const now = this.sort ? `${this.sort.down ? "-" : ""}${this.sort.column.key}` : "";
    set({ sort: now === first ? second : now === second ? "" : first });
  }
  ariaSort(c: LayerColumn): "ascending" | "descending" | "none" {
    return this.sort?.column !== c ? "none" : this.sort.down ? "descending" : "ascending";
  }
  choose(c: LayerColumn, on: boolean) {
    const keys = new Set(this.columns.map((x) => x.key));
    if (on) keys.add(c.key);
    else keys.delete(c.key);
    const list = this.offered.filter((x) => keys.has(x.key)).map((x) => x.key);
    set({ cols: list.length === 0 || list.join() === this.standard.map((x) => x.key).join() ? "" : list.join() });
  }
}
