// Names of layers as the charts write them.
import type { Layer } from "../lib/profile";

/** title is the layer's number and operator. */
export function title(l: Layer): string {
  return `#${l.index} ${l.op}`;
}

/** short cuts a name in the middle, where names of one model differ least. */
export function short(s: string, most: number): string {
  if (s.length <= most) return s;
  const head = Math.ceil((most - 1) * 0.35);
  return `${s.slice(0, head)}…${s.slice(s.length - (most - 1 - head))}`;
}

/** many writes a number of things. */
export function many(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

/** ratio writes a figure without a prefix, such as "0.34" or "1500". */
export function ratio(v: number | undefined): string {
  if (v === undefined || !Number.isFinite(v)) return "";
  return String(Number(v.toPrecision(3)));
}
