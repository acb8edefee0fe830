// Colours for canvases, which do not know the variables of the style sheet.

export interface Theme {
  dark: boolean;
  /** Of a variable such as "--text", as a canvas takes it. */
  colour(name: string): string;
}

let changes = $state(0);
let made: { at: number; theme: Theme } | undefined;

function changed() {
  changes++;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
matchMedia("print").addEventListener("change", changed);
new MutationObserver(changed).observe(document.documentElement, { attributes: true, attributeFilter: ["class", "style", "data-theme"] });

function read(): Theme {
  const probe = document.createElement("span");
  probe.style.display = "none";
  document.body.append(probe);
  const seen = new Map<string, string>();
  const style = getComputedStyle(probe);
  const colour = (name: string) => {
    probe.style.color = `var(${name})`;
    return style.color;
  };
  for (const name of ["--page", "--panel", "--text", "--quiet", "--line", "--accent", "--warn", "--bad", "--good", "--ch-grid", "--ch-soft", "--ch-other"]) {
    seen.set(name, colour(name));
  }
  probe.remove();
  const [r, g, b] = (seen.get("--page")!.match(/[\d.]+/g) ?? ["255", "255", "255"]).map(Number);
  return { dark: 0.3 * r + 0.6 * g + 0.1 * b < 128, colour: (name) => seen.get(name) ?? "gray" };
}

/** theme is the present one; what reads it runs again when it changes. */
export function theme(): Theme {
  if (made?.at !== changes) made = { at: changes, theme: read() };
  return made.theme;
}
