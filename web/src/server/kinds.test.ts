import { expect, test } from "vitest";
import { defaults, fitting, kindOf, missing, optionsOf, type Settings } from "./kinds";
import type { Option } from "./types";

test("kinds by ending", () => {
  for (const [name, kind] of Object.entries({
    "model.tflite": "profile",
    "MODEL.ONNX": "profile",
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

const option = (name: string, kinds: string, at?: string): Option => ({ name, label: name, want: "", kinds: kinds.split(" "), at });
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
