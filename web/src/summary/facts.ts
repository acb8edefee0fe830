// What stands in the cards of the summary: how well the figures are known, where and
// how they came about, and of which model. What is not known has no line.
import { bytes, clean, percent, plural, range, seconds, shape, short, si } from "../figures/format";
import { best } from "../figures/quantities";
import { kinds as origins, states, taken } from "../figures/words";
import type { HostState, Layer, Metric, Profile, Tensor } from "../data/profile";

type Facts = [name: string, value: string | undefined][];

export interface Card {
  title: string;
  facts: [string, string][];
}

export const formats: Record<string, string> = { tflite: "TFLite", onnx: "ONNX" };

const yes = (v: boolean | undefined) => (v === undefined ? undefined : v ? "yes" : "no");

// Whether the interval of a difference leaves out zero.
const showsIn = (m: Metric | undefined) => m?.ci95 !== undefined && (m.ci95[0] > 0 || m.ci95[1] < 0);

// The sum of the layers beside the time of whole inferences. Intervals between layers
// count from a two-thousandth on.
function addUp(r: Profile["reconcile"]): string | undefined {
  if (r?.operators_s === undefined || r.gaps_s === undefined || !r.wall_s) return undefined;
  const gaps = r.gaps_s > 0.0005 * r.wall_s ? `, with ${seconds(r.gaps_s)} between them to ${seconds(r.wall_s)}` : "";
  return `their typical times give ${seconds(r.operators_s)}${gaps}${r.plain_s ? `; the median of plain runs is ${seconds(r.plain_s)}` : ""}${r.unassigned ? `; ${percent(r.unassigned)} not explained` : ""}`;
}

function quality(p: Profile, sampled: string | undefined): Facts {
  const m = p.totals.latency_s;
  const r = p.reconcile;
  const w = p.phases?.warmup;
  const overhead = best(r?.overhead_s);
  return [
    ["Figures", m && origins[m.kind]],
    ["Method", clean(m?.method)],
    ["Runs", m?.n !== undefined ? plural(m.n, "run") : undefined],
    ["Typical", m?.typical !== undefined ? `${seconds(m.typical)}, the mean of the middle half of the runs` : undefined],
    ["Median", m?.n !== undefined && m.median !== undefined ? seconds(m.median) + (m.ci95 ? `, 95 % interval ${range(m.ci95, seconds)}` : "") : undefined],
    ["Band", m?.band && range(m.band, seconds)],
    ["Mean", m?.n !== undefined && m.mean !== undefined ? seconds(m.mean) + (m.stddev !== undefined ? `, standard deviation ${seconds(m.stddev)} (${percent(m.stddev / m.mean)})` : "") : undefined],
    ["Range", m?.min !== undefined && m.max !== undefined && m.n !== 1 ? range([m.min, m.max], seconds) : undefined],
    ["Percentiles", m && ((["p90", "p95", "p99"] as const).filter((k) => m[k] !== undefined).map((k) => `${k} ${seconds(m[k])}`).join(", ") || undefined)],
    ["Median deviation", m?.mad !== undefined ? `${seconds(m.mad)} from the median` : undefined],
    ["Outliers", m?.outliers !== undefined && m.n ? `${m.outliers} of ${m.n}, counted and kept` : undefined],
    ["Steady", w && (w.steady === undefined ? `cannot be said${w.reason ? `: ${clean(w.reason)}` : ""}` : w.steady ? "yes: no drift and no change found in the runs" : `no${w.reason ? `: ${clean(w.reason)}` : ""}`)],
    ["Warm-up", w && [w.count !== undefined ? plural(w.count, "run") : "", w.time_s !== undefined ? seconds(w.time_s) : ""].filter(Boolean).join(" in ")],
    ["Start", p.phases && ([p.phases.load_s !== undefined ? `load ${seconds(p.phases.load_s)}` : "", p.phases.plan_s !== undefined ? `plan ${seconds(p.phases.plan_s)}` : "", p.phases.first_run_s !== undefined ? `first run ${seconds(p.phases.first_run_s)}` : ""].filter(Boolean).join(", ") || undefined)],
    ["Layers add up", addUp(r)],
    [
      "Instruments cost",
      overhead === undefined || !r?.plain_s
        ? undefined
        : showsIn(r.overhead_s)
          ? `${seconds(overhead)} an inference (${percent(overhead / r.plain_s)})${r.overhead_s?.ci95 ? `, 95 % interval ${range(r.overhead_s.ci95, seconds)}` : ""}`
          : "nothing that shows",
    ],
    ["Cost per operator", best(r?.overhead_per_operator_s) !== undefined ? seconds(best(r?.overhead_per_operator_s)) : undefined],
    ["Samples", sampled],
  ];
}

