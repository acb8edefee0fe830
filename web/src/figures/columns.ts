// What can be said of a layer, one entry a figure: the table's columns and the facts
// of the panel are the same list, so that a figure has one name and one explanation.
// Figures come from the table of quantities; beside them stand texts and what is
// said of the time.
import type { Layer, Metric, Quantity, Tensor } from "../data/profile";
import { bytes, clean, count, percent, plain, range, seconds, shape, si } from "./format";
import { Figures, stored } from "./quantities";
import * as words from "./words";

export interface LayerColumn {
  /** As in the profile's JSON where it stands there; head of files. */
  key: string;
  /** Head of the table. */
  head: string;
  /** Name where there is room. */
  name: string;
  group: string;
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
  /** Follows from other figures. */
  derived?: boolean;
  /** For sorting and for files: base units, undefined where not known. */
  value: (l: Layer) => number | string | undefined;
  /** For people. */
  show: (v: number) => string;
  /** The figure of several layers, where there is one. */
  sum?: (layers: Layer[]) => number | undefined;
  metric?: (l: Layer) => Metric | undefined;
}

/** Look is what the page adds to a quantity. */
interface Look {
  width?: number;
  first?: boolean;
  show?: (v: number) => string;
}

/** Whatever is not said here follows from the unit, so that a new or foreign figure
 * looks right by itself. */
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

/** shower is how figures of a quantity are written. */
export function shower(q: Quantity): (v: number) => string {
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
      return (v) => si(v, clean(q.unit));
  }
}

const capital = (s: string) => (s === "" ? s : s[0].toUpperCase() + s.slice(1));

/** A figure that nobody describes has its key for a name, which stays as it is. */
const named = (q: Quantity) => (q.name === q.key ? clean(q.key) : capital(clean(q.name)));

/** heading of a narrow column. */
const heading = (q: Quantity) => (q.head ? capital(clean(q.head)) : named(q));

/** How many of the figures that a record brings with it are shown at first. */
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

/** What a layer is. */
const facts: LayerColumn[] = [
  { key: "index", head: "#", name: "Number", group: "Layer", text: "Position in the order in which the layers run, from 0. Layers of a control-flow body follow their owner.", width: 6, first: true, value: (l) => l.index, show: String },
  text("op", "Operator", 20, (l) => l.op, "The operator as the model names it.", { first: true }),
  text("name", "Name", 0, (l) => l.name, "The node's name in the model, or one made from its output.", { first: true }),
  text("output", "Output", 18, (l) => tensors(l.outputs), "Element type and shape of what the layer makes.", { first: true }),
  text("input", "Input", 22, (l) => tensors(l.inputs), "Element type and shape of what the layer takes, weights and other constants left out."),
  text("options", "Options", 30, words.options, "The operator's options. Strides and filters are width × height."),
  text("scope", "Scope", 24, (l) => l.scope, "The block of the model that the layer belongs to, as far as names tell."),
  text("graph", "Body", 16, (l) => l.graph, "The control-flow body that the layer is in; empty in the main graph."),
  text("domain", "Domain", 14, (l) => l.domain, "The operator's domain; empty for the format's own operators."),
  text("kernel", "Kernel", 20, (l) => l.kernel, "The implementation that ran."),
  text("confidence", "Match", 12, (l) => l.provenance?.confidence, "How the executed operator was matched with the model's: exact (the engine says so), by tensor (same tensor names), by name, by order (same order and kind), unknown.", { name: "Match with the model" }),
];

