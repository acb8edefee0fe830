import { expect, test } from "vitest";
import { blocks } from "./blocks";

test("repeated parts become blocks", () => {
  expect(blocks(["enc/layer.0/att/q", "enc/layer.0/ff", "enc/layer.1/att/q", "enc/layer.1/ff", "head"])).toEqual([
    "enc/layer.0",
    "enc/layer.0",
    "enc/layer.1",
    "enc/layer.1",
    "",
  ]);
});

test("numbered single layers are no blocks", () => {
  expect(blocks(["model/conv2d", "model/conv2d_1", "model/conv2d_2"])).toEqual(["", "", ""]);
});

test("the outermost of several counts", () => {
  expect(blocks(["s1/b1/c", "s1/b2/c", "s2/b1/c", "s2/b2/c", "s1/b1/d", "s2/b2/d"])[0]).toBe("s1");
});

test("one number is no repetition", () => {
  expect(blocks(["net0/a", "net0/b"])).toEqual(["", ""]);
});
