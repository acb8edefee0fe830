import { expect, test } from "vitest";
import type { Doubt, Finding } from "../data/profile";
import { doubt, measuring, reasons } from "./trust";

const of = (code: Doubt["code"], value?: number, limit?: number): Doubt => ({ code, verdict: "fair", value, limit });

test("reasons have texts with their figure, or without", () => {
  expect(doubt(of("few_runs", 4, 10))).toBe("only 4 runs (at least 10 needed)");
  expect(doubt(of("few_runs"))).toBe("too few runs");
  expect(doubt(of("throttled", 1))).toBe("CPU throttled by heat once");
  expect(doubt(of("throttled", 3))).toBe("CPU throttled by heat 3 times");
  expect(doubt(of("battery"))).toBe("running on battery");
  expect(doubt(of("something new" as Doubt["code"], 1))).toBe("something new");
});

test("doubts with the grade of the verdict are its reasons", () => {
  const grave: Doubt = { code: "stolen", verdict: "unreliable" };
  expect(reasons({ verdict: "unreliable", doubts: [grave, of("battery")] })).toEqual(["hypervisor took time"]);
  expect(reasons({ verdict: "good", doubts: [of("battery")] })).toEqual(["running on battery"]);
  expect(reasons({ verdict: "good" })).toEqual([]);
});

test("findings about measurement quality are folded, except problems", () => {
  const f = (id: string, severity: Finding["severity"] = "warning"): Finding => ({ id, severity, text: "x" });
  expect(["measure.unstable", "machine.busy", "reconcile.overhead", "time.flat", "model.shapes"].map((id) => measuring(f(id)))).toEqual([true, true, true, false, false]);
  expect(measuring(f("measure.unstable", "problem"))).toBe(false);
});
