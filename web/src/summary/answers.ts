// The short answers below the headline: bottleneck, memory and next step.
import { bytes, percent, plural } from "../figures/format";
import { best } from "../figures/quantities";
import { reason } from "../figures/quality";
import type { Profile } from "../data/profile";

/** shares writes parts of a whole in whole per cent that add up to 100, by the largest
 * remainder. A part that rounds to 0 is left out. */
export function shares(parts: [name: string, value: number][]): string[] {
  const sum = parts.reduce((s, [, v]) => s + v, 0);
  if (!(sum > 0)) return [];
  const exact = parts.map(([, v]) => (100 * v) / sum);
  const whole = exact.map(Math.floor);
  const order = [...parts.keys()].sort((a, b) => exact[b] - whole[b] - (exact[a] - whole[a]) || a - b);
  const left = 100 - whole.reduce((s, v) => s + v, 0);
  for (const i of order.slice(0, left)) whole[i]++;
  return parts.map(([name], i) => (whole[i] > 0 ? `${whole[i]} % ${name}` : "")).filter(Boolean);
}

/** bottleneck says what bounds the layers, by time; "" where no layer has a bound. */
export function bottleneck(p: Profile): string {
  let compute = 0;
  let neither = 0;
  let unknown = 0;
  const memory = new Map<string, number>(["L1", "L2", "L3", "memory"].map((name) => [name, 0]));
  let known = 0;
  for (const l of p.layers) {
    const s = best(l.latency_s);
    if (s === undefined || l.state === "not_reached") continue;
    if (!l.roof?.bound) unknown += s;
    else known += s;
    if (l.roof?.bound === "compute") compute += s;
    else if (l.roof?.bound === "neither") neither += s;
    else if (l.roof?.bound === "memory") memory.set(l.roof.level ?? "memory", (memory.get(l.roof.level ?? "memory") ?? 0) + s);
  }
  if (!(known > 0)) return "";
  const level = (name: string) => (name === "memory" && p.target.kind === "host" ? "DRAM" : name);
  return shares([["compute-bound", compute], ...[...memory].map(([name, v]): [string, number] => [`${level(name)}-bound`, v]), ["below 10 % of peak (overhead)", neither], ["unknown", unknown]]).join(", ");
}

/** busiest returns the part of the latency in which the busiest engine of a kind worked.
 * The figure holds all engines of the kind together; lanes of the timeline say how it is
 * divided among them. */
function busiest(p: Profile, key: string, name: RegExp): number | undefined {
  const busy = best(p.totals.figures?.[key]);
  const latency = best(p.totals.latency_s);
  if (busy === undefined || !latency) return undefined;
  const lanes = new Map<string, number>();
  for (const l of p.timeline?.lanes ?? []) {
    if (l.kind !== "engine" || !name.test(l.name)) continue;
    const k = `${l.group ?? ""}\n${l.name.replace(/ \(\d+\)$/, "")}`;
    let s = lanes.get(k) ?? 0;
    for (const v of l.durations_s) s += v;
    lanes.set(k, s);
  }
  const all = [...lanes.values()];
  const sum = all.reduce((s, v) => s + v, 0);
  return (busy / latency) * (sum > 0 ? Math.max(...all) / sum : 1);
}

/** engines says which engine of an accelerator bounds an inference, such as "DMA-bound:
 * copy engine busy 82.0 %, tensor engine 25.0 %"; "" for other targets. */
export function engines(p: Profile): string {
  const tensor = busiest(p, "tiu_busy_s", /TIU/);
  const copy = busiest(p, "dma_busy_s", /DMA/);
  if (tensor === undefined || copy === undefined) return "";
  const both = best(p.totals.figures?.parallel_s);
  const latency = best(p.totals.latency_s)!;
  const overlap = both === undefined ? "" : `, engines overlap ${percent(both / latency)}`;
  if (Math.max(tensor, copy) < 0.5) return `Waiting: copy engine busy ${percent(copy)}, tensor engine ${percent(tensor)}`;
  if (copy > 1.1 * tensor) return `DMA-bound: copy engine busy ${percent(copy)}, tensor engine ${percent(tensor)}${overlap}`;
  if (tensor > 1.1 * copy) return `Compute-bound: tensor engine busy ${percent(tensor)}, copy engine ${percent(copy)}${overlap}`;
  return `Balanced: tensor engine busy ${percent(tensor)}, copy engine ${percent(copy)}${overlap}`;
}

/** memory says what the model needs: of a chip RAM and flash, of this computer the
 * activations, and of TFLite models the tensor arena of TFLite Micro. */
export function memory(p: Profile): string {
  const m = p.memory;
  const chip = p.target.kind === "simulator" || p.target.kind === "device";
  const parts: (string | false | undefined)[] = [
    (chip || m?.peak_bytes === undefined) && p.totals.ram_bytes !== undefined && `RAM ${bytes(p.totals.ram_bytes)}`,
    m?.peak_bytes !== undefined && `peak activations ${bytes(m.peak_bytes)}`,
    !chip && m?.tflm_arena_bytes !== undefined && `TFLM tensor arena ${bytes(m.tflm_arena_bytes)}`,
    p.totals.flash_bytes !== undefined && (chip ? `flash ${bytes(p.totals.flash_bytes)} + program code` : `flash ${bytes(p.totals.flash_bytes)} (model)`),
  ];
  return parts.filter(Boolean).join(" · ");
}

/** fits says whether the memories of a target hold the model, "" where that is unknown. */
export function fits(p: Profile): string {
  const found = p.findings ?? [];
  if (found.some((f) => f.id === "target.refused")) return "the runtime does not load this model";
  const rooms = found.filter((f) => f.id === "target.ram" || f.id === "target.flash");
  const names = (severity: string) => rooms.filter((f) => f.severity === severity).map((f) => (f.id === "target.ram" ? "RAM" : "flash")).join(" and ");
  if (names("problem")) return `does not fit: too little ${names("problem")}`;
  if (names("warning")) return `${names("warning")} may not suffice`;
  return names("info") ? `fits in ${names("info")}` : "";
}

/** next names the most useful thing to do next, "" where nothing suggests itself. */
export function next(p: Profile): string {
  if ((p.findings ?? []).some((f) => f.severity === "problem")) return "see the problem in the findings below";
  switch (p.target.kind) {
    case "host": {
      const advice = p.trust ? reason(p.trust).advice : "";
      if (advice) return advice;
      const cpus = p.host?.affinity_cpus?.length || p.host?.cpus || 0;
      if (p.settings.threads === 1 && cpus > 1) return `try --threads 2 (of ${plural(cpus, "CPU")}) and opmeter compare`;
      if (p.target.engine === "opmeter") return `compare with the engine that you ship: --engine opmeter,${p.model.format === "tflite" ? "litert" : "onnxruntime"}`;
      return "";
    }
    case "simulator":
      return "measure on the board: --on device:PORT (opmeter devices lists ports)";
    case "device":
      return "compare with an estimate or another run: opmeter compare A B";
    default:
      return "";
  }
}
