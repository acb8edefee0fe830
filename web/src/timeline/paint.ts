// Colours of the theme for the canvases of timeline and memory.
import { colour, dim, mix, plain, slots, type RGB } from "./palette";
import type { Paint } from "./raster";

/** reader reads a theme colour by an element, since a custom property may hold a CSS
 * function. */
function reader(el: HTMLElement): { read: (name: string) => RGB; done: () => void } {
  const probe = document.createElement("span");
  probe.style.display = "none";
  el.append(probe);
  const one = document.createElement("canvas");
  one.width = one.height = 1;
  const ctx = one.getContext("2d", { willReadFrequently: true })!;
  const read = (name: string): RGB => {
    probe.style.color = `var(${name})`;
    ctx.clearRect(0, 0, 1, 1);
    ctx.fillStyle = getComputedStyle(probe).color;
    ctx.fillRect(0, 0, 1, 1);
    const [r, g, b] = ctx.getImageData(0, 0, 1, 1).data;
    return [r, g, b];
  };
  return { read, done: () => probe.remove() };
}

/** readPaint reads the colours of the theme. */
export function readPaint(el: HTMLElement): Paint & { dark: boolean; panel: RGB } {
  const { read, done } = reader(el);
  const page = read("--page");
  const text = read("--text");
  const dark = page[0] + page[1] + page[2] < 384;
  const list: RGB[] = [];
  for (let s = 0; s < slots; s++) list.push(colour(s, dark));
  list[plain] = mix(page, read("--quiet"), 0.45);
  list[dim] = mix(page, text, 0.1);
  const out = { page, text, dark, panel: read("--panel"), line: read("--line"), accent: read("--accent"), warn: read("--warn"), quiet: read("--quiet"), slots: list };
  done();
  return out;
}
