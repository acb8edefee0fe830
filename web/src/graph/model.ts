// The graph of a profile: layers as nodes, tensors as edges, and groups of nodes:
// control-flow bodies, scopes, blocks.
import { best, counted, reached, shared } from "../figures/quantities";
import { elsewhere } from "../figures/words";
import type { Layer, Profile, Tensor } from "../data/profile";
import { Groups, readable, type Grouping } from "./groups";

export interface Node {
  id: string;
  kind: "layer" | "group" | "input" | "output" | "source";
  /** Index of the layer; of a group that of its first one, -1 for inputs and outputs. */
  layer: number;
  title: string;
  /** Layers whose cost belongs to the node. */
  members: number[];
  /** Child nodes. A layer with children is control flow. */
  children: Node[];
  parent?: Node;
  /** Position in depth-first order; edges lead to higher ones. */
  order: number;
}

export interface Edge {
  from: Node;
  to: Node;
  tensor?: Tensor;
  /** From the execution order only, because no tensor connects the nodes. */
  guess?: boolean;
}

export interface Graph {
  root: Node;
  edges: Edge[];
  /** Node by layer. */
  byLayer: Map<number, Node>;
  all: Node[];
}

export interface Choice {
  source: boolean;
  grouping: Grouping;
}

/** Make creates a node and registers it. */
export type Make = (n: Omit<Node, "members" | "children" | "order"> & Partial<Node>) => Node;

/** Most inputs and most outputs of the model in the graph. */
const mostPorts = 24;

export function build(p: Profile, c: Choice): Graph {
  const { ins, outs, ...made } = nodes(p, c);
  return { ...made, edges: connect(p, made.byLayer, ins, outs, made.all) };
}

/** boxes is the number of top-level nodes, without inputs and outputs of the model. */
export function boxes(p: Profile, c: Choice): number {
  return nodes(p, c).root.children.filter((n) => n.layer >= 0).length;
}

function nodes(p: Profile, c: Choice): Omit<Graph, "edges"> & { ins: Node[]; outs: Node[] } {
  const layers = p.layers;
  const byLayer = new Map<number, Node>();
  const all: Node[] = [];
  const make: Make = (n) => {
    const node: Node = { members: [], children: [], order: 0, ...n };
    all.push(node);
    return node;
  };
  const groups = new Groups(layers, c.grouping, make);
  const root = make({ id: "root", kind: "group", layer: -1, title: p.model.name });

  // Nodes of the layers. Fused layers and those computed at load have a node only in the
  // graph of the model file.
  for (const l of layers) {
    if (!c.source && elsewhere(l)) continue;
    const n = make({ id: `l${l.index}`, kind: "layer", layer: l.index, title: l.op, members: [l.index] });
    byLayer.set(l.index, n);
    const nodes = l.provenance?.source_nodes ?? [];
    if (c.source && nodes.length > 1) {
      n.children = nodes.map((s, i) => make({ id: `s${l.index}.${i}`, kind: "source", layer: l.index, title: s.op ?? s.name ?? `node ${s.node}`, parent: n }));
    }
  }
  for (const l of layers) {
    if (byLayer.has(l.index) || l.fused_into === undefined) continue;
    const host = doer(layers, l.index);
    byLayer.get(host)?.members.push(l.index);
  }

  // Bodies are children of their owner.
  const top: Node[] = [];
  const inside = new Map<number, Node[]>();
  for (const l of layers) {
    const n = byLayer.get(l.index);
    if (!n) continue;
    const owner = l.parent !== undefined && l.parent !== l.index ? byLayer.get(doer(layers, l.parent)) : undefined;
    if (!owner) top.push(n);
    else inside.set(owner.layer, [...(inside.get(owner.layer) ?? []), n]);
  }
  for (const [owner, nodes] of inside) {
    const n = byLayer.get(owner)!;
    const graphs = [...new Set(nodes.map((x) => layers[x.layer].graph ?? ""))];
    if (graphs.length < 2) {
      n.children = groups.of(nodes);
      continue;
    }
    n.children = graphs.map((g, i) => {
      const body = nodes.filter((x) => (layers[x.layer].graph ?? "") === g);
      return make({ id: `b${owner}.${i}`, kind: "group", layer: body[0].layer, title: g || "body", children: groups.of(body) });
    });
  }
  const ins = (p.model.inputs ?? []).slice(0, mostPorts).map((t, i) => make({ id: `i${i}`, kind: "input", layer: -1, title: t.name ?? "input" }));
  const outs = (p.model.outputs ?? []).slice(0, mostPorts).map((t, i) => make({ id: `o${i}`, kind: "output", layer: -1, title: t.name ?? "output" }));
  root.children = [...ins, ...groups.of(top), ...outs];
  adopt(root);

  return { root, byLayer, all, ins, outs };
}

