// The latency to report: the headline of the summary and of the other views.
import type { Metric, Profile } from "../data/profile";
import { best, stored } from "./quantities";

/** Runs that the recommended figure is taken from, by its key. */
const runs: Record<string, string> = { undisturbed_latency_s: "undisturbed runs", processor_s: "CPU time" };

export interface Recommended {
  value: number;
  metric: Metric;
  /** What it is an estimate of, such as "undisturbed runs"; "" for the latency itself. */
  of: string;
}

/** recommended returns the figure that trust.quote names, or else the latency. */
export function recommended(p: Profile): Recommended | undefined {
  const key = p.trust?.quote ?? "";
  const other = runs[key] ? stored(p.totals, key) : undefined;
  const metric = typeof other === "object" ? other : p.totals.latency_s;
  const value = best(metric);
  return metric && value !== undefined ? { value, metric, of: metric === other ? runs[key] : "" } : undefined;
}

/** estimator names the statistic of a value of a metric, "" where there is only one. */
export function estimator(m: Metric, value: number): string {
  if (m.n === undefined || m.n === 1) return "";
  return value === m.median ? "median" : value === m.mean ? "mean" : value === m.min ? "minimum" : "";
}
