// The cards of the summary: measurement quality, environment, model and settings.
// Unknown facts have no line.
import { bytes, clean, percent, plural, range, seconds, shape, short, si } from "../figures/format";
import { best, encloses } from "../figures/quantities";
import { kinds as origins, states, taken } from "../figures/words";
import type { HostState, Layer, Metric, Profile, Tensor } from "../data/profile";

type Facts = [name: string, value: string | undefined][];

export interface Card {
  title: string;
  facts: [string, string][];
}

export const formats: Record<string, string> = { tflite: "TFLite", onnx: "ONNX" };

const yes = (v: boolean | undefined) => (v === undefined ? undefined : v ? "yes" : "no");

// Whether the interval of a difference excludes zero.
const significant = (m: Metric | undefined) => m?.ci95 !== undefined && (m.ci95[0] > 0 || m.ci95[1] < 0);

// The sum of the layers with the time not in layers, which make up the latency. That time is
// shown from 0.05 % on.
function addUp(r: Profile["reconcile"]): string | undefined {
  if (r?.operators_s === undefined || r.gaps_s === undefined || !r.wall_s) return undefined;
  const gaps = r.gaps_s > 0.0005 * r.wall_s ? ` + ${seconds(r.gaps_s)} not in layers = ${seconds(r.wall_s)}` : "";
  return `${seconds(r.operators_s)}${gaps}${r.unassigned ? `; ${percent(r.unassigned)} unassigned` : ""}`;
}

function quality(p: Profile, sampled: string | undefined): Facts {
  const m = p.totals.latency_s;
  const r = p.reconcile;
  const w = p.phases?.warmup;
  const overhead = best(r?.overhead_s);
  return [
    ["Provenance", m && origins[m.kind]],
    ["Method", clean(m?.method)],
    ["Runs", m?.n !== undefined ? plural(m.n, "run") : undefined],
    ["Median", m?.n !== undefined && m.median !== undefined ? seconds(m.median) + (encloses(m.ci95, m.median) ? `, 95 % CI ${range(m.ci95!, seconds)}` : "") : undefined],
    ["Estimate band", m?.band && range(m.band, seconds)],
    ["Mean", m?.n !== undefined && m.mean !== undefined ? seconds(m.mean) + (m.stddev !== undefined ? `, standard deviation ${seconds(m.stddev)} (${percent(m.stddev / m.mean)})` : "") : undefined],
    ["Range", m?.min !== undefined && m.max !== undefined && m.n !== 1 ? range([m.min, m.max], seconds) : undefined],
    ["Percentiles", m && ((["p90", "p95", "p99"] as const).filter((k) => m[k] !== undefined).map((k) => `${k} ${seconds(m[k])}`).join(", ") || undefined)],
    ["MAD", m?.mad !== undefined ? seconds(m.mad) : undefined],
    ["Outliers", m?.outliers !== undefined && m.n ? `${m.outliers} of ${m.n} (included)` : undefined],
    ["Steady state", w && (w.steady === undefined ? `unknown${w.reason ? `: ${clean(w.reason)}` : ""}` : w.steady ? "yes: neither drift nor step in the runs" : `no${w.reason ? `: ${clean(w.reason)}` : ""}`)],
    ["Warm-up", w && [w.count !== undefined ? plural(w.count, "run") : "", w.time_s !== undefined ? seconds(w.time_s) : ""].filter(Boolean).join(" in ")],
    ["Start-up", p.phases && ([p.phases.load_s !== undefined ? `load ${seconds(p.phases.load_s)}` : "", p.phases.plan_s !== undefined ? `plan ${seconds(p.phases.plan_s)}` : "", p.phases.first_run_s !== undefined ? `first run ${seconds(p.phases.first_run_s)}` : ""].filter(Boolean).join(", ") || undefined)],
    ["Sum of layers", addUp(r)],
    [
      "Profiling overhead",
      overhead === undefined || !r?.plain_s
        ? undefined
        : significant(r.overhead_s)
          ? `${seconds(overhead)} per inference (${percent(overhead / r.plain_s)})${r.overhead_s?.ci95 ? `, 95 % CI ${range(r.overhead_s.ci95, seconds)}` : ""}`
          : "not measurable",
    ],
    ["Overhead per layer", best(r?.overhead_per_operator_s) !== undefined ? seconds(best(r?.overhead_per_operator_s)) : undefined],
    ["Samples", sampled],
  ];
}

// A time under load or with cold caches: median and the percentiles that enough
// inferences allow.
const spread = (m: Metric | undefined) =>
  m?.median === undefined ? undefined : [`${seconds(m.median)} median`, ...(["p90", "p95", "p99", "max"] as const).filter((k) => m[k] !== undefined).map((k) => `${k} ${seconds(m[k])}`)].join(", ") + (m.n !== undefined ? ` (${plural(m.n, "run")})` : "");

