// One colour per operator, the same in every view: the operators with the most time (or,
// without times, the most layers) have a colour each, all others share one.
import { best } from "../figures/quantities";
import { profile } from "./state.svelte";

/** Number of operators with their own colour; app.css defines --op-1 to --op-8. */
const own = 8;

let ranks: Map<string, number> | undefined;

function rank(): Map<string, number> {
  const sums = new Map<string, [number, number]>();
  for (const l of profile.layers) {
    const s = sums.get(l.op) ?? [0, 0];
    s[0] += best(l.latency_s) ?? 0;
    s[1]++;
    sums.set(l.op, s);
  }
  const order = [...sums].sort(([a, x], [b, y]) => y[0] - x[0] || y[1] - x[1] || (a < b ? -1 : 1));
  return new Map(order.slice(0, own).map(([op], i) => [op, i + 1]));
}

/** rankOf returns the colour number of an operator: 1 to 8, or 0 for the shared colour. */
export function rankOf(op: string): number {
  ranks ??= rank();
  return ranks.get(op) ?? 0;
}

/** colour returns the CSS colour of an operator. */
export function colour(op: string): string {
  return `var(--op-${rankOf(op)})`;
}
