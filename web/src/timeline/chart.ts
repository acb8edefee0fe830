// Draws the visible lanes. Overlays that follow the pointer (cross-hair, tooltip) are
// separate elements, so that they need no redraw.
import { si } from "../figures/format";
import { rowOf, type Arrows } from "./arrows";
import { Steps } from "./counter";
import { readPaint } from "./paint";
import type { Placed, Strip } from "./layout";
import { Raster, type Drawn, type Label } from "./raster";
import type { Bars } from "./model";
import { css, dim, ink, mix, plain, word } from "./palette";
import { clock, step, ticks, type Range } from "./range";
import type { HeightBy, LaneData, Row } from "./rows";

/** Found lists bars of rows by their position there. */
export type Found = Map<Row, Int32Array>;

/** Spot is a bar. */
export interface Spot {
  row: Row;
  k: number;
}

/** Scene is the content of a frame. */
export interface Scene {
  range: Range;
  scroll: number;
  strips: Strip[];
  height: HeightBy;
  chosen?: Found;
  found?: Found;
  focus?: Spot;
  links?: Arrows;
  /** Slot of each core, for the stacked chart. */
  cores: Map<string, number>;
}

export const axis = 28;

const mostArrows = 2000;

export class Chart {
  private ctx: CanvasRenderingContext2D;
  private raster = new Raster();
  private widths = new Map<string, number>();
  private steps = new Map<object, Steps>();
  private w = 0;
  private h = 0;
  private ratio = 1;
  private paint!: ReturnType<typeof readPaint>;
  /** Bandwidth at the top of the stacked chart of the last frame, bytes/s. */
  stackTop = 0;
  /** Number of dependencies in view, and of those drawn. */
  arrows = [0, 0];

  constructor(
    readonly canvas: HTMLCanvasElement,
    private bars: Bars,
  ) {
    this.ctx = canvas.getContext("2d", { alpha: false })!;
    this.theme();
  }

  theme() {
    this.paint = readPaint(this.canvas.parentElement!);
    this.raster.theme(this.paint);
  }

  get colours() {
    return this.paint;
  }

  size(w: number, h: number) {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (w === this.w && h === this.h && ratio === this.ratio) return;
    [this.w, this.h, this.ratio] = [w, h, ratio];
    this.canvas.width = Math.max(1, Math.round(w * ratio));
    this.canvas.height = Math.max(1, Math.round(h * ratio));
    this.raster.size(this.canvas.width, this.canvas.height);
  }

  counter(strip: Strip): Steps {
    let s = this.steps.get(strip.counter!);
    if (!s) this.steps.set(strip.counter!, (s = new Steps(strip.counter!)));
    return s;
  }

  /** draw paints a frame and returns what it shows. */
  draw(scene: Scene): Drawn {
    const { raster, ratio, paint } = this;
    const { t0, t1 } = scene.range;
    const drawn: Drawn = { bars: 0, single: 0, blocks: 0 };
    const labels: Label[] = [];
    raster.clear();
    const line = word(paint.line);
    const faint = word(mix(paint.page, paint.line, 0.55));
    const W = raster.w;
    const s = step(t1 - t0, Math.max(2, this.w / 110));
    const grid = ticks(scene.range, s);
    for (const t of grid) {
      const x = Math.round(((t - t0) / (t1 - t0)) * W);
      raster.box(x, Math.round(axis * ratio), x + 1, raster.h, faint);
    }
    const panel = word(paint.panel);
    for (const strip of scene.strips) {
      const y = Math.round((strip.y - scene.scroll + axis) * ratio);
      const bottom = Math.round((strip.y + strip.h - scene.scroll + axis) * ratio);
      for (const p of strip.rows) drawn.bars += this.inView(p.row, t0, t1);
      if (y > raster.h || bottom < 0) continue;
      if (strip.kind === "group") raster.box(0, y, W, bottom, panel);
      if (strip.band > 0) raster.box(0, y, W, Math.round(y + strip.band * ratio), panel);
      if (strip.kind === "group" && !strip.open) this.density(strip.lanes, y, bottom, t0, t1);
      for (const p of strip.rows) {
        const [py, ph] = this.place(p, scene);
        raster.row(p.row, py, ph, t0, t1, scene.height !== "", ratio, labels, drawn);
        const chosen = scene.chosen?.get(p.row);
        const found = scene.found?.get(p.row);
        const thick = Math.max(2, Math.round(2 * ratio));
        if (chosen) {
          raster.marks(p.row, chosen, py + ph - thick, py + ph, t0, t1, word(paint.accent));
          raster.marks(p.row, chosen, py, py + 1, t0, t1, word(paint.accent));
        }
        if (found) raster.marks(p.row, found, py, py + thick, t0, t1, word(paint.warn));
      }
      if (strip.kind === "counter") this.steppedLine(strip, y + Math.round((strip.band + 5) * ratio), bottom - Math.round(4 * ratio), t0, t1);
      if (strip.kind === "stack") this.stack(strip, y + Math.round((strip.band + 8) * ratio), bottom - Math.round(4 * ratio), t0, t1, scene.cores);
      raster.box(0, bottom - 1, W, bottom, line);
    }
    raster.box(0, 0, W, Math.round(axis * ratio), word(paint.page));
    raster.box(0, Math.round(axis * ratio) - 1, W, Math.round(axis * ratio), line);
    this.ctx.putImageData(raster.image!, 0, 0);
    this.texts(scene, labels, grid, s);
    return drawn;
  }

