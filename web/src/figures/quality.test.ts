import { expect, test } from "vitest";
import type { Doubt, Profile, Trust } from "../data/profile";
import { estimator, recommended } from "./recommended";
import { reason } from "./quality";

const of = (...codes: Doubt["code"][]): Trust => ({ verdict: "unreliable", doubts: codes.map((code) => ({ code, verdict: "unreliable", value: 2 })) });

test("the cause of a symptom is named before the symptom", () => {
  expect(reason(of("spread", "busy")).why).toBe("machine busy");
  expect(reason(of("spread", "busy", "threads"))).toEqual({ why: "more threads than CPUs", advice: "use fewer --threads than the computer has CPUs" });
  expect(reason(of("spread")).advice).toBe("measure longer: --time 10s");
  expect(reason(of("few_runs", "busy")).why).toContain("2 runs");
  expect(reason(of("throttled")).why).toBe("CPU throttled by heat");
  expect(reason(of("incomplete", "busy")).advice).toBe("");
  expect(reason({ verdict: "good", doubts: of("busy").doubts })).toEqual({ why: "", advice: "" });
  expect(reason({ verdict: "fair" })).toEqual({ why: "", advice: "" });
});

test("the recommended figure is the one that the quality judgement names", () => {
  const p = {
    totals: {
      latency_s: { kind: "measured", n: 50, median: 2, typical: 2.1, ci95: [1.9, 2.2] },
      figures: { undisturbed_latency_s: { kind: "measured", n: 30, median: 1.5 } },
    },
    trust: { verdict: "fair", quote: "undisturbed_latency_s" },
  } as unknown as Profile;
  expect(recommended(p)).toMatchObject({ value: 1.5, of: "undisturbed runs" });
  const plain = recommended({ ...p, trust: { verdict: "good", quote: "latency_s" } } as Profile)!;
  // The interval is that of the median, not of the typical time.
  expect(plain).toMatchObject({ value: 2, of: "" });
  expect(estimator(plain.metric, plain.value)).toBe("median");
  expect(recommended({ totals: {} } as Profile)).toBeUndefined();
});
