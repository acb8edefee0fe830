// Sums over several layers.
import { best } from "./format";
import type { LayerColumn } from "./columns";
import type { Layer, Metric } from "./profile";

/** together is several layers as one, so that the columns' own rules give its rates:
 * sums divided by sums. */
function together(layers: Layer[]): Layer {
  const out: Record<string, unknown> = { index: -1, op: "" };
  for (const k of ["ops", "macs", "bytes_read", "bytes_written"] as const) out[k] = sum(layers.map((l) => l[k]));
  for (const k of ["latency_s", "energy_j", "expected_s"] as const) {
    const v = sum(layers.map((l) => best(l[k])));
    if (v !== undefined) out[k] = { kind: "counted", mean: v } satisfies Metric;
  }
  return out as unknown as Layer;
}

function sum(list: (number | undefined)[]): number | undefined {
  let s: number | undefined;
  for (const v of list) if (v !== undefined) s = (s ?? 0) + v;
  return s;
}

/** total is a column's figure for several layers: the sum where a sum means
 * something, a rate of sums for rates, undefined otherwise. Layers without the figure
 * do not take part; missing says how many those are. */
export function total(c: LayerColumn, layers: Layer[]): { value: number | undefined; missing: number } {
  const having = layers.filter((l) => c.value(l) !== undefined);
  const missing = layers.length - having.length;
  if (having.length === 0) return { value: undefined, missing };
  if (c.sum) return { value: sum(having.map((l) => c.value(l) as number)), missing };
  if (c.kind !== "derived") return { value: undefined, missing };
  const v = c.value(together(having));
  return { value: typeof v === "number" ? v : undefined, missing };
}
