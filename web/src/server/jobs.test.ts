import { expect, test } from "vitest";
import { announced, doing, ended, needs, problem, spent, stateOf, title, what } from "./jobs";
import type { Job } from "./types";

const job = (j: Partial<Job>): Job => ({ id: "1", project: "p", kind: "profile", inputs: [{ name: "a.tflite", hash: "" }], created_ms: 1000, changed_ms: 1000, state: "running", ...j });

test("states", () => {
  expect(["waiting", "running", "done", "failed", "cancelled"].map((state) => ended(job({ state } as Partial<Job>)))).toEqual([false, false, true, true, true]);
  expect(stateOf(job({}))).toBe("Running");
  expect(stateOf(job({ stop: true }))).toBe("Cancelling");
  expect(stateOf(job({ stop: true, state: "cancelled" }))).toBe("Cancelled");
});

test("what a job does and needs", () => {
  expect(what(job({}))).toBe("Measure on this computer");
  expect(what(job({ options: { on: "stm32h743" } }))).toBe("Estimate for stm32h743");
  expect(what(job({ options: { on: "device:COM3" } }))).toBe("Measure on COM3");
  expect(what(job({ options: { accelerator: "mvp" } }))).toBe("Estimate for mvp");
  expect(what(job({ kind: "import" }))).toBe("Import a record");
  expect(what(job({ kind: "compress" }))).toBe("Study the compression");
  expect(what(job({ kind: "compress", options: { on: "m4" } }))).toBe("Study the compression for m4");
  expect(what(job({ kind: "apply" }))).toBe("Write the compressed model");
  expect(what(job({ kind: "\u202enew" }))).toBe("\\u{202e}new");
  expect(needs(job({}))).toBe("");
  expect(needs(job({ needs: { target: "board", board: "COM3", engine: "litert" } }))).toBe("the engine litert and the board COM3");
  expect(title(job({ inputs: [] }))).toBe("Job");
  expect(title(job({ inputs: [{ name: "\u0007a", hash: "" }] }))).toBe("\\u{7}a");
});

test("errors name fields instead of flags", () => {
  const of = (error: string) => problem(job({ state: "failed", error }));
  expect(of("--threads 9: this computer has 2; leave out --batch")).toBe("Threads 9: this computer has 2; leave out option batch");
  expect(of("no such target: run opmeter targets --all, or use --on=host")).toBe("no such target: run opmeter targets --all, or use Target host");
  expect(of("a\nb\u202e")).toBe("a\nb\\u{202e}");
  expect(problem(job({}))).toBe("");
});

test("times", () => {
  expect(spent(job({}), 5400)).toBe("4 s");
  expect(spent(job({}), 500)).toBe("0 s"); // another clock
  expect(spent(job({}), 66_000)).toBe("1 min 5 s");
  expect(spent(job({ state: "done", changed_ms: 3500 }), 99_000)).toBe("2.50 s");
});

test("a screen reader is told quarters", () => {
  const told = [0, 0.1, 0.24, 0.25, 0.3, 0.5, 0.74, 0.75, 1].map((share) => announced(job({ share })));
  expect([...new Set(told)]).toEqual(["Running", "Running, 25 %", "Running, 50 %", "Running, 75 %", "Running, 100 %"]);
});

test("a worker that is silent shows no old progress", () => {
  const j = job({ worker: "board 7\u202e", doing: "measuring", share: 0.43 });
  expect([stateOf(j), doing(j), announced(j)]).toEqual(["Running", "measuring", "Running, 25 %"]);
  const silent = { ...j, silent_ms: 1000 };
  expect(stateOf(silent)).toBe("Worker silent");
  expect(announced(silent)).toBe("Worker silent");
  expect(doing(silent)).toMatch(/^No sign of life from board 7\\u\{202e\} since [\d:]{8}\. If/);
  expect(stateOf({ ...silent, state: "done" })).toBe("Done");
});
