// Texts for the codes of a study.
import { percent } from "../figures/format";
import type { Change } from "./types";

const causes: Record<string, string> = {
  no_zero: "which code stands for zero is not known",
  shared: "its weights are read in ways that do not fit together",
  all_zero: "all of its weights are zero already",
  no_kernel: "no kernel gains from this here",
  no_room: "the structure does not fit its shape",
  coupled: "what reads or shares its channels cannot follow",
  no_format: "the file's format has no such numbers for it",
  excluded: "left out on request",
  first: "the first layer stays as it is",
  head: "it makes an output of the model",
  unrun: "it did not run",
  no_memory: "what it reads takes more memory than the limit: take fewer samples",
  unsettled: "as fast as before, within the interval",
  no_data: "nothing was measured of it",
  no_gain: "no change of it costs less",
  spent: "no loss is left for it: others gain more",
};

/** cause says why something is not so. */
export function cause(code: string | undefined): string {
  return code ? (causes[code] ?? code) : "";
}

const structures: Record<string, string> = {
  unstructured: "single weights",
  "2:4": "two of four",
  block4: "4 channels",
  "1x4": "1×4 blocks",
  "4x1": "4×1 blocks",
  block16: "16×1 blocks",
  channel: "channels",
  filter: "filters",
};

/** structure names what becomes zero together. */
export function structure(code: string | undefined): string {
  return code ? (structures[code] ?? code) : "dense";
}

const formats: Record<string, string> = { int8: "int8", w8: "8-bit weights", w4: "4-bit weights", float16: "float16 weights" };

/** format names numbers. */
export function format(code: string | undefined): string {
  return code ? (formats[code] ?? code) : "";
}

/** level writes a share of zeros. */
export function level(v: number | undefined): string {
  return percent(v ?? 0).replace(".0 %", " %");
}

/** change says what happens to a layer. */
export function change(c: Change | undefined): string {
  if (!c || (!c.structure && !c.format)) return "as it is";
  const parts = [];
  if (c.structure) parts.push(`${level(c.level)} ${structure(c.structure)}`);
  if (c.format) parts.push(format(c.format));
  return parts.join(", ");
}

const methods: Record<string, string> = {
  approximated: "from sizes alone",
  magnitude: "magnitude of weights",
  output: "error of the layer's output on data",
  calibrated: "error of the layer's output on data, as a loss of the whole model",
  end_to_end: "outputs of the whole model on data",
  one_shot: "divergence of outputs",
};

/** method names how a loss was found. */
export function method(code: string): string {
  return methods[code] ?? code;
}

const metrics: Record<string, string> = {
  relative_error: "relative error",
  snr_db: "signal to noise, dB",
  cosine: "cosine",
  kl: "KL divergence",
  top1: "same first answer",
  accuracy: "accuracy",
  command: "your metric",
  magnitude: "mean magnitude",
  sensitivity: "sensitivity",
};

/** metric names what a loss is measured in. */
export function metric(code: string): string {
  return metrics[code] ?? code;
}

const limits: Record<string, string> = { compute: "limited by computing", memory: "limited by memory", overhead: "limited by overhead" };

/** limit says what bounds a layer's time. */
export function limit(code: string | undefined): string {
  return code ? (limits[code] ?? code) : "";
}

const costs: Record<string, string> = { time: "time", energy: "energy", ram: "RAM", flash: "flash", macs: "MACs", size: "size" };

/** cost names what a plan makes small. */
export function cost(code: string | undefined): string {
  return costs[code ?? "time"] ?? code ?? "";
}
