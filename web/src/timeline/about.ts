// Content of the tooltip: figures of a bar, of a counter, or of the stacked bandwidth.
import { clean, si } from "../figures/format";
import type { Chart, Scene } from "./chart";
import { figure } from "./counter";
import type { About } from "./gestures.svelte";
import type { Bars } from "./model";
import { exact, facts } from "./query";
import { timeAt } from "./range";

export function about(bars: Bars, chart: Chart, scene: Scene, plot: number, x: number, y: number): About | undefined {
  const h = chart.hit(scene, x, y);
  if (!h) return undefined;
  if (h.spot) return { name: bars.name(h.spot.row.lane, h.spot.row.bar(h.spot.k)), facts: facts(bars, h.spot), x, y };
  const { strip } = h;
  if (strip.counter) {
    const i = chart.counter(strip).at(timeAt(scene.range, x, plot));
    if (i < 0) return undefined;
    return { name: strip.name, facts: [["Value", figure(strip.counter.values[i], strip.counter.unit)], ["Since", exact(strip.counter.times_s[i])]], x, y };
  }
  if (strip.kind !== "stack") return undefined;
  const [t0, t1] = [timeAt(scene.range, x - 1, plot), timeAt(scene.range, x + 1, plot)];
  const moved = new Map<string, number>();
  for (const l of strip.lanes) {
    const core = clean(l.lane.group) || "shared";
    for (const row of l.rows) moved.set(core, (moved.get(core) ?? 0) + (row.pyramid?.between(t0, t1).bytes ?? 0));
  }
  return { name: "Bandwidth", facts: [...moved].map(([core, b]): [string, string] => [core, si(b / (t1 - t0), "B/s")]), x, y };
}
