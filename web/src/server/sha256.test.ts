import { expect, test } from "vitest";
import { Sha256 } from "./sha256";

const digest = async (bytes: Uint8Array<ArrayBuffer>) => [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].map((b) => b.toString(16).padStart(2, "0")).join("");

test("hashes of pieces agree with those of the platform", async () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 1000, 4097]) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 31 + length) & 255);
    const want = await digest(bytes);
    for (const piece of [1, 7, 64, 100, 5000]) {
      const hash = new Sha256();
      for (let at = 0; at < length; at += piece) hash.add(bytes.subarray(at, at + piece));
      expect(hash.hex(), `${length} bytes in pieces of ${piece}`).toBe(want);
    }
  }
});

test("a known hash", () => {
  const hash = new Sha256();
  hash.add(new TextEncoder().encode("abc"));
  expect(hash.hex()).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
