// Figures of the phases of a language model, side by side.
import type { Phase, Profile } from "../data/profile";
import { percent, si } from "../figures/format";
import { best, interval, type Figures } from "../figures/quantities";
import { rowsOf } from "../blocks/rows";

/** title says which phase it is: "prefill 128", "decode at 1024, batch 4". */
export const title = (ph: Phase): string => (ph.kind === "decode" ? `decode at ${ph.context}` : `${ph.kind} ${ph.tokens}`) + (ph.batch > 1 ? `, batch ${ph.batch}` : "");

/** time names the time of a phase. With an encoder, prefill alone is not the time to the first token. */
export function time(p: Profile, ph: Phase): string {
  if (ph.kind === "decode") return "TPOT";
  return ph.kind === "prefill" && p.language_model?.encoder_length === undefined ? "TTFT" : "time";
}

/** speed writes what a phase makes in a second: an encoder makes positions. */
export const speed = (ph: Phase, v: number | undefined): string => (ph.kind === "encode" ? tokens(v).replace("tokens", "positions") : tokens(v));

/** phasesOf lists the phases that have a latency. */
export const phasesOf = (p: Profile): Phase[] => (p.language_model?.phases ?? []).filter((ph) => best(ph.latency_s) !== undefined);

/** tokens writes a number of tokens per second. */
export const tokens = (v: number | undefined): string => si(v, "tokens/s").replace(/ ([kMGTmµnp])tokens/, " $1 tokens");

/** moved is the number of bytes that a phase has to read and write. */
export const moved = (ph: Phase): number | undefined => (ph.weights_read_bytes === undefined ? undefined : ph.weights_read_bytes + ph.cache_read_bytes + ph.cache_written_bytes);

/** Place of a phase under the roofline. */
export interface Point {
  phase: Phase;
  /** Operations per byte, and per second. */
  intensity: number;
  rate: number;
  /** Operations per second at the limits of the phase. */
  roof?: number;
}

/** points lists the phases whose work and latency are known. */
export function points(p: Profile): Point[] {
  return phasesOf(p).flatMap((phase) => {
    const bytes = moved(phase);
    if (!phase.ops || !bytes) return [];
    const [intensity, r] = [phase.ops / bytes, phase.roof];
    const roof = r?.ops_per_second && r.bytes_per_second ? Math.min(r.ops_per_second, intensity * r.bytes_per_second) : undefined;
    return [{ phase, intensity, rate: phase.ops / best(phase.latency_s)!, roof }];
  });
}

/** limit says what limits a phase: "L3 at 30.5 GB/s" or "float32 arithmetic". */
export function limit(p: Profile, ph: Phase): string {
  const [r, bytes] = [ph.roof, moved(ph)];
  if (!r || ph.roof_tokens_per_s === undefined) return "";
  const known = bytes !== undefined && ph.ops !== undefined && r.bytes_per_second && r.ops_per_second;
  const memory = known ? bytes / r.bytes_per_second! > ph.ops! / r.ops_per_second! : r.bound === "memory";
  if (!memory) return `${r.dtype ?? ""} arithmetic`.trim();
  const level = r.level === "memory" && p.target.kind === "host" ? "DRAM" : (r.level ?? "memory");
  return `${level} at ${si(r.bytes_per_second, "B/s")}`;
}

/** reached is the part of the limit that a phase reaches. */
export const reached = (ph: Phase): string => percent(ph.roof?.use);

export type By = "op" | "part" | "block";

/** Time of a group of layers in each phase, undefined where it is unknown. */
export interface Group {
  key: string;
  name: string;
  times: (number | undefined)[];
}

