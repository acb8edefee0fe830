package tflite

import (
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// node is a Node of a ModelRuntimeDetails.
type node struct {
	id              int64
	name, kind      string
	inputs, outputs []int64
	op              *operator
	delegate        string
	replaced        []int64
	to              int64 // the node of the delegate that replaced it, -1 if absent
}

type runtimeGraph struct {
	id, kind int64
	nodes    []node
	edges    map[int64]profile.Tensor
}

// edgeTypes are names of Edge.DataType.
var edgeTypes = map[int64]string{
	1: "float32", 2: "int32", 3: "uint8", 4: "int64", 5: "string", 6: "bool", 7: "int16", 8: "complex64", 9: "int8", 10: "float16", 11: "float64",
	12: "complex128", 13: "uint64", 14: "resource", 15: "variant", 16: "uint32", 17: "uint16", 18: "int4", 19: "bfloat16",
}

func readEdge(r protoread.Reader) (id int64, t profile.Tensor) {
	var kind int64
	bytes := int64(-1)
	var allocation string
	t.Shape = []int64{}
	_ = r.Scan(1, &id, 2, &t.Name, 3, &kind, 4, &t.Shape, 5, &allocation, 7, &bytes)
	t.Name, t.DType, t.Constant = draft.Text(t.Name), edgeTypes[kind], strings.Contains(allocation, "MmapRo")
	// Negative 32-bit integers are written with 64 or 32 bits.
	t.Bytes = draft.Count(int64(int32(bytes)), true)
	for i, d := range t.Shape {
		t.Shape[i] = max(-1, int64(int32(d)))
	}
	return id, t
}

func readNode(r protoread.Reader) node {
	n := node{to: -1}
	_ = r.Scan(1, &n.id, 2, &n.name, 3, &n.kind, 4, &n.inputs, 5, &n.outputs, 9, &n.to,
		8, func(r protoread.Reader) { _ = r.Scan(1, &n.delegate, 2, &n.replaced) },
		10, func(r protoread.Reader) {
			if o, err := readOperator(r); err == nil {
				n.op = &o
			}
		})
	return n
}

// readRuntime reads a ModelRuntimeDetails. Only this message says which nodes of the model a
// delegate's node replaced.
func readRuntime(d *draft.Draft, r protoread.Reader, name *string) error {
	left := draft.MaxLayers
	return r.Scan(1, name, 2, func(r protoread.Reader) {
		g := runtimeGraph{edges: map[int64]profile.Tensor{}}
		_ = r.Scan(1, &g.id, 5, &g.kind, 2, func(r protoread.Reader) {
			if id, t := readEdge(r); len(g.edges) < 4*draft.MaxLayers {
				g.edges[id] = t
			}
		}, 3, func(r protoread.Reader) {
			if left--; left >= 0 {
				g.nodes = append(g.nodes, readNode(r))
			}
		})
		g.build(d)
	})
}

// build makes layers of the nodes. Nodes that a delegate replaced are fused into its node.
func (g *runtimeGraph) build(d *draft.Draft) {
	at := map[int64]int{}
	for k := range g.nodes {
		n := &g.nodes[k]
		l := profile.Layer{Name: n.name, Op: n.kind, Inputs: g.tensors(n.inputs), Outputs: g.tensors(n.outputs)}
		h := runlog.Hint{}
		for _, t := range l.Outputs {
			h.Outputs = append(h.Outputs, t.Name)
		}
		if l.Name == "" && len(l.Outputs) > 0 {
			l.Name = l.Outputs[0].Name
		}
		switch {
		case g.kind == 2: // a graph of a delegate
			l.Scope = "delegate"
			h = runlog.Hint{}
		case n.delegate != "":
			if on, ok := delegates[n.delegate]; ok {
				l.Placement = &profile.Placement{On: on}
			}
			if l.Op == "" {
				l.Op = n.delegate
			}
		case g.id == 0:
			h.Index = &n.id
		}
		i := d.Add(l, h)
		if i < 0 {
			return
		}
		at[n.id] = i
		if n.op != nil {
			n.op.figures(d, i)
		}
		d.Option(i, "delegate", n.delegate)
	}
	fused := func(node, into int64) {
		i, ok := at[node]
		k, also := at[into]
		if ok && also && i != k {
			d.Layer(i).State, d.Layer(i).FusedInto = profile.Fused, new(int64(k))
			h := d.Hint(k)
			h.Outputs = append(h.Outputs, d.Hint(i).Outputs...)
		}
	}
	for k := range g.nodes {
		n := &g.nodes[k]
		if n.to >= 0 {
			fused(n.id, n.to)
		}
		for _, o := range n.replaced {
			if i, ok := at[o]; ok && d.Layer(i).State != profile.Fused {
				fused(o, n.id)
			}
		}
	}
}

// maxPorts limits the tensors of a node.
const maxPorts = 1000

func (g *runtimeGraph) tensors(ids []int64) (out []profile.Tensor) {
	for _, id := range ids[:min(len(ids), maxPorts)] {
		if t, ok := g.edges[id]; ok {
			out = append(out, t)
		} else if id < 0 {
			out = append(out, profile.Tensor{Absent: true})
		}
	}
	return out
}
