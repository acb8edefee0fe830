// What happens with a file, by the ending of its name, and the options of its job.
import type { Option } from "./types";

/** Kinds of the jobs that a dropped file starts. */
export type Kind = "profile" | "compress" | "import" | "saved";

export const endings: Record<"profile" | "saved", string[]> = {
  profile: [".tflite", ".onnx", ".mltk.zip", ".yaml", ".yml"],
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

/** missing says what the settings lack before a model can be dropped, "" if nothing. */
export function missing(s: Settings): string {
  const place = placeOf(s);
  if (place === "board" && !s.values.board?.trim()) return "Name the board to measure on.";
  if (place === "chip" && !s.values.chip?.trim() && !(s.kind === "profile" && s.values.accelerator)) return "Name the chip to estimate for.";
  return "";
}
