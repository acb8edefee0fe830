import { expect, test } from "vitest";
import type { Profile } from "../data/profile";
import { estimator, recommended } from "./recommended";

test("the recommended figure is the one that the quality judgement names", () => {
  const p = {
    totals: {
      latency_s: { kind: "measured", n: 50, median: 2, mean: 2.3, ci95: [1.9, 2.2] },
      figures: { undisturbed_latency_s: { kind: "measured", n: 30, median: 1.5 } },
    },
    trust: { verdict: "fair", quote: "undisturbed_latency_s" },
  } as unknown as Profile;
  expect(recommended(p)).toMatchObject({ value: 1.5, of: "undisturbed runs" });
  const plain = recommended({ ...p, trust: { verdict: "good", quote: "latency_s" } } as Profile)!;
  // The interval is that of the median, not of the mean.
  expect(plain).toMatchObject({ value: 2, of: "" });
  expect(estimator(plain.metric, plain.value)).toBe("median");
  expect(recommended({ totals: {} } as Profile)).toBeUndefined();
});
