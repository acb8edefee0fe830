// Blocks of layers: the numbered parts that models repeat, such as
// "encoder/layer.0", "encoder/layer.1", …

/** blocks gives the block of each path, "" for none. A block is the beginning of a
 * path up to a part that ends in a number, where the same beginning occurs with
 * several numbers and holds two paths or more on average. Of several, the outermost
 * counts. */
export function blocks(paths: string[]): string[] {
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

/** prefixes lists the beginnings of a path up to each part that ends in a number. */
function prefixes(path: string): string[] {
  const out: string[] = [];
  const parts = /\d+(?=[/.]|$)/g;
  for (let m = parts.exec(path); m; m = parts.exec(path)) out.push(path.slice(0, m.index + m[0].length));
  return out;
}
