// Files on their way to the server, and the jobs made of them.
import { plural } from "../figures/format";
import { call, connection, describe, list, send } from "./api.svelte";
import { defaults, kindOf, missing, optionsOf, places, wrong, type Kind, type Samples, type Settings } from "./kinds";
import { go, route } from "./router.svelte";
import type { Input, Job, Target } from "./types";
import { hashOf, Refused, retried, upload } from "./upload";

export type State = "asks" | "queued" | "hashing" | "sending" | "broken" | "starting" | "started" | "failed";

export class Item {
  state = $state<State>("queued");
  share = $state(0);
  error = $state("");
  job = $state.raw<Job>();
  /** The model of a record. */
  model = $state.raw<File>();
  /** Options of a record. */
  values = $state<Record<string, string>>({});
  readonly kind: Kind;
  readonly stop = new AbortController();

  constructor(
    readonly id: number,
    readonly file: File,
    /** The only file that was chosen: its job is shown. */
    readonly alone: boolean,
  ) {
    this.kind = kindOf(file.name, settings.kind);
    if (this.kind === "import") this.state = "asks";
  }
}

const all = $state<{ items: Item[] }>({ items: [] });
export const items = () => all.items;

const key = "opmeter-settings";

function remembered(): Settings {
  try {
    const s = JSON.parse(localStorage.getItem(key) ?? "{}") as Partial<Settings>;
    const values = Object.entries(s.values ?? {}).filter(([, v]) => typeof v === "string");
    return {
      project: typeof s.project === "string" ? s.project : defaults.project,
      kind: s.kind === "compress" ? "compress" : "profile",
      place: s.place !== undefined && Object.hasOwn(places, s.place) ? s.place : defaults.place,
      values: Object.fromEntries(values),
    };
  } catch {
    return { ...defaults, values: {} };
  }
}

/** settings are those of the next job. */
export const settings = $state(remembered());

const chosen = $state<{ samples: Samples }>({ samples: {} });
/** samples are the files for the loss of the next models that are studied. */
export const samples = () => chosen.samples;
export const choose = (s: Samples) => (chosen.samples = s);

/** keep remembers the settings. */
export function keep() {
  try {
    localStorage.setItem(key, JSON.stringify(settings));
  } catch {
    // Without storage they last as long as the page.
  }
}

let made = 0;
let last: Promise<unknown> = Promise.resolve();

/** add takes files that were dropped or chosen. Records wait: a model may be added. */
export function add(files: File[]) {
  if (files.length === 0) return;
  const added = files.map((f) => new Item(made++, f, files.length === 1));
  all.items = [...added, ...all.items];
  if (route().view !== "start") go("/");
  for (const i of added) if (i.state === "queued") queue(i);
}

export function remove(i: Item) {
  i.stop.abort();
  all.items = all.items.filter((o) => o !== i);
}

/** stored uploads a file and returns it as an input of a job. */
export async function stored(f: File, as: string): Promise<Input> {
  const signal = new AbortController().signal;
  const most = connection.system?.max_file_bytes;
  if (most !== undefined && f.size > most) throw new Refused(`${f.name} is too large: it has ${plural(f.size, "byte")}, the server takes ${plural(most, "byte")}.`);
  const hash = await hashOf(f, () => undefined, signal);
  await retried(() => upload(f, hash, send, () => undefined, signal), sleep(signal), () => undefined, signal);
  return { name: f.name, hash, as };
}

/** queue sends a file after those before it. */
export function queue(i: Item) {
  i.state = "queued";
  i.error = "";
  const s = $state.snapshot(settings);
  const own = chosen.samples;
  last = last.then(() => start(i, s, own));
}

const sleep = (signal: AbortSignal) => (ms: number) =>
  new Promise<void>((resolve) => {
    const t = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(t), resolve()), { once: true });
  });

async function start(i: Item, s: Settings, own: Samples) {
  const signal = i.stop.signal;
  if (signal.aborted) return;
  try {
    const lack = i.kind === "profile" || i.kind === "compress" ? missing(s, own) : "";
    if (lack) throw new Refused(lack);
    const known = connection.system?.options ?? [];
    const options = optionsOf(known, i.kind, s, i.kind === "import" ? i.values : s.values);
    // What the server would refuse is told before the file is sent, as far as it is known here.
    const targets = options.on ? await list<Target>("/targets").catch(() => undefined) : undefined;
    const why = wrong(known, i.kind, options, targets?.items);
    if (why) throw new Refused(why);
    const files: { f: File; as?: string }[] = i.kind === "compress" ? [{ f: i.file, as: "model" }] : [{ f: i.file }];
    if (i.model) files.push({ f: i.model });
    if (i.kind === "compress" && own.data) files.push({ f: own.data, as: "data" });
    if (i.kind === "compress" && own.labels) files.push({ f: own.labels, as: "labels" });
    const most = connection.system?.max_file_bytes;
    const inputs: Input[] = [];
    for (const { f, as } of files) {
      if (f.size === 0) throw new Refused(`${f.name} is empty.`);
      if (most !== undefined && f.size > most) throw new Refused(`${f.name} is too large: it has ${plural(f.size, "byte")}, the server takes ${plural(most, "byte")}.`);
      i.state = "hashing";
      i.share = 0;
      const hash = await hashOf(f, (share) => (i.share = share), signal);
      const broken = () => (i.state = "broken");
      const part = () => {
        i.state = "sending";
        return upload(f, hash, send, (share) => (i.share = share), signal);
      };
      await retried(part, sleep(signal), broken, signal);
      inputs.push({ name: f.name, hash, as });
    }
    const once = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
    const body = { project: s.project.trim() || defaults.project, kind: i.kind, inputs, options };
    const post = () => {
      i.state = "starting";
      return call<Job>("POST", "/jobs", body, { "Idempotency-Key": once });
    };
    i.job = await retried(post, sleep(signal), () => (i.state = "broken"), signal);
    i.state = "started";
    if (i.alone && route().view === "start") go(`/jobs/${i.job.id}`);
    all.items = all.items.filter((o) => o !== i || !i.alone);
  } catch (err) {
    if (signal.aborted) return;
    i.state = "failed";
    i.error = err instanceof DOMException && /^Not(Readable|Found)Error$/.test(err.name) ? `${i.file.name} cannot be read. Is it a folder, or was it moved? Choose the file again.` : describe(err);
  }
}
