// Words for how far a measured latency can be relied upon.
import type { Doubt, Profile, Trust } from "../data/profile";
import { percent, plain, plural, seconds } from "./format";

export const verdicts: Record<Trust["verdict"], { word: string; text: string }> = {
  good: { word: "good", text: "The latency can be quoted." },
  fair: { word: "fair", text: "The latency is of the right size; differences of some per cent mean nothing." },
  unreliable: { word: "unreliable", text: "Not reproducible: repeat on an idle machine." },
};

type Says = (value: number, limit: string) => string;

const times = (n: number) => (n === 1 ? "once" : `${plain(n)} times`);

/** What each doubt says with its figure, and without one. */
const doubts: Record<Doubt["code"], { with: Says; without: string }> = {
  few_runs: { with: (v, limit) => `${plural(v, "run")}${limit ? `, ${limit} are needed` : ""}`, without: "too few runs" },
  interval: { with: (v) => `the 95 % interval is ± ${percent(v)}`, without: "the interval is wide" },
  spread: { with: (v) => `times vary by ${percent(v)}`, without: "times vary" },
  step: { with: (v) => `the level changed by ${percent(Math.abs(v))} during the runs`, without: "the level changed during the runs" },
  drift: { with: (v) => `times drifted by ${percent(Math.abs(v))}`, without: "times drifted" },
  two_modes: { with: () => "times fall into two groups", without: "times fall into two groups" },
  speed: { with: (v) => `the machine's speed varied by ${percent(v)}`, without: "the machine's speed varied" },
  waiting: { with: (v) => `other programs had the processor for ${percent(v)} of the time`, without: "other programs had the processor" },
  stolen: { with: (v) => `the hypervisor took ${percent(v)} of the time`, without: "the hypervisor took time" },
  throttled: { with: (v) => `the processor slowed down for heat ${times(v)}`, without: "the processor slowed down for heat" },
  quota: { with: (v) => `a quota stopped the program for ${seconds(v)}`, without: "a quota stopped the program" },
  busy: { with: (v) => `the machine was busy: ${plain(v)} runnable threads a processor`, without: "the machine was busy" },
  governor: { with: () => "the processor's frequency policy is not for speed", without: "the processor's frequency policy is not for speed" },
  battery: { with: () => "the machine ran from its battery", without: "the machine ran from its battery" },
  threads: { with: (v) => `${plain(v)} threads shared a processor`, without: "threads shared processors" },
  collector: { with: (v) => `${plural(v, "garbage collection")} during the runs`, without: "garbage collections during the runs" },
  instruments: { with: (v) => `the instruments add ${percent(v)}`, without: "the instruments cost time" },
  reconcile: { with: (v) => `layers and whole differ by ${percent(Math.abs(v))}`, without: "layers and whole differ" },
  incomplete: { with: (v) => `${plural(v, "layer")} did not run`, without: "not all layers ran" },
  not_pinned: { with: () => "threads could not be bound to processors as asked", without: "threads could not be bound to processors as asked" },
  lost: { with: (v) => `of ${percent(v)} of the inferences something was lost on the way`, without: "something was lost on the way" },
};

/** doubt says why a latency is not relied upon further. */
export function doubt(d: Doubt): string {
  const says = doubts[d.code];
  if (!says) return d.code;
  return d.value === undefined ? says.without : says.with(d.value, plain(d.limit));
}

/** reasons lists the doubts that make the verdict, else all that there are. */
export function reasons(t: Trust): string[] {
  const list = t.doubts ?? [];
  const grave = list.filter((d) => d.verdict === t.verdict);
  return (grave.length > 0 ? grave : list).map(doubt);
}

/** measuring tells that a finding is about how well was measured, and not about the
 * model: the verdict says it shorter. */
export function measuring(f: NonNullable<Profile["findings"]>[number]): boolean {
  return f.severity !== "problem" && /^(measure|machine|reconcile)\./.test(f.id);
}
