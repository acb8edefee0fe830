// Texts for the codes of a profile: states and places of layers, causes, units of the target,
// missing data. All views take them from here.
import type { Cause, Layer, Metric, Missing, Placement, Profile, Provenance, Tensor } from "../data/profile";
import { clean, plural, shape } from "./format";

/** ordinal writes 1 as "1st". */
function ordinal(n: number): string {
  const teens = Math.floor(n / 10) % 10 === 1;
  return `${n}${(!teens && ["", "st", "nd", "rd"][n % 10]) || "th"}`;
}

/** places writes the range of places of a layer: "1st", "2nd or 3rd", "3rd to 5th". */
export function places([first, last]: [number, number]): string {
  return first === last ? ordinal(first) : `${ordinal(first)} ${last === first + 1 ? "or" : "to"} ${ordinal(last)}`;
}

export type State = Layer["state"];
export type CauseCode = Cause["code"];
export type Confidence = Provenance["confidence"];

/** idle reports whether a layer could not run. */
export const idle = (l: Layer): boolean => l.state === "unsupported" || l.state === "skipped" || l.state === "failed";

/** elsewhere reports whether a layer takes no time of its own: it was computed at load, or
 * fused into another layer. */
export const elsewhere = (l: Layer): boolean => l.state === "folded" || l.state === "fused";

/** blank reports whether a layer takes part in an inference, or should, and has no
 * figures. */
export const blank = (l: Layer): boolean => idle(l) || l.state === "lost" || l.state === "no_estimate";

/** Short words for a column, a filter and a box of the graph. */
export const states: Record<State, string> = {
  ran: "ran",
  folded: "computed at load",
  fused: "fused",
  unsupported: "not supported",
  skipped: "skipped",
  failed: "failed",
  not_reached: "not reached",
  lost: "no record",
  no_estimate: "no estimate",
};

const sentences: Record<Exclude<State, "ran">, string> = {
  folded: "Computed once at load; takes no time in an inference.",
  fused: "Fused into another layer.",
  unsupported: "Not supported: the layer could not run.",
  skipped: "Skipped: an input of the layer could not be computed.",
  failed: "Failed: the layer contradicts its inputs, or failed while running.",
  not_reached: "Not reached: no inference called the layer.",
  lost: "The layer ran, but its record is missing.",
  no_estimate: "No estimate of this layer for this target.",
};

/** outcome describes the state of a layer in a sentence, "" for one that ran. */
export function outcome(l: Layer): string {
  if (l.state === "ran") return "";
  if (l.state === "fused" && l.fused_into !== undefined) return `Fused into layer #${l.fused_into}.`;
  return sentences[l.state] ?? clean(l.state);
}

const causes: Record<CauseCode, string> = {
  operator: "unsupported operator",
  type: "unsupported element type",
  limit: "size or option beyond the limits of the kernel",
  use: "unsupported options or combination of types",
  input: "an input could not be computed",
  shape: "unknown or contradictory shapes",
  data: "depends on the data",
  memory: "out of memory",
  bodies: "the control-flow body has no figures",
  error: "an error",
  canceled: "stopped by the user",
  deadline: "time limit reached",
  end: "the source ended unexpectedly",
  record: "missing record",
  figures: "no measurement available",
  resolution: "below the resolution of the profiler",
  loop: "iteration limit of the loop reached",
  work: "most of the work did not run",
};

/** because describes a cause: by its own text, else by its code. */
export function because(code: CauseCode | undefined, text?: string): string {
  if (text) return clean(text);
  return code === undefined ? "" : (causes[code] ?? clean(code));
}

/** taken writes a shape; of inputs with open dimensions the declared and the used shape:
 * "batch × 3 × ? as 1×3×1". */
