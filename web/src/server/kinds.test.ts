import { expect, test } from "vitest";
import { defaults, expected, fitting, kindOf, missing, optionsOf, unknownChip, without, wrong, type Settings } from "./kinds";
import type { Limit, Option, Target } from "./types";

test("kinds by ending", () => {
  for (const [name, kind] of Object.entries({
    "model.tflite": "profile",
    "MODEL.ONNX": "profile",
    "tiny-Q4_K_M.gguf": "profile",
    "tiny.litertlm": "profile",
    "model.mltk.zip": "profile",
    "net.yaml": "profile",
    "saved.opmeter": "saved",
    "resnet.study": "saved",
    "trace.json": "import",
    "records.zip": "import",
    onnx: "import",
    "": "import",
  })) {
    expect(kindOf(name), name).toBe(kind);
  }
  expect(kindOf("model.tflite", "compress")).toBe("compress");
  expect(kindOf("resnet.study", "compress")).toBe("saved");
});

const option = (name: string, kinds: string, at?: string): Option => ({ name, label: name, want: "", kinds: kinds.split(" "), at, limit: { as: "text", pattern: ".*" } });
const all = [
  option("on", "profile compress"),
  option("accelerator", "profile", "chip"),
  option("engine", "profile compress", "computer"),
  option("threads", "profile compress", "computer"),
  option("clock", "profile import", "board chip"),
  option("arch", "import"),
  option("speedup", "compress"),
];

test("options fit kind and place", () => {
  const names = (kind: string, place?: "computer" | "board" | "chip") => fitting(all, kind, place).map((o) => o.name);
  expect(names("profile", "computer")).toEqual(["engine", "threads"]);
  expect(names("profile", "board")).toEqual(["clock"]);
  expect(names("profile", "chip")).toEqual(["accelerator", "clock"]);
  expect(names("compress", "chip")).toEqual(["speedup"]);
  expect(names("import")).toEqual(["clock", "arch"]);
  expect(names("saved")).toEqual([]);
});

test("options leave out what the program chooses, and what does not fit", () => {
  expect(optionsOf(all, "profile", defaults)).toEqual({});
  const s: Settings = { ...defaults, values: { engine: "onnxruntime", threads: " 2 ", board: "/dev/ttyACM0", chip: "stm32h743", clock: "64MHz", speedup: "2", arch: "" } };
  expect(optionsOf(all, "profile", s)).toEqual({ engine: "onnxruntime", threads: "2" });
  expect(optionsOf(all, "profile", { ...s, place: "board" })).toEqual({ on: "device:/dev/ttyACM0", clock: "64MHz" });
  expect(optionsOf(all, "profile", { ...s, place: "chip" })).toEqual({ on: "stm32h743", clock: "64MHz" });
  // An accelerator stands for a chip.
  expect(optionsOf(all, "profile", { ...s, place: "chip", values: { accelerator: "mvp", chip: "stm32h743" } })).toEqual({ accelerator: "mvp" });
  expect(optionsOf(all, "compress", { ...s, kind: "compress", place: "chip" })).toEqual({ on: "stm32h743", speedup: "2" });
  expect(optionsOf(all, "compress", { ...s, kind: "compress", place: "board" })).toEqual({ engine: "onnxruntime", threads: "2", speedup: "2" });
  expect(optionsOf(all, "import", s, { clock: "8MHz" })).toEqual({ clock: "8MHz" });
  expect(optionsOf(all, "saved", s)).toEqual({});
});

test("a board or a chip has to be named", () => {
  expect(missing(defaults)).toBe("");
  expect(missing({ ...defaults, place: "board" })).toContain("board");
  expect(missing({ ...defaults, place: "chip" })).toContain("chip");
  expect(missing({ ...defaults, place: "chip", values: { accelerator: "mvp" } })).toBe("");
  expect(missing({ ...defaults, kind: "compress", place: "chip", values: { accelerator: "mvp" } })).toContain("chip");
});

test("values that the server refuses are told before", () => {
  const of = (limit: Limit, more: Partial<Option> = {}): Option => ({ name: "x", label: "X", want: "this", kinds: ["profile"], limit, ...more });
  const takes = (o: Option, ...values: string[]) => values.filter((v) => expected(o, v) === "");
  expect(takes(of({ as: "whole", most: 1024 }), "1", " 1024 ", "0", "1025", "1.5", "-1", "abc", "1e2", "")).toEqual(["1", " 1024 ", ""]);
  expect(takes(of({ as: "number", above: 1, most: 1000 }), "1.5", "1000", "1", "1001", "x", "1e2", ".5")).toEqual(["1.5", "1000", "1e2"]);
  expect(takes(of({ as: "time", most: 600 }), "2s", "1m30s", "500ms", "10m", "1.5h", "11m", "0s", "2", "s", "1x")).toEqual(["2s", "1m30s", "500ms", "10m"]);
  const shape = of({ as: "text", pattern: "[^\\s=,]{1,200}=[0-9]{1,9}(x[0-9]{1,9}){0,15}" }, { many: true });
  expect(takes(shape, "a=1x2", "a=1x2,b=3", "a=1x2,", "a", "../a=1", "a//b=1", Array(17).fill("a=1").join(","))).toEqual(["a=1x2", "a=1x2,b=3"]);
  const names = of({ as: "text", pattern: "[a-z]+(,[a-z]+)?" }, { names: ["auto", "litert"] });
  expect(takes(names, "auto", "auto,litert", "litert,auto,auto", "tvm")).toEqual(["auto", "auto,litert"]);
  expect(expected(names, "auto,tvm")).toBe("No such name: tvm. Expected this");
  expect(expected(shape, "a")).toBe("Expected this");
  const all = [of({ as: "whole", most: 2 }, { name: "threads", label: "Threads" })];
  expect(wrong(all, "profile", { threads: "0" })).toBe("Threads 0: expected this.");
  expect(wrong(all, "profile", { threads: "2" })).toBe("");
  expect(wrong(all, "import", { threads: "0" })).toBe("");
});

test("unknown chips are told before", () => {
  const targets: Target[] = [{ id: "host", about: "this computer" }, { id: "stm32h743", about: "STM32H743, Cortex-M7" }, { id: "nrf52840", about: "nRF52840, Cortex-M4" }];
  expect(unknownChip("stm32h743 ", targets)).toBe("");
  expect(unknownChip("", targets)).toBe("");
  expect(unknownChip("nonsense", undefined)).toBe("");
  expect(unknownChip("stm32h7", targets)).toBe("No chip is called stm32h7. Did you mean stm32h743?");
  expect(unknownChip("cortex-m4", targets)).toBe("No chip is called cortex-m4. Did you mean nrf52840?");
  expect(unknownChip("nonsense", targets)).toBe("No chip is called nonsense. Choose one of the list.");
  expect(wrong([], "profile", { on: "nonsense" }, targets)).toContain("nonsense");
  expect(wrong([], "profile", { on: "device:COM3" }, targets)).toBe("");
});

test("labels need data", () => {
  const [data, labels] = [new File(["x"], "x.npy"), new File(["y"], "y.npy")];
  const s: Settings = { ...defaults, kind: "compress" };
  expect(missing(s, { labels })).toContain("need data");
  expect(missing(s, { data, labels })).toBe("");
  expect(missing(s, { data })).toBe("");
  expect(missing(defaults, { labels })).toBe("");
  expect(without({ data, labels }, "data").labels).toBe(labels);
});