/** doer follows fused layers to the one that runs. */
function doer(layers: Layer[], i: number): number {
  for (let step = 0; step < 64; step++) {
    const into = layers[i]?.fused_into;
    if (into === undefined || into === i) break;
    i = into;
  }
  return i;
}

/** adopt sets parents and the order, and collects members. */
function adopt(root: Node) {
  let order = 0;
  const visit = (n: Node) => {
    n.order = order++;
    for (const c of n.children) {
      c.parent = n;
      visit(c);
      if (n.kind === "group" || inner(n)) n.members = n.members.concat(c.members);
    }
  };
  visit(root);
}

/** inner reports whether a node is a layer with a body. */
function inner(n: Node): boolean {
  return n.kind === "layer" && n.children.length > 0 && n.children[0].kind !== "source";
}

/** producers finds the layer that writes an input of a layer: the last one before it in its
 * graph, or else in the graphs around it. It is -1 for one of the model's inputs, undefined
 * where nothing is known to write it. */
export function producers(layers: Layer[], inputs: Set<string | undefined>): (name: string, reader: Layer) => number | undefined {
  const made = new Map<string, number[]>();
  for (const l of layers) {
    for (const t of l.outputs ?? []) {
      if (!t.name) continue;
      const k = `${l.graph ?? ""}\n${t.name}`;
      const list = made.get(k);
      if (list) list.push(l.index);
      else made.set(k, [l.index]);
    }
  }
  const within = (name: string, graph: string, before: number): number | undefined => {
    const list = made.get(`${graph}\n${name}`);
    if (!list) return undefined;
    for (let i = list.length - 1; i >= 0; i--) if (list[i] < before) return list[i];
    return list[0] === before ? undefined : list[0];
  };
  return (name, reader) => {
    for (let at: Layer | undefined = reader, step = 0; at && step < 64; step++) {
      const m = within(name, at.graph ?? "", at === reader ? at.index : at.index + 1);
      if (m !== undefined) return m;
      if (!at.graph && inputs.has(name)) return -1;
      at = at.parent !== undefined && at.parent !== at.index ? layers[at.parent] : undefined;
    }
    return undefined;
  };
}

function connect(p: Profile, byLayer: Map<number, Node>, ins: Node[], outs: Node[], all: Node[]): Edge[] {
  const layers = p.layers;
  const inputs = new Map((p.model.inputs ?? []).map((t, i) => [t.name, ins[i]] as const));
  const writer = producers(layers, new Set(inputs.keys()));
  const edges: Edge[] = [];
  const seen = new Set<string>();
  const add = (from: Node | undefined, to: Node | undefined, tensor?: Tensor, guess?: boolean) => {
    if (!from || !to || from === to) return;
    const k = `${from.id} ${to.id} ${tensor?.name ?? ""}`;
    if (seen.has(k)) return;
    seen.add(k);
    edges.push({ from, to, tensor, guess });
  };
  const node = (i: number) => byLayer.get(i) ?? byLayer.get(doer(layers, i));
  const linked = new Set<Node>();
  for (const l of layers) {
    const to = node(l.index);
    if (!to || (l.state === "folded" && !byLayer.has(l.index))) continue;
    for (const t of l.inputs ?? []) {
      if (!t.name || t.absent || t.constant) continue;
      const m = writer(t.name, l);
      const from = m === undefined || (m >= 0 && layers[m].state === "folded" && !byLayer.has(m)) ? undefined : m < 0 ? inputs.get(t.name) : node(m);
      if (from && from !== to) {
        add(from, to, t);
        linked.add(from);
        linked.add(to);
      }
    }
  }
  (p.model.outputs ?? []).slice(0, outs.length).forEach((t, i) => {
    // An output is read after all layers.
    const m = t.name ? writer(t.name, { index: layers.length } as Layer) : undefined;
    add(m === undefined ? undefined : m < 0 ? inputs.get(t.name) : node(m), outs[i], t);
  });
  // Nodes without a common tensor are connected with the one executed before.
  let before: Node | undefined;
  for (const l of layers) {
    const n = byLayer.get(l.index);
    if (!n || l.parent !== undefined) continue;
    if (before && !linked.has(n)) add(before, n, undefined, true);
    before = n;
  }
  for (const n of all) if (n.children[0]?.kind === "source") for (let i = 1; i < n.children.length; i++) add(n.children[i - 1], n.children[i], undefined, true);
  return edges;
}

