import { expect, test } from "vitest";
import type { Layer, Profile } from "../data/profile";
import { bottleneck, engines, fits, memory, next, shares } from "./answers";

const layer = (index: number, s: number, bound?: "compute" | "memory" | "neither", level?: string, state: Layer["state"] = "ran"): Layer => ({ index, op: "X", state, latency_s: { kind: "measured", median: s }, roof: bound && { bound, level } });
const of = (more: object) => ({ layers: [], totals: {}, target: { id: "t", kind: "host" }, settings: {}, model: { name: "m" }, ...more }) as unknown as Profile;

test("parts in whole per cent add up to 100", () => {
  expect(shares([["a", 1], ["b", 1], ["c", 1]])).toEqual(["34 % a", "33 % b", "33 % c"]);
  expect(shares([["a", 999], ["b", 1]])).toEqual(["100 % a"]);
  expect(shares([["a", 0]])).toEqual([]);
});

test("the bottleneck is told by time, without layers that did not run", () => {
  const p = of({ layers: [layer(0, 6, "compute"), layer(1, 2, "memory", "L2"), layer(2, 1, "neither"), layer(3, 1), layer(4, 90, "compute", undefined, "not_reached")] });
  expect(bottleneck(p)).toBe("60 % compute-bound, 20 % L2-bound, 10 % below 10 % of peak (overhead), 10 % unknown");
  expect(bottleneck(of({ layers: [layer(0, 1, "memory", "memory")] }))).toBe("100 % DRAM-bound");
  expect(bottleneck(of({ layers: [layer(0, 1)] }))).toBe("");
});

test("the busiest engine bounds an accelerator", () => {
  const lane = (group: string, name: string, ...durations_s: number[]) => ({ group, name, kind: "engine", durations_s });
  const p = of({
    totals: { latency_s: { kind: "imported", median: 10 }, figures: { tiu_busy_s: { median: 4 }, dma_busy_s: { median: 9 }, parallel_s: { median: 1 } } },
    timeline: { lanes: [lane("core 0", "TIU", 1, 2), lane("core 1", "TIU", 1), lane("core 0", "GDMA", 8), lane("core 1", "GDMA", 1)] },
  });
  expect(engines(p)).toBe("DMA-bound: copy engine busy 80.0 %, tensor engine 30.0 %, engines overlap 10.0 %");
  expect(engines(of({}))).toBe("");
});

test("memory, room and next step", () => {
  expect(memory(of({ totals: { ram_bytes: 1024 }, memory: { peak_bytes: 2048, tflm_arena_bytes: 3072 } }))).toBe("peak activations 2.00 KiB · TFLM tensor arena 3.00 KiB");
  expect(memory(of({ target: { kind: "simulator" }, totals: { ram_bytes: 1024, flash_bytes: 1024 }, memory: { tflm_arena_bytes: 3072 } }))).toBe("RAM 1.00 KiB · flash 1.00 KiB + program code");
  const found = (...list: [string, string][]) => of({ findings: list.map(([id, severity]) => ({ id, severity, text: "" })) });
  expect(fits(found(["target.ram", "info"], ["target.flash", "info"]))).toBe("fits in RAM and flash");
  expect(fits(found(["target.ram", "problem"], ["target.flash", "info"]))).toBe("does not fit: too little RAM");
  expect(fits(found(["target.ram", "warning"]))).toBe("RAM may not suffice");
  expect(fits(found())).toBe("");
  expect(next(found(["x", "problem"]))).toContain("problem");
  expect(next(of({ settings: { threads: 1 }, host: { cpus: 4 } }))).toContain("--threads 2 (of 4 CPUs)");
  expect(next(of({ target: { kind: "import" } }))).toBe("");
});
