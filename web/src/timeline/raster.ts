// Bars as pixels. A row is one line of pixels that is repeated over its height, so that
// the cost of a frame hardly depends on the number of bars.
import { dim, hidden, mix, word, type RGB } from "./palette";
import type { Row } from "./rows";

/** Paint holds the colours of the theme. */
export interface Paint {
  page: RGB;
  text: RGB;
  line: RGB;
  accent: RGB;
  warn: RGB;
  quiet: RGB;
  /** Colours of slots. */
  slots: RGB[];
}

const shades = 8;

/** Label is a bar that is wide enough for text. */
export interface Label {
  x0: number;
  x1: number;
  y: number;
  h: number;
  row: Row;
  k: number;
  slot: number;
}

/** Drawn counts the content of a frame. */
export interface Drawn {
  /** Visible bars in view. */
  bars: number;
  /** Bars drawn individually. */
  single: number;
  /** Blocks of several merged bars, or of one below a pixel. */
  blocks: number;
}

export class Raster {
  w = 0;
  h = 0;
  pixels = new Uint32Array(0);
  image: ImageData | undefined;
  private scan = new Uint32Array(0);
  private tops = new Uint16Array(0);
  private fill = new Uint32Array(256);
  private shade: Uint32Array[] = [];
  private corner = new Uint32Array(256);
  private stall = new Uint32Array(256);
  private acc = new Float64Array(256);
  private touched = new Uint8Array(256);
  page = 0;

  size(w: number, h: number) {
    if (w === this.w && h === this.h && this.image) return;
    this.w = w;
    this.h = h;
    this.image = new ImageData(w, h);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.scan = new Uint32Array(w);
    this.tops = new Uint16Array(w);
  }

  theme(p: Paint) {
    this.page = word(p.page);
    this.shade = Array.from({ length: shades + 1 }, () => new Uint32Array(256));
    for (let s = 0; s < 256; s++) {
      const c = p.slots[s] ?? p.line;
      this.fill[s] = word(c);
      this.corner[s] = word(mix(c, p.page, 0.6));
      this.stall[s] = word(mix(c, p.text, 0.45));
      for (let i = 0; i <= shades; i++) this.shade[i][s] = word(mix(p.page, c, 0.4 + (0.6 * i) / shades));
    }
  }

  clear() {
    this.pixels.fill(this.page);
  }

  /** box fills a rectangle, clipped at the edges. */
  box(x0: number, y0: number, x1: number, y1: number, colour: number) {
    const a = Math.max(0, Math.round(x0));
    const b = Math.min(this.w, Math.round(x1));
    if (b <= a) return;
    for (let y = Math.max(0, y0); y < Math.min(this.h, y1); y++) this.pixels.fill(colour, y * this.w + a, y * this.w + b);
  }