/** groupsOf divides the times of the phases, the groups with the largest part of a phase first. */
export function groupsOf(p: Profile, figures: Figures, by: By): Group[] {
  const lists = new Map<string, { name: string; layers: number[] }>();
  const add = (key: string, name: string, layers: number[]) => lists.set(key, { name, layers: [...(lists.get(key)?.layers ?? []), ...layers] });
  if (by === "op") p.layers.forEach((l) => add(l.op, l.op, [l.index]));
  else if (by === "block") rowsOf(p).forEach((r) => add(r.id, r.name, r.layers));
  // Parts of several blocks count together.
  else rowsOf(p).flatMap((r) => (r.inside.some((x) => x.inside.length > 0) ? r.inside : [r])).forEach((r) => add(r.name, r.name, r.layers));
  const phases = phasesOf(p);
  const groups = [...lists].map(([key, { name, layers }]) => ({ key, name, times: phases.map((ph) => figures.sum(layers.map((i) => p.layers[i]), ph.quantity)) }));
  const whole = phases.map((_, i) => groups.reduce((s, g) => s + (g.times[i] ?? 0), 0));
  const most = (g: Group) => Math.max(0, ...g.times.map((t, i) => (t ?? 0) / (whole[i] || 1)));
  return groups.filter((g) => most(g) > 0).sort((a, b) => most(b) - most(a));
}

/** Ways to divide the time that differ: parts need blocks with attention or the like. */
export function waysOf(p: Profile): By[] {
  const blocks = p.blocks ?? [];
  return ["op", ...(blocks.some((b) => (b.parts?.length ?? 0) > 0) ? (["part"] as const) : []), ...(blocks.some((b) => b.count > 1) ? (["block"] as const) : [])];
}

export interface Series {
  name: string;
  points: { x: number; y: number; lo?: number; hi?: number }[];
  /** Drawn with dashes: a limit. */
  limit?: boolean;
}

/** batches lists those of some phases. */
const batches = (phases: Phase[]): number[] => [...new Set(phases.map((ph) => ph.batch))];

/** speeds returns tokens per second and their limit over the context of decodes, or over the length
 * of prompts, for each batch; none for fewer than two. */
export function speeds(p: Profile, kind: Phase["kind"]): Series[] {
  const all = phasesOf(p).filter((ph) => ph.kind === kind);
  const several = batches(all);
  return several.flatMap((batch) => {
    const list = speedsOf(all.filter((ph) => ph.batch === batch), kind);
    return several.length > 1 ? list.map((s) => ({ ...s, name: `${s.name}, batch ${batch}` })) : list;
  });
}

function speedsOf(phases: Phase[], kind: Phase["kind"]): Series[] {
  if (phases.length < 2) return [];
  const x = (ph: Phase) => (kind === "prefill" ? ph.tokens : ph.context);
  const at = phases.map((ph) => {
    const ends = interval(ph.tokens_per_s);
    return { x: x(ph), y: best(ph.tokens_per_s) ?? 0, lo: ends?.[0], hi: ends?.[1] };
  });
  const limits = phases.filter((ph) => ph.roof_tokens_per_s !== undefined).map((ph) => ({ x: x(ph), y: ph.roof_tokens_per_s! }));
  return [{ name: "measured", points: at }, ...(limits.length > 1 ? [{ name: "limit", points: limits, limit: true }] : [])];
}

/** memory returns what weights, caches and activations of decodes need together over the context, in
 * the last batch. */
export function memory(p: Profile): Series[] {
  const [l, weights] = [p.language_model, p.totals.weights_bytes];
  const decodes = (l?.phases ?? []).filter((ph) => ph.kind === "decode" && ph.ram_bytes !== undefined);
  const phases = decodes.filter((ph) => ph.batch === decodes.at(-1)!.batch);
  if (!l || weights === undefined || phases.length < 2) return [];
  const fixed = (l.cache.cross_bytes ?? 0) + (l.cache.state_bytes ?? 0);
  const cache = (ph: Phase) => ph.batch * (fixed + l.cache.position_bytes * (l.cache.shared ? (l.cache.capacity ?? 0) : ph.context));
  const of = (name: string, y: (ph: Phase) => number): Series => ({ name, points: phases.map((ph) => ({ x: ph.context, y: y(ph) })) });
  return [of("total", (ph) => weights + cache(ph) + ph.ram_bytes!), of("weights", () => weights), of("caches", cache), of("activations", (ph) => ph.ram_bytes!)];
}