/** What is said of the time beside its figure. */
const time: LayerColumn[] = [
  text(
    "interval",
    "Interval",
    17,
    (l) => {
      const ends = l.latency_s?.band ?? l.latency_s?.ci95;
      return ends && range(ends, seconds);
    },
    "Of an estimate: the band that holds the true value in the share of cases that its method states. Of a measurement: the 95 % confidence interval of the median.",
    { name: "Interval of the time", group: "Time" },
  ),
  text("kind", "Kind", 11, (l) => l.latency_s?.kind, "How the time came about: measured on hardware, simulated by an exact model of it, estimated by an approximate one, or imported from another tool's record.", { name: "Kind of the time", group: "Time" }),
  { key: "spread", head: "Spread", name: "Spread", group: "Time", derived: true, unit: "1", text: "Median absolute deviation of the samples, as a part of the median: how far a sample lies from the middle.", width: 9, value: (l) => ratio(l.latency_s?.mad, l.latency_s?.median), show: percent },
  { key: "p99_s", head: "p99", name: "p99", group: "Time", unit: "s", text: "99 of 100 inferences take at most this time in the layer. Only with enough samples.", width: 10, value: (l) => l.latency_s?.p99, show: seconds },
];

/** What became of a layer. */
const fate: LayerColumn[] = [
  text("on", "Runs on", 12, (l) => words.unit(l.placement), "The unit of the target that does the layer's work, where the target has several.", { group: "Target", first: true }),
  text("state", "State", 18, (l) => (l.state === "ran" ? undefined : words.states[l.state]), "What became of a layer that did not simply run.", { group: "Target" }),
  text("cause", "Cause", 34, words.cause, "Why the layer is not accelerated, not supported or has no figure.", { group: "Target" }),
];

/** columnsOf makes the columns of a page. foreign are the keys of figures that the
 * profile brings with it and some layer has. */
export function columnsOf(quantities: Quantity[], foreign: string[] = []): LayerColumn[] {
  const figures = new Figures(quantities);
  const some = foreign.slice(0, foreignMost);
  const made = quantities.map((q) => ofQuantity(q, figures, some));
  const after = made.findIndex((c) => c.key === "share") + 1;
  return [...facts, ...made.slice(0, after), ...time, ...made.slice(after), ...fate];
}

/** groupsOf lists the groups of columns, those that every profile may have first. */
export function groupsOf(columns: LayerColumn[]): string[] {
  const usual = ["Layer", "Time", "Work", "Memory", "Rates", "Target", "Sparsity"];
  return [...new Set([...usual, ...columns.map((c) => c.group)])].filter((g) => columns.some((c) => c.group === g));
}

/** shown is the text of a column for a layer, "" where it is not known. */
export function shown(c: LayerColumn, l: Layer): string {
  const v = c.value(l);
  return v === undefined ? "" : typeof v === "number" ? c.show(v) : v;
}

/** exact is a figure in full, for tips. */
export function exact(c: LayerColumn, l: Layer): string {
  const v = c.value(l);
  if (typeof v !== "number") return v ?? "";
  return `${v.toLocaleString("en-GB", { maximumSignificantDigits: 15 })} ${c.unit === "1" ? "" : (c.unit ?? "")}`.trim();
}

/** total is a column's figure for several layers: a sum, or a quotient of sums.
 * missing says for how many of them the figure is not known. */
export function total(c: LayerColumn, layers: Layer[]): { value: number | undefined; missing: number } {
  return { value: c.sum?.(layers), missing: layers.filter((l) => c.value(l) === undefined).length };
}

/** about is the explanation of a column with its unit and the kinds of its figures. */
export function about(c: LayerColumn, layers: Layer[]): string {
  const parts = [c.text];
  if (c.derived) parts.push("Follows from other figures.");
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
    if (kinds.size === 1 && kinds.has("counted") && methods.size === 0) parts.push("Counted: follows from the model alone.");
    else if (kinds.size > 0) parts.push(`Here: ${[...kinds].join(", ")}${methods.size === 1 ? ` (${clean([...methods][0])})` : ""}.`);
  }
  if (c.unit) parts.push(c.unit === "1" ? "In files: a fraction of one." : `Unit in files: ${c.unit}.`);
  return parts.filter(Boolean).join(" ");
}
