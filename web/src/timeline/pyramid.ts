// Bars of a row at several levels of detail: a node of level k summarises 8^k bars by their
// time and the category with the most time. Drawing descends only where a node is wider
// than a pixel, so that its cost depends on the number of pixels and not of bars.
import { dim, hidden } from "./palette";
import { rates, type Emit, type HeightBy, type Levels, type Row, type Sums } from "./rows";

const bits = 3;
/** fan is the number of children of a node. */
export const fan = 1 << bits;
/** stride is the distance of the prefix sums. */
const stride = 64;

interface Level {
  /** Time of the visible bars. */
  busy: Float32Array;
  /** Slot with the most time, and its time. */
  top: Uint8Array;
  most: Float32Array;
  /** Mean height, weighted by time, -1 if unknown. */
  height: Float32Array | undefined;
}

export class Pyramid implements Levels {
  private levels: Level[] = [];
  private acc: Float64Array[] = [];
  private high: Float64Array[] = [];
  private at = 0;
  // Prefix sums before every 64th bar.
  private counts: Float64Array;
  private times: Float64Array;
  private moved: Float64Array | undefined;
  private sum: Sums = { count: 0, busy: 0, bytes: 0 };
  private readonly width = dim + 1;
  /** Heights of bars, where they show a figure. */
  private readonly scale: ((i: number) => number) | undefined;

  constructor(
    private row: Row,
    scale?: { by: HeightBy; peak: number },
  ) {
    this.scale = scale && rates(row.lane.lane, scale.by, scale.peak);
    const n = row.n;
    const m = Math.floor(n / stride) + 1;
    this.counts = new Float64Array(m);
    this.times = new Float64Array(m);
    if (row.lane.lane.moved_bytes) this.moved = new Float64Array(m);
    for (let size = n >> bits; size > 0; size >>= bits) {
      this.levels.push({
        busy: new Float32Array(size),
        top: new Uint8Array(size),
        most: new Float32Array(size),
        height: scale ? new Float32Array(size) : undefined,
      });
      this.acc.push(new Float64Array(this.width));
      this.high.push(new Float64Array(2));
    }
  }

  /** add adds the bars up to n. */
  add(n: number) {
    const { row, sum } = this;
    const { durations, slot, lane } = row.lane;
    const { index } = row;
    const first = this.acc[0];
    const moved = this.moved ? lane.moved_bytes : undefined;
    for (let k = this.at; k < n; k++) {
      const i = index ? index[k] : k;
      if (k % stride === 0) {
        this.counts[k / stride] = sum.count;
        this.times[k / stride] = sum.busy;
        if (this.moved) this.moved[k / stride] = sum.bytes;
      }
      const s = slot[i];
      const d = durations[i];
      if (s < dim) {
        sum.count++;
        sum.busy += d;
        if (moved && moved[i] > 0) sum.bytes += moved[i];
      }
      if (!first) continue;
      // A bar without length counts a little, so that it is visible.
      if (s !== hidden) {
        first[s] += d + 1e-15;
        if (this.scale) {
          const h = this.scale(i);
          if (h >= 0) {
            this.high[0][0] += h * (d + 1e-15);
            this.high[0][1] += d + 1e-15;
          }
        }
      }
      if ((k + 1) % fan === 0) this.close(0, k >> bits);
    }
    this.at = n;
  }

  private close(level: number, j: number) {
    const { busy, top, most, height } = this.levels[level];
    const acc = this.acc[level];
    const up = this.acc[level + 1];
    let [total, best, time] = [0, hidden, 0];
    for (let s = 0; s < this.width; s++) {
      const v = acc[s];
      if (v === 0) continue;
      total += v;
      if (up) up[s] += v;
      acc[s] = 0;
      // Bars that pass the filters have priority.
      if (s < dim ? v > time : best === hidden) {
        time = v;
        best = s;
      }
    }
    busy[j] = total;
    top[j] = best;
    most[j] = time;
    if (height) {
      const h = this.high[level];
      height[j] = h[1] > 0 ? h[0] / h[1] : -1;
      const next = this.high[level + 1];
      if (next) {
        next[0] += h[0];
        next[1] += h[1];
      }
      h[0] = h[1] = 0;
    }
    if (up && (j + 1) % fan === 0) this.close(level + 1, j >> bits);
  }

  finish() {
    this.acc = [];
    this.high = [];
    if (this.row.n % stride === 0) {
      const m = this.row.n / stride;
      this.counts[m] = this.sum.count;
      this.times[m] = this.sum.busy;
      if (this.moved) this.moved[m] = this.sum.bytes;
    }
  }

  /** walk emits the bars between t0 and t1, and nodes where they are shorter than pixel. */
  walk(t0: number, t1: number, pixel: number, emit: Emit) {
    const { row, levels } = this;
    const { starts, durations, slot } = row.lane;
    const { index } = row;
    const hi = row.to(t1);
    let k = row.from(t0);
    while (k < hi) {
      const i = index ? index[k] : k;
      const s = starts[i];
      // Climb while the node starts here, is complete, and ends within a pixel.
      let level = 0;
      let end = 0;
      while (level < levels.length) {
        const size = 1 << (bits * (level + 1));
        if (k & (size - 1) || k + size > hi) break;
        const last = index ? index[k + size - 1] : k + size - 1;
        const e = starts[last] + durations[last];
        if (e - s >= pixel) break;
        level++;
        end = e;
      }
      if (level === 0) {
        const c = slot[i];
        const d = durations[i];
        if (c !== hidden) emit(s, s + d, k, 0, d, c, d, this.scale ? this.scale(i) : -1);
        k++;
      } else {
        const v = levels[level - 1];
        const j = k >> (bits * level);
        if (v.top[j] !== hidden) emit(s, end, k, level, v.busy[j], v.top[j], v.most[j], v.height ? v.height[j] : -1);
        k += 1 << (bits * level);
      }
    }
  }

  /** before sums the bars before the k-th. */
  before(k: number): Sums {
    const { row } = this;
    const { durations, slot, lane } = row.lane;
    const m = Math.floor(k / stride);
    const out = { count: this.counts[m], busy: this.times[m], bytes: this.moved ? this.moved[m] : 0 };
    for (let j = m * stride; j < k; j++) {
      const i = row.bar(j);
      if (slot[i] >= dim) continue;
      out.count++;
      out.busy += durations[i];
      if (this.moved && lane.moved_bytes![i] > 0) out.bytes += lane.moved_bytes![i];
    }
    return out;
  }

  /** until sums the bars before time t; a bar at t counts in proportion. */
  until(t: number): Sums {
    const { row } = this;
    const k = row.from(t);
    const out = this.before(k);
    if (k >= row.n) return out;
    const i = row.bar(k);
    const part = t - row.lane.starts[i];
    if (part <= 0 || row.lane.slot[i] >= dim) return out;
    const d = row.lane.durations[i];
    out.busy += Math.min(part, d);
    const b = this.moved ? row.lane.lane.moved_bytes![i] : 0;
    if (b > 0 && d > 0) out.bytes += b * Math.min(1, part / d);
    return out;
  }

  /** between sums between two times: the number of overlapping bars, and their time and
   * bytes within. */
  between(t0: number, t1: number): Sums {
    const [a, b] = [this.until(t0), this.until(t1)];
    const [from, to] = [this.row.from(t0), this.row.to(t1)];
    const count = to > from ? this.before(to).count - this.before(from).count : 0;
    return { count, busy: b.busy - a.busy, bytes: b.bytes - a.bytes };
  }
}
