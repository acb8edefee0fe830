// Columns of the layer table, which are also the facts of the side panel, so that a
// figure has one name and one explanation. Figures come from the table of quantities;
// texts and statistics of the time are added here.
import type { Layer, Metric, Quantity, Tensor } from "../data/profile";
import { bytes, clean, count, percent, plain, range, seconds, shape, si } from "./format";
import { Figures, interval, reached, stored } from "./quantities";
import * as words from "./words";

export interface LayerColumn {
  /** Key in the profile's JSON where it has one; column head in files. */
  key: string;
  /** Head of the table. */
  head: string;
  /** Long name. */
  name: string;
  group: string;
  /** Unit of value, for files. */
  unit?: string;
  /** Explanation. */
  text: string;
  /** Text is aligned to the left, figures to the right. */
  left?: boolean;
  /** Width of the column in characters; 0 takes the remaining width. */
  width: number;
  /** Shown by default where it has figures. */
  first?: boolean;
  /** Computed from other figures. */
  derived?: boolean;
  /** Value in base units for sorting and files, undefined where unknown. */
  value: (l: Layer) => number | string | undefined;
  /** Formats a value with its unit. */
  show: (v: number) => string;
  /** The figure of several layers, where it is defined. */
  sum?: (layers: Layer[]) => number | undefined;
  metric?: (l: Layer) => Metric | undefined;
}

/** Look overrides the default format of a quantity. */
interface Look {
  width?: number;
  first?: boolean;
  show?: (v: number) => string;
}

/** Formats that do not follow from the unit. A new or imported figure needs no entry. */
const looks: Record<string, Look> = {
  latency_s: { first: true },
  share: { first: true, width: 13 },
  expected_s: { first: true },
  against_expected: { first: true, show: (v) => v.toFixed(2) },
  accelerator_cycles: { first: true },
  energy_j: { first: true },
  macs: { first: true },
  params: { first: true },
  ops_per_s: { first: true, width: 12, show: (v) => si(v, "op/s") },
  macs_per_s: { width: 13, show: (v) => si(v, "MAC/s") },
};

/** Shower writes a figure, with some more digits than usual if asked for. */
export type Shower = (v: number, more?: number) => string;

/** shower returns the formatter of a quantity. */
export function shower(q: Quantity): Shower {
  const own = looks[q.key]?.show;
  if (own) return own;
  switch (q.unit ?? "") {
    case "s":
      return seconds;
    case "B":
      return bytes;
    case "1":
      return percent;
    case "":
      return q.whole || q.key === "calls" ? count : plain;
    case "cycles":
    case "instr.":
    case "ticks":
      return count;
    default:
      return (v, more) => si(v, clean(q.unit), more);
  }
}

const capital = (s: string) => (s === "" ? s : s[0].toUpperCase() + s.slice(1));

/** named returns the name of a quantity. One without a description has its key as name,
 * which is not capitalised. */
const named = (q: Quantity) => (q.name === q.key ? clean(q.key) : capital(clean(q.name)));

/** heading returns the short name for a column head. */
const heading = (q: Quantity) => (q.head ? capital(clean(q.head)) : named(q));

/** Number of imported figures that are shown by default. */
const foreignMost = 3;

function ofQuantity(q: Quantity, figures: Figures, foreign: string[]): LayerColumn {
  const look = looks[q.key] ?? {};
  return {
    key: q.key,
    head: heading(q),
    name: named(q),
    group: clean(q.group) || "Other",
    unit: clean(q.unit) || undefined,
    text: clean(q.doc),
    width: look.width ?? Math.max(10, Math.min(16, heading(q).length + 3)),
    first: look.first || foreign.indexOf(q.key) >= 0,
    derived: !!q.of?.length,
    value: (l) => figures.value(l, q.key),
    show: shower(q),
    sum: q.adds || q.of?.length ? (layers) => figures.sum(layers, q.key) : undefined,
    metric: (l) => figures.metric(l, q.key),
  };
}

const tensors = (list: Tensor[] | undefined) =>
  (list ?? [])
    .filter((t) => !t.absent && !t.constant)
    .map((t) => `${t.dtype ?? ""} ${shape(t.shape) || "?"}`.trim())
    .join(", ");

function text(key: string, name: string, width: number, of: (l: Layer) => string | undefined, why: string, more: Partial<LayerColumn> = {}): LayerColumn {
  return { key, head: name, name, group: "Layer", text: why, left: true, width, value: (l) => clean(of(l)) || undefined, show: String, ...more };
}

function ratio(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined || !(b > 0) ? undefined : a / b;
}

/** Columns that describe the layer itself. */
const facts: LayerColumn[] = [
  { key: "index", head: "#", name: "Number", group: "Layer", text: "Position in execution order, from 0. Layers of a control-flow body follow their owner.", width: 6, first: true, value: (l) => l.index, show: String },
  text("op", "Operator", 20, (l) => l.op, "Operator name in the model format.", { first: true }),
  text("name", "Name", 0, (l) => l.name, "Name of the node in the model, or derived from its output.", { first: true }),
  text("output", "Output", 18, (l) => tensors(l.outputs), "Element types and shapes of the outputs.", { first: true }),
  text("input", "Input", 22, (l) => tensors(l.inputs), "Element types and shapes of the inputs, without weights and other constants."),
  text("options", "Options", 30, words.options, "Options of the operator. Strides and filters are width × height."),
  text("scope", "Scope", 24, (l) => l.scope, "Module of the model that the layer belongs to, from its name."),
  text("graph", "Body", 16, (l) => l.graph, "Control-flow body that contains the layer; empty in the main graph."),
  text("domain", "Domain", 14, (l) => l.domain, "Domain of the operator; empty for the standard operators of the format."),
  text("kernel", "Kernel", 20, (l) => l.kernel, "Kernel that ran the layer."),
  text("confidence", "Match", 12, (l) => l.provenance?.confidence, "How the executed operator was matched with the model: exact (by the engine), by tensor (same tensor names), by name, by order (same order and operator), unknown.", { name: "Match with the model" }),
];