  private inView(row: Row, t0: number, t1: number): number {
    if (!row.pyramid) return 0;
    const [a, b] = [row.from(t0), row.to(t1)];
    return b > a ? row.pyramid.before(b).count - row.pyramid.before(a).count : 0;
  }

  private place(p: Placed, scene: Scene): [number, number] {
    const y = Math.round((p.y - scene.scroll + axis) * this.ratio);
    return [y, Math.round((p.y + p.h - scene.scroll + axis) * this.ratio) - y];
  }

  /** density draws the load of the lanes of a closed group. */
  private density(lanes: LaneData[], y0: number, y1: number, t0: number, t1: number) {
    const { raster, paint } = this;
    const units = lanes.filter((l) => l.n > 0);
    if (units.length === 0) return;
    const cell = Math.max(2, Math.round(2 * this.ratio));
    const last = units.map((l) => l.rows[0].pyramid?.until(t0).busy ?? 0);
    for (let x = 0; x < raster.w; x += cell) {
      const b = t0 + ((x + cell) / raster.w) * (t1 - t0);
      let busy = 0;
      units.forEach((l, i) => {
        const now = l.rows[0].pyramid?.until(b).busy ?? 0;
        busy += now - last[i];
        last[i] = now;
      });
      const share = busy / units.length / ((cell / raster.w) * (t1 - t0));
      if (share > 0.004) raster.box(x, y0 + 6, x + cell, y1 - 6, word(mix(paint.panel, paint.quiet, Math.min(1, 0.12 + 0.6 * share))));
    }
  }

  private steppedLine(strip: Strip, y0: number, y1: number, t0: number, t1: number) {
    const { raster, paint } = this;
    const s = this.counter(strip);
    if (s.counter.times_s.length === 0) return;
    const [low, high] = [Math.min(0, s.least), s.most > Math.min(0, s.least) ? s.most : Math.min(0, s.least) + 1];
    const y = (v: number) => Math.round(y1 - 1 - ((v - low) / (high - low)) * (y1 - 1 - y0));
    const area = word(mix(paint.page, paint.accent, 0.22));
    const stroke = word(paint.accent);
    // Minimum to maximum per pixel; a line through all samples would fill the area.
    const within = word(mix(paint.page, paint.accent, 0.5));
    const thick = Math.round(this.ratio) + 1;
    const end = s.counter.times_s[s.counter.times_s.length - 1];
    let before = s.at(t0);
    for (let x = 0; x < raster.w; x++) {
      const tb = t0 + ((x + 1) / raster.w) * (t1 - t0);
      const after = s.at(tb);
      if (after >= 0 && t0 + (x / raster.w) * (t1 - t0) <= end) {
        const [least, most] = s.span(Math.max(0, before), after);
        raster.box(x, y(s.counter.values[after]), x + 1, y1, area);
        const top = Math.min(y(most), y1 - 2);
        raster.box(x, top, x + 1, Math.max(y(least) + 1, top + thick), within);
        raster.box(x, top, x + 1, top + thick, stroke);
      }
      before = after;
    }
  }

