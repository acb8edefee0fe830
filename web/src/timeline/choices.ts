// Options of the chart in the address. They are functions, so that reading them is
// reactive.
import { get, set } from "../page/state.svelte";
import { colourings, noFilters, type ColourBy, type Filters } from "./model";
import { parse } from "./range";
import type { HeightBy } from "./rows";

export const on = (name: string) => get(name) === "1";
export const flip = (name: string) => set({ [name]: on(name) ? "" : "1" });

export const heightBy = () => (["bandwidth", "utilisation"].includes(get("height")) || get("height").startsWith("figure ") ? get("height") : "") as HeightBy;

/** usualColour is the default category of colours. */
export const usualColour = (): ColourBy => (on("merged") ? "core" : "type");
export const colourBy = () => (colourings.includes(get("colour") as ColourBy) ? get("colour") : usualColour()) as ColourBy;

/** closed returns the closed groups. */
export const closed = () => new Set(get("closed").split("|").filter(Boolean));

export function toggle(group: string) {
  const c = closed();
  if (!c.delete(group)) c.add(group);
  set({ closed: [...c].join("|") });
}

export function filters(): Filters {
  const whole = (name: string) => {
    const n = Number.parseInt(get(name), 10);
    return n >= 0 ? n : -1;
  };
  return {
    ...noFilters,
    op: get("op"),
    layer: whole("only"),
    subnet: whole("subnet"),
    iteration: whole("iteration"),
    direction: whole("direction"),
    least: parse(get("least")),
    most: parse(get("most")),
    others: get("others") === "hide" ? "hide" : "dim",
  };
}