/** carded are the keys of figures in the card "Under load", and of throughput, which has
 * a tile. */
export const carded = new Set(["inferences_per_s", "loaded_latency_s", "stream_fairness", "loaded_processor_s", "due_inferences", "late_inferences", "unstarted_inferences", "response_s", "waiting_s", "cold_latency_s", "cold_start_s"]);

// Figures of streams, a fixed rate and cold inferences.
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
    ["Throughput", rate === undefined ? undefined : `${si(rate, "")} inferences/s${s.batch !== undefined && s.batch > 1 ? `, ${si(rate * s.batch, "")} items/s` : ""}${throughput?.ci95 ? `, 95 % CI ${range(throughput.ci95, (v) => si(v, ""))}` : ""}`],
    ["Latency under load", spread(of("loaded_latency_s"))],
    ["Fairness", fairness === undefined ? undefined : `slowest stream runs ${percent(fairness)} of the inferences of the fastest`],
    ["Processor time", best(of("loaded_processor_s")) === undefined ? undefined : `${seconds(best(of("loaded_processor_s")))} per inference`],
    ["Rate", s.rate_per_s === undefined ? undefined : `${si(s.rate_per_s, "")} inferences/s${due === undefined ? "" : `: ${due} due, ${late ?? 0} started late, ${left ?? 0} not started`}`],
    ["Response time", spread(of("response_s"))],
    ["Queueing time", spread(of("waiting_s"))],
    ["Cold caches", spread(of("cold_latency_s"))],
    ["Cold start", starts && `${starts}, ${s.engine_library ? "from reading the model file to the first result; the engine's library was already loaded" : "from creating the session to the first result; the model file was already open"}`],
  ];
}

function environment(p: Profile): Facts {
  const h = p.host;
  const caches = h && [h.cache_l1d_bytes, h.cache_l2_bytes, h.cache_l3_bytes].map((b, i) => (b === undefined ? "" : `L${i + 1} ${bytes(b)}`)).filter(Boolean).join(", ");
  const state = (s: HostState | undefined) => s && ([s.frequency_hz !== undefined ? si(s.frequency_hz, "Hz") : "", s.temperature_c !== undefined ? `${s.temperature_c.toFixed(0)} °C` : "", s.load_average !== undefined ? `load ${s.load_average.toFixed(2)}` : ""].filter(Boolean).join(", ") || undefined);
  return [
    ["Target", [clean(p.target.description), clean(p.target.id)].filter((s, i, a) => s && a.indexOf(s) === i).join(", ")],
    ["Kind", { host: "this computer", simulator: "estimate for a chip", device: "connected device", import: "profile or trace of another tool" }[p.target.kind]],
    ["Engine", clean(p.target.engine)],
    ["Accelerator", clean(p.target.accelerator)],
    ["Clock", p.target.clock_hz !== undefined ? si(p.target.clock_hz, "Hz") : undefined],
    ["Peak rates", [p.target.peak_ops_per_second !== undefined ? si(p.target.peak_ops_per_second, "op/s") : "", p.target.peak_bytes_per_second !== undefined ? si(p.target.peak_bytes_per_second, "B/s") : ""].filter(Boolean).join(", ") || undefined],
    ["Peak method", clean(p.target.peak_method)],
    [p.target.kind === "host" ? "Processor" : "Computed on", h && [clean(h.cpu_model), h.cores !== undefined ? plural(h.cores, "core") : "", h.cpus !== undefined && h.cpus !== h.cores ? plural(h.cpus, "logical processor") : ""].filter(Boolean).join(", ")],
    ["ISA extensions", clean(h?.features?.join(" "))],
    ["Caches", caches || undefined],
    ["Memory", h?.memory_bytes !== undefined ? bytes(h.memory_bytes) : undefined],
    ["System", h && [clean(h.os), clean(h.arch), clean(h.kernel)].filter(Boolean).join(", ")],
    ["Virtual machine", clean(h?.virtual)],
    ["Frequency governor", h && ([clean(h.governor), h.turbo !== undefined ? `turbo ${h.turbo ? "on" : "off"}` : "", h.smt !== undefined ? `SMT ${h.smt ? "on" : "off"}` : ""].filter(Boolean).join(", ") || undefined)],
    ["CPU quota", h?.cpu_quota !== undefined ? String(h.cpu_quota) : undefined],
    ["On battery", yes(h?.on_battery)],
    ["State before", h && state(h.before)],
    ["State after", h && state(h.after)],
    ["Context switches", h?.involuntary_switches !== undefined ? `${h.involuntary_switches} involuntary` : undefined],
    ["Steal time", h?.stolen_s !== undefined ? seconds(h.stolen_s) : undefined],
    ["Stopped by quota", h?.quota_throttled_s !== undefined ? seconds(h.quota_throttled_s) : undefined],
    ["Throttling", h?.throttled !== undefined ? `${h.throttled} times` : undefined],
    ["Timer", h?.clock_resolution_s !== undefined ? `resolution ${seconds(h.clock_resolution_s)}${h.clock_cost_s !== undefined ? `, ${seconds(h.clock_cost_s)} per reading` : ""}` : undefined],
    ["Fingerprint", clean(h?.fingerprint)],
  ];
}

