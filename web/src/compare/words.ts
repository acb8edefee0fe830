// Texts for the codes of a comparison.
import { shower, type Shower } from "../figures/columns";
import { bytes, clean, count, plain, range } from "../figures/format";
import type { Figure, Interval, Kind, Ratio, Reason, Row, Run, Verdict } from "./types";

/** What became of a row from the first run to another one. */
export type Status = "slower" | "faster" | "alike" | "open" | "incomparable" | "inserted" | "removed";

export interface Look {
  /** A sign that tells it without a colour. */
  sign: string;
  word: string;
  about: string;
  /** Variable of its colour. */
  colour: string;
}

export const looks: Record<Status, Look> = {
  slower: { sign: "▲", word: "slower", about: "takes longer: the interval of the ratio lies above 1", colour: "--df-slower" },
  faster: { sign: "▼", word: "faster", about: "takes less: the interval of the ratio lies below 1", colour: "--df-faster" },
  alike: { sign: "=", word: "equal", about: "equal within 5 %", colour: "--df-alike" },
  open: { sign: "?", word: "undecided", about: "the interval of the ratio includes 1, or is unknown", colour: "--df-open" },
  incomparable: { sign: "–", word: "not compared", about: "the figures of the runs do not compare: the first lines say why", colour: "--df-open" },
  inserted: { sign: "+", word: "inserted", about: "not in the first run", colour: "--df-inserted" },
  removed: { sign: "−", word: "removed", about: "only in the first run", colour: "--df-removed" },
};
/** counts sets the words for figures other than times, such as MACs. */
export function counts() {
  Object.assign(looks.slower, { word: "more", about: "more than in the first run" });
  Object.assign(looks.faster, { word: "less", about: "less than in the first run" });
}
export const statuses = Object.keys(looks) as Status[];

export const kinds: Record<Kind, string> = {
  same: "same layer",
  quantised: "other element type",
  pruned: "pruned",
  resized: "other shape",
  fused: "fused",
  split: "split",
  replaced: "other operator",
  inserted: "inserted",
  removed: "removed",
};

/** kind names how the layers of a row differ. */
export const kind = (k: Kind | undefined): string => (k ? (kinds[k] ?? clean(k)) : "");

const sources: Record<string, string> = { measured: "measured", imported: "imported", estimated: "estimated", counted: "counted" };
/** source says how the figures of a run came about. */
export const source = (s: string | undefined): string => (s ? (sources[s] ?? clean(s)) : "");

const outcomes: Record<string, string> = { equal: "equal", rounding: "differ by rounding", differs: "differ", not_comparable: "not compared" };
/** outputs says how the outputs of a run compare. */
export const outputs = (s: string | undefined): string => (s ? (outcomes[s] ?? clean(s)) : "");

/** quality says what a run is good for, as the program's table does. */
export function quality(r: Pick<Run, "trust" | "fit" | "tolerance">): string {
  if (r.fit === "comparing" && r.tolerance !== undefined) {
    const p = 100 * r.tolerance;
    return `±${p < 2 ? (Math.ceil(10 * p - 1e-9) / 10).toFixed(1) : Math.ceil(p - 1e-9)} %`;
  }
  if (r.fit === "shares") return "shares";
  if (r.fit === "nothing" || r.trust === "unreliable") return "repeat";
  return r.trust === "good" ? "comparing" : r.trust === "fair" ? "doubtful" : "";
}

const reasonNames: Record<string, string> = {
  work: "Operations",
  bytes: "Bytes moved",
  type: "Element type",
  options: "Options",
  kernel: "Kernel",
  placement: "Runs on",
  fusion: "Layers",
  clock: "Clock",
  threads: "Threads",
};

/** reason names a property that differs, with its two values. */
export function reason(r: Reason): { name: string; first: string; now: string; times: string } {
  const show = r.code === "bytes" ? bytes : count;
  const times = r.first !== undefined && r.this !== undefined && r.first > 0 ? `×${plain(r.this / r.first)}` : "";
  return {
    name: reasonNames[r.code] ?? clean(r.code),
    first: r.first_text !== undefined ? clean(r.first_text) : show(r.first),
    now: r.this_text !== undefined ? clean(r.this_text) : show(r.this),
    times,
  };
}

