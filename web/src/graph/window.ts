// The visible window of the plane of a graph.
import type { Box, Scene } from "./scene";

export interface Window {
  /** Canvas position of the plane's origin, and pixels per unit. */
  x: number;
  y: number;
  k: number;
}

/** Size of the canvas in pixels. */
export interface Frame {
  width: number;
  height: number;
}

/** Least zoom at which the texts of boxes are readable. */
export const legible = 0.62;

/** whole is the zoom that fits the whole graph. */
export function whole(s: Scene, f: Frame): number {
  return Math.min((f.width - 24) / (s.w || 1), (f.height - 24) / (s.h || 1), 1.25);
}

/** fit shows the whole graph. */
export function fit(s: Scene, f: Frame): Window {
  const k = whole(s, f);
  return { k, x: (f.width - s.w * k) / 2, y: Math.max(12, (f.height - s.h * k) / 2) };
}

/** zoomed is a window scaled around a point of the canvas. */
export function zoomed(v: Window, factor: number, cx: number, cy: number, least: number): Window {
  const k = Math.min(4, Math.max(least, v.k * factor));
  return { k, x: cx - ((cx - v.x) / v.k) * k, y: cy - ((cy - v.y) / v.k) * k };
}

/** centred centres a box, without moving beyond the border of the graph. */
export function centred(b: Box, s: Scene, f: Frame, k: number): Window {
  const hold = (at: number, room: number, size: number) => (size * k + 24 <= room ? (room - size * k) / 2 : Math.min(12, Math.max(room - 12 - size * k, at)));
  return {
    k,
    x: hold(f.width / 2 - (b.x + b.w / 2) * k, f.width, s.w),
    y: hold((b.open ? 60 : f.height / 2) - (b.y + (b.open ? 0 : b.h / 2)) * k, f.height, s.h),
  };
}

/** begin is the initial window: the whole graph if readable, else the most important box. */
export function begin(s: Scene, f: Frame, most: Box | undefined): Window {
  return whole(s, f) >= legible || !most ? fit(s, f) : centred(most, s, f, 0.85);
}

/** follow keeps the canvas position of a box's corner when the layout changes. */
export function follow(v: Window, before: { x: number; y: number }, after: Box): Window {
  return { k: v.k, x: v.x + (before.x - after.x) * v.k, y: v.y + (before.y - after.y) * v.k };
}

/** visible reports whether a box (the head of an open one) is within the canvas and
 * readable. */
export function visible(b: Box, v: Window, f: Frame): boolean {
  const [l, t] = [v.x + b.x * v.k, v.y + b.y * v.k];
  return l >= 10 && t >= 10 && l + Math.min(b.w, 200) * v.k <= f.width - 10 && t + Math.min(b.h, 60) * v.k <= f.height - 10 && v.k >= 0.3;
}
