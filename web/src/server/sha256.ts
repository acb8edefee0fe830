// SHA-256 over pieces. The browser's own function wants a whole file in memory.

// Signed words, since browsers compute with them as such and not as fractions.
const constants = new Int32Array(64);
const start = new Int32Array(8);

// The constants are fractions of the roots of the first primes (FIPS 180-4, 4.2.2 and 5.3.3).
{
  const fraction = (v: number) => ((v - Math.floor(v)) * 2 ** 32) | 0;
  let n = 0;
  for (let p = 2; n < 64; p++) {
    let prime = true;
    for (let d = 2; d * d <= p; d++) if (p % d === 0) prime = false;
    if (!prime) continue;
    if (n < 8) start[n] = fraction(Math.sqrt(p));
    constants[n++] = fraction(Math.cbrt(p));
  }
}

/** Sha256 hashes bytes that are added in pieces. */
export class Sha256 {
  private readonly state = start.slice();
  private readonly words = new Int32Array(64);
  private readonly rest = new Uint8Array(64);
  private filled = 0;
  private length = 0;

  add(bytes: Uint8Array): void {
    this.length += bytes.length;
    let at = 0;
    if (this.filled > 0) {
      at = Math.min(64 - this.filled, bytes.length);
      this.rest.set(bytes.subarray(0, at), this.filled);
      this.filled += at;
      if (this.filled < 64) return;
      this.block(this.rest, 0);
      this.filled = 0;
    }
    for (; at + 64 <= bytes.length; at += 64) this.block(bytes, at);
    this.rest.set(bytes.subarray(at));
    this.filled = bytes.length - at;
  }

  /** hex ends the hash and returns it as 64 digits. */
  hex(): string {
    const bits = this.length;
    const padding = new Uint8Array(this.filled < 56 ? 64 - this.filled : 128 - this.filled);
    padding[0] = 0x80;
    const view = new DataView(padding.buffer);
    view.setUint32(padding.length - 8, Math.floor(bits / 2 ** 29));
    view.setUint32(padding.length - 4, (bits * 8) >>> 0);
    this.add(padding);
    return [...this.state].map((v) => (v >>> 0).toString(16).padStart(8, "0")).join("");
  }

  private block(b: Uint8Array, at: number): void {
    const w = this.words;
    for (let i = 0; i < 16; i++, at += 4) w[i] = (b[at] << 24) | (b[at + 1] << 16) | (b[at + 2] << 8) | b[at + 3];
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15];
      const y = w[i - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    const s = this.state;
    let a = s[0];
    let c = s[1];
    let d = s[2];
    let e = s[3];
    let f = s[4];
    let g = s[5];
    let h = s[6];
    let k = s[7];
    for (let i = 0; i < 64; i++) {
      const s1 = ((f >>> 6) | (f << 26)) ^ ((f >>> 11) | (f << 21)) ^ ((f >>> 25) | (f << 7));
      const t1 = (k + s1 + ((f & g) ^ (~f & h)) + constants[i] + w[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & c) ^ (a & d) ^ (c & d))) | 0;
      k = h;
      h = g;
      g = f;
      f = (e + t1) | 0;
      e = d;
      d = c;
      c = a;
      a = (t1 + t2) | 0;
    }
    s[0] += a;
    s[1] += c;
    s[2] += d;
    s[3] += e;
    s[4] += f;
    s[5] += g;
    s[6] += h;
    s[7] += k;
  }
}
