// Colours of bars. A name has the same colour in every page, unless two names of a page
// collide: then the later one gets the next free colour.

/** Number of colours; slots 0 to slots-1 are colours of bars. */
export const slots = 20;
/** Slots with the hues of the operators' colours in the other views, --op-1 to --op-8
 * of app.css. */
export const own = 8;
const hues = [255, 52, 163, 325, 92, 15, 213, 282];
/** Bars without a category. */
export const plain = slots;
/** Bars that the filters exclude and that are dimmed. */
export const dim = slots + 1;
/** Hidden bars. */
export const hidden = 255;

/** hash is FNV-1a of the text. */
export function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

/** assign returns the slot of each name. weight is the share of the chart of a name: with
 * more names than colours the largest ones come first, so that they share no colour.
 * Otherwise the order is alphabetical and independent of measurements. rank gives operators
 * the hue of the other views: 1 to own are the first slots, which no other name gets. */
export function assign(names: Iterable<string>, weight?: (name: string) => number, rank?: (name: string) => number): Map<string, number> {
  const out = new Map<string, number>();
  const base = rank ? own : 0;
  const uses = new Uint32Array(slots).fill(0xffffffff, 0, base);
  const order = [...new Set(names)].sort().filter((name) => {
    const r = rank?.(name) ?? 0;
    if (r > 0) out.set(name, r - 1);
    return r === 0;
  });
  if (weight && order.length > slots - base) order.sort((a, b) => weight(b) - weight(a));
  for (const name of order) {
    const first = base + (hash(name) % (slots - base));
    // Once all colours are taken, each is used twice, and so on.
    let least = 0xffffffff;
    for (const u of uses) least = Math.min(least, u);
    let s = first;
    while (uses[s] > least) s = s + 1 < slots ? s + 1 : base;
    uses[s]++;
    out.set(name, s);
  }
  return out;
}

/** RGB holds three parts from 0 to 255. */
export type RGB = [number, number, number];

/** oklch converts lightness, chroma and hue (degrees) to sRGB, clipped. */
export function oklch(l: number, c: number, h: number): RGB {
  const a = c * Math.cos((h * Math.PI) / 180);
  const b = c * Math.sin((h * Math.PI) / 180);
  const l3 = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m3 = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s3 = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const gamma = (v: number) => {
    const x = Math.min(1, Math.max(0, v));
    return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
  };
  return [
    gamma(4.0767416621 * l3 - 3.3077115913 * m3 + 0.2309699292 * s3),
    gamma(-1.2684380046 * l3 + 2.6097574011 * m3 - 0.3413193965 * s3),
    gamma(-0.0041960863 * l3 - 0.7034186147 * m3 + 1.707614701 * s3),
  ];
}

/** luminance is the relative luminance of WCAG. */
export function luminance([r, g, b]: RGB): number {
  const f = (v: number) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
}

/** contrast is the contrast ratio of WCAG, 1 to 21. */
export function contrast(a: RGB, b: RGB): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** mix interpolates between a (at 0) and b (at 1). */
export function mix(a: RGB, b: RGB, t: number): RGB {
  return [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t].map(Math.round) as RGB;
}

/** css writes a colour for a style. */
export function css([r, g, b]: RGB): string {
  return `rgb(${r} ${g} ${b})`;
}

/** word packs a colour as the little-endian pixel of an ImageData. */
export function word([r, g, b]: RGB): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** colour of a slot: the hues of the operators, then twelve hues round the wheel, less
 * saturated and alternately lighter and darker, so that neighbours are distinct. */
export function colour(slot: number, dark: boolean): RGB {
  if (slot < own) return oklch(dark ? 0.45 : 0.74, 0.105, hues[slot]);
  const hue = 5 + (slot - own) * 30;
  const light = slot % 2 === 0;
  return dark ? oklch(light ? 0.52 : 0.4, 0.07, hue) : oklch(light ? 0.86 : 0.7, 0.07, hue);
}

/** ink is the colour of text in bars. */
export function ink(dark: boolean): RGB {
  return dark ? [245, 247, 250] : [20, 23, 28];
}
