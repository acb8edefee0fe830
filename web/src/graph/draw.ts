// Draws the visible part of a scene on a canvas, with text where it is readable.
import { short } from "../charts/words";
import { head, type Box, type Line, type Scene } from "./scene";
import { near, shapes } from "./shapes";
import type { Window } from "./window";

/** Fonts of the boxes; the layout measures texts with them. */
export const fonts = { title: "600 12.5px system-ui, sans-serif", port: "12px system-ui, sans-serif", value: "12px system-ui, sans-serif" };

export interface Look {
  colour: (name: string) => string;
  fill: (b: Box) => { fill: string; text: string } | undefined;
  lines: (b: Box) => [string, string];
  /** A sign for boxes that are too small for text. */
  sign?: (b: Box) => string;
  /** Drawn with a dashed border: does not run itself. */
  ghost: (b: Box) => boolean;
  bad: (b: Box) => boolean;
  chosen?: Box;
  hover?: Box;
  hoverLine?: Line;
  found: (b: Box) => boolean;
}

export function draw(ctx: CanvasRenderingContext2D, s: Scene, v: Window, width: number, height: number, look: Look) {
  ctx.clearRect(0, 0, width, height);
  ctx.save();
  ctx.translate(v.x, v.y);
  ctx.scale(v.k, v.k);
  const [x0, y0, x1, y1] = [-v.x / v.k, -v.y / v.k, (width - v.x) / v.k, (height - v.y) / v.k];
  const seen = (b: { x: number; y: number; w: number; h: number }) => b.x < x1 && b.x + b.w > x0 && b.y < y1 && b.y + b.h > y0;
  for (const b of s.boxes) if (b.open && seen(b)) container(ctx, b, v, look);
  const quiet = look.colour("--ch-other");
  const strong = look.colour("--accent");
  const raised: Line[] = [];
  ctx.globalAlpha = 0.75;
  for (const l of s.lines) {
    if (l.x0 > x1 || l.x1 < x0 || l.y0 > y1 + 60 || l.y1 < y0 - 60) continue;
    if (l === look.hoverLine || (look.chosen && (l.from === look.chosen || l.to === look.chosen))) raised.push(l);
    else line(ctx, l, v, quiet, 1.1);
  }
  ctx.globalAlpha = 1;
  for (const l of raised) line(ctx, l, v, strong, 2.4);
  const boxes = s.boxes.filter((b) => seen(b));
  for (const b of boxes) if (!b.open) box(ctx, b, v, look);
  if (v.k >= near) {
    const lines = s.lines.filter((l) => l.x0 <= x1 && l.x1 >= x0 && l.y0 <= y1 && l.y1 >= y0);
    shapes(ctx, lines, boxes, look.colour("--quiet"), look.colour("--ch-soft"));
  }
  ctx.restore();
}

function path(ctx: CanvasRenderingContext2D, l: Line) {
  const p = l.points;
  ctx.beginPath();
  ctx.moveTo(p[0][0], p[0][1]);
  if (l.corners) {
    for (let i = 1; i < p.length - 1; i++) {
      const r = Math.min(9, Math.hypot(p[i][0] - p[i - 1][0], p[i][1] - p[i - 1][1]) / 2, Math.hypot(p[i + 1][0] - p[i][0], p[i + 1][1] - p[i][1]) / 2);
      ctx.arcTo(p[i][0], p[i][1], p[i + 1][0], p[i + 1][1], r);
    }
    ctx.lineTo(p[p.length - 1][0], p[p.length - 1][1]);
    return;
  }
  for (let i = 1; i < p.length; i++) {
    const [xa, ya] = p[i - 1];
    const [xb, yb] = p[i];
    const bend = (yb - ya) * 0.5;
    ctx.bezierCurveTo(xa, ya + bend, xb, yb - bend, xb, yb);
  }
}

function line(ctx: CanvasRenderingContext2D, l: Line, v: Window, colour: string, width: number) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = Math.max(width, 0.6 / v.k);
  ctx.setLineDash(l.edges.every((e) => e.guess) ? [4, 4] : []);
  path(ctx, l);
  ctx.stroke();
  ctx.setLineDash([]);
  if (v.k < 0.3) return;
  const [x, y] = l.points[l.points.length - 1];
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x - 4, y - 7);
  ctx.lineTo(x + 4, y - 7);
  ctx.fill();
}

function rounded(ctx: CanvasRenderingContext2D, b: Box, r: number) {
  ctx.beginPath();
  ctx.roundRect(b.x, b.y, b.w, b.h, r);
}

function container(ctx: CanvasRenderingContext2D, b: Box, v: Window, look: Look) {
  rounded(ctx, b, 9);
  ctx.fillStyle = look.colour("--ch-soft");
  ctx.globalAlpha = 0.7;
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.strokeStyle = look.colour("--line");
  ctx.lineWidth = Math.max(1, 0.6 / v.k);
  ctx.stroke();
  const c = look.fill(b);
  if (c) {
    ctx.save();
    rounded(ctx, b, 9);
    ctx.clip();
    ctx.fillStyle = c.fill;
    ctx.fillRect(b.x, b.y, b.w, head - 4);
    ctx.restore();
  }
  if (v.k > 0.42) {
    const [title, value] = look.lines(b);
    ctx.fillStyle = c ? c.text : look.colour("--text");
    ctx.font = "600 12px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    fitted(ctx, `▾ ${title}${value ? `  ${value}` : ""}`, b.x + 9, b.y + (head - 4) / 2 + 0.5, b.w - 18);
  }
  outline(ctx, b, v, look, 9);
}

