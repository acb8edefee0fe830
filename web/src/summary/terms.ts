// Glossary terms of the labels in the summary's cards.
import type { TermName } from "../glossary";

export const terms: Record<string, TermName | undefined> = {
  Provenance: "provenance",
  Median: "median",
  "Estimate band": "estimate band",
  Percentiles: "percentile",
  MAD: "MAD",
  Outliers: "outlier",
  "Steady state": "steady state",
  "Warm-up": "warm-up",
  "Sum of layers": "sum of layers",
  "Profiling overhead": "profiling overhead",
  Throughput: "throughput",
  "Latency under load": "latency under load",
  Fairness: "fairness",
  "Processor time": "processor time",
  "Response time": "response time",
  "Queueing time": "queueing time",
  "Cold caches": "cold caches",
  "Cold start": "cold start",
  "Steal time": "steal time",
  Throttling: "throttling",
  Fingerprint: "fingerprint",
  Kernels: "ISA variant",
};
