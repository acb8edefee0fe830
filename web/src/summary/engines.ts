// Which engine of an accelerator bounds an inference.
import { percent } from "../figures/format";
import { best } from "../figures/quantities";
import type { Profile } from "../data/profile";

/** busiest returns the part of the latency in which the busiest engine of a kind worked.
 * The figure holds all engines of the kind together; lanes of the timeline say how it is
 * divided among them. */
function busiest(p: Profile, key: string, name: RegExp): number | undefined {
  const busy = best(p.totals.figures?.[key]);
  const latency = best(p.totals.latency_s);
  if (busy === undefined || !latency) return undefined;
  const lanes = new Map<string, number>();
  for (const l of p.timeline?.lanes ?? []) {
    if (l.kind !== "engine" || !name.test(l.name)) continue;
    const k = `${l.group ?? ""}\n${l.name.replace(/ \(\d+\)$/, "")}`;
    let s = lanes.get(k) ?? 0;
    for (const v of l.durations_s) s += v;
    lanes.set(k, s);
  }
  const all = [...lanes.values()];
  const sum = all.reduce((s, v) => s + v, 0);
  return (busy / latency) * (sum > 0 ? Math.max(...all) / sum : 1);
}

/** busiestEngine says which engine of an accelerator bounds an inference, such as "DMA-bound:
 * copy engine busy 82.0 %, tensor engine 25.0 %"; "" for other targets. */
export function busiestEngine(p: Profile): string {
  const tensor = busiest(p, "tiu_busy_s", /TIU/);
  const copy = busiest(p, "dma_busy_s", /DMA/);
  if (tensor === undefined || copy === undefined) return "";
  const both = best(p.totals.figures?.parallel_s);
  const latency = best(p.totals.latency_s)!;
  const overlap = both === undefined ? "" : `, engines overlap ${percent(both / latency)}`;
  if (Math.max(tensor, copy) < 0.5) return `Waiting: copy engine busy ${percent(copy)}, tensor engine ${percent(tensor)}`;
  if (copy > 1.1 * tensor) return `DMA-bound: copy engine busy ${percent(copy)}, tensor engine ${percent(tensor)}${overlap}`;
  if (tensor > 1.1 * copy) return `Compute-bound: tensor engine busy ${percent(tensor)}, copy engine ${percent(copy)}${overlap}`;
  return `Balanced: tensor engine busy ${percent(tensor)}, copy engine ${percent(copy)}${overlap}`;
}
