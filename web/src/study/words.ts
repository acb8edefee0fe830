// Texts for the codes of a study.
import { percent } from "../figures/format";
import type { Change } from "./types";

const causes: Record<string, string> = {
  no_zero: "zero point unknown",
  shared: "its weights are shared by operators with different layouts",
  all_zero: "all weights are zero already",
  no_kernel: "no kernel gains from this",
  no_room: "the structure does not fit its shape",
  coupled: "layers with the same channels cannot be pruned with it",
  no_format: "the file format does not support this number format for it",
  excluded: "excluded by the user",
  first: "the first layer is not changed",
  head: "it computes an output of the model",
  unrun: "it did not run",
  no_memory: "its inputs exceed the memory limit: use fewer samples",
  unsettled: "not faster, within the interval",
  no_data: "not measured",
  no_gain: "no change costs less",
  spent: "loss budget spent on layers with higher gain",
};

/** cause describes the reason of a refusal. */
export function cause(code: string | undefined): string {
  return code ? (causes[code] ?? code) : "";
}

const structures: Record<string, string> = {
  unstructured: "unstructured",
  "2:4": "2:4",
  block4: "4 channels",
  "1x4": "1×4 blocks",
  "4x1": "4×1 blocks",
  block16: "16×1 blocks",
  channel: "channels",
  filter: "filters",
};

/** structure names a sparsity structure. */
export function structure(code: string | undefined): string {
  return code ? (structures[code] ?? code) : "dense";
}

const formats: Record<string, string> = { int8: "int8", dynamic8: "dynamic int8", w8: "8-bit weights", w4: "4-bit weights", float16: "float16 weights" };

/** format names a number format. */
export function format(code: string | undefined): string {
  return code ? (formats[code] ?? code) : "";
}

/** level writes a sparsity level. */
export function level(v: number | undefined): string {
  return percent(v ?? 0).replace(".0 %", " %");
}

/** change describes the change of a layer. */
export function change(c: Change | undefined): string {
  if (!c || (!c.structure && !c.format)) return "unchanged";
  const parts = [];
  if (c.structure) parts.push(`${level(c.level)} ${structure(c.structure)}`);
  if (c.format) parts.push(format(c.format));
  return parts.join(", ");
}

const methods: Record<string, string> = {
  approximated: "from sizes alone",
  magnitude: "weight magnitude",
  output: "output error of the layer on data",
  calibrated: "output error of the layer on data, calibrated to a loss of the whole model",
  end_to_end: "end-to-end outputs on data",
  one_shot: "divergence of outputs",
};

/** method names the method of a loss. */
export function method(code: string): string {
  return methods[code] ?? code;
}

const metrics: Record<string, string> = {
  relative_error: "relative error",
  snr_db: "SNR, dB",
  cosine: "cosine similarity",
  kl: "KL divergence",
  top1: "top-1 agreement",
  accuracy: "accuracy",
  command: "your metric",
  magnitude: "mean magnitude",
  sensitivity: "sensitivity",
};

/** metric names the metric of a loss. */
export function metric(code: string): string {
  return metrics[code] ?? code;
}

const limits: Record<string, string> = { compute: "compute-bound", memory: "memory-bound", overhead: "overhead-bound" };

/** limit names the bottleneck of a layer. */
export function limit(code: string | undefined): string {
  return code ? (limits[code] ?? code) : "";
}

const costs: Record<string, string> = { time: "time", energy: "energy", ram: "RAM", flash: "flash", macs: "MACs", size: "size" };

/** cost names what a plan minimises. */
export function cost(code: string | undefined): string {
  return costs[code ?? "time"] ?? code ?? "";
}
