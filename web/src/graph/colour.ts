// Heat colours: pale to strong on a light page, dark to bright on a dark one. Lightness
// alone is monotonic, for readers and printers without colour.

type Stop = [at: number, l: number, c: number, h: number];

const light: Stop[] = [
  [0, 0.965, 0.02, 100],
  [0.4, 0.87, 0.1, 85],
  [0.75, 0.68, 0.17, 45],
  [1, 0.47, 0.18, 25],
];
const dark: Stop[] = [
  [0, 0.3, 0.03, 275],
  [0.4, 0.42, 0.12, 320],
  [0.75, 0.64, 0.17, 392],
  [1, 0.88, 0.15, 450],
];

/** heat returns the colour at a position of the scale, 0 to 1, and a text colour for it. */
export function heat(t: number, onDark: boolean): { fill: string; text: string } {
  const stops = onDark ? dark : light;
  const x = Math.min(1, Math.max(0, t));
  let i = 1;
  while (i < stops.length - 1 && x > stops[i][0]) i++;
  const [a, b] = [stops[i - 1], stops[i]];
  const f = (x - a[0]) / (b[0] - a[0]);
  const mix = (k: 1 | 2 | 3) => a[k] + f * (b[k] - a[k]);
  const l = mix(1);
  return { fill: `oklch(${l.toFixed(3)} ${mix(2).toFixed(3)} ${(mix(3) % 360).toFixed(1)})`, text: l > 0.62 ? "#14171c" : "#ffffff" };
}

/** part returns the position of a value on the scale from 0 (or the minimum of a log scale)
 * to the maximum. A log scale covers at most four decades. */
export function part(v: number, least: number, largest: number, log: boolean): number {
  if (!(largest > 0)) return 0;
  if (!log) return v / largest;
  const lo = Math.max(least, largest / 1e4);
  if (!(v > lo)) return 0;
  return largest > lo ? Math.log(v / lo) / Math.log(largest / lo) : 1;
}
