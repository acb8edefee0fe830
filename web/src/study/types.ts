// Types of a study; package study documents them. A test in internal/report/page compares
// the keys.
import type { Metric, Model } from "../data/profile";

export interface Layer {
  graph?: number;
  node: number;
  nodes?: number[];
  input: number;
  id: string;
  name: string;
  op: string;
  weight: string;
  shape: number[];
  type: string;
  rows: number;
  cols: number;
  taps: number;
  groups: number;
  params: number;
  zeros: number;
  macs?: number;
  fixed?: string;
}

export interface Change {
  structure?: string;
  level?: number;
  format?: string;
}

export interface LayerTime {
  layer: number;
  latency_s?: Metric;
  energy_j?: Metric;
  ops?: number;
  kernel?: string;
  fused?: number[];
  limit?: string;
}

export interface SpeedPoint {
  layer: number;
  change: Change;
  latency_s?: Metric;
  ratio?: Metric;
  energy_j?: Metric;
  others?: AffectedLayer[];
  rest_s?: Metric;
  rest_j?: Metric;
  with?: number[];
  kernel?: string;
  cause?: string;
}

export interface AffectedLayer {
  layer: number;
  ratio?: Metric;
  energy_j?: Metric;
}

export interface MixedModel {
  changes: Change[];
  ratio?: Metric;
}

export interface Speed {
  name: string;
  target: string;
  engine?: string;
  batch?: number;
  threads?: number;
  kernel_set?: string;
  shapes?: string;
  changes: Change[];
  counted?: boolean;
  created: string;
  latency_s?: Metric;
  energy_j?: Metric;
  layers?: LayerTime[];
  points?: SpeedPoint[];
  mixed?: MixedModel[];
  done?: boolean;
}

export interface LossPoint {
  layer: number;
  change: Change;
  value?: Metric;
  more?: Record<string, number>;
  with?: number[];
  cause?: string;
}

export interface Loss {
  name: string;
  method: string;
  metric: string;
  higher?: boolean;
  labels?: string;
  mean?: number[];
  std?: number[];
  seed?: number;
  shapes?: string;
  data?: string;
  data_sha256?: string;
  samples?: number;
  tried?: number;
  held_out?: number;
  available?: number;
  random?: boolean;
  choice?: string;
  changes: Change[];
  created: string;
  base?: Metric;
  points?: LossPoint[];
  energies?: InputEnergy[];
  anchors?: LossPoint[];
  done?: boolean;
}

export interface InputEnergy {
  layer: number;
  means: number[];
}

export interface Choice {
  layer: number;
  change: Change;
  time_s?: number;
  loss?: number;
  cause?: string;
}

export interface Outcome {
  latency_s?: Metric;
  speedup?: Metric;
  loss?: Metric;
  params?: number;
  zeros?: number;
  weight_bytes?: number;
  macs?: number;
  energy_j?: Metric;
  ram?: MemoryUse;
  flash?: MemoryUse;
}

export interface MemoryUse {
  bytes: number;
  limit?: number;
  least?: boolean;
  unchanged?: number;
}

export interface FrontPoint {
  cost: number;
  loss: number;
  changes: Change[];
  chosen?: boolean;
}

export interface NextStep {
  layer: number;
  change: Change;
  gain: number;
  loss: number;
  rate?: number;
}

export interface Goal {
  default?: boolean;
  speedup?: number;
  max_loss?: number;
  sparsity?: number;
  size?: number;
  fit?: string;
  cost?: string;
  exclude?: number[];
  without_structures?: string[];
  without_formats?: string[];
  ends?: boolean;
}

export interface Plan {
  name: string;
  created: string;
  goal: Goal;
  speed: string;
  loss: string;
  compat?: string;
  ranges?: Record<string, [number, number]>;
  choices: Choice[];
  predicted: Outcome;
  measured?: Outcome;
  bound?: number;
  gap?: number;
  front?: FrontPoint[];
  adds?: string;
  moves?: NextStep[];
  correction?: Correction;
}

export interface Correction {
  gain?: number;
  loss?: number;
  extra?: number;
}

export interface BenchPoint {
  engine: string;
  threads: number;
  batch?: number;
  before_s?: Metric;
  after_s?: Metric;
  speedup?: Metric;
  cause?: string;
  error?: string;
}

export interface Bench {
  name: string;
  sha256?: string;
  created: string;
  points?: BenchPoint[];
}

export interface Study {
  created: string;
  model: Model;
  layers: Layer[];
  speeds?: Speed[];
  losses?: Loss[];
  plans?: Plan[];
  benches?: Bench[];
}
