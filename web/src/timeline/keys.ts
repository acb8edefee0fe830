// Keyboard control: arrows pan, or move between bars if one has the focus. Keys.svelte
// lists the keys.
import type { Spot } from "./chart";
import { across, beside } from "./find";
import type { Gestures } from "./gestures.svelte";
import type { Row } from "./rows";
import type { Travel } from "./travel.svelte";

/** Host is the chart that the keys act on. */
export interface Host {
  travel: Travel;
  gestures: Gestures;
  focus(): Spot | undefined;
  /** The rows that are shown. */
  rows(): Row[];
  reveal(s: Spot): void;
  /** Removes the focus from the bar. */
  leave(): void;
  /** Enters the first visible lane. */
  enter(): void;
  fit(): void;
  /** Goes to the next match or occurrence. */
  jump(forward: boolean): void;
  scroll(by: number): void;
  help(): void;
}

export function key(e: KeyboardEvent, host: Host) {
  if (e.ctrlKey || e.metaKey) return;
  const { travel, gestures } = host;
  if (e.altKey) {
    if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
      travel.back(e.key === "ArrowLeft" ? -1 : 1);
      e.preventDefault();
    }
    return;
  }
  const focus = host.focus();
  const go = (s: Spot | undefined) => s && host.reveal(s);
  // The ends of the measured range are set to the bar, or to the edges of the view.
  const mark = (end: 0 | 1) => {
    const { t0, t1 } = focus ? { t0: focus.row.start(focus.k), t1: focus.row.end(focus.k) } : travel.range;
    gestures.mark(end, end === 0 ? t0 : t1);
  };
  const zoomIn = () => travel.zoom(0.7);
  const zoomOut = () => travel.zoom(1 / 0.7);
  const left = () => travel.pan(-0.15);
  const right = () => travel.pan(0.15);
  const actions: Record<string, () => void> = {
    w: zoomIn,
    "+": zoomIn,
    "=": zoomIn,
    s: zoomOut,
    "-": zoomOut,
    a: left,
    d: right,
    f: () => host.fit(),
    "0": () => travel.reset(),
    m: () => gestures.flip("measure"),
    b: () => gestures.flip("box"),
    n: () => host.jump(true),
    p: () => host.jump(false),
    "[": () => mark(0),
    "]": () => mark(1),
    ArrowLeft: () => (focus ? go(beside(focus, -1)) : left()),
    ArrowRight: () => (focus ? go(beside(focus, 1)) : right()),
    ArrowUp: () => (focus ? go(across(host.rows(), focus, -1)) : host.scroll(-60)),
    ArrowDown: () => (focus ? go(across(host.rows(), focus, 1)) : host.scroll(60)),
    Home: () => (focus ? go({ row: focus.row, k: 0 }) : travel.edge(0)),
    End: () => (focus ? go({ row: focus.row, k: focus.row.n - 1 }) : travel.edge(1)),
    // Fitting prefers the bar in focus.
    Enter: () => (focus ? host.fit() : host.enter()),
    Escape: () => {
      if (gestures.drag) gestures.drag = undefined;
      else if (focus) host.leave();
      else gestures.measured = undefined;
    },
    "?": () => host.help(),
  };
  const act = actions[e.key.length === 1 ? e.key.toLowerCase() : e.key];
  if (!act) return;
  e.preventDefault();
  act();
}