/** Statistics of the time. */
const time: LayerColumn[] = [
  text(
    "interval",
    "Interval",
    17,
    (l) => {
      const ends = interval(l.latency_s);
      return ends && range(ends, seconds);
    },
    "Of an estimate: the band that holds the true value in 9 of 10 cases. Of a measurement: the 95 % confidence interval of the median.",
    { name: "Interval of the time", group: "Time" },
  ),
  text("share_interval", "Share interval", 15, (l) => l.share_ci95 && range(l.share_ci95, percent), "95 % confidence interval of the share.", { name: "Interval of the share", group: "Time" }),
  { ...text("place", "Place", 12, (l) => l.rank && words.places(l.rank), "Place by time, 1st for the slowest layer. A range says that the intervals of layers overlap, so that their order is not settled.", { name: "Place by time", group: "Time" }), left: false },
  text("kind", "Kind", 11, (l) => l.latency_s?.kind, "Provenance of the time: measured on hardware, simulated by an exact model of it, estimated by an approximate one, or imported from another tool.", { name: "Provenance of the time", group: "Time" }),
  { key: "spread", head: "Spread", name: "Spread", group: "Time", derived: true, unit: "1", text: "Median absolute deviation (MAD) of the samples divided by the median.", width: 9, value: (l) => ratio(l.latency_s?.mad, l.latency_s?.median), show: percent },
  { key: "p99_s", head: "p99", name: "p99", group: "Time", unit: "s", text: "Time that 99 of 100 inferences do not exceed in the layer. Only with enough samples.", width: 10, value: (l) => l.latency_s?.p99, show: seconds },
];

/** Placement and state of a layer. */
const fate: LayerColumn[] = [
  text("on", "Runs on", 12, (l) => words.unit(l.placement), "Processing unit that runs the layer, where the target has several.", { group: "Target", first: true }),
  text("state", "State", 18, (l) => (l.state === "ran" ? undefined : words.states[l.state]), "State of a layer that did not run as such: fused, computed at load, not supported, …", { group: "Target" }),
  text("cause", "Cause", 34, words.cause, "Why the layer is not accelerated, not supported or has no figure.", { group: "Target" }),
];

/** columnsOf returns the columns of a page. foreign lists the keys of figures that the
 * profile itself defines and some layer has. */
export function columnsOf(quantities: Quantity[], foreign: string[] = []): LayerColumn[] {
  const figures = new Figures(quantities);
  const some = foreign.slice(0, foreignMost);
  const made = quantities.map((q) => ofQuantity(q, figures, some));
  const after = made.findIndex((c) => c.key === "share") + 1;
  return [...facts, ...made.slice(0, after), ...time, ...made.slice(after), ...fate];
}

/** groupsOf lists the groups of columns, the standard ones first. */
export function groupsOf(columns: LayerColumn[]): string[] {
  const usual = ["Layer", "Time", "Work", "Memory", "Rates", "Target", "Sparsity"];
  return [...new Set([...usual, ...columns.map((c) => c.group)])].filter((g) => columns.some((c) => c.group === g));
}

/** shown is the text of a column for a layer, "" where it is unknown. */
export function shown(c: LayerColumn, l: Layer): string {
  const v = c.value(l);
  return v === undefined ? "" : typeof v === "number" ? c.show(v) : v;
}

/** exact is a figure with all digits, for tooltips. */
export function exact(c: LayerColumn, l: Layer): string {
  const v = c.value(l);
  if (typeof v !== "number") return v ?? "";
  return `${v.toLocaleString("en-GB", { maximumSignificantDigits: 15 })} ${c.unit === "1" ? "" : (c.unit ?? "")}`.trim();
}

/** total is a column's figure for several layers: a sum, or a quotient of sums. missing is
 * the number of layers without the figure, of those that an inference reached. */
export function total(c: LayerColumn, layers: Layer[]): { value: number | undefined; missing: number } {
  return { value: c.sum?.(layers), missing: layers.filter((l) => reached(l) && c.value(l) === undefined).length };
}

/** about is the explanation of a column with its unit and provenance. */
export function about(c: LayerColumn, layers: Layer[]): string {
  const parts = [c.text];
  if (c.derived) parts.push("Computed from other figures.");
  else if (c.metric) {
    const kinds = new Set<string>();
    const methods = new Set<string>();
    for (const l of layers) {
      const m = c.metric(l);
      if (!m) {
        if (c.sum && typeof stored(l, c.key) === "number" && c.key !== "share") kinds.add("counted");
        continue;
      }
      kinds.add(m.kind);
      if (m.method) methods.add(m.method);
    }
    if (kinds.size === 1 && kinds.has("counted") && methods.size === 0) parts.push("Counted from the model.");
    else if (kinds.size > 0) parts.push(`Provenance: ${[...kinds].join(", ")}${methods.size === 1 ? ` (${clean([...methods][0])})` : ""}.`);
  }
  if (c.unit) parts.push(c.unit === "1" ? "In files: a fraction." : `Unit in files: ${c.unit}.`);
  return parts.filter(Boolean).join(" ");
}