// A time under load or cold: its middle and what the number of inferences allows.
const spread = (m: Metric | undefined) =>
  m?.median === undefined ? undefined : [`${seconds(m.median)} median`, ...(["p90", "p95", "p99", "max"] as const).filter((k) => m[k] !== undefined).map((k) => `${k} ${seconds(m[k])}`)].join(", ") + (m.n !== undefined ? ` (${plural(m.n, "run")})` : "");

/** carded are the figures of the whole model that the card about load tells, and throughput, which has a tile of its own. */
export const carded = new Set(["inferences_per_s", "loaded_latency_s", "stream_fairness", "loaded_processor_s", "due_inferences", "late_inferences", "unstarted_inferences", "response_s", "waiting_s", "cold_latency_s", "cold_start_s"]);

// What streams, a fixed rate and cold inferences gave beside the latency.
function load(p: Profile): Facts {
  const of = (key: string) => p.totals.figures?.[key];
  const s = p.settings;
  const throughput = of("inferences_per_s");
  const rate = best(throughput);
  const fairness = best(of("stream_fairness"));
  const starts = spread(of("cold_start_s"));
  const [due, late, left] = ["due_inferences", "late_inferences", "unstarted_inferences"].map((k) => best(of(k)));
  return [
    ["Streams", s.streams !== undefined ? String(s.streams) : undefined],
    ["Instances", s.instances !== undefined ? String(s.instances) : undefined],
    ["Throughput", rate === undefined ? undefined : `${si(rate, "")} inferences/s${s.batch !== undefined && s.batch > 1 ? `, ${si(rate * s.batch, "")} items/s` : ""}${throughput?.ci95 ? `, 95 % interval ${range(throughput.ci95, (v) => si(v, ""))}` : ""}`],
    ["Time under load", spread(of("loaded_latency_s"))],
    ["Slowest stream", fairness === undefined ? undefined : `computes ${percent(fairness)} of the fastest one`],
    ["Processor time", best(of("loaded_processor_s")) === undefined ? undefined : `${seconds(best(of("loaded_processor_s")))} an inference`],
    ["Rate", s.rate_per_s === undefined ? undefined : `${si(s.rate_per_s, "")} inferences/s due${due === undefined ? "" : `: of ${due} ${late ?? 0} began late, ${left ?? 0} never`}`],
    ["Response", spread(of("response_s"))],
    ["Waiting", spread(of("waiting_s"))],
    ["With cold caches", spread(of("cold_latency_s"))],
    ["Cold start", starts && `${starts}, ${s.engine_library ? "from the model's file to the first result; the engine's library was loaded before" : "from making the session to the first result; the model's file was open before"}`],
  ];
}