export function taken(t: Tensor): string {
  if (!t.declared) return shape(t.shape);
  const names = t.declared.map((d, i) => (d >= 0 ? String(d) : readable(t.dim_names?.[i]) ? clean(t.dim_names![i]) : "?"));
  return `${names.join(names.some((n) => !/^(\d+|\?)$/.test(n)) ? " × " : "×")} as ${shape(t.shape)}`;
}

/** readable reports whether the name of a dimension was given by an author: exporters
 * number unnamed dimensions. */
const readable = (name: string | undefined): boolean => !!name && name.length <= 40 && !name.startsWith("unk") && /^[\w+* -]+$/.test(name);

/** assumed lists inputs whose open dimensions were taken as 1 by default; a batch
 * dimension that the file stores as 1 does not count. */
export const assumed = (p: Profile): Tensor[] =>
  (p.model.inputs ?? []).filter((t) => t.assumed?.length && !(p.model.format === "tflite" && t.assumed.length === 1 && t.assumed[0] === 0));

/** withheld says why a model whose layers ran in part has no latency, "" for all others. */
export function withheld(p: Profile): string {
  const of = (cause: CauseCode) => (p.incomplete ?? []).find((m) => m.cause === cause);
  if (of("work")) return "most of the work did not run";
  const starved = of("memory")?.layers?.length;
  return starved && !p.totals.latency_s ? `out of memory in ${plural(starved, "layer")}` : "";
}

/** unit names the processing unit that runs a layer, "" where the target has only one. */
export function unit(p: Placement | undefined): string {
  return p === undefined ? "" : p.on === "cpu" ? "CPU" : clean(p.on);
}

/** cause says why a layer has no figure or is not accelerated, "" for all others. */
export function cause(l: Layer): string {
  if (l.cause) return because(l.cause.code, l.cause.text);
  // On an accelerator the cause is that of another kernel that does not support the layer.
  return l.placement?.on === "cpu" ? because(l.placement.cause, l.placement.text) : "";
}

/** options writes an operator's options in file order. */
export const options = (l: Layer): string => (l.options ?? []).map((o) => `${o.key}:${o.value}`).join(" ");

const endings: Partial<Record<CauseCode, string>> = {
  canceled: "Stopped by the user",
  deadline: "Time limit reached",
  end: "The source ended unexpectedly: killed, crashed or unplugged",
  memory: "Out of memory",
  error: "Ended by an error",
  record: "Missing records",
  bodies: "Control-flow bodies have no figures",
  figures: "No measurements available for some figures",
  work: "Most of the work did not run, so the latency is unknown",
};

/** missing describes missing data of a profile in a sentence. */
export function missing(m: Missing): string {
  const because = endings[m.cause] ?? (causes[m.cause] ?? clean(m.cause)).replace(/^./, (c) => c.toUpperCase());
  const figures = m.want === undefined ? "" : m.got === undefined ? `${m.want.toLocaleString("en-GB")} missing` : `${m.got.toLocaleString("en-GB")} of ${m.want.toLocaleString("en-GB")} available`;
  const layers = m.layers?.length ? (m.layers.length <= 5 ? `layer ${m.layers.map((l) => `#${l}`).join(", ")}` : plural(m.layers.length, "layer")) : "";
  const about = [layers, figures].filter(Boolean).join(", ");
  const text = clean(m.text);
  return `${because}${about ? ` (${about})` : ""}${text ? `: ${text.replace(/\.$/, "")}` : ""}.`;
}

/** How recorded operators were matched with those of the model. */
export const matches: Record<Confidence, string> = {
  exact: "matched by the engine",
  "by tensor": "matched by tensor names",
  "by name": "matched by names",
  "by order": "matched by order and kind",
  unknown: "not matched",
};

/** Provenance of a figure. */
export const kinds: Record<Metric["kind"], string> = {
  measured: "measured on hardware",
  simulated: "simulated by an exact model of the hardware",
  estimated: "estimated by an approximate model",
  counted: "counted from the model",
  imported: "imported from another tool",
};
