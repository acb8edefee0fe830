import { expect, test } from "vitest";
import type { Profile } from "../data/profile";
import { busiestEngine } from "./engines";

const of = (more: object) => ({ layers: [], totals: {}, target: { id: "t", kind: "host" }, settings: {}, model: { name: "m" }, ...more }) as unknown as Profile;

test("the busiest engine bounds an accelerator", () => {
  const lane = (group: string, name: string, ...durations_s: number[]) => ({ group, name, kind: "engine", durations_s });
  const p = of({
    totals: { latency_s: { kind: "imported", median: 10 }, figures: { tiu_busy_s: { median: 4 }, dma_busy_s: { median: 9 }, parallel_s: { median: 1 } } },
    timeline: { lanes: [lane("core 0", "TIU", 1, 2), lane("core 1", "TIU", 1), lane("core 0", "GDMA", 8), lane("core 1", "GDMA", 1)] },
  });
  expect(busiestEngine(p)).toBe("DMA-bound: copy engine busy 80.0 %, tensor engine 30.0 %, engines overlap 10.0 %");
  expect(busiestEngine(of({}))).toBe("");
});
