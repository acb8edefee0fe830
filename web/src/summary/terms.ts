// Terms of the glossary behind the labels of the summary's cards.
import type { TermName } from "../glossary";

export const terms: Record<string, TermName | undefined> = {
  Figures: "provenance",
  Typical: "typical time",
  Median: "median",
  Band: "estimate band",
  Percentiles: "percentile",
  "Median deviation": "MAD",
  Outliers: "outlier",
  Steady: "steady state",
  "Warm-up": "warm-up",
  "Layers add up": "sum of layers",
  "Instruments cost": "profiling overhead",
  Throughput: "throughput",
  "Time under load": "latency under load",
  "Slowest stream": "fairness",
  "Processor time": "processor time",
  Response: "response time",
  Waiting: "queueing time",
  "With cold caches": "cold caches",
  "Cold start": "cold start",
  "Time taken by others": "steal time",
  "Throttled by heat": "throttling",
  Fingerprint: "fingerprint",
  Kernels: "ISA variant",
};
