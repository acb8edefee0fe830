// Which views have content for a profile.
import { best } from "../figures/quantities";
import { phasesOf } from "../phases/data";
import { profile, series, type View } from "./state.svelte";

/** baseline reports whether the profile has times to compare with. */
export function baseline(): boolean {
  return profile.layers.some((l) => best(l.expected_s) !== undefined);
}

/** filled reports whether a view has content. The summary and the layers always have. */
export function filled(v: View): boolean {
  const t = profile.timeline;
  switch (v) {
    case "timeline":
      return !!t && (t.lanes.some((l) => l.starts_s.length > 0) || (t.counters?.length ?? 0) > 0);
    case "memory":
      return Object.keys(profile.memory ?? {}).length > 0 || (t?.memories?.length ?? 0) > 0;
    case "roofline":
      return profile.layers.some((l) => best(l.latency_s) !== undefined && (l.ops !== undefined || l.bytes_read !== undefined));
    case "distribution":
      // An estimate has a band and no runs.
      return spread(-1) || profile.layers.some((l) => spread(l.index));
    case "graph":
      return profile.layers.length > 0;
    case "phases":
      return phasesOf(profile).length > 0;
    case "estimate":
      // Times to compare with, estimates, or cycles of two origins.
      return baseline() || profile.layers.some((l) => (best(l.latency_s) !== undefined && l.latency_s!.kind !== "measured" && l.latency_s!.kind !== "imported") || (best(l.accelerator_cycles) !== undefined && best(l.simulator_cycles) !== undefined));
    default:
      return true;
  }
}

function spread(layer: number): boolean {
  const s = series(layer);
  const m = layer < 0 ? profile.totals.latency_s : profile.layers[layer].latency_s;
  return !!s.samples?.length || !!s.distribution || (m?.n ?? 0) > 1 || (m !== undefined && m.min !== undefined && m.max !== undefined);
}
