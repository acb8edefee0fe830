import { expect, test } from "vitest";
import { defaults, kindOf, optionsOf } from "./kinds";

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
});

test("options leave out what the program chooses", () => {
  expect(optionsOf("profile", defaults)).toEqual({});
  const all = { ...defaults, engine: "onnxruntime", threads: "2", time: " 1s " };
  expect(optionsOf("profile", all)).toEqual({ engine: "onnxruntime", threads: "2", time: "1s" });
  expect(optionsOf("profile", { ...all, on: "device:/dev/ttyACM0" })).toEqual({ on: "device:/dev/ttyACM0", engine: "onnxruntime", threads: "2", time: "1s" });
  // An estimate refuses threads and time.
  expect(optionsOf("profile", { ...all, on: "stm32h743" })).toEqual({ on: "stm32h743", engine: "onnxruntime" });
  expect(optionsOf("import", all)).toEqual({});
  expect(optionsOf("saved", all)).toEqual({});
});
