// Groups of nodes by scope or by block. A group is a run in execution order, so that edges
// between groups never lead back; a scope that occurs twice is two groups.
import type { Layer } from "../data/profile";
import { blocksOf, signature } from "../layers/blocks";
import type { Make, Node } from "./model";

export type Grouping = "none" | "scope" | "block";

/** Most boxes that are readable at once. */
export const readable = 60;

/** Least number of equal blocks in a row that are merged where there are too many boxes. */
const fewLike = 4;

export class Groups {
  private readonly paths: string[][];
  private readonly blocks: string[];

  constructor(
    private readonly layers: Layer[],
    private readonly by: Grouping,
    private readonly make: Make,
  ) {
    this.paths = by === "scope" ? scopes(layers) : [];
    this.blocks = by === "block" ? blocksOf(layers) : [];
  }

  /** of collects nodes of one body into groups. */
  of(nodes: Node[]): Node[] {
    if (this.by === "scope") return this.byScope(nodes, 0);
    if (this.by === "block") return this.alike(this.byBlock(nodes));
    return nodes;
  }

  /** few divides the content of a group that has too many boxes into parts of equal size. */
  private few(nodes: Node[]): Node[] {
    if (nodes.length <= readable) return nodes;
    const size = Math.ceil(nodes.length / Math.ceil(Math.sqrt(nodes.length)));
    const out: Node[] = [];
    for (let i = 0; i < nodes.length; i += size) {
      const part = nodes.slice(i, i + size);
      const [a, b] = [part[0].layer, leaves(part[part.length - 1]).at(-1)!.layer];
      out.push(part.length === 1 ? part[0] : this.make({ id: `p${a}`, kind: "group", layer: a, title: `#${a} to #${b}`, children: part }));
    }
    return out;
  }

  private byScope(nodes: Node[], depth: number): Node[] {
    const part = (n: Node) => this.paths[n.layer][depth] as string | undefined;
    const out: Node[] = [];
    for (const run of runs(nodes, part)) {
      const name = part(run[0]);
      if (name === undefined) {
        out.push(...run);
        continue;
      }
      const inside = this.byScope(run, depth + 1);
      // A single child is not a group; a group as only child gets both names.
      if (inside.length === 1 && inside[0].kind === "group") {
        inside[0].title = `${name}/${inside[0].title}`;
        out.push(inside[0]);
      } else if (run.length === 1 || (run.length === nodes.length && depth === 0)) out.push(...inside);
      else out.push(this.make({ id: `g${run[0].layer}.${depth}`, kind: "group", layer: run[0].layer, title: name, children: this.few(inside) }));
    }
    return out;
  }

  private byBlock(nodes: Node[]): Node[] {
    return runs(nodes, (n) => this.blocks[n.layer]).flatMap((run) => {
      const title = this.blocks[run[0].layer];
      return title === "" || run.length === 1 ? run : [this.make({ id: `k${run[0].layer}`, kind: "group", layer: run[0].layer, title, children: this.few(run) })];
    });
  }

  /** alike merges runs of blocks with equal operators into one box where there are too
   * many boxes. */
  private alike(nodes: Node[]): Node[] {
    if (nodes.length <= readable) return nodes;
    const sign = new Map(nodes.map((n) => [n, n.kind === "group" ? signature(leaves(n).map((c) => this.layers[c.layer])) : ""]));
    return runs(nodes, (n) => sign.get(n)).flatMap((run) =>
      run.length < fewLike || sign.get(run[0]) === ""
        ? run
        : [this.make({ id: `r${run[0].layer}`, kind: "group", layer: run[0].layer, title: `${run.length.toLocaleString("en-GB")} blocks of ${leaves(run[0]).length}`, children: this.few(run) })],
    );
  }
}

/** leaves lists the nodes of the layers in a group, those of bodies left out. */
function leaves(n: Node): Node[] {
  return n.kind === "group" ? n.children.flatMap(leaves) : [n];
}

/** runs splits a list where the key changes. */
function runs(nodes: Node[], key: (n: Node) => string | undefined): Node[][] {
  const out: Node[][] = [];
  let before: string | undefined;
  for (const n of nodes) {
    const k = key(n);
    if (out.length > 0 && k === before) out[out.length - 1].push(n);
    else out.push([n]);
    before = k;
  }
  return out;
}

/** scopes returns the path of each layer. A layer with the name of a scope, or with the
 * same name as other layers, belongs to the scope of that name: exporters name layers
 * after their module. */
function scopes(layers: Layer[]): string[][] {
  const known = new Set<string>();
  const named = new Map<string, number>();
  for (const l of layers) {
    const parts = l.scope?.split("/") ?? [];
    for (let i = 1; i <= parts.length; i++) known.add(parts.slice(0, i).join("/"));
    if (l.name) named.set(l.name, (named.get(l.name) ?? 0) + 1);
  }
  return layers.map((l) => {
    const own = l.name && (known.has(l.name) || named.get(l.name)! > 1) ? l.name : l.scope;
    return own ? own.split("/") : [];
  });
}

/** automatic returns the default grouping: none if all boxes are readable, else the one
 * with fewer boxes. boxes returns the number of boxes of a grouping. */
export function automatic(boxes: (by: Grouping) => number, scoped: boolean): Grouping {
  const all = boxes("none");
  if (all <= readable) return "none";
  const scope = scoped ? boxes("scope") : Infinity;
  // Scopes have names, blocks often only numbers.
  if (scope <= readable && scope < 0.8 * all) return "scope";
  const block = boxes("block");
  if (scope <= block && scope < 0.8 * all) return "scope";
  return block < all ? "block" : "none";
}
