import { describe, expect, it } from "vitest";
import { assign, colour, contrast, hash, ink, oklch, own, slots } from "./palette";

describe("palette", () => {
  it("hashes as FNV-1a does", () => {
    expect(hash("")).toBe(0x811c9dc5);
    expect(hash("a")).toBe(0xe40c292c);
    expect(hash("foobar")).toBe(0xbf9cf968);
  });
  it("converts known colours", () => {
    expect(oklch(1, 0, 0)).toEqual([255, 255, 255]);
    expect(oklch(0, 0, 0)).toEqual([0, 0, 0]);
    expect(oklch(0.628, 0.2577, 29.23)).toEqual([255, 0, 0]);
  });
  it("keeps text in bars readable in both themes", () => {
    for (const dark of [false, true]) {
      for (let s = 0; s < slots; s++) expect(contrast(colour(s, dark), ink(dark))).toBeGreaterThan(4.5);
    }
  });
  it("gives one name one colour, and different ones while there are any", () => {
    const names = Array.from({ length: slots }, (_, i) => `op ${i}`);
    const a = assign(names);
    expect(new Set(a.values()).size).toBe(slots);
    expect(assign([...names].reverse())).toEqual(a);
    expect(assign(["CONV_2D"]).get("CONV_2D")).toBe(hash("CONV_2D") % slots);
    const many = Array.from({ length: 200 }, (_, i) => `y${i}`);
    const heavy = assign(many, (n) => (Number(n.slice(1)) % 10 === 0 ? 2 : 1));
    expect(new Set(many.filter((_, i) => i % 10 === 0).map((n) => heavy.get(n))).size).toBe(20);
    const ranked = assign([...names, "CONV_2D", "ADD"], undefined, (n) => ["CONV_2D", "ADD"].indexOf(n) + 1);
    expect([ranked.get("CONV_2D"), ranked.get("ADD")]).toEqual([0, 1]);
    expect(Math.min(...names.map((n) => ranked.get(n)!))).toBe(own);
    expect(new Set(assign(Array.from({ length: 50 }, (_, i) => `x${i}`)).values()).size).toBe(slots);
  });
});
