import { expect, test } from "vitest";
import { alike, matrix, step, type Latest } from "./matrix";

let made = 0;
const series = (model: string, target: string, value?: number, more: Partial<Latest> & { file?: string } = {}): Latest =>
  ({ id: `${model}-${target}-${made}`, model, target, kind: "profile", settings: "", latest: { created_ms: made++, figures: value === undefined ? [] : [{ name: "latency_s", value }], ...(more.file && { model_file: more.file, model_hash: "h" }) }, ...more }) as unknown as Latest;

test("pairs, the best of each row and the file for those that are missing", () => {
  const all = [
    series("b", "m4", 0.2),
    series("b", "host", 0.1, { file: "b.onnx" }),
    series("b", "host", 0.05, { engine: "litert" }),
    series("a", "m4", 3),
    series("a", "m7"),
    series("a", "host", 0.001, { kind: "study" }),
  ];
  const m = matrix(all, "latency_s", -1, ["esp32"]);
  expect(m.targets).toEqual(["host", "esp32", "m4", "m7"]);
  expect(m.rows.map((r) => r.model)).toEqual(["a", "b"]);
  expect(m.rows[1].file).toEqual({ name: "b.onnx", hash: "h" });
  expect(m.rows[1].cells.map((c) => c.series.length)).toEqual([2, 0, 1, 0]);
  expect(m.rows[1].cells[0].best.map((s) => s.engine)).toEqual(["litert"]);
  expect(m.rows[1].cells[2].best).toEqual([]);
  // A row with one figure has no best, and no file starts nothing.
  expect(m.rows[0].cells.some((c) => c.best.length > 0)).toBe(false);
  expect(m.rows[0].file).toBeUndefined();
  expect(matrix(all, "latency_s", 1).rows[1].cells.find((c) => c.best.length > 0)?.target).toBe("m4");
  expect(matrix(all, "latency_s", 0).rows[1].cells.some((c) => c.best.length > 0)).toBe(false);
  expect(matrix([], "latency_s", -1)).toEqual({ targets: [], rows: [] });
});

test("figures of other settings do not compare", () => {
  const groups = (...settings: string[]) => alike(settings.map((s, i) => series("a", `t${i}`, 1, { settings: s }))).map((g) => g.map((s) => s.settings));
  expect(groups("threads=1 format=onnx", "format=onnx threads=1", "clock=64MHz format=onnx")).toHaveLength(1);
  expect(groups("threads=1", "threads=2", "")).toEqual([["threads=1"], ["threads=2"], [""]]);
  expect(groups("batch=8", "", "format=onnx", "shape=a=1", "shape=a=2", "streams=2", "dim=n=2")).toHaveLength(7);
  const all = [
    series("a", "host", 3, { settings: "threads=1 format=onnx" }),
    series("a", "m4", 4, { settings: "format=onnx" }),
    series("a", "m7", 1, { settings: "batch=8 format=onnx" }), // fast, but of another work
    series("a", "host", 5, { settings: "threads=1 batch=8 format=onnx" }),
  ];
  const [row] = matrix(all, "latency_s", -1).rows;
  expect(row.cells.map((c) => c.best.map((s) => s.latest.figures[0].value))).toEqual([[3], [], [1]]);
  expect(all.map((s) => row.differs.get(s.id))).toEqual(["threads=1", "", "batch=8", "threads=1 batch=8"]);
  // Nothing is said where all figures compare.
  const [same] = matrix(all.slice(0, 2), "latency_s", -1).rows;
  expect([...same.differs.values()]).toEqual(["", ""]);
});

test("arrow keys stay within the grid", () => {
  expect(step("ArrowRight", 0, 0, 2, 3)).toEqual([0, 1]);
  expect(step("ArrowRight", 0, 2, 2, 3)).toEqual([0, 2]);
  expect(step("ArrowDown", 1, 1, 2, 3)).toEqual([1, 1]);
  expect(step("ArrowUp", 1, 1, 2, 3)).toEqual([0, 1]);
  expect(step("Home", 1, 2, 2, 3)).toEqual([1, 0]);
  expect(step("End", 1, 0, 2, 3)).toEqual([1, 2]);
  expect(step("a", 0, 0, 2, 3)).toBeUndefined();
});
