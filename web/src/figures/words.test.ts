import { expect, test } from "vitest";
import type { Layer } from "../data/profile";
import { blank, cause, elsewhere, idle, missing, options, outcome, states, unit } from "./words";

const layer = (more: Partial<Layer>): Layer => ({ index: 3, op: "X", state: "ran", ...more });

test("each state is one of four sorts", () => {
  const sorts = (s: Layer["state"]) => [idle, elsewhere, blank].map((f) => f(layer({ state: s })));
  expect(Object.fromEntries((Object.keys(states) as Layer["state"][]).map((s) => [s, sorts(s).map(Number).join("")]))).toEqual({
    ran: "000",
    folded: "010",
    fused: "010",
    unsupported: "101",
    skipped: "101",
    failed: "101",
    not_reached: "000",
    lost: "001",
    no_estimate: "001",
  });
});

test("outcome and cause are sentences", () => {
  expect(outcome(layer({}))).toBe("");
  expect(outcome(layer({ state: "fused", fused_into: 2 }))).toBe("Layer #2 does its work.");
  expect(cause(layer({ state: "unsupported", cause: { code: "operator" } }))).toBe("the kind of operator");
  expect(cause(layer({ state: "unsupported", cause: { code: "type", text: "float16 weights" } }))).toBe("float16 weights");
  expect(cause(layer({ placement: { on: "cpu", cause: "limit", text: "filter larger than 16 x 16" } }))).toBe("filter larger than 16 x 16");
  // On an accelerator another of its kernels refused, which says nothing of the layer.
  expect(cause(layer({ placement: { on: "mvp", cause: "limit" } }))).toBe("");
});

test("units, options and what is missing", () => {
  expect([unit(undefined), unit({ on: "cpu" }), unit({ on: "mvp" })]).toEqual(["", "CPU", "mvp"]);
  expect(options(layer({ options: [{ key: "padding", value: "same" }, { key: "stride", value: "2x2" }] }))).toBe("padding:same stride:2x2");
  expect(missing({ cause: "deadline", got: 12, want: 5000 })).toBe("The time for it was over (12 of 5,000 are there).");
  expect(missing({ cause: "error", text: "disk full." })).toBe("An error ended it: disk full.");
  expect(missing({ cause: "record", layers: [1, 4], want: 3 })).toBe("Records were lost on the way (layer #1, #4, 3 missing).");
  expect(missing({ cause: "shape" })).toBe("Because of shapes that are not known or contradict each other.");
});
