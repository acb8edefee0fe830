// Types of the API, as /openapi.json describes them.
import type { Quantity } from "../data/profile";

export type Role = "read" | "run" | "admin";

export interface Me {
  name: string;
  role: Role;
}

export interface System {
  version: string;
  open: boolean;
  max_file_bytes: number;
  options: Option[];
  reports: Report[];
  quantities: Quantity[];
}

/** A setting of jobs. */
export interface Option {
  name: string;
  label: string;
  want: string;
  kinds: string[];
  at?: string;
  choices?: string[];
  /** All names that a value consists of, with commas between. */
  names?: string[];
  many?: boolean;
  limit: Limit;
}

/** Which values a setting takes. */
export interface Limit {
  as?: "text" | "whole" | "number" | "time";
  pattern?: string;
  above?: number;
  most?: number;
}

/** A format of reports. */
export interface Report {
  ending: string;
  what: string;
  study: boolean;
  profile: boolean;
}

export interface Worker {
  name: string;
  offers: { targets: string[]; cpus: string[]; engines: string[]; boards: string[] };
  seen_ms: number;
  online: boolean;
  job?: string;
}

export interface Target {
  id: string;
  about: string;
}

export interface Project {
  id: string;
  name: string;
  description: string;
  created_ms: number;
  modified_ms: number;
  deleted_ms?: number;
}

export interface Series {
  id: string;
  project: string;
  kind: string;
  model: string;
  target: string;
  engine: string;
  machine: string;
  settings: string;
}

export interface Figure {
  name: string;
  value: number;
  low?: number;
  high?: number;
  estimator?: string;
  measured?: boolean;
}

export interface Run {
  id: string;
  project: string;
  series: string;
  job: string;
  model_hash?: string;
  model_file?: string;
  /** SHA-256 of a model that the job wrote. */
  output?: string;
  blob: string;
  branch?: string;
  commit?: string;
  pull?: string;
  note?: string;
  created_ms: number;
  deleted_ms?: number;
  about: Series;
  figures: Figure[];
  tags: string[];
}

export type JobState = "waiting" | "running" | "done" | "failed" | "cancelled";

export interface Input {
  name: string;
  hash: string;
  /** What the file is for, where its position does not say it. */
  as?: string;
}

export interface Job {
  id: string;
  project: string;
  kind: string;
  inputs: Input[];
  options?: Record<string, string>;
  needs?: { target?: string; cpu?: string; engine?: string; board?: string };
  who?: string;
  created_ms: number;
  changed_ms: number;
  state: JobState;
  attempt?: number;
  worker?: string;
  doing?: string;
  share?: number;
  stop?: boolean;
  runs?: string[];
  error?: string;
  /** What no worker has that the job waits for. */
  lacks?: string;
  /** When the worker of a job that runs was last heard, undefined while it is heard. */
  silent_ms?: number;
}

export interface Point {
  run: string;
  branch?: string;
  commit?: string;
  created_ms: number;
  value: number;
  low?: number;
  high?: number;
  left_out?: "pull_request" | "other_branch";
}

/** A change of the level of a trend. */
export interface Change {
  run: string;
  commit?: string;
  created_ms: number;
  before: number;
  after: number;
  p?: number;
  worse: boolean;
  better: boolean;
}

export interface Trend {
  items: Point[];
  changes: Change[];
}

/** A change for the worse. */
export interface Alert {
  id: string;
  project: string;
  series: string;
  run: string;
  figure: string;
  before: number;
  after: number;
  created_ms: number;
  acknowledged_ms?: number;
  acknowledged_by?: string;
  note?: string;
  about: Series;
  commit?: string;
}

export interface Hook {
  id: string;
  url: string;
  created_ms: number;
}

/** An event for a webhook. */
export interface Delivery {
  id: string;
  event: string;
  created_ms: number;
  attempts: number;
  next_ms?: number;
  delivered_ms?: number;
  status?: number;
  problem?: string;
}

/** A link that needs no token. */
export interface Share {
  id: string;
  figure?: string;
  created_ms: number;
  expires_ms?: number;
}

export interface Token {
  id: string;
  name: string;
  role: Role;
  project?: string;
  created_ms: number;
  expires_ms?: number;
  revoked_ms?: number;
  used_ms?: number;
}

export interface Entry {
  id: string;
  who: string;
  what: string;
  object: string;
  created_ms: number;
}

/** A rule says which runs of a project are kept. "*" stands for projects without one. */
export interface Rule {
  project: string;
  branch?: string;
  days?: number;
  last?: number;
  pull_days?: number;
}

export interface Due {
  total: number;
  items: Run[];
}

export interface Swept {
  runs: number;
  files: number;
  bytes: number;
}

/** A part of a list. Next continues it. */
export interface Listed<T> {
  items: T[];
  next?: string;
}
