// Texts for the quality of a measured latency.
import type { Doubt, Profile, Trust } from "../data/profile";
import { percent, plain, plural, seconds } from "./format";

export const verdicts: Record<Trust["verdict"], { word: string; text: string }> = {
  good: { word: "fit for comparing", text: "The latency may be compared with that of another run at this tolerance." },
  fair: { word: "not fit for comparing", text: "The latency may be off by 10 % or more: do not compare it." },
  unreliable: { word: "unstable: repeat", text: "The latency may be off by 25 % or more: repeat on an idle machine." },
};

type Says = (value: number, limit: string) => string;

const times = (n: number) => (n === 1 ? "once" : `${plain(n)} times`);

/** Texts of each reason, with its figure and without one. */
const doubts: Record<Doubt["code"], { with: Says; without: string }> = {
  few_runs: { with: (v, limit) => `only ${plural(v, "run")}${limit ? ` (at least ${limit} needed)` : ""}`, without: "too few runs" },
  interval: { with: (v) => `95 % CI is ±${percent(v)}`, without: "wide 95 % CI" },
  spread: { with: (v) => `latency varies by ${percent(v)}`, without: "latency varies" },
  step: { with: (v) => `latency shifted by ${percent(Math.abs(v))} during the runs`, without: "latency shifted during the runs" },
  drift: { with: (v) => `latency drifted by ${percent(Math.abs(v))} during the runs`, without: "latency drifted during the runs" },
  two_modes: { with: () => "latencies fall into separate groups that the machine's speed does not explain", without: "latencies fall into separate groups" },
  speed: { with: (v) => `machine speed varied by ${percent(v)}`, without: "machine speed varied" },
  earlier_speed: { with: (v) => `machine speed differs by ${percent(v)} from earlier measurements`, without: "machine speed differs from earlier measurements" },
  waiting: { with: (v) => `other programs disturbed ${percent(v)} of the inferences`, without: "other programs disturbed inferences" },
  stolen: { with: (v) => `hypervisor took ${percent(v)} of the time`, without: "hypervisor took time" },
  throttled: { with: (v) => `CPU throttled by heat ${times(v)}`, without: "CPU throttled by heat" },
  quota: { with: (v) => `a CPU quota stopped the program for ${seconds(v)}`, without: "a CPU quota stopped the program" },
  busy: { with: (v) => `machine busy before the runs (load average ${plain(v)} per CPU)`, without: "machine busy before the runs" },
  governor: { with: () => "CPU frequency follows the load", without: "CPU frequency follows the load" },
  battery: { with: () => "running on battery", without: "running on battery" },
  threads: { with: (v) => `${plain(v)} threads per CPU`, without: "more threads than CPUs" },
  collector: { with: (v) => `garbage collector ran ${times(v)}`, without: "garbage collector ran" },
  instruments: { with: (v) => `profiling overhead ${percent(v)}`, without: "high profiling overhead" },
  reconcile: { with: (v) => `sum of layers and end-to-end latency differ by ${percent(Math.abs(v))}`, without: "sum of layers and end-to-end latency differ" },
  incomplete: { with: (v) => `${plural(v, "layer")} did not run`, without: "not all layers ran" },
  not_pinned: { with: () => "threads could not be pinned", without: "threads could not be pinned" },
  lost: { with: (v) => `data lost in ${percent(v)} of the inferences`, without: "data lost in some inferences" },
  tolerance: { with: (v) => `a repeated run may differ by ${percent(v)}`, without: "error of the total unknown" },
  share_runs: { with: (v) => `shares come from only ${plural(v, "undisturbed run")}`, without: "shares come from few undisturbed runs" },
  shares: { with: (v) => `shares are only known to ±${percent(v)} of the inference`, without: "error of the shares unknown" },
};

/** doubt describes a reason. */
export function doubt(d: Doubt): string {
  const says = doubts[d.code];
  if (!says) return d.code;
  return d.value === undefined ? says.without : says.with(d.value, plain(d.limit));
}

/** reasons lists the doubts with the grade of the verdict, else all doubts. */
export function reasons(t: Trust): string[] {
  const list = t.doubts ?? [];
  const grave = list.filter((d) => d.verdict === t.verdict);
  return (grave.length > 0 ? grave : list).map(doubt);
}

/** measuring reports whether a finding is about measurement quality and not about the
 * model. */
export function measuring(f: NonNullable<Profile["findings"]>[number]): boolean {
  return f.severity !== "problem" && /^(measure|machine|reconcile)\./.test(f.id);
}
