// Words for jobs.
import { clean, seconds } from "../figures/format";
import type { Job, JobState } from "./types";

const ends: JobState[] = ["done", "failed", "cancelled"];

/** ended reports whether nothing follows. */
export const ended = (j: Job): boolean => ends.includes(j.state);

/** title names a job after its first file. */
export const title = (j: Job): string => clean(j.inputs[0]?.name) || "Job";

/** stateOf describes the state of a job. */
export function stateOf(j: Job): string {
  if (j.stop && !ended(j)) return "Cancelling";
  if (j.silent_ms && j.state === "running") return "Worker silent";
  return { waiting: "Waiting", running: "Running", done: "Done", failed: "Failed", cancelled: "Cancelled" }[j.state] ?? clean(j.state);
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** doing describes what the worker of a job does, as far as it is not old. */
export function doing(j: Job): string {
  if (j.silent_ms) return `No sign of life from ${clean(j.worker) || "the worker"} since ${clock.format(j.silent_ms)}. If it does not come back, another worker begins the job again.`;
  return clean(j.doing);
}

/** what describes what a job does. */
export function what(j: Job): string {
  const target = j.options?.on ?? j.options?.accelerator;
  switch (j.kind) {
    case "profile":
      return !target || target === "host" ? "Measure on this computer" : target.startsWith("device:") ? `Measure on ${clean(target.slice(7))}` : `Estimate for ${clean(target)}`;
    case "import":
      return "Import a record";
    case "saved":
      return "Save a result";
    case "compress":
      return !target || target === "host" ? "Study the compression" : `Study the compression for ${clean(target)}`;
    case "apply":
      return "Write the compressed model";
    case "bench":
      return "Benchmark the compressed model";
  }
  return clean(j.kind);
}

/** needs describes the worker that a job waits for, "" if every worker can do it. */
export function needs(j: Job): string {
  const out: string[] = [];
  if (j.needs?.engine) out.push(`the engine ${clean(j.needs.engine)}`);
  if (j.needs?.board) out.push(`the board ${clean(j.needs.board)}`);
  if (j.needs?.cpu) out.push(`a processor ${clean(j.needs.cpu)}`);
  return out.join(" and ");
}

/** fields are the fields of the page for flags of the program. */
const fields: Record<string, string> = { on: "Target", engine: "Engine", threads: "Threads", time: "Time" };

/** problem is the error of a job in words of the page: fields in place of flags. Command lines stay whole. */
export const problem = (j: Job): string =>
  (j.error ?? "")
    .split("\n")
    .map((line) => clean(line).replace(/(opmeter [a-z][^;,]*)|--([a-z]+(?:-[a-z]+)*)(=?)/g, (all: string, command: string | undefined, flag: string, value: string) => (command ? all : (fields[flag] ?? `option ${flag}`) + (value && " "))))
    .join("\n");

/** spent writes the time since a job was created. */
export function spent(j: Job, now: number): string {
  const s = Math.max(0, ((ended(j) ? j.changed_ms : now) - j.created_ms) / 1000);
  return s < 10 && ended(j) ? seconds(s) : s < 60 ? `${Math.floor(s)} s` : `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
}

/** announced is what a screen reader is told: each state, and each quarter of the progress. */
export function announced(j: Job): string {
  const quarter = j.share === undefined || j.silent_ms ? 0 : Math.floor(j.share * 4) * 25;
  return `${stateOf(j)}${j.state === "running" && quarter > 0 ? `, ${quarter} %` : ""}`;
}
