package tflite

import (
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// delegated reports whether an operator's type is that of a delegate's node.
func delegated(op string) bool { return strings.Contains(strings.ToLower(op), "delegate") }

// node is a Node of a ModelRuntimeDetails.
type node struct {
	id              int64
	name, kind      string
	inputs, outputs []int64
	op              *operator
	delegate        string
	replaced        []int64
	to              int64 // the node of a delegate that took it, -1 for none
}

type runtimeGraph struct {
	id        int64
	delegate  bool
	nodes     []node
	edges     map[int64]profile.Tensor
	execution []int64
}

// edgeTypes are names of Edge.DataType.
var edgeTypes = map[int64]string{
	1: "float32", 2: "int32", 3: "uint8", 4: "int64", 5: "string", 6: "bool", 7: "int16", 8: "complex64", 9: "int8", 10: "float16", 11: "float64",
	12: "complex128", 13: "uint64", 14: "resource", 15: "variant", 16: "uint32", 17: "uint16", 18: "int4", 19: "bfloat16",
}

func readEdge(r protoread.Reader) (id int64, t profile.Tensor) {
	for r.Next() {
		switch r.Num() {
		case 1:
			id = r.Int()
		case 2:
			t.Name = draft.Text(r.Str())
		case 3:
			t.DType = edgeTypes[r.Int()]
		case 4:
			t.Shape = r.Ints(t.Shape)
		case 5:
			t.Constant = strings.Contains(r.Str(), "MmapRo")
		case 7:
			if n := int64(int32(r.Int())); n >= 0 {
				t.Bytes = &n
			}
		}
	}
	if t.Shape == nil {
		t.Shape = []int64{}
	}
	for i, d := range t.Shape {
		t.Shape[i] = max(-1, int64(int32(d)))
	}
	return id, t
}

func readNode(r protoread.Reader) node {
	n := node{to: -1}
	for r.Next() {
		switch r.Num() {
		case 1:
			n.id = r.Int()
		case 2:
			n.name = r.Str()
		case 3:
			n.kind = r.Str()
		case 4:
			n.inputs = r.Ints(n.inputs)
		case 5:
			n.outputs = r.Ints(n.outputs)
		case 8:
			m := r.Message()
			for m.Next() {
				switch m.Num() {
				case 1:
					n.delegate = m.Str()
				case 2:
					n.replaced = m.Ints(n.replaced)
				}
			}
		case 9:
			n.to = r.Int()
		case 10:
			if o, err := readOperator(r.Message()); err == nil {
				n.op = &o
			}
		}
	}
	return n
}

// readRuntime reads a ModelRuntimeDetails: the only bridge between a delegate's node and
// those of the model that it replaced.
func readRuntime(b []byte, name string) (*draft.Draft, error) {
	d := draft.New("tflite-benchmark", name, "TensorFlow Lite")
	r := protoread.NewReader(b)
	left := draft.MaxLayers
	for r.Next() {
		switch r.Num() {
		case 1:
			if s := r.Str(); s != "" {
				d.P.Model.Name = draft.Text(strings.TrimSuffix(s, ".tflite"))
			}
		case 2:
			g := runtimeGraph{edges: map[int64]profile.Tensor{}}
			m := r.Message()
			for m.Next() {
				switch m.Num() {
				case 1:
					g.id = m.Int()
				case 2:
					if id, t := readEdge(m.Message()); len(g.edges) < 4*draft.MaxLayers {
						g.edges[id] = t
					}
				case 3:
					if left--; left >= 0 {
						g.nodes = append(g.nodes, readNode(m.Message()))
					}
				case 4:
					g.execution = m.Ints(g.execution)
				case 5:
					g.delegate = m.Int() == 2
				}
			}
			g.build(d)
		}
	}
	return d, r.Err()
}

// build makes layers of the nodes. Nodes that a delegate took are fused into its node.
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
		case g.delegate:
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
		if n.delegate != "" {
			d.Option(i, "delegate", n.delegate)
		}
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

// maxPorts bounds the tensors of a node.
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
