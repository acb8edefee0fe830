// Figures of runs by the server's table of quantities.
import { bytes, clean, count, fixed, plain, si } from "../figures/format";
import type { Quantity } from "../data/profile";
import type { Change, Figure, Run } from "./types";

/** first are the figures that most readers look for, in their order. */
const first = ["latency_s", "cpu_cycles", "inferences_per_s", "speedup", "compressed_weights_bytes", "energy_j", "live_bytes", "weights_bytes", "macs", "params"];

/** Figures of studies, which are none of profiles. */
const studies: Record<string, Quantity> = {
  speedup: { key: "speedup", name: "Speed-up", unit: "×", doc: "Time of the unchanged model divided by that of the compressed one." },
  compressed_weights_bytes: { key: "compressed_weights_bytes", name: "Compressed weights", unit: "B", doc: "Bytes of the weights of the compressed model." },
};

/** quantityOf describes a figure. */
export const quantityOf = (name: string, known: Map<string, Quantity>): Quantity | undefined => studies[name] ?? known.get(name);

/** show writes a figure with its unit. */
export function show(v: number | undefined, q: Quantity | undefined): string {
  if (v === undefined) return "";
  switch (q?.unit ?? "") {
    case "B":
      return bytes(v);
    case "":
      return count(v);
    case "×":
      return `${fixed(v, 2)}×`;
    case "1":
      return plain(v);
    case "/s":
      return `${count(v)}/s`;
  }
  return si(v, clean(q?.unit));
}

/** nameOf returns the name of a figure of a whole model. */
export const nameOf = (name: string, known: Map<string, Quantity>): string => (name === "latency_s" ? "Latency" : clean(quantityOf(name, known)?.name ?? name));

/** about explains a figure of a whole model. The table describes the time of a layer. */
export const about = (name: string, known: Map<string, Quantity>): string => (name === "latency_s" ? "Median time of one inference." : clean(quantityOf(name, known)?.doc));

/** between writes the interval of a figure, "" if it has none. */
export const between = (f: Pick<Figure, "low" | "high">, q: Quantity | undefined): string =>
  f.low === undefined || f.high === undefined ? "" : `${show(f.low, q)} to ${show(f.high, q)}`;

const date = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });

/** percent writes a relative change with its sign. */
export function percent(part: number): string {
  const v = Math.abs(part * 100);
  return `${part < 0 ? "−" : "+"}${v >= 10 ? v.toFixed(0) : v.toPrecision(2)} %`;
}

/** levels writes both levels of a change and its size. */
export const levels = (c: Pick<Change, "before" | "after">, q: Quantity | undefined): string =>
  `${show(c.before, q)} → ${show(c.after, q)}${c.before === 0 ? "" : `, ${percent(c.after / c.before - 1)}`}`;

/** changed describes a change of a trend: "median 3.1 ms → 3.6 ms, +16 %, since commit abc, 2026-11-20". */
export const changed = (c: Change, q: Quantity | undefined): string =>
  [(c.p === undefined ? "" : "median ") + levels(c, q), `since ${c.commit ? `commit ${clean(c.commit).slice(0, 12)}` : "the run"}`, date.format(c.created_ms)].join(", ");

const place = (name: string) => (first.includes(name) ? first.indexOf(name) : first.length);

/** ordered puts the figures first that most readers look for. */
export function ordered(names: Iterable<string>): string[] {
  return [...new Set(names)].sort((a, b) => place(a) - place(b) || a.localeCompare(b));
}

/** strip are the figures that summarise a run. */
export const strip = (r: Run): Figure[] => first.flatMap((name) => r.figures.find((f) => f.name === name) ?? []).slice(0, 7);

/** figure returns a figure of a run. */
export const figure = (r: Run, name: string): Figure | undefined => r.figures.find((f) => f.name === name);

/** main is the figure of a run in lists: its time, or what replaces it. */
export const main = (r: Run): Figure | undefined => strip(r)[0];

const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** when writes a time. */
export const when = (ms: number | undefined): string => (ms === undefined ? "" : day.format(ms));

/** lines makes a text of several lines safe to show: its line breaks stay. */
export const lines = (s: string | undefined): string => (s ?? "").split(/\r?\n/).map(clean).join("\n");

/** how describes engine and settings of a run. */
export const how = (r: Run): string => [r.about.engine, r.about.settings].filter(Boolean).map(clean).join(", ");

/** titleOf names a run. */
export const titleOf = (r: Run): string => clean(r.about.model) || "Unnamed model";
