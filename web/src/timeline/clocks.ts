// Clocks: lanes, counters and memories whose times are of a clock of their own. Where
// it is known how that clock stands to the timeline's, their times are brought to the
// timeline's. Where it is not, they begin where the timeline does, so that they can be
// seen at all, and are never to be compared with the others.
import { clean } from "../figures/format";
import type { Clock, Column, Timeline } from "../data/profile";

/** Fix is what was done with the times of a clock: t became (t - offset) × rate. */
export interface Fix {
  clock: Clock;
  offset: number;
  rate: number;
  /** Whether times may be compared with those of other clocks. */
  known: boolean;
}

export interface Aligned {
  timeline: Timeline;
  /** By the name of the clock. */
  fixes: Map<string, Fix>;
}

const made = new WeakMap<Timeline, Aligned>();

/** align brings all times to one clock as far as that is known. Columns of lanes
 * without a clock of their own stay as they are. */
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
    // The first thing on the clock stands where the timeline begins.
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

/** first is the earliest time on a clock, undefined where nothing is on it. */
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

/** apart is the fix of a clock whose times cannot be compared with others. */
export function apart(fixes: Map<string, Fix>, clock: string | undefined): Fix | undefined {
  const f = clock ? fixes.get(clock) : undefined;
  return f?.known ? undefined : f;
}

/** own is a time as the clock itself had it. */
export function own(f: Fix, t: number): number {
  return t / f.rate + f.offset;
}

/** group is the heading under which a lane or counter stands: what cannot be compared
 * stands under one of its own. */
export function group(fixes: Map<string, Fix>, of: { group?: string; clock?: string }): string {
  const name = of.group ?? "";
  return apart(fixes, of.clock) ? `${name ? `${name}, ` : ""}clock ${of.clock}: its times cannot be compared with the others` : name;
}

/** words say what is known of a clock. */
export function words(f: Fix): string {
  const name = clean(f.clock.name);
  const method = f.clock.method ? ` (${clean(f.clock.method)})` : "";
  return f.known ? `${name}, brought to the timeline's${method}` : `${name}, not comparable with others${method}`;
}
