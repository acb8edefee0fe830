// What can be said of a layer, one entry a figure: the table's columns and the facts
// of the panel are the same list, so that a figure has one name and one explanation.
import { best, bytes, clean, count, joules, percent, plain, range, seconds, shape, si } from "./format";
import type { Layer, Metric, Tensor } from "./profile";

export interface LayerColumn {
  /** As in the profile's JSON where it stands there; head of files. */
  key: string;
  /** Head of the table. */
  head: string;
  /** Name where there is room. */
  name: string;
  group: "Layer" | "Work" | "Memory" | "Time" | "Rates" | "Target" | "Sparsity";
  /** How figures come about: of metrics it stands in the profile. */
  kind?: "counted" | "metric" | "derived";
  /** Unit of value, for files. */
  unit?: string;
  /** What it means. */
  text: string;
  /** Text stands at the left, figures at the right. */
  left?: boolean;
  /** Width of the column in characters; 0 takes what is left. */
  width: number;
  /** Shown at first where there are figures. */
  first?: boolean;
  /** Sums of layers mean something. */
  sum?: boolean;
  /** For sorting and for files: base units, undefined where not known. */
  value: (l: Layer) => number | string | undefined;
  /** For people. */
  show: (v: number) => string;
  metric?: (l: Layer) => Metric | undefined;
}

const tensors = (list: Tensor[] | undefined) =>
  (list ?? [])
    .filter((t) => !t.absent && !t.constant)
    .map((t) => `${t.dtype ?? ""} ${shape(t.shape)}`.trim())
    .join(", ");

type Key = { [K in keyof Layer]-?: Layer[K] extends number | undefined ? K : never }[keyof Layer];
type MetricKey = { [K in keyof Layer]-?: Layer[K] extends Metric | undefined ? K : never }[keyof Layer];

function text(key: string, head: string, name: string, width: number, of: (l: Layer) => string | undefined, why: string, first = false): LayerColumn {
  return { key, head, name, group: "Layer", text: why, left: true, width, first, value: (l) => clean(of(l)) || undefined, show: String };
}

function counted(key: Key, head: string, group: LayerColumn["group"], show: (v: number) => string, unit: string, why: string, more: Partial<LayerColumn> = {}): LayerColumn {
  return { key, head, name: head, group, kind: "counted", unit, text: why, width: 9, sum: true, value: (l) => l[key], show, ...more };
}

function metric(key: MetricKey, head: string, group: LayerColumn["group"], show: (v: number) => string, unit: string, why: string, more: Partial<LayerColumn> = {}): LayerColumn {
  return { key, head, name: head, group, kind: "metric", unit, text: why, width: 10, sum: true, value: (l) => best(l[key]), metric: (l) => l[key], show, ...more };
}

function derived(key: string, head: string, group: LayerColumn["group"], show: (v: number) => string, unit: string, why: string, value: (l: Layer) => number | undefined, more: Partial<LayerColumn> = {}): LayerColumn {
  return { key, head, name: head, group, kind: "derived", unit, text: why, width: 11, value, show, ...more };
}

function ratio(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined || !(b > 0) ? undefined : a / b;
}

/** moved is what a layer reads and writes. */
export function moved(l: Layer): number | undefined {
  return l.bytes_read === undefined || l.bytes_written === undefined ? undefined : l.bytes_read + l.bytes_written;
}

const number = (v: number) => v.toLocaleString("en-GB");

