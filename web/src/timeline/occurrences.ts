// Lists of matching bars, and steps from one to the next.
import type { Found, Spot } from "./chart";
import type { Bars } from "./model";
import type { LaneData, Row } from "./rows";

/** occurrences lists the bars that pass a test. */
export function occurrences(bars: Bars, lane: (l: LaneData) => boolean, test: (l: LaneData, i: number) => boolean): Found {
  const out: Found = new Map();
  for (const l of bars.lanes) {
    if (!lane(l)) continue;
    for (const row of l.rows) {
      const list: number[] = [];
      for (let k = 0; k < row.n; k++) if (test(l, row.bar(k))) list.push(k);
      if (list.length > 0) out.set(row, Int32Array.from(list));
    }
  }
  return out;
}

/** next is the occurrence after time t (or before it) in all rows that shown accepts. */
export function next(found: Found, t: number, forward: boolean, shown: (r: Row) => boolean): Spot | undefined {
  let best: Spot | undefined;
  for (const [row, list] of found) {
    if (!shown(row)) continue;
    // The first listed bar that starts after t, or at or after it when going back.
    let [lo, hi] = [0, list.length];
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      const s = row.start(list[mid]);
      if (forward ? s > t : s >= t) hi = mid;
      else lo = mid + 1;
    }
    const j = forward ? lo : lo - 1;
    if (j < 0 || j >= list.length) continue;
    const s = row.start(list[j]);
    if (!best || (forward ? s < best.row.start(best.k) : s > best.row.start(best.k))) best = { row, k: list[j] };
  }
  return best;
}
