// The chart with its names as an image.
import { axis, type Chart } from "./chart";
import type { Strip } from "./layout";
import { css } from "./palette";

/** image returns a PNG of the canvas with the names of the lanes. */
export function picture(canvas: HTMLCanvasElement, chart: Chart, strips: Strip[], scroll: number, height: number, title: string): Promise<Blob | null> {
  const { page, text, quiet, line } = chart.colours;
  const ratio = canvas.height / height;
  const [side, head] = [220, 30];
  const out = document.createElement("canvas");
  out.width = canvas.width + side * ratio;
  out.height = canvas.height + head * ratio;
  const ctx = out.getContext("2d")!;
  ctx.fillStyle = css(page);
  ctx.fillRect(0, 0, out.width, out.height);
  ctx.drawImage(canvas, side * ratio, head * ratio);
  ctx.scale(ratio, ratio);
  ctx.fillStyle = css(text);
  ctx.font = "600 13px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  ctx.fillText(title.slice(0, 160), 10, head / 2);
  ctx.beginPath();
  ctx.rect(0, head + axis, side - 8, height - axis);
  ctx.clip();
  for (const s of strips) {
    const y = s.y - scroll + head + axis;
    if (y > head + height || y + s.h < head) continue;
    ctx.fillStyle = css(line);
    ctx.fillRect(0, y + s.h - 1, side, 1);
    ctx.fillStyle = css(text);
    ctx.font = "500 12px system-ui, sans-serif";
    const two = s.kind !== "group" && s.detail !== "";
    ctx.fillText(s.name.slice(0, 80), 10, y + s.h / 2 - (two ? 7 : 0));
    if (!two) continue;
    ctx.fillStyle = css(quiet);
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillText(s.detail, 10, y + s.h / 2 + 8);
  }
  return new Promise((done) => out.toBlob(done, "image/png"));
}

/** offer saves an image under a name derived from the model's name. */
export function offer(blob: Blob, model: string) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(blob);
  a.download = `${model.replace(/[^\w.-]+/g, "_").slice(0, 80)}-timeline.png`;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}