  /** row paints the bars of a row between t0 and t1 at y to y+h. */
  row(row: Row, y: number, h: number, t0: number, t1: number, byHeight: boolean, ratio: number, labels: Label[], drawn: Drawn) {
    const pyramid = row.pyramid;
    if (!pyramid || y >= this.h || y + h <= 0 || row.n === 0) return;
    const { w, scan, tops, acc, touched, fill, page } = this;
    const k = w / (t1 - t0);
    const pixel = (t1 - t0) / w;
    const lane = row.lane;
    const stalls = lane.lane.stalls_s;
    const edges: number[] = [];
    const waits: number[] = [];
    const least = 30 * ratio;
    scan.fill(page);
    if (byHeight) tops.fill(0);
    let cur = -1;
    let used = 0;
    let high = 0;
    let weight = 0;
    const level = (v: number) => (v < 0 ? Math.max(2, Math.round(h * 0.2)) : Math.max(2, Math.round(h * v)));
    const flush = () => {
      if (cur < 0) return;
      let [best, most, total] = [dim, 0, 0];
      for (let i = 0; i < used; i++) {
        const s = touched[i];
        const v = acc[s];
        total += v;
        acc[s] = 0;
        if (s !== dim && v > most) {
          most = v;
          best = s;
        }
      }
      const cover = Math.min(shades, Math.round((total / pixel) * shades));
      scan[cur] = this.shade[cover][best];
      if (byHeight) tops[cur] = level(weight > 0 ? high / weight : -1);
      if (best !== dim) drawn.blocks++;
      cur = -1;
      used = 0;
      high = weight = 0;
    };
    pyramid.walk(t0, t1, pixel, (s, e, at, deep, busy, slot, _most, height) => {
      if (slot === hidden) return;
      let a = (s - t0) * k;
      let b = (e - t0) * k;
      if (a < 0) a = 0;
      if (b > w) b = w;
      const x0 = Math.min(w - 1, a | 0);
      const x1 = b | 0;
      if (deep > 0 || x1 <= x0) {
        if (cur !== x0) {
          flush();
          cur = x0;
        }
        if (acc[slot] === 0) touched[used++] = slot;
        acc[slot] += busy + 1e-15;
        if (byHeight && height >= 0) {
          high += height * (busy + 1e-15);
          weight += busy + 1e-15;
        }
        return;
      }
      flush();
      // A line between bars, where it fits.
      const x2 = x1 - x0 >= 4 && e <= t1 ? x1 - 1 : x1;
      scan.fill(fill[slot], x0, x2);
      if (byHeight) tops.fill(level(height), x0, x2);
      else if (x2 - x0 >= 5 && h >= 10) edges.push(x0, x2 - 1, slot);
      if (stalls && slot < dim) {
        const until = Math.min(x2, Math.round((s + stalls[row.bar(at)] - t0) * k));
        if (until > x0) waits.push(x0, until, slot);
      }
      if (slot !== dim) drawn.single++;
      if (x2 - x0 >= least && h >= 12 * ratio) labels.push({ x0, x1: x2, y, h, row, k: at, slot });
    });
    flush();
    const { pixels } = this;
    const top = Math.max(0, y);
    const bottom = Math.min(this.h, y + h);
    if (byHeight) {
      for (let yy = top; yy < bottom; yy++) {
        const need = y + h - yy;
        const at = yy * w;
        for (let x = 0; x < w; x++) if (tops[x] >= need) pixels[at + x] = scan[x];
      }
    } else {
      for (let yy = top; yy < bottom; yy++) pixels.set(scan, yy * w);
      // Rounded corners separate adjacent bars.
      for (const yy of [y, y + h - 1]) {
        if (yy < 0 || yy >= this.h) continue;
        for (let i = 0; i < edges.length; i += 3) {
          const c = this.corner[edges[i + 2]];
          pixels[yy * w + edges[i]] = c;
          pixels[yy * w + edges[i + 1]] = c;
        }
      }
    }
    for (let i = 0; i < waits.length; i += 3) {
      const c = this.stall[waits[i + 2]];
      for (let x = waits[i]; x < waits[i + 1]; x++) {
        const from = byHeight ? Math.max(top, y + h - tops[x]) : top;
        for (let yy = from; yy < bottom; yy++) if (((x + yy) & 3) === 0) pixels[yy * w + x] = c;
      }
    }
  }

  /** marks underlines bars of a row that are listed by position k, in order. */
  marks(row: Row, list: Int32Array, y0: number, y1: number, t0: number, t1: number, colour: number) {
    const { w } = this;
    const k = w / (t1 - t0);
    let i = lowerBound(list, row.from(t0));
    const to = row.to(t1);
    while (i < list.length && list[i] < to) {
      const bar = list[i];
      const x0 = Math.max(0, Math.floor((row.start(bar) - t0) * k));
      const x1 = Math.min(w, Math.max(x0 + 2, Math.floor((row.end(bar) - t0) * k)));
      this.box(x0, y0, x1, y1, colour);
      // Continue with the first one outside of this pixel.
      i++;
      if (i < list.length && (row.end(list[i]) - t0) * k <= x1) i = Math.max(i, lowerBound(list, row.from(t0 + x1 / k)));
    }
  }
}

/** lowerBound is the first position in a sorted list whose value is at least v. */
export function lowerBound(list: Int32Array, v: number): number {
  let [lo, hi] = [0, list.length];
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (list[mid] >= v) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}
