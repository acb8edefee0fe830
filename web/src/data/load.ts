// Reads the data of the page: a JSON document and the long columns of figures as
// little-endian binary, both gzipped, in base64 and split over several elements.
import type { Comparison } from "../compare/types";
import type { Study } from "../study/types";
import type { Column, Profile, Quantity } from "./profile";

/** Description of a column in the binary part; internal/base/columnar writes it. Columns
 * are stored in the order of the list. */
interface ColumnRef {
  /** Its place in the document, such as ["profile", "timeline", "lanes", 0, "starts_s"]. */
  path: (string | number)[];
  /** i8 and i16 become Int32Array, i64 Float64Array; ns holds differences in nanoseconds
   * and becomes Float64Array in seconds. */
  type: "f64" | "f32" | "i64" | "i32" | "i16" | "i8" | "ns";
  length: number;
  /** Of ns: the first value. */
  first?: number;
}

/** Present if the page does not hold every sample of the profile. */
export interface Sampled {
  /** Number of samples in the profile, and of those in the page. */
  samples: number;
  kept: number;
  /** The same in words, shown with the samples. */
  text: string;
}

/** Replaces samples that are not in the page: a layer or the whole model has either
 * samples (samples_s, latency_samples_s) or a distribution. */
export interface Distribution {
  /** Index of the layer, -1 for the whole model. */
  layer: number;
  /** Number of samples that it replaces. */
  n: number;
  /** Edges of the histogram's bins, ascending, seconds. All bins but the last have equal
   * width; the last one ends at the largest sample. A bin includes its lower edge, the
   * last one also its upper edge. Two equal edges if all samples are equal. */
  edges_s: Column;
  /** Number of samples in each bin; one fewer than edges. They add up to n. */
  counts: Column;
  /** Quantiles at 0, 1 %, … 100 %: 101 figures, seconds. */
  quantiles_s: Column;
  /** Number of consecutive samples in each entry of the next three; the last entry may
   * have fewer. */
  stretch: number;
  /** Smallest, median and largest sample of each stretch, in run order. */
  mins_s: Column;
  medians_s: Column;
  maxs_s: Column;
}

/** Short texts of the summary, the same as in other reports. */
export interface Answers {
  /** Whether the memories of a target hold the model; absent where that is unknown. */
  fits?: string;
  /** Which engine of an accelerator bounds an inference; absent for other targets. */
  bound?: string;
  /** What the measurement is good for; absent if nobody judged it. */
  fit?: string;
  /** Main reason for which it is not fit for comparing. */
  reason?: string;
  lines?: { label: string; text: string }[];
}

/** A page shows a profile, a comparison, or a study of a model's compression. */
export interface StudyDocument {
  study: Study;
  columns: ColumnRef[];
  version?: string;
}

export interface ComparisonDocument extends Comparison {
  columns: ColumnRef[];
}

export interface Document {
  profile: Profile;
  /** Descriptions of all figures of the profile, those of opmeter first. */
  quantities: Quantity[];
  columns: ColumnRef[];
  /** Version of opmeter that wrote the page. */
  version?: string;
  answers: Answers;
  /** Present when distributions are. */
  sampled?: Sampled;
  distributions?: Distribution[];
}

const widths = { f64: 8, f32: 4, i64: 8, i32: 4, i16: 2, i8: 1, ns: 4 };

/** unpack streams the bytes of a part, so that memory never holds the whole text or all
 * bytes besides the result. */
function unpack(id: string): ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> {
  const nodes = [...document.querySelectorAll(`script[data-part="${id}"]`)];
  if (nodes.length === 0) throw new Error(`The page has no part "${id}".`);
  const gzipped = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull(c) {
        const n = nodes.shift();
        if (!n) return c.close();
        c.enqueue(decode(n.textContent ?? ""));
        n.remove(); // the text is not needed twice
      },
    },
    { highWaterMark: 0 },
  );
  return gzipped.pipeThrough(new DecompressionStream("gzip")).getReader() as ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
}

function decode(base64: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (s: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native(base64);
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < out.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

async function readDocument(): Promise<Document | ComparisonDocument | StudyDocument> {
  const from = unpack("document");
  const text = new TextDecoder();
  const parts: string[] = [];
  for (;;) {
    const { done, value } = await from.read();
    if (done) break;
    parts.push(text.decode(value, { stream: true }));
  }
  parts.push(text.decode());
  return JSON.parse(parts.join("")) as Document | ComparisonDocument | StudyDocument;
}

function make(ref: ColumnRef, bytes: ArrayBuffer): Column {
  switch (ref.type) {
    case "f64":
      return new Float64Array(bytes);
    case "f32":
      return new Float32Array(bytes);
    case "i64":
      // Sizes and addresses, far below 2^53, up to which a double is exact.
      return Float64Array.from(new BigInt64Array(bytes), Number);
    case "i32":
      return new Int32Array(bytes);
    case "i16":
      return new Int32Array(new Int16Array(bytes));
    case "i8":
      return new Int32Array(new Int8Array(bytes));
    case "ns": {
      const steps = new Int32Array(bytes);
      const out = new Float64Array(ref.length);
      let at = ref.first ?? 0;
      for (let i = 0; i < steps.length; i++) {
        at += steps[i];
        out[i] = at / 1e9;
      }
      return out;
    }
  }
}

/** load returns the document with its columns filled in. */
export async function load(): Promise<Document | ComparisonDocument | StudyDocument> {
  const doc = await readDocument();
  const from = unpack("columns");
  let rest: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  for (const c of doc.columns) {
    const bytes = new Uint8Array(c.length * widths[c.type]);
    for (let at = 0; at < bytes.length; ) {
      if (rest.length === 0) {
        const { done, value } = await from.read();
        if (done) throw new Error("The data end early: the file is truncated or damaged.");
        rest = value;
      }
      const n = Math.min(rest.length, bytes.length - at);
      bytes.set(rest.subarray(0, n), at);
      rest = rest.subarray(n);
      at += n;
    }
    let to = doc as unknown as Record<string | number, unknown>;
    for (const key of c.path.slice(0, -1)) to = to[key] as Record<string | number, unknown>;
    to[c.path[c.path.length - 1]] = make(c, bytes.buffer);
  }
  for (;;) if ((await from.read()).done) break; // verifies the checksum at the end
  return doc;
}