  private stack(strip: Strip, y0: number, y1: number, t0: number, t1: number, cores: Map<string, number>) {
    const { raster, paint } = this;
    const cell = Math.max(1, Math.round(this.ratio));
    const n = Math.ceil(raster.w / cell);
    const dt = ((t1 - t0) * cell) / raster.w;
    const groups = [...new Set(strip.lanes.map((l) => l.lane.group ?? ""))];
    const sums = groups.map((g) => {
      const rows = strip.lanes.filter((l) => (l.lane.group ?? "") === g).flatMap((l) => l.rows);
      const out = new Float64Array(n);
      for (const r of rows) {
        if (!r.pyramid) continue;
        let last = r.pyramid.until(t0).bytes;
        for (let i = 0; i < n; i++) {
          const now = r.pyramid.until(t0 + (i + 1) * dt).bytes;
          out[i] += now - last;
          last = now;
        }
      }
      return out;
    });
    let top = 0;
    for (let i = 0; i < n; i++) {
      let v = 0;
      for (const s of sums) v += s[i];
      top = Math.max(top, v / dt);
    }
    this.stackTop = top;
    if (top === 0) return;
    for (let i = 0; i < n; i++) {
      let v = 0;
      sums.forEach((s, g) => {
        const from = y1 - Math.round((v / dt / top) * (y1 - y0));
        v += s[i];
        const to = y1 - Math.round((v / dt / top) * (y1 - y0));
        if (from > to) raster.box(i * cell, to, (i + 1) * cell, from, word(paint.slots[cores.get(groups[g]) ?? plain]));
      });
    }
  }

  /** width of a text, from the widths of its characters. */
  private width(text: string): number {
    let sum = 0;
    for (const c of text) {
      let w = this.widths.get(c);
      if (w === undefined) this.widths.set(c, (w = this.ctx.measureText(c).width));
      sum += w;
    }
    return sum;
  }

  /** label is the text of a bar that fits a width: its name, else its operator, else the
   * start of the operator or the end of the name, where long names of a model differ; ""
   * if hardly anything fits. */
  private label(name: string, type: string, room: number): string {
    if (name.length <= 200 && this.width(name) <= room) return name;
    if (type && this.width(type) <= room) return type;
    const text = type ? [...type] : [...name.slice(-200)].reverse();
    let sum = this.width("…");
    let n = 0;
    for (const c of text) {
      sum += this.width(c);
      if (sum > room) break;
      n++;
    }
    const part = text.slice(0, n);
    return n < 2 ? "" : type ? `${part.join("")}…` : `…${part.reverse().join("")}`;
  }

