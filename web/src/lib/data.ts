// Reads what the program put into the page: a JSON document, and beside it the
// long columns of figures as little-endian binary, both gzipped and in base64.
import type { Column, Profile } from "./profile";

/** How a column stands in the binary part. */
interface ColumnRef {
  /** Where it belongs, such as ["timeline", "lanes", 0, "starts_s"]. */
  path: (string | number)[];
  type: "f64" | "f32" | "i32";
  /** Byte position, a multiple of 8. */
  offset: number;
  length: number;
}

interface Document {
  profile: Profile;
  columns: ColumnRef[];
  /** Version of opmeter that wrote the page. */
  version?: string;
}

const arrays = { f64: Float64Array, f32: Float32Array, i32: Int32Array };

async function unpack(id: string): Promise<ArrayBuffer> {
  const nodes = document.querySelectorAll(`script[data-part="${id}"]`);
  if (nodes.length === 0) throw new Error(`The page holds no part "${id}".`);
  const gzipped = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(c) {
      for (const n of nodes) {
        c.enqueue(decode(n.textContent ?? ""));
        n.textContent = ""; // the text is not needed twice
      }
      c.close();
    },
  });
  return new Response(gzipped.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

function decode(base64: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (s: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native(base64);
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < out.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

/** load returns the profile with its columns in place. */
export async function load(): Promise<Document> {
  const [text, binary] = await Promise.all([unpack("document"), unpack("columns")]);
  const doc = JSON.parse(new TextDecoder().decode(text)) as Document;
  for (const c of doc.columns) {
    let at = doc.profile as unknown as Record<string | number, unknown>;
    for (const key of c.path.slice(0, -1)) at = at[key] as Record<string | number, unknown>;
    at[c.path[c.path.length - 1]] = new arrays[c.type](binary, c.offset, c.length) as Column;
  }
  return doc;
}
