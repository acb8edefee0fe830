// Light or dark: as the system has it, or as chosen. The choice is kept in the
// browser; where that is denied, as for some files, it stands in the address.
import { get, set } from "./state.svelte";

export const choices = ["system", "light", "dark"] as const;
export type Choice = (typeof choices)[number];

const key = "opmeter-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

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

const now = $state({ choice: known(get("theme")) ?? known(stored()) ?? ("system" as Choice), system: system.matches });
system.addEventListener("change", () => (now.system = system.matches));
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

/** dark says which one is shown; views that draw by themselves follow it. */
export function dark(): boolean {
  return now.choice === "system" ? now.system : now.choice === "dark";
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
