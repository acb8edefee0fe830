import type { Timeline } from "../data/profile";
import type { Range } from "./range";

/** extent is the time from the first to the last thing of a timeline. */
export function extent(t: Timeline): Range {
  let [t0, t1] = [Infinity, -Infinity];
  for (const l of t.lanes) {
    const [starts, durations] = [l.starts_s, l.durations_s];
    if (starts.length > 0) t0 = Math.min(t0, starts[0]);
    for (let i = 0; i < starts.length; i++) {
      const e = starts[i] + durations[i];
      if (e > t1) t1 = e;
    }
  }
  for (const c of t.counters ?? []) {
    if (c.times_s.length === 0) continue;
    t0 = Math.min(t0, c.times_s[0]);
    t1 = Math.max(t1, c.times_s[c.times_s.length - 1]);
  }
  for (const m of t.memories ?? []) {
    if (!m.starts_s || !m.ends_s || m.starts_s.length === 0) continue;
    t0 = Math.min(t0, m.starts_s[0]);
    for (let i = 0; i < m.ends_s.length; i++) if (m.ends_s[i] > t1) t1 = m.ends_s[i];
  }
  if (!(t1 > t0)) return Number.isFinite(t0) ? { t0, t1: t0 + 1e-6 } : { t0: 0, t1: 1 };
  return { t0, t1 };
}
