import { expect, test } from "vitest";
import { heat, part } from "./colour";

test("scales", () => {
  expect(part(5, 1, 10, false)).toBe(0.5);
  expect(part(10, 1, 100, true)).toBeCloseTo(0.5);
  expect(part(0, 1, 100, true)).toBe(0);
  expect(part(1, 1, 1, true)).toBe(0);
  expect(part(3, 0, 0, false)).toBe(0);
});

test("text can be read on every colour", () => {
  for (const dark of [false, true]) {
    for (let t = 0; t <= 1; t += 0.05) {
      const { fill, text } = heat(t, dark);
      const l = Number(/oklch\(([\d.]+)/.exec(fill)![1]);
      expect(Math.abs(l - (text === "#ffffff" ? 1 : 0.2))).toBeGreaterThan(0.37);
    }
  }
});
