// The visible range of time, its history and its state in the address.
import { get, set } from "../page/state.svelte";
import { clamp, parse, Past, write, zoom, type Range } from "./range";
import { leave } from "./shared";

export class Travel {
  range = $state.raw<Range>({ t0: 0, t1: 1 });
  #bounds = $state.raw<Range>();
  /** Initial range of a recording of many inferences. */
  #home = $state.raw<Range>();
  #past = new Past();
  #moves = $state(0);
  canBack = $derived((void this.#moves, this.#past.back));
  canForward = $derived((void this.#moves, this.#past.forward));
  #written = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Must be created during component initialisation, for its effects. */
  constructor() {
    $effect(() => () => clearTimeout(this.#timer));
    $effect(() => {
      const [a, b] = [get("t0"), get("t1")];
      if (!this.#bounds || `${a} ${b}` === this.#written) return;
      this.#written = `${a} ${b}`;
      this.range = this.#asked(this.#bounds);
    });
  }

  /** #asked is the range of the address, or else the initial one. */
  #asked(bounds: Range): Range {
    const [t0, t1] = [parse(get("t0")), parse(get("t1"))];
    return t0 !== undefined && t1 !== undefined && t1 > t0 ? clamp({ t0, t1 }, bounds) : (this.#home ?? bounds);
  }

  /** open sets the initial range as soon as the bounds of the recording are known: all of
   * it, or a more useful part. */
  open(bounds: Range, home?: Range) {
    this.#home = home && clamp(home, bounds);
    this.range = this.#asked(bounds);
    this.#remember();
    this.#bounds = bounds;
  }

  show(r: Range) {
    if (!this.#bounds) return;
    this.range = clamp(r, this.#bounds);
    this.#wait();
  }
  /** reset shows all. */
  reset() {
    if (this.#bounds) this.show(this.#bounds);
  }
  /** begins reports whether the initial range is a part. */
  get begins(): boolean {
    return this.#home !== undefined;
  }
  /** home shows the initial range. */
  home() {
    if (this.#home) this.show(this.#home);
  }
  /** pass shows a range of a running gesture, without history. */
  pass(r: Range) {
    if (this.#bounds) this.range = clamp(r, this.#bounds);
  }
  back(by: number) {
    const r = this.#past.move(by);
    this.#moves++;
    if (!r) return;
    this.range = r;
    this.#wait();
  }
  zoom(factor: number) {
    this.show(zoom(this.range, (this.range.t0 + this.range.t1) / 2, factor));
  }
  pan(share: number) {
    const { t0, t1 } = this.range;
    const d = (t1 - t0) * share;
    this.show({ t0: t0 + d, t1: t1 + d });
  }
  /** edge goes to the start or the end of the recording. */
  edge(end: 0 | 1) {
    if (!this.#bounds) return;
    const { t0, t1 } = this.#bounds;
    const length = this.range.t1 - this.range.t0;
    this.show(end === 0 ? { t0, t1: t0 + length } : { t0: t1 - length, t1 });
  }

  // The address is written after the range stops changing: browsers refuse too many
  // changes.
  #wait() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#rest(), 350);
  }
  #rest() {
    if (!this.#bounds || get("bench") === "1") return;
    const { range } = this;
    const usual = this.#home ?? this.#bounds;
    const w = range.t0 === usual.t0 && range.t1 === usual.t1 ? { t0: "", t1: "" } : write(range);
    this.#written = `${w.t0} ${w.t1}`;
    leave(w);
    set(w);
    this.#remember();
  }
  #remember() {
    this.#past.push(this.range);
    this.#moves++;
  }
}
