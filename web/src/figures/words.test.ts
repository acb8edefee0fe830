import { expect, test } from "vitest";
import type { Layer, Profile, Tensor } from "../data/profile";
import { assumed, blank, cause, elsewhere, idle, missing, options, outcome, states, taken, unit, withheld } from "./words";

const layer = (more: Partial<Layer>): Layer => ({ index: 3, op: "X", state: "ran", ...more });

test("each state is in one of four classes", () => {
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

test("open dimensions show the declared and the used shape", () => {
  expect(taken({ shape: [1, 3, 4] })).toBe("1×3×4");
  expect(taken({ declared: [-1, 3, -1], shape: [1, 3, 1] })).toBe("?×3×? as 1×3×1");
  expect(taken({ declared: [-1, 3, -1, -1], dim_names: ["batch", "", "n + 1", "p2o.7"], shape: [1, 3, 2, 1] })).toBe("batch × 3 × n + 1 × ? as 1×3×2×1");
  const of = (format: string, ...inputs: Tensor[]) => assumed({ model: { name: "m", format, inputs } } as Profile).length;
  expect(of("onnx", { declared: [-1, 3], shape: [1, 3], assumed: [0] }, { declared: [-1], shape: [4] })).toBe(1);
  expect(of("tflite", { declared: [-1, 3], shape: [1, 3], assumed: [0] })).toBe(0);
  expect(of("tflite", { declared: [-1, -1], shape: [1, 1], assumed: [0, 1] })).toBe(1);
});

test("a model has no latency if most of the work did not run", () => {
  const of = (...incomplete: Profile["incomplete"] & object) => ({ incomplete, totals: {} }) as Profile;
  expect(withheld(of({ cause: "work", layers: [1] }))).toBe("most of the work did not run");
  expect(withheld(of({ cause: "memory", layers: [1, 4], text: "the model has no latency" }))).toBe("out of memory in 2 layers");
  expect(withheld(of({ cause: "data", layers: [1] }))).toBe("");
  // The run ended for lack of memory, but its layers have figures.
  expect(withheld(of({ cause: "memory" }))).toBe("");
  expect(withheld({ ...of({ cause: "memory", layers: [1] }), totals: { latency_s: { kind: "measured", median: 1 } } })).toBe("");
  expect(withheld({ totals: {} } as Profile)).toBe("");
});

test("outcome and cause are sentences", () => {
  expect(outcome(layer({}))).toBe("");
  expect(outcome(layer({ state: "fused", fused_into: 2 }))).toBe("Fused into layer #2.");
  expect(cause(layer({ state: "unsupported", cause: { code: "operator" } }))).toBe("unsupported operator");
  expect(cause(layer({ state: "unsupported", cause: { code: "type", text: "float16 weights" } }))).toBe("float16 weights");
  expect(cause(layer({ placement: { on: "cpu", cause: "limit", text: "filter larger than 16 x 16" } }))).toBe("filter larger than 16 x 16");
  // On an accelerator the cause is that of another kernel and not of the layer.
  expect(cause(layer({ placement: { on: "mvp", cause: "limit" } }))).toBe("");
});

test("units, options and missing data", () => {
  expect([unit(undefined), unit({ on: "cpu" }), unit({ on: "mvp" })]).toEqual(["", "CPU", "mvp"]);
  expect(options(layer({ options: [{ key: "padding", value: "same" }, { key: "stride", value: "2x2" }] }))).toBe("padding:same stride:2x2");
  expect(missing({ cause: "deadline", got: 12, want: 5000 })).toBe("Time limit reached (12 of 5,000 available).");
  expect(missing({ cause: "error", text: "disk full." })).toBe("Ended by an error: disk full.");
  expect(missing({ cause: "record", layers: [1, 4], want: 3 })).toBe("Missing records (layer #1, #4, 3 missing).");
  expect(missing({ cause: "shape" })).toBe("Unknown or contradictory shapes.");
});