export const columns: LayerColumn[] = [
  { key: "index", head: "#", name: "Number", group: "Layer", text: "Position in the order in which the layers run, from 0. Layers of a control-flow body follow their owner.", width: 6, first: true, value: (l) => l.index, show: String },
  text("op", "Operator", "Operator", 20, (l) => l.op, "The operator as the model names it.", true),
  text("name", "Name", "Name", 0, (l) => l.name, "The node's name in the model, or one made from its output.", true),
  text("output", "Output", "Output", 18, (l) => tensors(l.outputs), "Element type and shape of what the layer makes.", true),
  text("input", "Input", "Input", 22, (l) => tensors(l.inputs), "Element type and shape of what the layer takes, weights and other constants left out."),
  text("options", "Options", "Options", 30, (l) => l.options, "The operator's options. Strides and filters are width × height."),
  text("scope", "Scope", "Scope", 24, (l) => l.scope, "The block of the model that the layer belongs to, as far as names tell."),
  text("graph", "Body", "Body", 16, (l) => l.graph, "The control-flow body that the layer is in; empty in the main graph."),
  text("domain", "Domain", "Domain", 14, (l) => l.domain, "The operator's domain; empty for the format's own operators."),
  text("kernel", "Kernel", "Kernel", 20, (l) => l.kernel, "The implementation that ran."),
  metric("latency_s", "Time", "Time", seconds, "s", "Time in the layer itself in one inference, summed over its calls and without the layers of its bodies, so that layers add up. The median of the samples where there are several.", { first: true }),
  { key: "share", head: "Share", name: "Share of time", group: "Time", kind: "derived", text: "The layer's part of the sum of all layers' times.", width: 13, first: true, sum: true, value: (l) => l.share, show: percent },
  {
    key: "interval",
    head: "Interval",
    name: "Interval of the time",
    group: "Time",
    text: "Of an estimate: the band that holds the true value in the share of cases that its method states. Of a measurement: the 95 % confidence interval of the median.",
    width: 17,
    left: true,
    value: (l) => {
      const ends = l.latency_s?.band ?? l.latency_s?.ci95;
      return ends && range(ends, seconds);
    },
    show: String,
  },
  { key: "kind", head: "Kind", name: "Kind of the time", group: "Time", text: "How the time came about: measured on hardware, simulated by an exact model of it, estimated by an approximate one, or imported from another tool's record.", width: 11, left: true, value: (l) => l.latency_s?.kind, show: String },
  derived("spread", "Spread", "Time", percent, "", "Median absolute deviation of the samples, as a part of the median: how far a typical sample lies from the middle.", (l) => ratio(l.latency_s?.mad, l.latency_s?.median), { width: 9 }),
  derived("p99_s", "p99", "Time", seconds, "s", "99 of 100 inferences take at most this time in the layer. Only with enough samples.", (l) => l.latency_s?.p99, { width: 10 }),
  metric("total_s", "With bodies", "Time", seconds, "s", "Time of a control-flow layer with the layers of its bodies.", { sum: false, width: 12 }),
  { key: "calls", head: "Calls", name: "Calls", group: "Time", text: "Mean number of calls in one inference; empty when it is one.", width: 8, value: (l) => l.calls, show: count },
  metric("expected_s", "Expected", "Time", seconds, "s", "An estimate of the time made before or apart from it: by the model's compiler, or by another profile of the same model.", { width: 11 }),
  derived("against_expected", "÷ expected", "Time", (v) => v.toFixed(2), "", "Time divided by the expected time: above 1 is slower than expected.", (l) => ratio(best(l.latency_s), best(l.expected_s)), { width: 12 }),
  counted("ops", "Ops", "Work", count, "", "Arithmetic operations of one inference; a multiply-accumulate is two.", { name: "Operations" }),
  counted("macs", "MACs", "Work", count, "", "Multiply-accumulates of one inference, those with padding included.", { name: "Multiply-accumulates", first: true }),
  counted("macs_executed", "MACs in data", "Work", count, "", "Multiply-accumulates without those that meet padding.", { name: "Multiply-accumulates without padding", width: 13 }),
  counted("mltk_ops", "MLTK ops", "Work", count, "", "Operations as the Silicon Labs MLTK profiler counts them, its omissions included."),
  counted("mltk_macs", "MLTK MACs", "Work", count, "", "Multiply-accumulates as the Silicon Labs MLTK profiler counts them, its omissions included.", { width: 11 }),
  counted("params", "Params", "Memory", count, "", "Number of constant elements that the layer reads. Constants that several layers read count for each.", { name: "Parameters", first: true }),
  counted("weights_bytes", "Weights", "Memory", bytes, "B", "Size of the layer's constants as stored."),
  counted("bytes_read", "Read", "Memory", bytes, "B", "Size of the inputs, each once, constants included.", { name: "Bytes read" }),
  counted("bytes_written", "Written", "Memory", bytes, "B", "Size of the outputs, each once.", { name: "Bytes written" }),
  derived("ops_per_byte", "Ops/byte", "Rates", (v) => plain(v), "", "Arithmetic intensity: operations divided by bytes read and written.", (l) => ratio(l.ops, moved(l)), { name: "Operations per byte" }),
  derived("ops_per_second", "Ops/s", "Rates", (v) => si(v, "op/s"), "1/s", "Operations divided by time.", (l) => ratio(l.ops, best(l.latency_s)), { name: "Operations per second", first: true, width: 12 }),
  derived("macs_per_second", "MACs/s", "Rates", (v) => si(v, "MAC/s"), "1/s", "Multiply-accumulates divided by time.", (l) => ratio(l.macs, best(l.latency_s)), { name: "Multiply-accumulates per second", width: 13 }),
  derived("bytes_per_second", "Bytes/s", "Rates", (v) => si(v, "B/s"), "B/s", "Bytes read and written divided by time.", (l) => ratio(moved(l), best(l.latency_s)), { name: "Bytes per second" }),
  metric("energy_j", "Energy", "Target", joules, "J", "Energy that the layer uses in one inference.", { first: true }),
  derived("joules_per_mac", "J/MAC", "Target", (v) => si(v, "J"), "J", "Energy divided by multiply-accumulates.", (l) => ratio(best(l.energy_j), l.macs), { name: "Energy per multiply-accumulate" }),
  derived("joules_per_op", "J/op", "Target", (v) => si(v, "J"), "J", "Energy divided by operations.", (l) => ratio(best(l.energy_j), l.ops), { name: "Energy per operation" }),
  metric("cpu_cycles", "CPU cycles", "Target", count, "", "Cycles in which the processor works for the layer.", { width: 12 }),
  metric("accelerator_cycles", "Acc. cycles", "Target", count, "", "Cycles in which the accelerator runs.", { name: "Accelerator cycles", width: 12, first: true }),
  metric("simulator_cycles", "Sim. cycles", "Target", count, "", "Accelerator cycles by its maker's simulator, for comparison with its reports.", { name: "Simulator cycles", width: 12 }),
  { ...text("accelerated", "Accelerated", "Accelerated", 12, (l) => l.accelerated, "Whether the layer runs on the accelerator, where the target has one.", true), group: "Target" },
  { ...text("reason", "Reason", "Reason", 34, (l) => l.reason, "Why the layer is not accelerated, not supported or has no figure."), group: "Target" },
  derived("sparsity_weights", "Zero weights", "Sparsity", percent, "", "Part of the weights that are zero.", (l) => l.sparsity?.weights, { width: 12 }),
  derived("sparsity_activations", "Zero outputs", "Sparsity", percent, "", "Part of the output elements that are zero.", (l) => l.sparsity?.activations, { width: 12 }),
  { ...text("confidence", "Match", "Match with the model", 12, (l) => l.provenance?.confidence, "How the executed operator was matched with the model's: exact (the engine says so), by tensor (same tensor names), by order (same order and kind), unknown.") },
];

