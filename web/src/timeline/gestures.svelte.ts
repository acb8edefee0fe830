// Pointer gestures: one pointer pans, zooms to a range or measures; two pinch; the wheel
// zooms.
import { timeAt, zoom, type Range } from "./range";
import type { Travel } from "./travel.svelte";

export type Mode = "pan" | "box" | "measure";

/** About is the content of the tooltip. */
export interface About {
  name: string;
  facts: [string, string][];
  x: number;
  y: number;
}

/** Host is the chart that the pointers act on. */
export interface Host {
  canvas(): HTMLCanvasElement | undefined;
  /** Width of the drawing in CSS pixels. */
  plot(): number;
  scroller(): HTMLElement | undefined;
  /** The element at a position of the canvas. */
  about(x: number, y: number): About | undefined;
  click(x: number, y: number): void;
}

const sorted = (a: number, b: number): Range => ({ t0: Math.min(a, b), t1: Math.max(a, b) });

export class Gestures {
  mode = $state<Mode>("pan");
  /** The range that is drawn. */
  drag = $state.raw<{ kind: "box" | "measure"; a: number; b: number }>();
  measured = $state.raw<Range>();
  hover = $state.raw<About>();
  /** Position of the cross-hair. */
  cross = $state<number>();
  /** The dragged zoom range, and the measured range. */
  box = $derived(this.drag?.kind === "box" ? sorted(this.drag.a, this.drag.b) : undefined);
  span = $derived(this.drag?.kind === "measure" ? sorted(this.drag.a, this.drag.b) : this.measured);

  #travel: Travel;
  #host: Host;
  #pointers = new Map<number, { x: number; y: number }>();
  #moved = 0;
  #pressed: { x: number; y: number; range: Range; scroll: number } | undefined;

  /** Must be created during component initialisation, for its effect. */
  constructor(travel: Travel, host: Host) {
    this.#travel = travel;
    this.#host = host;
    // Not passive, so that the page does not scroll while the wheel zooms.
    $effect(() => {
      const c = host.canvas();
      if (!c) return;
      c.addEventListener("wheel", this.#wheel, { passive: false });
      return () => c.removeEventListener("wheel", this.#wheel);
    });
  }

  #timeAt(x: number): number {
    return timeAt(this.#travel.range, x, this.#host.plot());
  }
  #local(e: { clientX: number; clientY: number }) {
    const r = this.#host.canvas()!.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  }
  #press(p: { x: number; y: number }) {
    this.#pressed = { ...p, range: this.#travel.range, scroll: this.#host.scroller()?.scrollTop ?? 0 };
  }

  flip(mode: Mode) {
    this.mode = this.mode === mode ? "pan" : mode;
  }
  /** mark sets one end of the measured range. */
  mark(end: 0 | 1, t: number) {
    const m = this.measured ?? { ...this.#travel.range };
    this.measured = end === 0 ? sorted(t, m.t1) : sorted(m.t0, t);
  }

  down = (e: PointerEvent) => {
    if (e.button !== 0) return;
    const p = this.#local(e);
    this.#pointers.set(e.pointerId, p);
    this.#host.canvas()!.setPointerCapture(e.pointerId);
    this.#moved = 0;
    this.hover = undefined;
    this.#press(p);
    const kind = e.shiftKey ? "box" : e.altKey ? "measure" : this.mode;
    const t = this.#timeAt(p.x);
    this.drag = this.#pointers.size === 1 && kind !== "pan" ? { kind, a: t, b: t } : undefined;
  };

  move = (e: PointerEvent) => {
    const p = this.#local(e);
    this.cross = p.x;
    const pressed = this.#pressed;
    if (!this.#pointers.has(e.pointerId) || !pressed) {
      this.hover = this.#host.about(p.x, p.y);
      return;
    }
    if (this.#pointers.size === 2) {
      this.#pinch(e.pointerId, p);
      this.#moved = 99;
    } else {
      const plot = this.#host.plot();
      this.#moved = Math.max(this.#moved, Math.hypot(p.x - pressed.x, p.y - pressed.y));
      if (this.drag) this.drag = { ...this.drag, b: this.#timeAt(Math.min(plot, Math.max(0, p.x))) };
      else if (this.#moved > 3) {
        const d = ((p.x - pressed.x) / plot) * (pressed.range.t1 - pressed.range.t0);
        this.#travel.show({ t0: pressed.range.t0 - d, t1: pressed.range.t1 - d });
        const scroller = this.#host.scroller();
        if (scroller && e.pointerType === "mouse") scroller.scrollTop = pressed.scroll - (p.y - pressed.y);
      }
    }
    this.#pointers.set(e.pointerId, p);
  };

  #pinch(moving: number, p: { x: number; y: number }) {
    const [a, b] = [...this.#pointers.entries()].map(([id, q]) => ({ old: q, now: id === moving ? p : q }));
    const [o, n] = [Math.abs(a.old.x - b.old.x), Math.abs(a.now.x - b.now.x)];
    if (o <= 8 || n <= 8) return;
    const r = zoom(this.#travel.range, this.#timeAt((a.old.x + b.old.x) / 2), o / n);
    const shift = (((a.now.x + b.now.x) / 2 - (a.old.x + b.old.x) / 2) / this.#host.plot()) * (r.t1 - r.t0);
    this.#travel.show({ t0: r.t0 - shift, t1: r.t1 - shift });
  }

  up = (e: PointerEvent) => {
    this.#pointers.delete(e.pointerId);
    const p = this.#local(e);
    if (this.drag && this.#moved > 3) {
      const r = sorted(this.drag.a, this.drag.b);
      if (this.drag.kind === "box") this.#travel.show(r);
      else this.measured = r;
    } else if (this.#moved <= 3 && this.#pressed) this.#host.click(p.x, p.y);
    this.drag = undefined;
    this.#pressed = undefined;
    // The remaining finger of a pinch continues to pan.
    if (this.#pointers.size === 1) {
      const [q] = this.#pointers.values();
      this.#press(q);
    }
  };

  leave = () => {
    this.cross = undefined;
    this.hover = undefined;
  };

  #wheel = (e: WheelEvent) => {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
    const [dx, dy] = e.shiftKey && e.deltaX === 0 ? [e.deltaY * unit, 0] : [e.deltaX * unit, e.deltaY * unit];
    if (Math.abs(dx) > Math.abs(dy)) this.#travel.pan(dx / this.#host.plot());
    else this.#travel.show(zoom(this.#travel.range, this.#timeAt(this.#local(e).x), Math.exp(Math.max(-200, Math.min(200, dy)) * 0.0022)));
  };
}