const tensor = (x: Tensor) => [clean(x.name), [x.dtype, taken(x)].filter(Boolean).join(" ")].filter(Boolean).join(": ");

/** baseName leaves out the folders of a path: pages are sent to others. */
const baseName = (path: string | undefined) => clean(path?.replace(/^.*[/\\](?=.)/, ""));

function model(p: Profile): Facts {
  return [
    ["File", baseName(p.model.path)],
    ["Format", p.model.format && `${formats[p.model.format] ?? clean(p.model.format)}${p.model.format_version !== undefined ? ` version ${p.model.format_version}` : ""}`],
    ["Operator sets", p.model.opsets && Object.entries(p.model.opsets).map(([d, v]) => `${clean(d)} ${v}`).join(", ")],
    ["Size", p.model.file_bytes !== undefined ? bytes(p.model.file_bytes) : undefined],
    ["SHA-256", clean(p.model.sha256)],
    ["SHA-256, structure", clean(p.model.structure_sha256)],
    ["SHA-256, weights", clean(p.model.weights_sha256)],
    ["Producer", clean(p.model.producer)],
    ["Description", clean(p.model.description)],
    ["Inputs", (p.model.inputs ?? []).map(tensor).join("; ") || undefined],
    ["Outputs", (p.model.outputs ?? []).map(tensor).join("; ") || undefined],
    ["Layers", p.totals.layers !== undefined ? layersLine(p) : undefined],
    ["Warnings", (p.model.warnings ?? []).map(clean).join(" ") || undefined],
  ];
}

/** layersLine counts the layers by state. */
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
    ["Exact", s.exact ? "as the file says: QDQ patterns in floating point, float16 rounded after every operator" : undefined],
    ["SHA-256, target", clean(s.target_sha256)],
    ["Threads", s.threads !== undefined ? String(s.threads) : undefined],
    ["Pinned to", s.pinned_cpus?.length ? `CPUs ${s.pinned_cpus.join(", ")}` : undefined],
    ["Runs requested", [s.runs !== undefined ? String(s.runs) : "", s.time_s !== undefined ? seconds(s.time_s) : ""].filter(Boolean).join(", ") || undefined],
    ["Warm-up requested", [s.warmup_runs !== undefined ? plural(s.warmup_runs, "run") : "", s.warmup_s !== undefined ? seconds(s.warmup_s) : ""].filter(Boolean).join(", ") || undefined],
    ["Passes", s.passes === "abba" ? "plain and profiled runs interleaved (ABBA)" : clean(s.passes)],
    ["Garbage collector", s.garbage_collector === "off" ? "paused during timed runs" : clean(s.garbage_collector)],
    ["Batch", s.batch !== undefined ? String(s.batch) : undefined],
    ["Inputs", clean(s.input_kind) + (s.seed !== undefined && s.input_kind === "random" ? `, seed ${s.seed}` : "")],
    ...Object.entries(s.inputs ?? {}).map(([name, i]): [string, string] => [`Input ${short(clean(name), 40)}`, [baseName(i.file), shape(i.shape), i.sha256 ? `SHA-256 ${clean(i.sha256)}` : ""].filter(Boolean).join(", ")]),
    ["State carried over", s.carry && Object.entries(s.carry).map(([a, b]) => `${clean(a)} → ${clean(b)}`).join(", ")],
    ["Libraries", s.libraries && Object.entries(s.libraries).map(([a, b]) => `${clean(a)} ${clean(b)}`).join(", ")],
    ["Created", clean(p.created).replace("T", " ").replace("Z", " UTC")],
  ];
}

/** cards returns the cards of a profile; sampled says that the page holds only some of the
 * samples. */
export function cards(p: Profile, sampled?: string): Card[] {
  return [
    { title: "Measurement quality", facts: quality(p, sampled) },
    { title: "Under load", facts: load(p) },
    { title: "Environment", facts: environment(p) },
    { title: "Model", facts: model(p) },
    { title: "Settings", facts: settings(p) },
  ]
    .map((c) => ({ ...c, facts: c.facts.filter((f): f is [string, string] => !!f[1]) }))
    .filter((c) => c.facts.length > 0);
}
