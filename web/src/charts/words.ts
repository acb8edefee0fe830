// Names of layers in charts.
import { clean } from "../figures/format";
import type { Layer } from "../data/profile";

/** title is the layer's number and operator. */
export function title(l: Layer): string {
  return `#${l.index} ${clean(l.op)}`;
}

/** short cuts a name in the middle, where names of one model differ least. */
export function short(name: string | undefined, most: number): string {
  const s = clean(name);
  if (s.length <= most) return s;
  const head = Math.ceil((most - 1) * 0.35);
  return `${s.slice(0, head)}…${s.slice(s.length - (most - 1 - head))}`;
}

/** ending keeps the end of a name, where long names of one model differ most. */
export function ending(name: string | undefined, most: number): string {
  const s = clean(name);
  return s.length <= most ? s : `…${s.slice(s.length - most + 1)}`;
}