/** shown is the text of a column for a layer, "" where it is not known. */
export function shown(c: LayerColumn, l: Layer): string {
  const v = c.value(l);
  return v === undefined ? "" : typeof v === "number" ? c.show(v) : v;
}

/** exact is a figure in full, for tips. */
export function exact(c: LayerColumn, l: Layer): string {
  const v = c.value(l);
  return v === undefined ? "" : typeof v === "number" ? `${number(v)} ${c.unit ?? ""}`.trim() : v;
}

/** known lists the columns that have a figure for some layer. */
export function known(layers: Layer[]): LayerColumn[] {
  return columns.filter((c) => layers.some((l) => c.value(l) !== undefined));
}

/** about is the explanation of a column with its unit and the kinds of its figures. */
export function about(c: LayerColumn, layers: Layer[]): string {
  const parts = [c.text];
  if (c.kind === "counted") parts.push("Counted: follows from the model alone.");
  if (c.kind === "derived") parts.push("Follows from other figures.");
  if (c.metric) {
    const kinds = new Set<string>();
    const methods = new Set<string>();
    for (const l of layers) {
      const m = c.metric(l);
      if (!m) continue;
      kinds.add(m.kind);
      if (m.method) methods.add(m.method);
    }
    if (kinds.size > 0) parts.push(`Here: ${[...kinds].join(", ")}${methods.size === 1 ? ` (${clean([...methods][0])})` : ""}.`);
  }
  if (c.unit) parts.push(`Unit in files: ${c.unit}.`);
  return parts.join(" ");
}
