// Calls of the API, and the state of the connection that they find.
import type { Quantity } from "../data/profile";
import type { Answer, Send } from "./upload";
import { Problem, reason, type Labels } from "./problems";
import type { Listed, Me, Role, System } from "./types";

const state = $state({
  /** The server does not answer. */
  gone: false,
  /** The server wants a token. */
  signIn: false,
  /** Counts what makes loaded data old: a new connection, a sign-in. */
  epoch: 0,
  /** How many alerts nobody acknowledged. */
  alerts: 0,
  me: undefined as Me | undefined,
  system: undefined as System | undefined,
});

export const connection = state;

const retry = 2000;

/** lost notes that the server is gone, and asks until it is back. */
function lost() {
  if (state.gone) return;
  state.gone = true;
  const ask = () =>
    fetch("/health/live", { cache: "no-store" }).then(
      (r) => {
        if (!r.ok) return void setTimeout(ask, retry);
        state.gone = false;
        state.epoch++;
      },
      () => void setTimeout(ask, retry),
    );
  setTimeout(ask, retry);
}

/** ask sends a request outside the API and returns its answer if it succeeded. */
export async function ask(url: string, init: RequestInit = {}): Promise<Response> {
  let r: Response;
  try {
    r = await fetch(url, { credentials: "same-origin", ...init });
  } catch (err) {
    if (!init.signal?.aborted) lost();
    throw err;
  }
  if (r.ok) return r;
  if (r.status === 401 && !url.endsWith("/session")) state.signIn = true;
  throw reason(r.status, await r.text());
}

/** call sends a request of the API. */
export async function call<T = void>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
  const json = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers } };
  const r = await ask(`/api/v1${path}`, { method, ...json });
  const text = await r.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/** list gets a list. */
export const list = <T>(path: string): Promise<Listed<T>> => call<Listed<T>>("GET", path);

/** describe is the text of an error. Labels are names of fields on the page. */
export function describe(err: unknown, labels?: Labels): string {
  if (err instanceof Problem) return err.text(labels);
  if (err instanceof TypeError) return "The server does not answer. Is it still running?";
  return err instanceof Error ? err.message : String(err);
}

/** begin asks who calls and what the server is. */
export async function begin() {
  const [me, system] = await Promise.all([call<Me>("GET", "/me"), call<System>("GET", "/system")]);
  state.me = me;
  state.system = system;
  state.signIn = false;
}

/** recount asks how many alerts are open. Views say what is wrong if it fails. */
export async function recount() {
  const l = await call<{ open: number }>("GET", "/alerts?open=true&limit=1").catch(() => undefined);
  if (l) state.alerts = l.open;
}

const roles: Role[] = ["read", "run", "admin"];

/** may reports whether the caller has a role. */
export const may = (r: Role): boolean => state.me !== undefined && roles.indexOf(state.me.role) >= roles.indexOf(r);

const known = $derived(new Map<string, Quantity>((state.system?.quantities ?? []).map((q) => [q.key, q])));

/** quantities returns the server's table of quantities by key. */
export const quantities = () => known;

/** send sends a request of an upload, by the only interface of browsers that tells its progress. */
export const send: Send = (method, url, o) =>
  new Promise<Answer>((resolve, reject) => {
    const x = new XMLHttpRequest();
    x.open(method, url);
    if (o.range) x.setRequestHeader("Content-Range", o.range);
    if (o.body) x.setRequestHeader("Content-Type", "application/octet-stream");
    x.upload.onprogress = (e) => o.progress?.(e.loaded);
    x.onload = () => {
      const offset = x.getResponseHeader("Upload-Offset");
      if (x.status === 401) state.signIn = true;
      resolve({ status: x.status, offset: offset === null ? undefined : Number(offset), complete: x.getResponseHeader("Upload-Complete") === "?1", detail: x.status >= 300 && x.responseText ? reason(x.status, x.responseText).text() : undefined });
    };
    x.onerror = () => (lost(), reject(new TypeError("the connection broke")));
    x.onabort = () => reject(new DOMException("cancelled", "AbortError"));
    o.signal?.addEventListener("abort", () => x.abort());
    x.send(o.body ?? null);
  });
