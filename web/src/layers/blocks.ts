// Blocks of layers: the repeated parts of a model, such as "encoder/layer.0",
// "encoder/layer.1", …, by name; without such names the parts between points where only
// a single tensor is live.
import type { Layer } from "../data/profile";

/** blocksOf returns the block of each layer by index, "" for none: by names if they cover
 * at least half of the layers that run, else by connections. */
export function blocksOf(layers: Layer[]): string[] {
  const run = layers.filter((l) => l.state !== "folded");
  const names = new Array<string>(layers.length).fill("");
  named(run.map((l) => l.scope || l.name || "")).forEach((b, i) => (names[run[i].index] = b));
  return run.length > 0 && 2 * run.filter((l) => names[l.index] !== "").length >= run.length ? names : connected(layers);
}

/** named returns the block of each path, "" for none. A block is a prefix of a path up to
 * a part that ends in a number, if the same prefix occurs with several numbers and has two
 * paths or more on average. The outermost one counts. */
export function named(paths: string[]): string[] {
  const candidates = paths.map(prefixes);
  const families = new Map<string, { members: Set<string>; paths: number }>();
  for (const list of candidates) {
    for (const p of list) {
      const family = p.replace(/\d+$/, "#");
      let f = families.get(family);
      if (!f) families.set(family, (f = { members: new Set(), paths: 0 }));
      f.members.add(p);
      f.paths++;
    }
  }
  return candidates.map(
    (list) =>
      list.find((p) => {
        const f = families.get(p.replace(/\d+$/, "#"))!;
        return f.members.size >= 2 && f.paths >= 2 * f.members.size;
      }) ?? "",
  );
}

/** prefixes lists the prefixes of a path up to each part that ends in a number. */
function prefixes(path: string): string[] {
  const out: string[] = [];
  const parts = /\d+(?=[/.]|$)/g;
  for (let m = parts.exec(path); m; m = parts.exec(path)) out.push(path.slice(0, m.index + m[0].length));
  return out;
}

/** connected returns "block 1", "block 2", … by the connections of layers, "" for a single
 * layer. */
export function connected(layers: Layer[]): string[] {
  const out = new Array<string>(layers.length).fill("");
  const bodies = new Map<string, Layer[]>();
  for (const l of layers) {
    if (l.state === "folded") continue;
    const k = `${l.parent ?? ""}\n${l.graph ?? ""}`;
    const list = bodies.get(k);
    if (list) list.push(l);
    else bodies.set(k, [l]);
  }
  let n = 0;
  for (const body of bodies.values()) {
    for (const unit of repeated(pieces(body))) {
      if (unit.length < 2) continue;
      n++;
      for (const l of unit) out[l.index] = `block ${n}`;
    }
  }
  return out;
}

/** Most layers of a piece of a chain: a chain without weights has no other border. */
const longest = 8;

/** pieces cuts a body where a single tensor is live: branches together with their join,
 * and in chains each layer with weights together with the following ones without. */
function pieces(body: Layer[]): Layer[][] {
  const first = new Map<string, number>();
  const last = new Map<string, number>();
  const uses = new Map<string, number>();
  body.forEach((l, i) => {
    for (const t of l.inputs ?? []) {
      if (!t.name || t.constant || t.absent) continue;
      if (!first.has(t.name)) first.set(t.name, i);
      last.set(t.name, i);
      uses.set(t.name, (uses.get(t.name) ?? 0) + 1);
    }
  });
  // A tensor that is used throughout, such as a mask, is not part of the chain.
  const far = Math.max(40, body.length / 4);
  const everywhere = (name: string) => last.get(name)! - first.get(name)! > far && uses.get(name)! > 2;
  /** open: tensors that are live after the current layer, with their last use. */
  const open = new Map<string, number>();
  const out: Layer[][] = [];
  let run: Layer[] = [];
  const close = () => {
    if (run.length > 0) out.push(run);
    run = [];
  };
  let single = true;
  body.forEach((l, i) => {
    if (single && ((l.params ?? 0) > 0 || run.length >= longest)) close();
    run.push(l);
    // A tensor from outside is live from its first use on.
    for (const t of [...(l.inputs ?? []), ...(l.outputs ?? [])]) {
      const end = t.name && !t.constant ? last.get(t.name) : undefined;
      if (end !== undefined && end > i && !everywhere(t.name!)) open.set(t.name!, end);
    }
    for (const [k, end] of open) if (end <= i) open.delete(k);
    const before = single;
    single = open.size <= 1;
    // A branched part ends at its join, and starts after its fork.
    if (single && (!before || [...open.values()].some((end) => end > i + 1))) close();
  });
  close();
  return out;
}

/** Most pieces of a repeated unit. */
const period = 6;

/** repeated joins pieces into units that occur at least three times in a row. */
function repeated(list: Layer[][]): Layer[][] {
  const sign = list.map(signature);
  const out: Layer[][] = [];
  for (let i = 0; i < list.length; ) {
    let best = { p: 1, n: 1 };
    for (let p = 1; p <= period && i + 3 * p <= list.length; p++) {
      let n = 1;
      while (i + (n + 1) * p <= list.length && same(sign, i, i + n * p, p)) n++;
      if (n >= 3 && n * p > best.n * best.p) best = { p, n };
    }
    for (let k = 0; k < best.n; k++, i += best.p) out.push(list.slice(i, i + best.p).flat());
  }
  return out;
}

/** same reports whether n pieces from a and from b on have equal signatures. */
function same(sign: string[], a: number, b: number, n: number): boolean {
  for (let k = 0; k < n; k++) if (sign[a + k] !== sign[b + k]) return false;
  return true;
}

/** signature identifies a repeated part by its operators. */
export function signature(layers: Layer[]): string {
  return layers.map((l) => l.op).join(" ");
}