const limits: Record<string, string> = {
  model: "other models",
  name: "perhaps other models",
  nodes: "other structures",
  threads: "other numbers of threads",
  batch: "other batch sizes",
  shapes: "other input shapes",
  inputs: "other input data",
  machine: "other machines",
  machines: "other machines, one model",
  kind: "measured and not measured",
  cold: "a single inference without warm-up",
  threads_unknown: "unknown number of threads",
  unrelated: "no shared layers",
  fit: "target does not run the model",
  trust: "quality below good",
  bands: "bands overlap",
  whole: "incomplete profile",
  results: "other outputs",
  layers: "no figures per layer",
  times: "no times",
};

/** limit says why a figure does not compare. */
export const limit = (code: string | undefined): string => (code ? (limits[code] ?? clean(code)) : "");

const intervals: Record<Interval, string> = { ci95: "95 % CI", band90: "90 % band", exact: "exact" };
/** interval names the kind of an interval. */
export const interval = (i: Interval | undefined): string => (i ? (intervals[i] ?? clean(i)) : "");

/** ends writes an interval with its kind, "" for an exact figure or an unknown interval. */
export function ends(f: Figure | Ratio, show: (v: number) => string): string {
  if (f.low === undefined || f.high === undefined || f.interval === "exact") return "";
  return `${interval(f.interval)} ${range([f.low, f.high], show)}`.trim();
}

/** formatter returns the format of a figure in a unit. */
export const formatter = (unit: string | undefined): Shower => shower({ key: "", name: "", unit: unit ?? "", whole: true } as Parameters<typeof shower>[0]);

/** signed writes a difference with its sign. */
export function signed(v: number | undefined, show: (v: number) => string): string {
  if (v === undefined) return "";
  return v > 0 ? `+${show(v)}` : v < 0 ? `−${show(-v)}` : show(0);
}

/** times writes a ratio with three digits. */
export const times = (v: number): string => (v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v >= 0.9995 ? v.toFixed(2) : v >= 0.09995 ? v.toFixed(3) : String(Number(v.toPrecision(3))));

/** ratio writes a ratio: one of counts has as many digits as tell it from 1, one of figures that do
 * not compare stands in brackets. */
export function ratio(r: Ratio): string {
  const v = r.value;
  if (v === undefined) return "";
  let s = times(v);
  if (r.interval === "exact" && v !== 1 && s === times(1)) {
    for (let digits = 3; digits < 15 && Number(s) === 1; digits++) s = v.toFixed(digits);
  }
  return r.verdict === "incomparable" ? `(${s})` : s;
}

const mostDigits = 9;

/** figures writes the figures of a row with as many digits as explain the ratios: those that differ
 * from the first figure look different where the ratio that is shown is not 1. */
export function figures(fs: Figure[], ratios: Ratio[], show: Shower): string[] {
  for (let more = 0; ; more++) {
    const texts = fs.map((f) => (f.value === undefined ? "" : `${f.partial ? "> " : ""}${show(f.value, more)}`));
    const equal = (k: number) => k > 0 && texts[k] !== "" && texts[k] === texts[0] && fs[k].value !== fs[0].value && ratios[k]?.value !== undefined && ratio(ratios[k]).replace(/[()]/g, "") !== times(1);
    if (more === mostDigits || !texts.some((_, k) => equal(k))) return texts;
  }
}

/** mark is the sign of a ratio; equal counts and figures that do not compare have none. */
export function mark(r: Ratio): Look | undefined {
  const way = direction(r.verdict);
  if (way !== 0) return way > 0 ? looks.slower : looks.faster;
  if (r.verdict === "incomparable" || (r.verdict === "alike" && r.interval === "exact")) return undefined;
  return r.verdict === "alike" ? looks.alike : looks.open;
}

/** direction is the way of a verdict: 1 for more, -1 for less, 0 for neither. */
export const direction = (v: Verdict): number => (v === "slower" || v === "more" ? 1 : v === "faster" || v === "less" ? -1 : 0);

/** judge describes the ratio of a figure of the whole model: sign, word, and whether it is good. */
export function judge(r: Row, run: number): { sign: string; word: string; tone: "good" | "bad" | "" } {
  const v = r.ratios[run]?.verdict;
  const way = direction(v);
  if (way === 0 && v === "alike") return r.ratios[run].interval === "exact" ? { sign: "", word: "equal", tone: "" } : { sign: "=", word: "equal within 5 %", tone: "" };
  if (way === 0 && r.ratios[run]?.interval === undefined) return { sign: "", word: "no interval", tone: "" };
  if (way === 0) return { sign: "?", word: "undecided", tone: "" };
  const better = r.better ?? 0;
  return { sign: way > 0 ? "▲" : "▼", word: way > 0 ? "more" : "less", tone: better === 0 ? "" : way === Math.sign(better) ? "good" : "bad" };
}
