import { expect, test } from "vitest";
import { address, parse } from "./router";

test("paths of views", () => {
  expect(parse("/")).toEqual({ view: "start" });
  expect(parse("/runs")).toEqual({ view: "runs" });
  expect(parse("/runs/")).toEqual({ view: "runs" });
  expect(parse("/runs/1a2b")).toEqual({ view: "run", id: "1a2b" });
  expect(parse("/jobs/k12")).toEqual({ view: "job", id: "k12" });
  expect(parse("/projects/1a")).toEqual({ view: "project", id: "1a" });
  for (const path of ["/runs/1a/page", "/runs/1a/profile", "/compare/page", "/jobs", "/runs/..%2fx", `/runs/${"1".repeat(65)}`, "/settings/1", "/constructor", "/constructor/1"]) {
    expect(parse(path).view, path).toBe("absent");
  }
});

test("addresses leave out what is empty", () => {
  expect(address("/runs", { search: "", tag: "a b" })).toBe("/runs?tag=a+b");
  expect(address("/compare", { runs: "1,2" })).toBe("/compare?runs=1,2");
  expect(address("/runs", { tag: "" })).toBe("/runs");
});
