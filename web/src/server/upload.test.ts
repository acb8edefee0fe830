import { expect, test } from "vitest";
import { attempts, hashOf, pause, Refused, retried, upload, type Answer, type Send } from "./upload";

const file = new Blob([Uint8Array.from({ length: 1000 }, (_, i) => i & 255)]);

/** Server keeps an upload and breaks connections after some bytes. */
class Server {
  stored = new Uint8Array();
  requests: string[] = [];
  complete = false;
  constructor(private readonly breaks: number[] = []) {}
  readonly send: Send = async (method, _url, o): Promise<Answer> => {
    this.requests.push(`${method}${o.range ? ` ${o.range}` : ""}`);
    if (method === "HEAD") return { status: 204, offset: this.stored.length, complete: this.complete };
    const body = new Uint8Array(await o.body!.arrayBuffer());
    const most = this.breaks.shift() ?? body.length;
    this.stored = Uint8Array.from([...this.stored, ...body.subarray(0, most)]);
    o.progress?.(Math.min(most, body.length));
    if (most < body.length) throw new TypeError("the connection broke");
    return { status: 204, offset: this.stored.length };
  };
}

test("a hash is that of the content", async () => {
  const shares: number[] = [];
  const want = [...new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()))].map((b) => b.toString(16).padStart(2, "0")).join("");
  for (const most of [undefined, 0]) {
    expect(await hashOf(file, (s) => shares.push(s), undefined, most)).toBe(want);
    expect(shares.at(-1)).toBe(1);
  }
  await expect(hashOf(file, () => {}, AbortSignal.abort())).rejects.toThrow();
});

test("an upload that breaks off goes on where it stopped", async () => {
  const server = new Server([300, 200]);
  const shares: number[] = [];
  const waits: number[] = [];
  let broken = 0;
  await retried(
    () => upload(file, "aa", server.send, (s) => shares.push(s)),
    async (ms) => void waits.push(ms),
    () => broken++,
  );
  expect(server.requests).toEqual(["HEAD", "PUT", "HEAD", "PUT bytes 300-999/1000", "HEAD", "PUT bytes 500-999/1000"]);
  expect(server.stored).toEqual(new Uint8Array(await file.arrayBuffer()));
  expect(shares).toEqual([0, 0.3, 0.3, 0.5, 0.5, 1]);
  expect(waits).toEqual([pause(0), pause(1)]);
  expect(broken).toBe(2);
});

test("a file that is there is not sent", async () => {
  const server = new Server();
  server.stored = new Uint8Array(1000);
  server.complete = true;
  await upload(file, "aa", server.send, () => {});
  expect(server.requests).toEqual(["HEAD"]);
});

test("a file that arrived but was never checked is sent anew", async () => {
  const server = new Server();
  server.stored = new Uint8Array(1000);
  await upload(file, "aa", server.send, () => {});
  expect(server.requests).toEqual(["HEAD", "PUT"]);
});

test("what the server refuses is not tried again, what it cannot do now is", async () => {
  const answers = (status: number): Send => async (method) => (method === "HEAD" ? { status: 204, offset: 0 } : { status, detail: "why" });
  for (const status of [400, 401, 403, 413, 422]) {
    let tries = 0;
    await expect(retried(() => (tries++, upload(file, "aa", answers(status), () => {})), async () => {}, () => {})).rejects.toThrow(Refused);
    expect(tries, String(status)).toBe(1);
  }
  for (const status of [408, 409, 429, 500, 503]) {
    let tries = 0;
    await expect(retried(() => (tries++, upload(file, "aa", answers(status), () => {})), async () => {}, () => {})).rejects.toThrow("why");
    expect(tries, String(status)).toBe(attempts);
  }
});

test("a cancelled upload ends", async () => {
  const stop = new AbortController();
  const server = new Server([100]);
  await expect(
    retried(
      () => upload(file, "aa", server.send, () => {}, stop.signal),
      async () => stop.abort(),
      () => {},
      stop.signal,
    ),
  ).rejects.toThrow();
  expect(server.requests).toEqual(["HEAD", "PUT"]);
});
