// Uploads a file under its SHA-256. An upload that breaks off goes on where it stopped.
import { Sha256 } from "./sha256";

/** Source is what is read of a file. */
export interface Source {
  size: number;
  slice(from: number, to?: number): Blob;
}

export interface Answer {
  status: number;
  /** Length that the server has, if it says so. */
  offset?: number;
  /** Says that the file is there whole. */
  complete?: boolean;
  detail?: string;
}

/** Send sends one request. It rejects if the connection breaks. */
export type Send = (method: "HEAD" | "PUT", url: string, o: { body?: Blob; range?: string; progress?: (sent: number) => void; signal?: AbortSignal }) => Promise<Answer>;

/** Refused is an answer that another attempt does not change. */
export class Refused extends Error {}

const piece = 1 << 20;

/** The browser hashes files up to this size itself, several times as fast as a script. */
const whole = 256 << 20;

/** hashOf returns the SHA-256 of a file. It reads large ones in pieces, so that memory suffices
 * and the page stays usable. */
export async function hashOf(file: Source, progress: (share: number) => void, signal?: AbortSignal, most = whole): Promise<string> {
  signal?.throwIfAborted();
  if (file.size <= most) {
    const digest = await crypto.subtle.digest("SHA-256", await file.slice(0).arrayBuffer());
    progress(1);
    return [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, "0")).join("");
  }
  const hash = new Sha256();
  for (let at = 0; at < file.size; at += piece) {
    signal?.throwIfAborted();
    hash.add(new Uint8Array(await file.slice(at, at + piece).arrayBuffer()));
    progress(Math.min(1, (at + piece) / file.size));
  }
  return hash.hex();
}

/** attempts is how often a request is tried. */
export const attempts = 8;

/** pause returns the milliseconds before another attempt. */
export const pause = (attempt: number): number => Math.min(1000 * 2 ** attempt, 15_000);

/** retried calls f until it succeeds, is refused or was tried often enough. */
export async function retried<T>(f: () => Promise<T>, sleep: (ms: number) => Promise<void>, broken: (err: unknown) => void, signal?: AbortSignal): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await f();
    } catch (err) {
      if (signal?.aborted || err instanceof Refused || attempt + 1 >= attempts) throw err;
      broken(err);
    }
    await sleep(pause(attempt));
  }
}

/** upload sends what the server lacks of a file. */
export async function upload(file: Source, hash: string, send: Send, progress: (share: number) => void, signal?: AbortSignal): Promise<void> {
  const url = `/api/v1/files/${hash}`;
  const known = await send("HEAD", url, { signal });
  check(known);
  if (known.complete) return progress(1);
  // All may have arrived at a server that ended before it checked the file: then it begins anew.
  const from = known.offset === file.size ? 0 : (known.offset ?? 0);
  if (from > file.size) throw new Refused(`the server has ${from} bytes of a file of ${file.size}`);
  progress(from / file.size);
  const range = from > 0 ? `bytes ${from}-${file.size - 1}/${file.size}` : undefined;
  check(await send("PUT", url, { body: file.slice(from), range, progress: (sent) => progress((from + sent) / file.size), signal }));
}

/** check throws what an answer refuses. An offset that is wrong by now is asked for again. */
function check(a: Answer): void {
  if (a.status < 300) return;
  const text = a.detail || `the server answers with status ${a.status}`;
  if (a.status >= 500 || a.status === 409 || a.status === 429 || a.status === 408) throw new Error(text);
  throw new Refused(text);
}
