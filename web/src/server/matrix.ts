// Models by targets, each pair with its newest runs.
import { figure } from "./figures";
import type { Input, Run, Series } from "./types";

export type Latest = Series & { latest: Run };

export interface Cell {
  target: string;
  /** Series of the pair, the newest run first; several where engines or settings differ. */
  series: Latest[];
  /** Those with the best figure of the row among equal settings. */
  best: Latest[];
}

export interface Row {
  model: string;
  cells: Cell[];
  /** Settings of series, by id, that others of the row do not have. */
  differs: Map<string, string>;
  /** The file of the model, for jobs of pairs that are missing; undefined if no run has it. */
  file?: Input;
}

/** Matrix is what a project measured. Targets begin with this computer. */
export interface Matrix {
  targets: string[];
  rows: Row[];
}

/** Settings that change what is computed. Others, such as a clock, belong to the target. */
const work = /^(threads|batch|streams|shape|dim|format)=/;
const settingsOf = (s: Series): string[] => s.settings.split(" ").filter((w) => work.test(w));
const isThreads = (w: string) => w.startsWith("threads=");

/** alike groups series whose figures compare: those of equal settings. Targets without threads, such
 * as chips, compare with one number of threads, but with no choice of several. */
export function alike<T extends Series>(all: T[]): T[][] {
  const by = (key: (s: T) => string) => (list: T[]) => [...new Set(list.map(key))].map((k) => list.filter((s) => key(s) === k));
  const rest = by((s) => settingsOf(s).filter((w) => !isThreads(w)).sort().join(" "));
  const threads = (s: T) => settingsOf(s).find(isThreads) ?? "";
  return rest(all).flatMap((g) => (new Set(g.map(threads).filter(Boolean)).size > 1 ? by(threads)(g) : [g]));
}

/** matrix arranges series by model and target, without studies: they change the model. Better is
 * 1 where more is better, -1 where less is, 0 where neither holds. More are further targets. */
export function matrix(all: Latest[], name: string, better: number, more: string[] = []): Matrix {
  const list = all.filter((s) => s.kind !== "study").sort((a, b) => b.latest.created_ms - a.latest.created_ms);
  const targets = [...new Set([...list.map((s) => s.target), ...more])].sort((a, b) => Number(b === "host") - Number(a === "host") || a.localeCompare(b));
  const models = [...new Set(list.map((s) => s.model))].sort((a, b) => a.localeCompare(b));
  const rows = models.map((model): Row => {
    const of = list.filter((s) => s.model === model);
    const source = of.find((s) => s.latest.model_hash && s.latest.model_file)?.latest;
    const known = of.filter((s) => figure(s.latest, name));
    const value = (s: Latest) => better * figure(s.latest, name)!.value;
    // One figure alone is not the best of anything.
    const best = better === 0 ? [] : alike(known).flatMap((g) => (g.length > 1 ? [g.reduce((a, b) => (value(b) > value(a) ? b : a))] : []));
    const cells = targets.map((target): Cell => ({ target, series: of.filter((s) => s.target === target), best: best.filter((s) => s.target === target) }));
    // Where all figures compare, nothing that matters differs.
    const common = alike(of).length > 1 ? settingsOf(of[0]).filter((w) => of.every((s) => settingsOf(s).includes(w))) : undefined;
    const differs = new Map(of.map((s) => [s.id, common ? settingsOf(s).filter((w) => !common.includes(w)).join(" ") : ""]));
    return { model, cells, differs, ...(source && { file: { name: source.model_file!, hash: source.model_hash! } }) };
  });
  return { targets, rows };
}

/** step is the place that an arrow key leads to in a grid; it stays within. */
export function step(key: string, row: number, column: number, rows: number, columns: number): [number, number] | undefined {
  const by: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -columns], End: [0, columns] };
  const d = by[key];
  if (!d) return undefined;
  return [Math.min(rows - 1, Math.max(0, row + d[0])), Math.min(columns - 1, Math.max(0, column + d[1]))];
}
