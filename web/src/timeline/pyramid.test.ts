import { describe, expect, it } from "vitest";
import type { Lane, Profile } from "../data/profile";
import { Bars, noFilters } from "./model";
import { hidden } from "./palette";

/** random numbers that are the same in every run. */
function random(seed: number): () => number {
  let x = seed;
  return () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x / 4294967296;
  };
}

function lane(n: number, seed: number): Lane {
  const r = random(seed);
  const starts_s = new Float64Array(n);
  const durations_s = new Float32Array(n);
  const moved_bytes = new Float64Array(n);
  const types = new Int32Array(n);
  let t = 0;
  for (let i = 0; i < n; i++) {
    t += r() < 0.3 ? r() * 1e-5 : 0;
    starts_s[i] = t;
    durations_s[i] = r() * (r() < 0.05 ? 1e-4 : 1e-6);
    t += durations_s[i] * (1 + 1e-6);
    moved_bytes[i] = r() < 0.2 ? -1 : Math.floor(r() * 4096);
    types[i] = Math.floor(r() * 3);
  }
  return { kind: "engine", name: "DMA", starts_s, durations_s, moved_bytes, types };
}

function profile(lanes: Lane[]): Profile {
  return { schema: "opmeter/profile/v1", layers: [], timeline: { lanes, names: ["a", "b", "c"] } } as unknown as Profile;
}

async function bars(lanes: Lane[]): Promise<Bars> {
  const p = profile(lanes);
  const b = await Bars.make(p, p.timeline!);
  await b.colour("type");
  await b.build(noFilters, "");
  return b;
}

describe("pyramid", () => {
  it("emits every bar once, at every zoom", async () => {
    const b = await bars([lane(5000, 1)]);
    const row = b.lanes[0].rows[0];
    const whole = b.bounds.t1 - b.bounds.t0;
    for (const zoom of [1, 7, 93, 1111]) {
      const [t0, t1] = [b.bounds.t0 + whole * 0.31, b.bounds.t0 + whole * (0.31 + 0.6 / zoom)];
      let [count, busy, want, time, last] = [0, 0, 0, 0, -Infinity];
      row.pyramid!.walk(t0, t1, (t1 - t0) / 500, (s, e, _k, level, d) => {
        count += 8 ** level;
        busy += d;
        expect(s).toBeGreaterThanOrEqual(last - 1e-9);
        if (level > 0) expect(e - s).toBeLessThan((t1 - t0) / 500);
        last = e;
      });
      for (let i = 0; i < row.n; i++) {
        if (row.end(i) > t0 && row.start(i) < t1) {
          want++;
          time += b.lanes[0].durations[i];
        }
      }
      expect(count).toBe(want);
      expect(busy / time).toBeCloseTo(1, 4);
      expect(row.to(t1) - row.from(t0)).toBe(want);
    }
  });
  it("sums what lies between two times", async () => {
    const b = await bars([lane(3000, 2)]);
    const l = b.lanes[0];
    const row = l.rows[0];
    const whole = b.bounds.t1 - b.bounds.t0;
    for (const [x, y] of [[0.1, 0.9], [0.5, 0.5003], [0, 1]]) {
      const [t0, t1] = [b.bounds.t0 + x * whole, b.bounds.t0 + y * whole];
      let [busy, moved] = [0, 0];
      for (let i = 0; i < l.n; i++) {
        const part = Math.min(t1, row.end(i)) - Math.max(t0, row.start(i));
        if (part <= 0) continue;
        busy += part;
        if (l.lane.moved_bytes![i] > 0) moved += (l.lane.moved_bytes![i] * part) / l.durations[i];
      }
      const got = row.pyramid!.between(t0, t1);
      expect(got.busy).toBeCloseTo(busy, 8);
      expect(Math.abs(got.bytes - moved)).toBeLessThanOrEqual(1e-6 * moved);
    }
  });
  it("leaves out what the filters hide", async () => {
    const b = await bars([lane(1000, 3)]);
    await b.build({ ...noFilters, op: "b", others: "hide" }, "");
    const l = b.lanes[0];
    const want = Array.from(l.lane.types!).filter((t) => t === 1).length;
    expect(l.rows[0].pyramid!.before(1000).count).toBe(want);
    let seen = 0;
    l.rows[0].pyramid!.walk(b.bounds.t0, b.bounds.t1, 0, (_s, _e, k, level) => {
      expect(level).toBe(0);
      expect(l.slot[k]).not.toBe(hidden);
      seen++;
    });
    expect(seen).toBe(want);
  });
});

describe("nesting", () => {
  it("gives each level a row, and each bar its own time", async () => {
    const b = await bars([
      {
        kind: "thread",
        name: "main",
        starts_s: Float64Array.of(0, 0, 1, 1.5, 4, 5),
        durations_s: Float32Array.of(4, 1, 2, 0.5, 1, 0),
      },
    ]);
    const l = b.lanes[0];
    expect(Array.from(l.depth!)).toEqual([0, 1, 1, 2, 0, 0]);
    expect(l.rows.map((r) => r.n)).toEqual([3, 2, 1]);
    expect(Array.from(l.self!)).toEqual([1, 1, 1.5, 0.5, 1, 0]);
    expect(l.busy).toBe(5);
    expect(l.rows[1].find(2)).toBe(1);
    expect(l.rows[1].find(4)).toBe(-1);
  });
  it("does not nest bars that only meet", async () => {
    const n = 2000;
    const l = { kind: "engine" as const, name: "x", starts_s: new Float64Array(n), durations_s: new Float32Array(n) };
    let t = 1234.5;
    for (let i = 0; i < n; i++) {
      l.starts_s[i] = t;
      const d = 0.001 + (i % 7) * 1e-4 + 1e-9;
      l.durations_s[i] = d;
      t += d;
    }
    expect((await bars([l])).lanes[0].rows).toHaveLength(1);
  });
});
