import { expect, test } from "vitest";
import { between, changed, lines, main, nameOf, ordered, percent, quantityOf, show, strip } from "./figures";
import type { Quantity } from "../data/profile";
import type { Run } from "./types";

const q = (key: string, unit?: string): Quantity => ({ key, name: key.toUpperCase(), unit });
const run = (...figures: [string, number][]): Run => ({ figures: figures.map(([name, value]) => ({ name, value })) }) as Run;

test("figures have units", () => {
  expect(show(0.00125, q("latency_s", "s"))).toBe("1.25 ms");
  expect(show(2048, q("weights_bytes", "B"))).toBe("2.00 KiB");
  expect(show(12_501_632, q("macs"))).toBe("12.5 M");
  expect(show(0.5, q("share", "1"))).toBe("0.5");
  expect(show(1500, q("inferences_per_s", "/s"))).toBe("1.50 k/s");
  expect(show(undefined, q("macs"))).toBe("");
  expect(show(3, undefined)).toBe("3");
  expect(show(1.5, quantityOf("speedup", new Map()))).toBe("1.50×");
});

test("texts of several lines keep their breaks and nothing else", () => {
  expect(lines("a\nb\r\nc\u202e")).toBe("a\nb\nc\\u{202e}");
  expect(lines(undefined)).toBe("");
});

test("intervals have both ends", () => {
  expect(between({ low: 0.001, high: 0.002 }, q("latency_s", "s"))).toBe("1.00 ms to 2.00 ms");
  expect(between({ low: 0.001 }, q("latency_s", "s"))).toBe("");
});

test("changes name levels, size and commit", () => {
  const c = { run: "r", created_ms: Date.UTC(2026, 10, 20, 12), before: 0.0031, after: 0.0036, worse: true, better: false };
  expect(changed({ ...c, p: 0.002, commit: "0123456789abcdef" }, q("latency_s", "s"))).toBe("median 3.10 ms → 3.60 ms, +16 %, since commit 0123456789ab, 2026-11-20");
  expect(changed({ ...c, before: 0, after: 3 }, q("layers"))).toBe("0 → 3, since the run, 2026-11-20");
  expect(percent(-0.012)).toBe("−1.2 %");
});

test("the figures that most look for come first", () => {
  expect(ordered(["params", "bytes_read", "latency_s", "params"])).toEqual(["latency_s", "params", "bytes_read"]);
  const r = run(["bytes_read", 1], ["macs", 2], ["latency_s", 3]);
  expect(strip(r).map((f) => f.name)).toEqual(["latency_s", "macs"]);
  expect(main(r)?.value).toBe(3);
  expect(main(run())).toBeUndefined();
  expect(nameOf("latency_s", new Map([["latency_s", q("latency_s", "s")]]))).toBe("Latency");
  expect(nameOf("new\u200b", new Map())).toBe("new\\u{200b}");
});
