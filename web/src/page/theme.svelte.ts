// Light or dark theme: that of the system, or the chosen one, and light in print. The
// choice is stored in the browser, or in the address where storage is denied, as for some
// files. Canvases get their colours here too, since they cannot use CSS variables.
import { get, set } from "./state.svelte";

export const choices = ["system", "light", "dark"] as const;
export type Choice = (typeof choices)[number];

const key = "opmeter-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const paper = matchMedia("print");

function stored(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function known(s: string | null): Choice | undefined {
  return choices.find((c) => c === s);
}

const now = $state({ choice: known(get("theme")) ?? known(stored()) ?? ("system" as Choice), system: system.matches, paper: paper.matches });
system.addEventListener("change", () => (now.system = system.matches));
paper.addEventListener("change", () => (now.paper = paper.matches));
addEventListener("hashchange", () => {
  const c = known(get("theme"));
  if (c && c !== now.choice) apply(c);
});

function apply(c: Choice) {
  now.choice = c;
  if (c === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = c;
}
apply(now.choice);

/** choice returns the chosen theme. */
export function choice(): Choice {
  return now.choice;
}

/** Theme is the theme in use. */
export interface Theme {
  dark: boolean;
  /** Value of a CSS variable such as "--text", for a canvas. */
  colour(name: string): string;
}

let made: { at: string; theme: Theme } | undefined;

/** theme returns the theme in use; it is reactive. */
export function theme(): Theme {
  const at = `${now.choice} ${now.system} ${now.paper}`;
  if (made?.at !== at) made = { at, theme: read() };
  return made.theme;
}

function read(): Theme {
  const seen = new Map<string, string>();
  const colour = (name: string): string => {
    let c = seen.get(name);
    if (c !== undefined) return c;
    // By an element, since a variable may hold a CSS function.
    const probe = document.createElement("span");
    probe.style.display = "none";
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    c = getComputedStyle(probe).color;
    probe.remove();
    seen.set(name, c);
    return c;
  };
  const [r, g, b] = (colour("--page").match(/[\d.]+/g) ?? ["255", "255", "255"]).map(Number);
  return { dark: 0.3 * r + 0.6 * g + 0.1 * b < 128, colour };
}

export function choose(c: Choice) {
  apply(c);
  try {
    localStorage.setItem(key, c);
    if (get("theme")) set({ theme: "" });
  } catch {
    set({ theme: c });
  }
}