/** A figure to colour nodes by. */
export interface Cost {
  name: string;
  unit: "s" | "count" | "bytes" | "J" | "part";
  of: (l: Layer) => number | undefined;
  /** The figure adds up over a group. */
  adds: boolean;
  /** Key of the figure, where several layers may have the same weights. */
  key?: string;
}

export const costs: Record<string, Cost> = {
  // A body that was never entered has no time.
  time: { name: "time", unit: "s", of: (l) => (l.state === "not_reached" ? undefined : best(l.latency_s)), adds: true },
  cpu: { name: "processor cycles", unit: "count", of: (l) => best(l.cpu_cycles), adds: true },
  instructions: { name: "instructions", unit: "count", of: (l) => counted(l, "instructions"), adds: true },
  ticks: { name: "ticks", unit: "count", of: (l) => counted(l, "ticks"), adds: true },
  macs: { name: "MACs", unit: "count", of: (l) => l.macs, adds: true },
  ops: { name: "operations", unit: "count", of: (l) => l.ops, adds: true },
  bytes: { name: "bytes moved", unit: "bytes", of: (l) => (l.bytes_read === undefined || l.bytes_written === undefined ? undefined : l.bytes_read + l.bytes_written), adds: true },
  weights: { name: "bytes of weights", unit: "bytes", of: (l) => l.weights_bytes, adds: true, key: "weights_bytes" },
  output: { name: "bytes of outputs", unit: "bytes", of: (l) => total((l.outputs ?? []).map((t) => t.bytes)), adds: true },
  energy: { name: "energy", unit: "J", of: (l) => best(l.energy_j), adds: true },
  accelerator: { name: "accelerator cycles", unit: "count", of: (l) => best(l.accelerator_cycles), adds: true },
  expected: { name: "baseline time", unit: "s", of: (l) => best(l.expected_s), adds: true },
  difference: { name: "difference from baseline", unit: "s", of: (l) => apart(best(l.latency_s), best(l.expected_s)), adds: true },
  spread: { name: "spread of the time", unit: "part", of: (l) => (l.latency_s?.mad !== undefined && l.latency_s.median ? (1.4826 * l.latency_s.mad) / l.latency_s.median : undefined), adds: false },
  zeros: { name: "zeros among the weights", unit: "part", of: (l) => l.sparsity?.weights, adds: false },
};

function apart(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Math.abs(a - b);
}

function total(vs: (number | undefined)[]): number | undefined {
  let sum: number | undefined;
  for (const v of vs) if (v !== undefined) sum = (sum ?? 0) + v;
  return sum;
}

/** summed adds up a figure that does over the layers that an inference reached. */
export function summed(layers: Layer[], c: Cost): number | undefined {
  return total(
    layers.filter(reached).map((l) => {
      const v = c.of(l);
      return v === undefined ? undefined : v - shared(l, c.key ?? "");
    }),
  );
}

/** cost of a node: the figure of a single layer, the sum of several, or the maximum for
 * figures that do not add up. */
export function cost(n: Node, c: Cost, layers: Layer[]): number | undefined {
  if (c.adds && n.members.length > 1) return summed(n.members.map((i) => layers[i]), c);
  const vs = n.members.map((i) => c.of(layers[i]));
  const known = vs.filter((v) => v !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
}

/** spine returns the nodes that are open from the start: those with most of the cost or of
 * the layers, and within them again, so that the first view shows where the cost is. */
export function spine(g: Graph, c: Cost | undefined, layers: Layer[]): Set<Node> {
  const out = new Set<Node>();
  const whole = c?.adds ? (summed(layers, c) ?? 0) : 0;
  const visit = (n: Node) => {
    for (const k of n.children) {
      if (k.children.length < 2 || k.children[0].kind === "source") continue;
      const costly = whole > 0 && (cost(k, c!, layers) ?? 0) > 0.5 * whole;
      const large = k.members.length > 0.6 * layers.length && k.children.length <= readable;
      if (!costly && !large) continue;
      out.add(k);
      visit(k);
    }
  };
  visit(g.root);
  return out;
}
