// Which views have something to show for a profile.
import { best } from "../figures/quantities";
import { profile, series, type View } from "./state.svelte";

/** filled tells whether a view has content. The summary and the layers always have;
 * the estimate says how to come to one. */
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
    default:
      return true;
  }
}

function spread(layer: number): boolean {
  const s = series(layer);
  const m = layer < 0 ? profile.totals.latency_s : profile.layers[layer].latency_s;
  return !!s.samples?.length || !!s.distribution || (m?.n ?? 0) > 1 || (m !== undefined && m.min !== undefined && m.max !== undefined);
}
