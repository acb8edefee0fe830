// Words for the codes of a profile: states of layers, causes, units of the target,
// what is missing. Views ask here and derive nothing of their own.
import type { Cause, Layer, Metric, Missing, Placement, Profile, Provenance, Tensor } from "../data/profile";
import { clean, plural, shape } from "./format";

export type State = Layer["state"];
export type CauseCode = Cause["code"];
export type Confidence = Provenance["confidence"];

/** idle tells that a layer could not run, for whatever reason. */
export const idle = (l: Layer): boolean => l.state === "unsupported" || l.state === "skipped" || l.state === "failed";

/** elsewhere tells that a layer takes no time of its own: it was computed before, or
 * another layer does its work. */
export const elsewhere = (l: Layer): boolean => l.state === "folded" || l.state === "fused";

/** blank tells that a layer takes part in an inference, or should, and that its
 * figures are missing. */
export const blank = (l: Layer): boolean => idle(l) || l.state === "lost" || l.state === "no_estimate";

/** Short words for a column, a filter and a box of the graph. */
export const states: Record<State, string> = {
  ran: "ran",
  folded: "done while planning",
  fused: "done by another layer",
  unsupported: "not supported",
  skipped: "skipped",
  failed: "failed",
  not_reached: "not reached",
  lost: "record lost",
  no_estimate: "no estimate",
};

const sentences: Record<Exclude<State, "ran">, string> = {
  folded: "Computed once while planning; takes no time in an inference.",
  fused: "Another layer does its work.",
  unsupported: "Not supported: the layer could not run.",
  skipped: "Skipped: the layer could not run because an input could not be computed.",
  failed: "Failed: the layer contradicts its inputs, or failed while running.",
  not_reached: "Not reached: no inference called the layer.",
  lost: "The layer ran, and the record of it is lost.",
  no_estimate: "Nothing is known of the layer's time on this target.",
};

/** outcome says in a sentence what became of a layer, "" for one that ran. */
export function outcome(l: Layer): string {
  if (l.state === "ran") return "";
  if (l.state === "fused" && l.fused_into !== undefined) return `Layer #${l.fused_into} does its work.`;
  return sentences[l.state] ?? clean(l.state);
}

const causes: Record<CauseCode, string> = {
  operator: "the kind of operator",
  type: "an element type",
  limit: "a size or option beyond what the kernel takes",
  use: "options or a mixture of types that are not supported",
  input: "an input that could not be computed",
  shape: "shapes that are not known or contradict each other",
  data: "it depends on the data",
  memory: "more memory than there is or may be used",
  bodies: "what the layer runs has no figure",
  error: "an error",
  canceled: "stopped by the user",
  deadline: "the time for it was over",
  end: "the source ended without a word",
  record: "a record was lost on the way",
  figures: "nobody has measured it",
  loop: "its loop had not ended within the limit",
  work: "most of the work did not run",
};

/** because names a cause; its own text says more than the word of its code. */
export function because(code: CauseCode | undefined, text?: string): string {
  if (text) return clean(text);
  return code === undefined ? "" : (causes[code] ?? clean(code));
}

/** taken writes a shape, of inputs with open dimensions what the file declares and what
 * was taken for it: "batch × 3 × ? as 1×3×1". */
export function taken(t: Tensor): string {
  if (!t.declared) return shape(t.shape);
  const names = t.declared.map((d, i) => (d >= 0 ? String(d) : readable(t.dim_names?.[i]) ? clean(t.dim_names![i]) : "?"));
  return `${names.join(names.some((n) => !/^(\d+|\?)$/.test(n)) ? " × " : "×")} as ${shape(t.shape)}`;
}

/** readable tells that somebody chose the name of a dimension: exporters number those
 * that nobody named. */
const readable = (name: string | undefined): boolean => !!name && name.length <= 40 && !name.startsWith("unk") && /^[\w+* -]+$/.test(name);

/** assumed lists inputs of which open dimensions were taken as 1 because nobody gave
 * them; a batch for which the file itself keeps a 1 is left out. */
export const assumed = (p: Profile): Tensor[] =>
  (p.model.inputs ?? []).filter((t) => t.assumed?.length && !(p.model.format === "tflite" && t.assumed.length === 1 && t.assumed[0] === 0));

/** unrun tells that most of the work did not run, so that there is no time of the
 * whole. */
export const unrun = (p: Profile): boolean => (p.incomplete ?? []).some((m) => m.cause === "work");

/** unit names the part of the target that does a layer's work, "" where the target
 * has one only. */
export function unit(p: Placement | undefined): string {
  return p === undefined ? "" : p.on === "cpu" ? "CPU" : clean(p.on);
}

/** cause says why a layer is as it is: why it has no figure, or why no accelerator
 * takes it. "" where there is nothing to say. */
export function cause(l: Layer): string {
  if (l.cause) return because(l.cause.code, l.cause.text);
  // On an accelerator the cause tells of another of its kernels that refused.
  return l.placement?.on === "cpu" ? because(l.placement.cause, l.placement.text) : "";
}

/** options writes an operator's options in their order. */
export const options = (l: Layer): string => (l.options ?? []).map((o) => `${o.key}:${o.value}`).join(" ");

const endings: Partial<Record<CauseCode, string>> = {
  canceled: "Stopped by the user",
  deadline: "The time for it was over",
  end: "The source ended without a word: killed, crashed or unplugged",
  memory: "More memory was needed than there is or may be used",
  error: "An error ended it",
  record: "Records were lost on the way",
  bodies: "What control-flow layers run has no figure",
  figures: "Figures that nobody has measured are missing",
  work: "Most of the work did not run, so that there is no time of the whole",
};

/** missing says what a profile lacks, in a sentence. */
export function missing(m: Missing): string {
  const because = endings[m.cause] ?? `Because of ${causes[m.cause] ?? clean(m.cause)}`;
  const figures = m.want === undefined ? "" : m.got === undefined ? `${m.want.toLocaleString("en-GB")} missing` : `${m.got.toLocaleString("en-GB")} of ${m.want.toLocaleString("en-GB")} are there`;
  const layers = m.layers?.length ? (m.layers.length <= 5 ? `layer ${m.layers.map((l) => `#${l}`).join(", ")}` : plural(m.layers.length, "layer")) : "";
  const about = [layers, figures].filter(Boolean).join(", ");
  const text = clean(m.text);
  return `${because}${about ? ` (${about})` : ""}${text ? `: ${text.replace(/\.$/, "")}` : ""}.`;
}

/** How operators were matched with the model's. */
export const matches: Record<Confidence, string> = {
  exact: "as the engine says",
  "by tensor": "matched by tensor names",
  "by name": "matched by names",
  "by order": "matched by order and kind",
  unknown: "not matched",
};

/** How a figure came about. */
export const kinds: Record<Metric["kind"], string> = {
  measured: "measured on hardware",
  simulated: "simulated by an exact model of the hardware",
  estimated: "estimated by an approximate model",
  counted: "counted from the model",
  imported: "as another tool recorded them",
};
