// Models by targets, each pair with its newest runs.
import { figure } from "./figures";
import type { Input, Run, Series } from "./types";

export type Latest = Series & { latest: Run };

export interface Cell {
  target: string;
  /** Series of the pair, the newest run first; several where engines or settings differ. */
  series: Latest[];
  /** The best figure of the row is among them. */
  best?: Latest;
}

export interface Row {
  model: string;
  cells: Cell[];
  /** The file of the model, for jobs of pairs that are missing; undefined if no run has it. */
  file?: Input;
}

/** Matrix is what a project measured. Targets begin with this computer. */
export interface Matrix {
  targets: string[];
  rows: Row[];
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
    const cells = targets.map((target): Cell => ({ target, series: of.filter((s) => s.target === target) }));
    const known = of.filter((s) => figure(s.latest, name));
    // One figure alone is not the best of anything.
    if (better !== 0 && known.length > 1) {
      const winner = known.reduce((a, b) => (better * (figure(b.latest, name)!.value - figure(a.latest, name)!.value) > 0 ? b : a));
      cells.find((c) => c.target === winner.target)!.best = winner;
    }
    return { model, cells, ...(source && { file: { name: source.model_file!, hash: source.model_hash! } }) };
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
