// What happens with a file, by the ending of its name, and the options of its job.
import type { Limit, Option, Target } from "./types";

/** Kinds of the jobs that a dropped file starts. */
export type Kind = "profile" | "compress" | "import" | "saved";

export const endings: Record<"profile" | "saved", string[]> = {
  profile: [".tflite", ".onnx", ".gguf", ".litertlm", ".mltk.zip", ".yaml", ".yml"],
  saved: [".opmeter", ".study"],
};

/** kindOf says what happens with a file: a model is profiled or compressed, a saved result is kept,
 * and everything else is read as a record of another tool. */
export function kindOf(name: string, models: "profile" | "compress" = "profile"): Kind {
  const lower = name.toLowerCase();
  if (endings.profile.some((e) => lower.endsWith(e))) return models;
  return endings.saved.some((e) => lower.endsWith(e)) ? "saved" : "import";
}

/** Places that figures come from. */
export type Place = "computer" | "board" | "chip";

export const places: Record<Place, string> = { computer: "Computer", board: "Board", chip: "Chip (estimate)" };

/** Settings of the jobs that are started here. */
export interface Settings {
  project: string;
  /** What is done with models. */
  kind: "profile" | "compress";
  place: Place;
  /** Options by name; those of other kinds and places stay for later. */
  values: Record<string, string>;
}

export const defaults: Settings = { project: "My models", kind: "profile", place: "computer", values: {} };

/** placeOf is where a job of the settings gets its figures. Compression uses no boards. */
export const placeOf = (s: Settings): Place => (s.kind === "compress" && s.place === "board" ? "computer" : s.place);

/** fitting lists the options of a kind of job at a place, in the order of the server's table. The
 * target is chosen apart. */
export function fitting(all: Option[], kind: string, place: Place | undefined): Option[] {
  const runs = kind !== "import" && kind !== "saved" && kind !== "apply";
  return all.filter((o) => o.name !== "on" && o.kinds.includes(kind) && (!runs || !o.at || o.at.split(" ").includes(place ?? "computer")));
}

/** optionsOf returns the options of a job. Empty ones are left to the program. */
export function optionsOf(all: Option[], kind: Kind, s: Settings, values = s.values): Record<string, string> {
  const place = placeOf(s);
  const runs = kind === "profile" || kind === "compress";
  const out: Record<string, string> = {};
  for (const o of fitting(all, kind, place)) {
    const v = (values[o.name] ?? "").trim();
    if (v) out[o.name] = v;
  }
  const target = (values[place] ?? "").trim();
  if (runs && target && !out.accelerator) {
    if (place === "board") out.on = `device:${target}`;
    if (place === "chip") out.on = target;
  }
  return out;
}

const units: Record<string, number> = { ns: 1e-9, us: 1e-6, µs: 1e-6, μs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

/** secondsOf reads a time as "1m30s", NaN if it is none. */
function secondsOf(text: string): number {
  if (!/^((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(text)) return Number.NaN;
  return [...text.matchAll(/([\d.]+)([a-zµμ]+)/g)].reduce((sum, [, n, unit]) => sum + Number(n) * units[unit], 0);
}

function within(l: Limit, value: string): boolean {
  if (l.as === "text") return new RegExp(`^(?:${l.pattern})$`).test(value) && !value.includes("..") && !value.includes("//");
  const shape = l.as === "whole" ? /^\d+$/ : /^(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const n = l.as === "time" ? secondsOf(value) : shape.test(value) ? Number(value) : Number.NaN;
  return n > (l.above ?? 0) && n <= (l.most ?? Infinity);
}

/** The most values of an option that takes several. */
const mostValues = 16;

/** expected says what a value should be that the server would refuse, "" if it takes the value. */
export function expected(o: Option, text: string): string {
  const value = text.trim();
  if (value === "" || o.choices) return "";
  const all = o.many ? value.split(",") : [value];
  const unknown = o.names && value.split(",").find((v) => !o.names!.includes(v));
  if (unknown !== undefined) return `No such name: ${unknown || "empty"}. Expected ${o.want}`;
  return all.length <= mostValues && all.every((v) => within(o.limit, v)) ? "" : `Expected ${o.want}`;
}

/** wrong says which option of a job the server would refuse, "" if none. Targets that are undefined
 * are not checked. */
export function wrong(all: Option[], kind: string, options: Record<string, string>, targets?: Target[]): string {
  for (const o of all) {
    const why = o.kinds.includes(kind) && options[o.name] ? expected(o, options[o.name]) : "";
    if (why) return `${o.label} ${options[o.name]}: ${why[0].toLowerCase()}${why.slice(1)}.`;
  }
  const on = options.on ?? "";
  return on.startsWith("device:") ? "" : unknownChip(on, targets);
}

/** unknownChip says that a chip has no description, "" if it has one or that is not known. */
export function unknownChip(id: string, targets: Target[] | undefined): string {
  const wanted = id.trim();
  if (!wanted || !targets || targets.some((t) => t.id === wanted)) return "";
  const near = targets.filter((t) => t.id.includes(wanted) || wanted.includes(t.id) || t.about.toLowerCase().includes(wanted.toLowerCase())).slice(0, 3);
  return `No chip is called ${wanted}. ${near.length > 0 ? `Did you mean ${near.map((t) => t.id).join(", ")}?` : "Choose one of the list."}`;
}

/** Files for the loss of a compression. */
export interface Samples {
  data?: File;
  labels?: File;
}

/** without leaves a file out. */
export const without = (s: Samples, name: "data" | "labels"): Samples => ({ ...s, [name]: undefined });

/** missing says what the settings lack before a model can be dropped, "" if nothing. */
export function missing(s: Settings, samples: Samples = {}): string {
  const place = placeOf(s);
  if (place === "board" && !s.values.board?.trim()) return "Name the board to measure on.";
  if (place === "chip" && !s.values.chip?.trim() && !(s.kind === "profile" && s.values.accelerator)) return "Name the chip to estimate for.";
  if (s.kind === "compress" && samples.labels && !samples.data) return "Labels need data: choose the samples, too.";
  return "";
}
