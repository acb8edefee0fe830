import { expect, test } from "vitest";
import { csv, fileName, tsv } from "./table";

test("text that looks like a formula is guarded, figures are not", () => {
  expect(csv([["=1+1", "+a", "-b", "@c", -1, undefined]])).toBe("'=1+1,'+a,'-b,'@c,-1,\r\n");
  expect(tsv([["=A1", -2]])).toBe("'=A1\t-2\n");
});

test("quotes, commas and line ends", () => {
  expect(csv([['a"b', "c,d", "e\nf"]])).toBe('"a""b","c,d","e\nf"\r\n');
  expect(tsv([["a\tb", "c\r\nd"]])).toBe("a b\tc d\n");
});

test("names of files", () => {
  expect(fileName("a/b\\..:c", ".csv")).toBe("a_b_.._c.csv");
  expect(fileName("", ".csv")).toBe("profile.csv");
});
