import type { Timeline } from "../data/profile";
import { apart, type Fix } from "./clocks";
import { widen, type Range } from "./range";

/** extent is the time from the first to the last event of a timeline, optionally only of
 * some clocks. */
export function extent(t: Timeline, on: (clock: string | undefined) => boolean = () => true): Range {
  let [t0, t1] = [Infinity, -Infinity];
  for (const l of t.lanes) {
    if (!on(l.clock)) continue;
    const [starts, durations] = [l.starts_s, l.durations_s];
    if (starts.length > 0) t0 = Math.min(t0, starts[0]);
    for (let i = 0; i < starts.length; i++) {
      const e = starts[i] + durations[i];
      if (e > t1) t1 = e;
    }
  }
  for (const c of t.counters ?? []) {
    if (c.times_s.length === 0 || !on(c.clock)) continue;
    t0 = Math.min(t0, c.times_s[0]);
    t1 = Math.max(t1, c.times_s[c.times_s.length - 1]);
  }
  for (const m of t.memories ?? []) {
    if (!m.starts_s || !m.ends_s || m.starts_s.length === 0 || !on(m.clock)) continue;
    t0 = Math.min(t0, m.starts_s[0]);
    for (let i = 0; i < m.ends_s.length; i++) if (m.ends_s[i] > t1) t1 = m.ends_s[i];
  }
  if (!(t1 > t0)) return Number.isFinite(t0) ? { t0, t1: t0 + 1e-6 } : { t0: 0, t1: 1 };
  return { t0, t1 };
}

/** spans returns the length of the recording on the clock of a lane: of all clocks that are
 * comparable together, of any other by itself. */
export function spans(t: Timeline, fixes: Map<string, Fix>): (clock: string | undefined) => number {
  const known = new Map<string, number>();
  const domain = (clock: string | undefined) => apart(fixes, clock)?.clock.name ?? "";
  return (clock) => {
    const d = domain(clock);
    let length = known.get(d);
    if (length === undefined) {
      const { t0, t1 } = extent(t, (c) => domain(c) === d);
      known.set(d, (length = t1 - t0));
    }
    return length;
  };
}

/** Recordings of fewer inferences are shown whole. */
const fewest = 4;

/** middle is the range of the representative inference, or without one of that of median
 * length, with a margin: the initial range of a recording of many inferences. Undefined for
 * few or no inferences. */
export function middle(t: Timeline): Range | undefined {
  const lane = t.lanes.find((l) => l.kind === "iteration" && l.starts_s.length >= fewest);
  if (!lane) return undefined;
  const order = Array.from(lane.durations_s.keys()).sort((a, b) => lane.durations_s[a] - lane.durations_s[b] || a - b);
  const chosen = t.representative === undefined ? -1 : (lane.iterations?.indexOf(t.representative) ?? -1);
  const i = chosen >= 0 ? chosen : order[(order.length - 1) >> 1];
  const [start, length] = [lane.starts_s[i], lane.durations_s[i]];
  return length > 0 ? widen({ t0: start, t1: start + length }, 0.02) : undefined;
}

/** opening is the initial range if that is not everything: the inference of median length,
 * or the comparable lanes where some are not: seconds of a host would hide microseconds of
 * a chip. */
export function opening(t: Timeline, fixes: Map<string, Fix>): Range | undefined {
  const one = middle(t);
  if (one) return one;
  const known = (clock: string | undefined) => !apart(fixes, clock);
  if (!t.lanes.some((l) => !known(l.clock)) || !t.lanes.some((l) => known(l.clock) && l.starts_s.length > 0)) return undefined;
  return widen(extent(t, known), 0.02);
}
