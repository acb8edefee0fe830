import { expect, test } from "vitest";
import type { Layer } from "../data/profile";
import { compare, times } from "./expected";

const l = (index: number, have?: number, want?: number, band?: [number, number]): Layer => ({
  index,
  op: "X",
  state: "ran",
  latency_s: have === undefined ? undefined : { kind: "measured", median: have },
  expected_s: want === undefined ? undefined : { kind: "estimated", median: want, band },
});

test("compares what has both sides", () => {
  const c = compare([l(0, 2, 1, [1, 3]), l(1, 1, 4, [2, 5]), l(2, 3, 3), l(3, 1), l(4, undefined, 1), l(5)], (x) => x.latency_s, (x) => x.expected_s);
  expect(c.pairs.map((p) => p.ratio)).toEqual([2, 0.25, 1]);
  expect(c.pairs.map((p) => p.inside)).toEqual([true, false, undefined]);
  expect([c.have, c.want, c.ratio, c.banded, c.inside]).toEqual([6, 8, 1, 2, 1]);
  expect([c.onlyHave, c.onlyWant]).toEqual([[3], [4]]);
});

test("an expected zero has no ratio", () => {
  const c = compare([l(0, 2, 0)], (x) => x.latency_s, (x) => x.expected_s);
  expect(times(c.pairs[0].ratio)).toBe("");
  expect(c.ratio).toBeUndefined();
  expect([times(123.4), times(12.34), times(1.234), times(0.0123)]).toEqual(["123 ×", "12.3 ×", "1.23 ×", "0.012 ×"]);
});
