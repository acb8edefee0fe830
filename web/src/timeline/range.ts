// Ranges of time: zoom, pan, ticks and formats.

/** Range of time in seconds. */
export interface Range {
  t0: number;
  t1: number;
}

/** shortest is the smallest range: below it the resolution of float64 becomes visible in
 * recordings of many hours. */
export const shortest = 2e-9;

/** clamp keeps a range within its bounds: it moves the range, then shrinks it. */
export function clamp(r: Range, bounds: Range): Range {
  const whole = Math.max(bounds.t1 - bounds.t0, shortest);
  const length = Math.min(Math.max(r.t1 - r.t0, Math.min(shortest, whole)), whole);
  let t0 = r.t1 - r.t0 === length ? r.t0 : (r.t0 + r.t1 - length) / 2;
  t0 = Math.min(Math.max(t0, bounds.t0), bounds.t0 + whole - length);
  return { t0, t1: t0 + length };
}

/** zoom scales a range by factor around time at. */
export function zoom(r: Range, at: number, factor: number): Range {
  return { t0: at - (at - r.t0) * factor, t1: at + (r.t1 - at) * factor };
}

/** timeAt is the time at position x of a drawing of a width, xOf the position of a time. */
export function timeAt(r: Range, x: number, width: number): number {
  return r.t0 + (x / width) * (r.t1 - r.t0);
}
export function xOf(r: Range, t: number, width: number): number {
  return ((t - r.t0) / (r.t1 - r.t0)) * width;
}

/** widen adds a fraction of the length on both sides. */
export function widen(r: Range, share: number): Range {
  const d = Math.max((r.t1 - r.t0) * share, shortest / 2);
  return { t0: r.t0 - d, t1: r.t1 + d };
}

/** step is the distance of ticks: 1, 2 or 5 times a power of ten, for at most most ticks. */
export function step(length: number, most: number): number {
  const raw = length / Math.max(1, most);
  const p = 10 ** Math.floor(Math.log10(raw));
  for (const m of [1, 2, 5]) if (m * p >= raw * 0.999999) return m * p;
  return 10 * p;
}

/** ticks lists the multiples of s within the range. */
export function ticks(r: Range, s: number): number[] {
  const out: number[] = [];
  const first = Math.ceil(r.t0 / s - 1e-9);
  for (let i = first; i * s <= r.t1 + s * 1e-9 && out.length < 1000; i++) out.push(i * s);
  return out;
}

const units = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
] as const;

/** clock writes time t with the digits that a step of s needs. */
export function clock(t: number, s: number): string {
  const a = Math.max(Math.abs(t), s);
  const [scale, unit] = units.find(([u]) => a >= u * 0.9995) ?? units[3];
  const digits = Math.min(12, Math.max(0, Math.ceil(-Math.log10((s / scale) * 1.0001))));
  return `${(t / scale).toFixed(digits)} ${unit}`;
}

/** parse reads a time of the address, undefined if it is not one. */
export function parse(text: string): number | undefined {
  if (text.trim() === "") return undefined;
  const v = Number(text);
  return Number.isFinite(v) ? v : undefined;
}

/** write puts a range into the address with the digits that its length needs. */
export function write(r: Range): { t0: string; t1: string } {
  const digits = Math.min(15, Math.max(0, Math.ceil(-Math.log10(r.t1 - r.t0)) + 4));
  const text = (v: number) => v.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return { t0: text(r.t0), t1: text(r.t1) };
}

/** History of ranges, like that of a browser. */
export class Past {
  private list: Range[] = [];
  private at = -1;

  /** push adds a range after the current one and discards later ones. */
  push(r: Range) {
    const now = this.list[this.at];
    if (now && now.t0 === r.t0 && now.t1 === r.t1) return;
    this.list.length = this.at + 1;
    this.list.push({ ...r });
    if (this.list.length > 200) this.list.shift();
    this.at = this.list.length - 1;
  }
  /** move goes back (-1) or forward (1). */
  move(by: number): Range | undefined {
    if (!this.list[this.at + by]) return undefined;
    this.at += by;
    return { ...this.list[this.at] };
  }
  get back(): boolean {
    return this.at > 0;
  }
  get forward(): boolean {
    return this.at < this.list.length - 1;
  }
}

/** Saved is a range with a name. */
export interface Saved extends Range {
  name: string;
}

/** readSaved reads the named ranges of the address: name~t0~t1, separated by "|". */
export function readSaved(text: string): Saved[] {
  return text
    .split("|")
    .map((part) => part.split("~"))
    .flatMap(([name, a, b]) => {
      const [t0, t1] = [parse(a ?? ""), parse(b ?? "")];
      return name && t0 !== undefined && t1 !== undefined && t1 > t0 ? [{ name, t0, t1 }] : [];
    });
}

/** writeSaved is the reverse. */
export function writeSaved(list: Saved[]): string {
  return list
    .map((s) => {
      const w = write(s);
      return `${s.name.replace(/[~|]/g, " ")}~${w.t0}~${w.t1}`;
    })
    .join("|");
}
