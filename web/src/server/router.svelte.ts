// The view in the address, by the browser's history.
import { address, parse } from "./router";

const now = $state({ path: location.pathname, query: location.search, visit: 0 });

function read() {
  now.path = location.pathname;
  now.query = location.search;
}
addEventListener("popstate", () => {
  read();
  now.visit++;
});

/** route returns the current view. */
export const route = () => parse(now.path);

/** visit counts changes of the view. */
export const visit = () => now.visit;

/** param returns a parameter of the address, "" if it is absent. */
export const param = (name: string): string => new URLSearchParams(now.query).get(name) ?? "";

/** go opens a view. Instead replaces the current entry of the history. */
export function go(href: string, instead = false) {
  if (instead) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  read();
  now.visit++;
}

/** set changes parameters in place; "" removes one. */
export function set(changes: Record<string, string>) {
  const params = { ...Object.fromEntries(new URLSearchParams(now.query)), ...changes };
  history.replaceState(null, "", address(now.path, params));
  read();
}

/** follow opens a link of the page without loading the page again. */
export function follow(e: MouseEvent) {
  if (e.defaultPrevented || e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
  const a = (e.target as Element).closest?.("a");
  const href = a?.getAttribute("href") ?? a?.getAttributeNS("http://www.w3.org/1999/xlink", "href");
  if (!a || !href?.startsWith("/") || a.hasAttribute("download") || a.hasAttribute("target")) return;
  if (parse(new URL(href, location.href).pathname).view === "absent") return;
  e.preventDefault();
  go(href);
}
