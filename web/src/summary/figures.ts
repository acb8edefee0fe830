// Figures of the whole model, as tiles.
import { shower } from "../figures/columns";
import { bytes, clean, count, joules, percent, plural, range, si } from "../figures/format";
import { best, interval, took } from "../figures/quantities";
import type { Metric, Profile } from "../data/profile";
import { columns, figures as read } from "../page/state.svelte";
import { carded } from "./facts";

export interface Figure {
  name: string;
  value: string;
  notes: string[];
  why: string;
}
const div = (a: number | undefined, b: number | undefined) => (a === undefined || b === undefined || !(b > 0) ? undefined : a / b);
const many = (v: number) => (v >= 1000 ? si(v, "") : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toPrecision(3));

/** ends writes the band or the confidence interval of a metric. */
function ends(m: Metric | undefined, show: (v: number) => string): string {
  const i = interval(m);
  return i ? `${i === m?.band ? "band" : "95 % CI"} ${range(i, show)}` : "";
}
function figure(name: string, m: Metric | undefined, show: (v: number) => string, why: string): Figure | undefined {
  const v = best(m);
  if (v === undefined) return undefined;
  // That a tile was measured or imported is the rule and needs no note.
  const kind = m!.kind === "measured" || m!.kind === "imported" ? "" : m!.kind;
  return { name, value: show(v), notes: [[kind, ends(m, show)].filter(Boolean).join(", ")].filter(Boolean), why: [why, m!.method ? `Method: ${clean(m!.method)}.` : ""].join(" ").trim() };
}
function plain(name: string, v: number | undefined, show: (v: number) => string, why: string, ...notes: (string | undefined | false)[]): Figure | undefined {
  return v === undefined ? undefined : { name, value: show(v), notes: notes.filter((n): n is string => !!n), why };
}

/** tiles lists the known figures apart from the latency. */
export function tiles(p: Profile): Figure[] {
  const t = p.totals;
  const latency = best(t.latency_s);
  const uncounted = t.uncounted_layers ? `without ${plural(t.uncounted_layers, "layer")} that cannot be counted` : undefined;
  const cpu = best(t.cpu_cycles);
  // A rate leaves out the work of layers without a time.
  const work = took(p);
  const rate = (key: string) => read.rate(p, key);
  return [
    figure("Throughput", t.figures?.inferences_per_s, (v) => `${many(v)} /s`, "Inferences per second of all streams or instances together."),
    plain(t.figures?.inferences_per_s ? "Single stream" : "Throughput", div(1, latency), (v) => `${many(v)} /s`, "Inferences per second: 1 divided by the latency.", p.settings.batch && p.settings.batch > 1 ? `of ${p.settings.batch} samples each` : "inferences"),
    plain("Operation rate", work.ops ? rate("ops_per_s") : undefined, (v) => si(v, "op/s"), "Operations of the layers that ran divided by latency.", work.macs && latency ? si(rate("macs_per_s"), "MAC/s") : undefined),
    plain("MACs", t.macs, count, "Multiply-accumulates of one inference, including those on padding. Counted from the model.", t.macs_executed !== undefined && t.macs_executed !== t.macs ? `${count(t.macs_executed)} without padding` : undefined, uncounted),
    plain("Operations", t.ops, count, "Arithmetic operations of one inference; a MAC counts as two. Counted from the model.", uncounted),
    plain("Parameters", t.params, count, "Number of constant elements that layers read as weights, each counted once.", t.weights_bytes !== undefined && `${bytes(t.weights_bytes)} of weights`, t.computed_params !== undefined && `and ${count(t.computed_params)} computed at load`),
    plain("RAM", t.ram_bytes, bytes, "Working memory of an inference.", p.memory?.arena_bytes !== undefined && `arena ${bytes(p.memory.arena_bytes)}`, p.target.kind !== "simulator" && p.memory?.tflm_arena_bytes !== undefined && `TFLM tensor arena ${bytes(p.memory.tflm_arena_bytes)}`),
    plain("Flash", t.flash_bytes, bytes, "Storage that the model file takes on the target; program code comes on top."),
    figure("Energy", t.energy_j, joules, "Energy of one inference."),
    plain("Energy per MAC", rate("energy_per_mac_j"), joules, "Energy divided by the MACs of the layers that ran.", work.ops ? `${joules(rate("energy_per_op_j"))} per operation` : undefined),
    plain("Mean power", rate("power_w"), (v) => si(v, "W"), "Energy divided by latency."),
    figure("Accelerator cycles", t.accelerator_cycles, count, "Cycles of one inference in which the accelerator works."),
    figure("CPU cycles", t.cpu_cycles, count, "Cycles of one inference in which the processor works."),
    plain("CPU utilisation", div(cpu, div(latency, div(1, p.target.clock_hz))), (v) => percent(Math.min(1, v)), "Fraction of the latency in which the processor works: its cycles divided by clock and latency."),
    figure("Simulator cycles", t.simulator_cycles, count, "Accelerator cycles of the vendor's simulator, for comparison with its reports."),
    ...further(p),
  ].filter((f): f is Figure => !!f);
}

/** further lists figures without a field of their own in the profile. */
function further(p: Profile): (Figure | undefined)[] {
  const t = p.totals;
  return Object.keys(t.figures ?? {}).filter((key) => !carded.has(key)).map((key) => {
    const q = read.known.get(key);
    return q && figure(columns.find((c) => c.key === key)!.name, t.figures![key], shower(q), clean(q.doc));
  });
}
