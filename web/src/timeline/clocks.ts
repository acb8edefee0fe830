// Clock domains: lanes, counters and memories with a clock other than the timeline's. If
// offset and rate are known, their times are converted to the timeline's clock. If not,
// they start where the timeline starts, so that they are visible, and are marked as not
// comparable.
import { clean } from "../figures/format";
import type { Clock, Column, Timeline } from "../data/profile";

/** Fix is the conversion of the times of a clock: t becomes (t - offset) × rate. */
export interface Fix {
  clock: Clock;
  offset: number;
  rate: number;
  /** Whether times are comparable with those of other clocks. */
  known: boolean;
}

export interface Aligned {
  timeline: Timeline;
  /** By the name of the clock. */
  fixes: Map<string, Fix>;
}

const made = new WeakMap<Timeline, Aligned>();

/** align converts all times to one clock where the conversion is known. Columns of lanes
 * without another clock are unchanged. */
export function align(t: Timeline): Aligned {
  let a = made.get(t);
  if (!a) made.set(t, (a = make(t)));
  return a;
}

function make(t: Timeline): Aligned {
  const fixes = new Map<string, Fix>();
  if ((t.clocks ?? []).length === 0) return { timeline: t, fixes };
  const begin = first(t, (clock) => clock === "") ?? 0;
  for (const clock of t.clocks!) {
    const rate = clock.rate ?? 1;
    const known = clock.offset_s !== undefined;
    // The first event of the clock is placed at the start of the timeline.
    const offset = clock.offset_s ?? (first(t, (c) => c === clock.name) ?? 0) - begin / rate;
    fixes.set(clock.name, { clock, offset, rate, known });
  }
  const points = (c: Column, f: Fix) => Float64Array.from(c, (v) => (v - f.offset) * f.rate);
  const spans = (c: Column, f: Fix) => (f.rate === 1 ? c : Float64Array.from(c, (v) => v * f.rate));
  const of = (clock: string | undefined) => (clock ? fixes.get(clock) : undefined);
  return {
    fixes,
    timeline: {
      ...t,
      lanes: t.lanes.map((l) => {
        const f = of(l.clock);
        return f ? { ...l, starts_s: points(l.starts_s, f), durations_s: spans(l.durations_s, f), stalls_s: l.stalls_s && spans(l.stalls_s, f) } : l;
      }),
      counters: t.counters?.map((c) => {
        const f = of(c.clock);
        return f ? { ...c, times_s: points(c.times_s, f) } : c;
      }),
      memories: t.memories?.map((m) => {
        const f = of(m.clock);
        return f ? { ...m, starts_s: m.starts_s && points(m.starts_s, f), ends_s: m.ends_s && points(m.ends_s, f) } : m;
      }),
    },
  };
}

/** first is the earliest time on a clock, undefined if it has no events. */
function first(t: Timeline, on: (clock: string) => boolean): number | undefined {
  let least: number | undefined;
  const look = (clock: string | undefined, c: Column | undefined) => {
    if (c && c.length > 0 && on(clock ?? "") && (least === undefined || c[0] < least)) least = c[0];
  };
  for (const l of t.lanes) look(l.clock, l.starts_s);
  for (const c of t.counters ?? []) look(c.clock, c.times_s);
  for (const m of t.memories ?? []) look(m.clock, m.starts_s);
  return least;
}

/** apart returns the fix of a clock whose times are not comparable with others. */
export function apart(fixes: Map<string, Fix>, clock: string | undefined): Fix | undefined {
  const f = clock ? fixes.get(clock) : undefined;
  return f?.known ? undefined : f;
}

/** own converts a time back to its clock. */
export function own(f: Fix, t: number): number {
  return t / f.rate + f.offset;
}

/** group is the heading of a lane or counter; clocks that are not comparable have separate
 * headings. */
export function group(fixes: Map<string, Fix>, of: { group?: string; clock?: string }): string {
  const name = of.group ?? "";
  return apart(fixes, of.clock) ? `${name ? `${name}, ` : ""}clock ${of.clock}: its times cannot be compared with the others` : name;
}

/** words describe the conversion of a clock. */
export function words(f: Fix): string {
  const name = clean(f.clock.name);
  const method = f.clock.method ? ` (${clean(f.clock.method)})` : "";
  return f.known ? `${name}, converted to the timeline's clock${method}` : `${name}, not comparable with others${method}`;
}
