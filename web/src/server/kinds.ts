// What happens with a file, by the ending of its name.

export type Kind = "profile" | "import" | "saved";

export const endings: Record<Exclude<Kind, "import">, string[]> = {
  profile: [".tflite", ".onnx", ".mltk.zip", ".yaml", ".yml"],
  saved: [".opmeter", ".study"],
};

/** kindOf says what happens with a file: a model is profiled, a saved result is kept, and
 * everything else is read as a record of another tool. */
export function kindOf(name: string): Kind {
  const lower = name.toLowerCase();
  for (const kind of ["profile", "saved"] as const) if (endings[kind].some((e) => lower.endsWith(e))) return kind;
  return "import";
}

/** Settings of the jobs that are started here. */
export interface Settings {
  project: string;
  on: string;
  engine: string;
  threads: string;
  time: string;
}

export const defaults: Settings = { project: "My models", on: "host", engine: "", threads: "", time: "" };

/** measured reports whether a target is measured: estimates know neither threads nor time. */
export const measured = (on: string): boolean => on === "" || on === "host" || on.startsWith("device:");

/** optionsOf returns the options of a job. Empty settings are left to the program. */
export function optionsOf(kind: Kind, s: Settings): Record<string, string> {
  if (kind !== "profile") return {};
  const out: Record<string, string> = {};
  if (s.on.trim() && s.on.trim() !== "host") out.on = s.on.trim();
  for (const name of measured(s.on.trim()) ? (["engine", "threads", "time"] as const) : (["engine"] as const)) {
    if (s[name].trim()) out[name] = s[name].trim();
  }
  return out;
}
