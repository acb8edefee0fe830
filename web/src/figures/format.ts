// Formats figures with units and sensible digits, as the program's tables do.

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

/** digits writes three significant digits and some more. */
function digits(v: number, more = 0): string {
  const a = Math.abs(v);
  return fixed(v, (a >= 100 || a === 0 ? 0 : a >= 10 ? 1 : 2) + more);
}

/** fixed writes n decimals. What lies in the middle goes to the even digit, as in the program. */
export function fixed(v: number, n: number): string {
  if (Math.abs(2 * v * 10 ** n) % 2 === 1) {
    const exact = v.toFixed(n + 60); // all digits of such a number
    const kept = exact.slice(0, -60).replace(/\.$/, "");
    if (/^50*$/.test(exact.slice(-60)) && Number(kept.slice(-1)) % 2 === 0) return kept;
  }
  return v.toFixed(n);
}

/** si writes a figure with a decimal prefix, such as "1.25 ms", and some more digits. */
export function si(v: number | undefined, unit: string, more = 0): string {
  if (v === undefined || !Number.isFinite(v)) return "";
  if (v === 0) return `0 ${unit}`.trim();
  const a = Math.abs(v);
  const [scale, prefix] = decimal.find(([s]) => a >= s * 0.9995) ?? decimal[decimal.length - 1];
  return `${digits(v / scale, more)} ${prefix}${unit}`.trim();
}

export const seconds = (v: number | undefined, more = 0) => si(v, "s", more);
export const joules = (v: number | undefined) => si(v, "J");

/** count writes a number of things, such as "1.25 M". */
export function count(v: number | undefined, more = 0): string {
  if (v === undefined) return "";
  if (Math.abs(v) < 1 && v !== 0) return String(Number(v.toPrecision(3 + more))); // a share
  return Math.abs(v) < 1000 ? String(Number.isInteger(v) ? v : digits(v, more)) : si(v, "", more);
}

/** plain writes a figure without a unit, such as a ratio, with three digits and without a
 * prefix below 1000. */
export function plain(v: number | undefined): string {
  if (v === undefined || !Number.isFinite(v)) return "";
  const a = Math.abs(v);
  if (a >= 1000) return si(v, "");
  return a === 0 ? "0" : a < 1e-4 ? v.toExponential(2) : String(Number(v.toPrecision(3)));
}

/** bytes writes a size with binary prefixes, such as "1.25 MiB". */
export function bytes(v: number | undefined, more = 0): string {
  if (v === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (Math.abs(v) >= 1024 && i < units.length - 1) {
    v /= 1024;
    i++;
  }
  return `${i === 0 ? v : digits(v, more)} ${units[i]}`;
}

/** percent writes a fraction of one, such as "12.5 %". */
export function percent(v: number | undefined, more = 0): string {
  if (v === undefined) return "";
  return v > 0 && v < 0.0005 ? "<0.1 %" : `${(100 * v).toFixed(1 + more)} %`;
}

/** clean makes text from a file safe to show: control and bidirectional formatting
 * characters become visible escapes. */
export function clean(s: string | undefined): string {
  if (!s) return "";
  return s.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
}

const unit = /(\d) (?=(?:%|[kMGTmµnp]?(?:s|B|J|W|Hz|V|op\/s|B\/s)|[KMGT]iB)(?![\p{L}\p{N}]))/gu;

/** prose formats sentences: safe to show, and without line breaks between a figure and its
 * unit. */
export function prose(s: string | undefined): string {
  return clean(s).replace(unit, "$1\u00a0");
}

/** short cuts text in its middle, where names of layers differ least. */
export function short(s: string, most: number): string {
  if (s.length <= most) return s;
  const tail = Math.floor((most - 1) / 2);
  return `${s.slice(0, most - 1 - tail)}…${s.slice(s.length - tail)}`;
}

/** shape writes dimensions, such as "1×32×32×3", "?" for unknown ones. */
export function shape(dims: number[] | undefined): string {
  if (!dims) return "";
  return dims.length === 0 ? "scalar" : dims.map((d) => (d < 0 ? "?" : String(d))).join("×");
}

/** plural writes a number of things, such as "1 layer" or "12 layers". */
export function plural(n: number, what: string): string {
  return `${n.toLocaleString("en-GB")} ${what}${n === 1 ? "" : "s"}`;
}

/** range writes an interval, with the unit only once if both ends have the same. */
export function range(ends: [number, number], show: (v: number) => string): string {
  const [a, b] = ends.map((v) => show(v));
  const unit = /[^\d.−-]+$/.exec(a)?.[0];
  return unit && b.endsWith(unit) ? `${a.slice(0, -unit.length)} to ${b}` : `${a} to ${b}`;
}