  private texts(scene: Scene, labels: Label[], grid: number[], s: number) {
    const { ctx, ratio, paint, bars } = this;
    const { t0, t1 } = scene.range;
    ctx.save();
    ctx.scale(ratio, ratio);
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    ctx.fillStyle = css(paint.quiet);
    for (const t of grid) {
      const x = ((t - t0) / (t1 - t0)) * this.w;
      const text = clock(t, s);
      const w = this.width(text);
      if (x + w + 6 < this.w) ctx.fillText(text, x + 4, axis / 2 + 1);
      ctx.fillRect(Math.round(x), axis - 7, 1, 6);
    }
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, axis, this.w, this.h - axis);
    ctx.clip();
    const dark = css(ink(paint.dark));
    const other = css(paint.quiet);
    const plainText = css(paint.text);
    // Narrow bars get abbreviations; beyond some hundred of them nobody reads any text.
    const enough = labels.length > 700 ? 60 : 30;
    for (const l of labels) {
      const [x, w] = [l.x0 / ratio, (l.x1 - l.x0) / ratio];
      if (w < enough) continue;
      const i = l.row.bar(l.k);
      const name = bars.name(l.row.lane, i);
      const text = this.label(name, bars.type(l.row.lane, i), w - 8);
      if (!text) continue;
      ctx.fillStyle = l.slot === dim ? other : l.slot === plain || scene.height !== "" ? plainText : dark;
      const y = (l.y + l.h / 2) / ratio + 0.5;
      ctx.fillText(text, x + 4, y);
      if (text === name && w > 90) {
        const d = si(l.row.lane.durations[i], "s");
        const dw = this.width(d);
        if (this.width(text) + dw + 22 < w) {
          ctx.globalAlpha = 0.75;
          ctx.fillText(d, x + w - dw - 5, y);
          ctx.globalAlpha = 1;
        }
      }
    }
    for (const strip of scene.strips) {
      const y = strip.y - scene.scroll + axis;
      if (y > this.h || y + strip.h < axis) continue;
      if (strip.kind === "stack" && this.stackTop > 0) this.scale(`${si(this.stackTop, "B/s")} at most in view`, y + strip.band + 13);
    }
    if (scene.links) this.drawArrows(scene, scene.links);
    if (scene.focus) this.outline(scene, scene.focus);
    ctx.restore();
    ctx.restore();
  }

  /** scale writes a value of an axis on a background that keeps it readable. */
  private scale(text: string, y: number) {
    const { ctx, paint } = this;
    const w = this.width(text);
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = css(paint.page);
    ctx.fillRect(2, y - 7, w + 6, 14);
    ctx.globalAlpha = 1;
    ctx.fillStyle = css(paint.quiet);
    ctx.fillText(text, 5, y);
  }

  /** box is the rectangle of a bar in the canvas, undefined if its row is not shown. */
  box(scene: Scene, spot: Spot): { x: number; y: number; w: number; h: number } | undefined {
    for (const strip of scene.strips) {
      for (const p of strip.rows) {
        if (p.row !== spot.row) continue;
        const k = this.w / (scene.range.t1 - scene.range.t0);
        const x = Math.max(-4, (spot.row.start(spot.k) - scene.range.t0) * k);
        const x1 = Math.min(this.w + 4, (spot.row.end(spot.k) - scene.range.t0) * k);
        return { x, y: p.y - scene.scroll + axis, w: Math.max(2, x1 - x), h: p.h };
      }
    }
    return undefined;
  }

  private outline(scene: Scene, spot: Spot) {
    const b = this.box(scene, spot);
    if (!b) return;
    const { ctx, paint } = this;
    ctx.lineWidth = 2;
    ctx.strokeStyle = css(paint.page);
    ctx.strokeRect(b.x - 2, b.y - 2, b.w + 4, b.h + 4);
    ctx.strokeStyle = css(paint.accent);
    ctx.strokeRect(b.x - 1, b.y - 1, b.w + 2, b.h + 2);
  }

  private drawArrows(scene: Scene, arrows: Arrows) {
    const { ctx, paint, bars } = this;
    const places = new Map<Row, Placed>();
    for (const s of scene.strips) for (const p of s.rows) places.set(p.row, p);
    const { list, count } = arrows.within(scene.range, mostArrows);
    const k = this.w / (scene.range.t1 - scene.range.t0);
    const at = (p: Placed) => p.y + p.h / 2 - scene.scroll + axis;
    ctx.strokeStyle = ctx.fillStyle = css(paint.text);
    ctx.lineWidth = 1;
    let n = 0;
    const heads = new Path2D();
    ctx.beginPath();
    for (const j of list) {
      const l = arrows.links[j];
      const [from, to] = [bars.lanes[l.from_lane], bars.lanes[l.to_lane]];
      const [p, q] = [places.get(rowOf(from, l.from_bar)), places.get(rowOf(to, l.to_bar))];
      if (!p || !q) continue;
      const x0 = (from.starts[l.from_bar] + from.durations[l.from_bar] - scene.range.t0) * k;
      const x1 = (to.starts[l.to_bar] - scene.range.t0) * k;
      const [y0, y1] = [at(p), at(q)];
      const bend = Math.min(40, Math.max(8, Math.abs(x1 - x0) / 2));
      ctx.moveTo(x0, y0);
      ctx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 4, y1);
      heads.moveTo(x1, y1);
      heads.lineTo(x1 - 6, y1 - 3);
      heads.lineTo(x1 - 6, y1 + 3);
      heads.closePath();
      n++;
    }
    ctx.globalAlpha = n > 300 ? 0.35 : 0.7;
    ctx.stroke();
    ctx.fill(heads);
    ctx.globalAlpha = 1;
    this.arrows = [count, n];
  }

  /** hit finds the element at a position of the canvas. */
  hit(scene: Scene, x: number, y: number): { strip: Strip; spot?: Spot } | undefined {
    const yy = y - axis + scene.scroll;
    if (y < axis) return undefined;
    const strip = scene.strips.find((s) => yy >= s.y && yy < s.y + s.h);
    if (!strip) return undefined;
    const p = strip.rows.find((r) => yy >= r.y - 1 && yy <= r.y + r.h);
    if (!p) return { strip };
    const pixel = (scene.range.t1 - scene.range.t0) / this.w;
    const t = scene.range.t0 + x * pixel;
    let best: Spot | undefined;
    let distance = 3 * pixel;
    const k = p.row.from(t);
    for (let j = Math.max(0, k - 1); j < Math.min(p.row.n, k + 2); j++) {
      const d = Math.max(p.row.start(j) - t, t - p.row.end(j), 0);
      if (d < distance && p.row.lane.slot[p.row.bar(j)] <= dim) {
        distance = d;
        best = { row: p.row, k: j };
      }
    }
    return { strip, spot: best };
  }
}