function fitted(ctx: CanvasRenderingContext2D, text: string, x: number, y: number, room: number) {
  let t = text;
  const w = ctx.measureText(t).width;
  if (w > room) t = short(t, Math.max(4, Math.floor((t.length * room) / w)));
  ctx.fillText(t, x, y);
}

function box(ctx: CanvasRenderingContext2D, b: Box, v: Window, look: Look) {
  const kind = b.node.kind;
  const port = kind === "input" || kind === "output";
  const r = port ? b.h / 2 : 7;
  const group = b.node.children.length > 0;
  if (group) {
    // A second rectangle behind marks a group.
    ctx.beginPath();
    ctx.roundRect(b.x + 4, b.y + 4, b.w, b.h, r);
    ctx.fillStyle = look.colour("--panel");
    ctx.fill();
    ctx.strokeStyle = look.colour("--line");
    ctx.lineWidth = 1;
    ctx.stroke();
  }
  rounded(ctx, b, r);
  const c = look.fill(b);
  ctx.fillStyle = c ? c.fill : look.colour("--page");
  ctx.fill();
  ctx.strokeStyle = look.bad(b) ? look.colour("--bad") : look.colour(c ? "--line" : "--ch-other");
  ctx.lineWidth = Math.max(look.bad(b) ? 2 : 1, 0.5 / v.k);
  if (look.ghost(b)) ctx.setLineDash([5, 4]);
  ctx.stroke();
  ctx.setLineDash([]);
  if (v.k > 0.36) {
    const [title, value] = look.lines(b);
    ctx.textBaseline = "middle";
    ctx.fillStyle = c ? c.text : look.colour(port ? "--quiet" : "--text");
    const mid = b.y + b.h / 2;
    const single = port || !value;
    ctx.font = port ? fonts.port : fonts.title;
    fitted(ctx, (group ? "▸ " : "") + title, b.x + 10, single ? mid : mid - 8, b.w - 20);
    if (!single) {
      ctx.font = fonts.value;
      fitted(ctx, value, b.x + 10, mid + 9, b.w - 20);
    }
  } else if (look.sign) {
    ctx.fillStyle = c ? c.text : look.colour("--text");
    ctx.font = `600 ${Math.min(b.h - 6, 40)}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "center";
    ctx.fillText(look.sign(b), b.x + b.w / 2, b.y + b.h / 2);
    ctx.textAlign = "start";
  }
  outline(ctx, b, v, look, r);
}

function outline(ctx: CanvasRenderingContext2D, b: Box, v: Window, look: Look, r: number) {
  const wide = (px: number) => Math.max(px, px / Math.max(0.25, v.k) / 1.6);
  if (look.found(b)) {
    rounded(ctx, b, r);
    ctx.strokeStyle = look.colour("--good");
    ctx.lineWidth = wide(3);
    ctx.stroke();
  }
  if (b === look.chosen || b === look.hover) {
    rounded(ctx, b, r);
    ctx.strokeStyle = look.colour(b === look.chosen ? "--accent" : "--text");
    ctx.lineWidth = wide(b === look.chosen ? 3.2 : 1.6);
    ctx.stroke();
  }
}

/** boxAt is the innermost box at a point of the plane. */
export function boxAt(s: Scene, x: number, y: number): Box | undefined {
  for (let i = s.boxes.length - 1; i >= 0; i--) {
    const b = s.boxes[i];
    if (x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + (b.open ? head : b.h)) return b;
  }
  return undefined;
}

/** arrowAt reports whether a point is on the arrow that opens and closes a box. */
export function arrowAt(b: Box, x: number): boolean {
  return b.node.children.length > 0 && x < b.x + 28;
}

/** lineAt is the nearest line within reach of a point of the plane. */
export function lineAt(s: Scene, x: number, y: number, reach: number): Line | undefined {
  let found: Line | undefined;
  let least = reach;
  for (const l of s.lines) {
    if (x < l.x0 - reach || x > l.x1 + reach || y < l.y0 - reach || y > l.y1 + reach) continue;
    for (let i = 1; i < l.points.length; i++) {
      const [xa, ya] = l.points[i - 1];
      const [xb, yb] = l.points[i];
      // Curves are approximated by segments.
      const steps = l.corners ? 1 : 6;
      for (let t = 0; t < steps; t++) {
        const d = toSegment(x, y, ...along(xa, ya, xb, yb, t / steps, l.corners), ...along(xa, ya, xb, yb, (t + 1) / steps, l.corners));
        if (d < least) {
          least = d;
          found = l;
        }
      }
    }
  }
  return found;
}

function along(xa: number, ya: number, xb: number, yb: number, t: number, straight: boolean): [number, number] {
  if (straight) return [xa + t * (xb - xa), ya + t * (yb - ya)];
  const s = t * t * (3 - 2 * t);
  return [xa + s * (xb - xa), ya + (1.5 * t * (1 - t) * (1 - t) + 1.5 * t * t * (1 - t) + t * t * t) * (yb - ya)];
}

function toSegment(x: number, y: number, xa: number, ya: number, xb: number, yb: number): number {
  const [dx, dy] = [xb - xa, yb - ya];
  const n = dx * dx + dy * dy;
  const t = n > 0 ? Math.min(1, Math.max(0, ((x - xa) * dx + (y - ya) * dy) / n)) : 0;
  return Math.hypot(x - xa - t * dx, y - ya - t * dy);
}
