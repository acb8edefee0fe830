// Types of a comparison; package profile/compare documents them. A test in internal/report/page
// compares the keys.
import type { Difference, Layer, Provenance, Target, Trust } from "../data/profile";

export type Verdict = "slower" | "faster" | "alike" | "more" | "less" | "open" | "incomparable";
export type Kind = "same" | "quantised" | "pruned" | "resized" | "fused" | "split" | "replaced" | "inserted" | "removed";
export type Interval = "ci95" | "band90" | "exact";

export interface Figure {
  value?: number;
  low?: number;
  high?: number;
  interval?: Interval;
  partial?: boolean;
}

export interface Ratio {
  value?: number;
  low?: number;
  high?: number;
  interval?: Interval;
  p?: number;
  verdict: Verdict;
}

export interface Run {
  name: string;
  engine?: string;
  version?: string;
  target?: string;
  kind?: Target["kind"];
  source?: string;
  threads?: number;
  date?: string;
  machine?: string;
  repeats?: number;
  model?: string;
  dtype?: string;
  declared_dtype?: string;
  trust?: Trust["verdict"];
  fit?: string;
  tolerance?: number;
  total: Figure;
  ratio: Ratio;
  why_not?: Record<string, string>;
  operators?: number;
  inserted?: number;
  rest?: number;
  inserted_layers?: number;
  load_s?: number;
  first_run_s?: number;
  peak_bytes?: number;
  arena_bytes?: number;
  outputs?: string;
  with?: string;
  difference?: Difference;
}

export interface Reason {
  code: string;
  first?: number;
  this?: number;
  first_text?: string;
  this_text?: string;
}

export interface Match {
  kind?: Kind;
  certain: boolean;
}

export interface Group {
  op: string;
  name?: string;
  operators: number;
  layers: (number[] | null)[];
  figures: Figure[];
  ratios: Ratio[];
  confidence: Provenance["confidence"];
  kind?: Kind;
  certain?: boolean;
  /** How the layers of each run differ from those of the first one. */
  matches?: Match[];
  contributions?: (number | null)[] | null;
  reasons?: (Reason[] | null)[] | null;
}

export interface Row {
  key: string;
  label: string;
  unit?: string;
  topic: string;
  better?: number;
  figures: Figure[];
  ratios: Ratio[];
  comparable: boolean[];
  why?: string[];
}

export interface Step {
  label: string;
  groups?: number[];
  value: number;
}

export interface Waterfall {
  run: number;
  from: number;
  to: number;
  steps: Step[];
  rest: number;
}

export interface Note {
  code: string;
  runs: number[];
}

export interface Table {
  schema: string;
  model: string;
  quantity: string;
  unit?: string;
  topic: string;
  by?: string;
  runs: Run[];
  whole?: Row[] | null;
  groups: Group[] | null;
  notes?: Note[];
  waterfalls?: Waterfall[];
}

/** The JSON part of the page; internal/report/page writes it. */
export interface Comparison {
  comparison: Table;
  title: string;
  answers: string[];
  limits: string[];
  /** Order and number of the rows to begin with. */
  sort?: string;
  top?: number;
  /** Layers by run, without figures; none where the profiles are absent. */
  layers: Layer[][];
  version?: string;
}
