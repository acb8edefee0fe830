// Figures for people: units and sensible digits, as the program's tables have them.
import type { Metric } from "./profile";

const decimal = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
  [1e-3, "m"],
  [1e-6, "µ"],
  [1e-9, "n"],
  [1e-12, "p"],
] as const;

function digits(v: number): string {
  const a = Math.abs(v);
  return v.toFixed(a >= 100 || a === 0 ? 0 : a >= 10 ? 1 : 2);
}

/** si writes a figure with a decimal prefix, such as "1.25 ms". */
export function si(v: number | undefined, unit: string): string {
  if (v === undefined || !Number.isFinite(v)) return "";
  if (v === 0) return `0 ${unit}`.trim();
  const a = Math.abs(v);
  const [scale, prefix] = decimal.find(([s]) => a >= s * 0.9995) ?? decimal[decimal.length - 1];
  return `${digits(v / scale)} ${prefix}${unit}`.trim();
}

export const seconds = (v: number | undefined) => si(v, "s");
export const joules = (v: number | undefined) => si(v, "J");

/** count writes a number of things, such as "1.25 M". */
export function count(v: number | undefined): string {
  if (v === undefined) return "";
  return Math.abs(v) < 1000 ? String(Number.isInteger(v) ? v : digits(v)) : si(v, "");
}

/** bytes writes a size with binary prefixes, such as "1.25 MiB". */
export function bytes(v: number | undefined): string {
  if (v === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (Math.abs(v) >= 1024 && i < units.length - 1) {
    v /= 1024;
    i++;
  }
  return `${i === 0 ? v : digits(v)} ${units[i]}`;
}

/** percent writes a fraction of one, such as "12.5 %". */
export function percent(v: number | undefined): string {
  if (v === undefined) return "";
  return `${(100 * v).toFixed(1)} %`;
}

/** best is the figure to show of a metric: median, else mean, else minimum. */
export function best(m: Metric | undefined): number | undefined {
  return m?.median ?? m?.mean ?? m?.min;
}