function where(p: Profile): Facts {
  const h = p.host;
  const caches = h && [h.cache_l1d_bytes, h.cache_l2_bytes, h.cache_l3_bytes].map((b, i) => (b === undefined ? "" : `L${i + 1} ${bytes(b)}`)).filter(Boolean).join(", ");
  const state = (s: HostState | undefined) => s && ([s.frequency_hz !== undefined ? si(s.frequency_hz, "Hz") : "", s.temperature_c !== undefined ? `${s.temperature_c.toFixed(0)} °C` : "", s.load_average !== undefined ? `load ${s.load_average.toFixed(2)}` : ""].filter(Boolean).join(", ") || undefined);
  return [
    ["Target", [clean(p.target.description), clean(p.target.id)].filter((s, i, a) => s && a.indexOf(s) === i).join(", ")],
    ["Kind", { host: "this computer", simulator: "a model of a chip", device: "hardware behind a cable", import: "another tool's record" }[p.target.kind]],
    ["Engine", clean(p.target.engine)],
    ["Accelerator", clean(p.target.accelerator)],
    ["Clock", p.target.clock_hz !== undefined ? si(p.target.clock_hz, "Hz") : undefined],
    ["Peak rates", [p.target.peak_ops_per_second !== undefined ? si(p.target.peak_ops_per_second, "op/s") : "", p.target.peak_bytes_per_second !== undefined ? si(p.target.peak_bytes_per_second, "B/s") : ""].filter(Boolean).join(", ") || undefined],
    ["Peaks from", clean(p.target.peak_method)],
    [p.target.kind === "host" ? "Processor" : "Worked out on", h && [clean(h.cpu_model), h.cores !== undefined ? plural(h.cores, "core") : "", h.cpus !== undefined && h.cpus !== h.cores ? plural(h.cpus, "logical processor") : ""].filter(Boolean).join(", ")],
    ["Extensions", clean(h?.features?.join(" "))],
    ["Caches", caches || undefined],
    ["Memory", h?.memory_bytes !== undefined ? bytes(h.memory_bytes) : undefined],
    ["System", h && [clean(h.os), clean(h.arch), clean(h.kernel)].filter(Boolean).join(", ")],
    ["Virtual machine", clean(h?.virtual)],
    ["Frequency and threads", h && ([clean(h.governor), h.turbo !== undefined ? `turbo ${h.turbo ? "on" : "off"}` : "", h.smt !== undefined ? `simultaneous multithreading ${h.smt ? "on" : "off"}` : ""].filter(Boolean).join(", ") || undefined)],
    ["Processors granted", h?.cpu_quota !== undefined ? String(h.cpu_quota) : undefined],
    ["On battery", yes(h?.on_battery)],
    ["State before", h && state(h.before)],
    ["State after", h && state(h.after)],
    ["Switched away", h?.involuntary_switches !== undefined ? `${h.involuntary_switches} times` : undefined],
    ["Time taken by others", h && ([h.stolen_s !== undefined ? `${seconds(h.stolen_s)} by the hypervisor` : "", h.quota_throttled_s !== undefined ? `${seconds(h.quota_throttled_s)} by the quota` : ""].filter(Boolean).join(", ") || undefined)],
    ["Throttled by heat", h?.throttled !== undefined ? `${h.throttled} times` : undefined],
    ["Clock of times", h?.clock_resolution_s !== undefined ? `steps of ${seconds(h.clock_resolution_s)}${h.clock_cost_s !== undefined ? `, ${seconds(h.clock_cost_s)} to read` : ""}` : undefined],
    ["Fingerprint", clean(h?.fingerprint)],
  ];
}

const tensor = (x: Tensor) => [clean(x.name), [x.dtype, taken(x)].filter(Boolean).join(" ")].filter(Boolean).join(": ");

