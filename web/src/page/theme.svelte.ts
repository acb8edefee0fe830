// Light or dark: as the system has it, or as chosen, and light on paper. The choice is
// kept in the browser; where that is denied, as for some files, it stands in the
// address. What draws by itself gets its colours here too, since a canvas does not
// know the variables of the style sheet.
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

/** choice is what the reader asked for. */
export function choice(): Choice {
  return now.choice;
}

/** Theme is what is shown. */
export interface Theme {
  dark: boolean;
  /** Of a variable such as "--text", as a canvas takes it. */
  colour(name: string): string;
}

let made: { at: string; theme: Theme } | undefined;

/** theme is the present one; what reads it runs again when it changes. */
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
    // Through an element, since a variable may hold a function.
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
