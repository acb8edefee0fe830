// Shared state of the views: the profile, the selected layer, and the state of the page
// in the address, so that a link restores the view.
//
// The address is #/VIEW?name=value&… . Views read and write their parameters by get and
// set. A change of the view adds an entry to the browser's history, a change of a
// parameter does not.
import type { Answers, Distribution, Document, Sampled } from "../data/load";
import type { Column, Layer, Profile } from "../data/profile";
import { columnsOf, type LayerColumn } from "../figures/columns";
import { Figures } from "../figures/quantities";

export const views = ["summary", "layers", "timeline", "memory", "roofline", "distribution", "graph", "estimate", "phases"] as const;
export type View = (typeof views)[number];

/** The profile of the page; set once, before the views are created. Not reactive: it
 * never changes and may hold millions of figures. */
export let profile: Profile;

/** Parts of the document besides the profile: see data/load.ts. */
export let version = "";
export let answers: Answers = {};
export let sampled: Sampled | undefined;

/** Access to figures by the table of quantities, and the columns made of them. */
export let figures = new Figures([]);
export let columns: LayerColumn[] = [];

let distributions = new Map<number, Distribution>();

export function setDocument(d: Document) {
  profile = d.profile;
  figures = new Figures(d.quantities);
  const brought = (d.profile.quantities ?? []).map((q) => q.key);
  columns = columnsOf(d.quantities, brought.filter((key) => d.profile.layers.some((l) => l.figures?.[key] !== undefined)));
  version = d.version ?? "";
  answers = d.answers;
  sampled = d.sampled;
  distributions = new Map(d.distributions?.map((s) => [s.layer, s]));
}

/** offered lists the columns that have a value for some layer. */
export function offered(layers: Layer[]): LayerColumn[] {
  return columns.filter((c) => layers.some((l) => c.value(l) !== undefined));
}

/** series returns the samples of a layer, or with -1 of the whole model: the samples
 * themselves, a distribution instead of them, or neither. */
export function series(layer: number): { samples?: Column; distribution?: Distribution } {
  const samples = layer < 0 ? profile.totals.latency_samples_s : profile.layers[layer]?.samples_s;
  return { samples, distribution: samples ? undefined : distributions.get(layer) };
}

function parse(): { view: View; params: Record<string, string> } {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const view = views.includes(path as View) ? (path as View) : "summary";
  return { view, params: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

const route = $state(parse());

addEventListener("hashchange", () => {
  const r = parse();
  route.view = r.view;
  route.params = r.params;
});

function href(view: View, params: Record<string, string>): string {
  const q = new URLSearchParams(params).toString();
  return `#/${view}${q ? `?${q}` : ""}`;
}

/** view returns the current view. */
export function view(): View {
  return route.view;
}

/** get returns a parameter of the address, "" if it is absent. */
export function get(name: string): string {
  return route.params[name] ?? "";
}

/** set changes parameters of the address in place; "" removes one. */
export function set(changes: Record<string, string>) {
  for (const [k, v] of Object.entries(changes)) {
    if (v === "") delete route.params[k];
    else route.params[k] = v;
  }
  try {
    history.replaceState(null, "", href(route.view, route.params));
  } catch {
    // Browsers refuse too many changes in a short time; a later one succeeds.
  }
}

/** link returns the address of a view. It keeps the selected layer, and the theme if that
 * is in the address. */
export function link(to: View, params: Record<string, string> = {}): string {
  const kept: Record<string, string> = {};
  for (const name of ["layer", "theme"]) if (get(name)) kept[name] = get(name);
  return href(to, { ...kept, ...params });
}

/** go opens a view. */
export function go(to: View, params: Record<string, string> = {}) {
  location.hash = link(to, params);
}

/** selected returns the index of the selected layer, -1 for none. */
export function selected(): number {
  const n = Number.parseInt(get("layer"), 10);
  return n >= 0 && n < profile.layers.length ? n : -1;
}

/** select selects a layer in every view; -1 deselects. */
export function select(layer: number) {
  set({ layer: layer < 0 ? "" : String(layer) });
}