function model(p: Profile): Facts {
  return [
    ["File", clean(p.model.path)],
    ["Format", p.model.format && `${formats[p.model.format] ?? clean(p.model.format)}${p.model.format_version !== undefined ? ` version ${p.model.format_version}` : ""}`],
    ["Operator sets", p.model.opsets && Object.entries(p.model.opsets).map(([d, v]) => `${clean(d)} ${v}`).join(", ")],
    ["Size", p.model.file_bytes !== undefined ? bytes(p.model.file_bytes) : undefined],
    ["SHA-256", clean(p.model.sha256)],
    ["SHA-256 of the structure", clean(p.model.structure_sha256)],
    ["SHA-256 of the weights", clean(p.model.weights_sha256)],
    ["Made by", clean(p.model.producer)],
    ["Description", clean(p.model.description)],
    ["Inputs", (p.model.inputs ?? []).map(tensor).join("; ") || undefined],
    ["Outputs", (p.model.outputs ?? []).map(tensor).join("; ") || undefined],
    ["Layers", p.totals.layers !== undefined ? layersLine(p) : undefined],
    ["Warnings", (p.model.warnings ?? []).map(clean).join(" ") || undefined],
  ];
}

/** layersLine counts the layers by what became of them. */
function layersLine(p: Profile): string {
  const of = (state: Layer["state"]) => p.layers.filter((l) => l.state === state).length;
  const parts = (Object.keys(states) as Layer["state"][]).filter((s) => s !== "ran" && of(s) > 0).map((s) => `${of(s)} ${states[s]}`);
  return `${p.totals.layers!.toLocaleString("en-GB")}${parts.length ? ` (${parts.join(", ")})` : ""}`;
}

function settings(p: Profile): Facts {
  const s = p.settings;
  return [
    ["Engine", [clean(s.engine), clean(s.engine_version)].filter(Boolean).join(" ")],
    ["opmeter", clean(s.version)],
    ["Kernels", clean(s.kernel_set)],
    ["Exact", s.exact ? "quantised patterns in floating point, halves rounded after each operator" : undefined],
    ["SHA-256 of the target", clean(s.target_sha256)],
    ["Threads", s.threads !== undefined ? String(s.threads) : undefined],
    ["Pinned to", s.pinned_cpus?.length ? `processors ${s.pinned_cpus.join(", ")}` : undefined],
    ["Runs asked for", [s.runs !== undefined ? String(s.runs) : "", s.time_s !== undefined ? seconds(s.time_s) : ""].filter(Boolean).join(", ") || undefined],
    ["Warm-up asked for", [s.warmup_runs !== undefined ? plural(s.warmup_runs, "run") : "", s.warmup_s !== undefined ? seconds(s.warmup_s) : ""].filter(Boolean).join(", ") || undefined],
    ["Passes", s.passes === "abba" ? "plain and instrumented in turns (ABBA)" : clean(s.passes)],
    ["Garbage collector", s.garbage_collector === "off" ? "kept out of timed runs" : clean(s.garbage_collector)],
    ["Batch", s.batch !== undefined ? String(s.batch) : undefined],
    ["Inputs", clean(s.input_kind) + (s.seed !== undefined && s.input_kind === "random" ? `, seed ${s.seed}` : "")],
    ...Object.entries(s.inputs ?? {}).map(([name, i]): [string, string] => [`Input ${short(clean(name), 40)}`, [clean(i.file), shape(i.shape), i.sha256 ? `SHA-256 ${clean(i.sha256)}` : ""].filter(Boolean).join(", ")]),
    ["Carried over", s.carry && Object.entries(s.carry).map(([a, b]) => `${clean(a)} → ${clean(b)}`).join(", ")],
    ["Libraries", s.libraries && Object.entries(s.libraries).map(([a, b]) => `${clean(a)} ${clean(b)}`).join(", ")],
    ["Created", clean(p.created).replace("T", " ").replace("Z", " UTC")],
  ];
}

/** cards of a profile; sampled says that not all samples are in the page. */
export function cards(p: Profile, sampled?: string): Card[] {
  return [
    { title: "How well it is known", facts: quality(p, sampled) },
    { title: "Under load", facts: load(p) },
    { title: "Where", facts: where(p) },
    { title: "Model", facts: model(p) },
    { title: "Settings", facts: settings(p) },
  ]
    .map((c) => ({ ...c, facts: c.facts.filter((f): f is [string, string] => !!f[1]) }))
    .filter((c) => c.facts.length > 0);
}
