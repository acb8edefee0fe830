// The addresses of the views.

export type Route =
  | { view: "start" | "runs" | "compare" | "projects" | "alerts" | "workers" | "settings" | "absent" }
  | { view: "job" | "run" | "project"; id: string };

const plain = new Map<string, Route>([["", { view: "start" }], ...(["runs", "compare", "projects", "alerts", "workers", "settings"] as const).map((view): [string, Route] => [view, { view }])]);
const named = new Map<string, "job" | "run" | "project">([["jobs", "job"], ["runs", "run"], ["projects", "project"]]);

/** parse returns the view of a path. */
export function parse(path: string): Route {
  const [first, id, ...more] = path.replace(/^\/|\/$/g, "").split("/");
  if (id === undefined) return plain.get(first) ?? { view: "absent" };
  const view = named.get(first);
  return view && more.length === 0 && /^[\w-]{1,64}$/.test(id) ? { view, id } : { view: "absent" };
}

/** address writes a path with the parameters that are not empty. */
export function address(path: string, params: Record<string, string> = {}): string {
  const q = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== ""));
  // Commas separate ids; escaped ones are hard to read.
  const text = q.toString().replaceAll("%2C", ",");
  return text ? `${path}?${text}` : path;
}
