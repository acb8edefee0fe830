import { expect, test } from "vitest";
import { reason } from "./problems";

test("errors name the fields of the form", () => {
  const body = JSON.stringify({ title: "Unprocessable Entity", detail: "validation failed", errors: [{ location: "body.days", message: "expected number >= 1", value: 0 }, { location: "body.last", message: "expected integer" }] });
  expect(reason(422, body).text({ days: "Days on the default branch", last: "Last runs" })).toBe("Days on the default branch: expected number >= 1\nLast runs: expected integer");
  expect(reason(422, body).text()).toBe("days: expected number >= 1\nlast: expected integer");
  expect(reason(404, JSON.stringify({ detail: "no such run" })).text({ days: "Days" })).toBe("no such run");
  expect(reason(409, JSON.stringify({ title: "Conflict", errors: [{ message: "exists" }] })).text()).toBe("Conflict\nexists");
  for (const text of ["<html>", "null", "", "3"]) expect(reason(502, text).text()).toBe("The server answers with status 502.");
});
