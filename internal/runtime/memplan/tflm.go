package memplan

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TFLMAlign is the alignment of every planned buffer of TensorFlow Lite Micro.
const TFLMAlign = 16

// OfflineKey names the metadata entry that holds an offline plan.
const OfflineKey = "OfflineMemoryAllocation"

// Scratch is memory that an operator requests in addition to its tensors.
type Scratch struct {
	Graph, Node int
	Bytes       int
}

// Entry is one placed buffer of a plan.
type Entry struct {
	Graph   int
	Value   int // value id in the graph, -1 for scratch
	Scratch int // index of the scratch request, -1 for tensors
	Bytes   int // as requested; the plan rounds it up to [TFLMAlign]
	Offset  int // from the start of the arena
	// First and Last bound the lifetime in allocation scopes, both inclusive. Scope 0 is before
	// the first operator; each operator opens the next one, and so does each entry into a
	// subgraph.
	First, Last int
	Offline     bool // the offset was fixed by the model's offline plan
}

// Plan is the planned, non-persistent part of an arena.
type Plan struct {
	Entries []Entry // tensors by graph and value, then scratch
	Bytes   int     // size of the part: the largest end of a buffer
	Nodes   []int   // main-graph node by scope, -1 before the first; for bodies their owner
}

// TFLM reproduces the greedy planner of TensorFlow Lite Micro for a TFLite model: lifetimes by
// allocation scope, the model's offline plan if present, then first fit by size. The persistent
// part of an arena (tensor structures, operator data, variables) depends on the build and is not
// part of the plan.
//
// It fails when a tensor that needs memory has no static shape, or when the offline plan does not
// match the model.
func TFLM(m *graph.Model, scratch []Scratch) (*Plan, error) {
	p := &tflm{m: m, scratch: scratch, nodes: []int{-1}, first: map[[2]int]int{}, last: map[[2]int]int{}, scratchLife: make([][2]int, len(scratch))}
	for i := range p.scratchLife {
		p.scratchLife[i] = [2]int{-1, -1}
	}
	if err := p.mark(0, 0); err != nil {
		return nil, err
	}
	fixed, err := offline(m)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Nodes: p.nodes}
	k := 0
	for gi, g := range m.Graphs {
		for id, v := range g.Values {
			at := -1
			if fixed != nil {
				at = fixed[k]
			}
			k++
			if v.Const != nil && !v.Variable || v.Type == tensor.Resource || v.Type == tensor.Variant {
				continue
			}
			if v.Variable && at < 0 {
				continue
			}
			first, used := p.first[[2]int{gi, id}]
			if !used {
				first = -1
			}
			last, ok := p.last[[2]int{gi, id}]
			if !ok {
				last = first
			}
			shape, err := staticShape(v)
			if err != nil && used {
				return nil, fmt.Errorf("tensor %d %q of graph %d: %w: a fixed arena cannot be planned", id, v.Name, gi, err)
			}
			n := v.Type.Bytes(tensor.Elements(shape))
			if err != nil || n == 0 {
				continue
			}
			plan.Entries = append(plan.Entries, Entry{Graph: gi, Value: id, Scratch: -1, Bytes: n, Offset: at, First: first, Last: last, Offline: at >= 0})
		}
	}
	for i, s := range scratch {
		if s.Bytes > 0 {
			plan.Entries = append(plan.Entries, Entry{Graph: s.Graph, Value: -1, Scratch: i, Bytes: s.Bytes, Offset: -1, First: p.scratchLife[i][0], Last: p.scratchLife[i][1]})
		}
	}
	plan.place()
	return plan, nil
}

// staticShape returns the shape that TensorFlow Lite Micro uses: the stored one, even where the
// file declares dimensions as unknown.
func staticShape(v *graph.Value) ([]int, error) {
	shape := v.Shape
	if v.Placeholder != nil {
		shape = v.Placeholder
	}
	if _, err := tensor.CheckShape(v.Type, shape); err != nil {
		return nil, err
	}
	if !v.HasShape {
		return nil, errors.New("no shape")
	}
	return shape, nil
}

type tflm struct {
	m           *graph.Model
	scratch     []Scratch
	scope       int
	nodes       []int // by scope
	first, last map[[2]int]int
	scratchLife [][2]int
}

// maxDepth bounds the nesting of subgraphs, which could be endless in a malicious file.
const maxDepth = 32

// bodies lists the attributes that name subgraphs in the order in which the planner enters them.
var bodies = []string{"then_subgraph_index", "else_subgraph_index", "cond_subgraph_index", "body_subgraph_index", "init_subgraph_index"}

func (p *tflm) mark(gi, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("graph %d: subgraphs nest deeper than %d", gi, maxDepth)
	}
	if p.scope > 1<<22 {
		return fmt.Errorf("graph %d: subgraphs are entered too often to plan", gi)
	}
	g := p.m.Graphs[gi]
	create := func(id int) {
		if id >= 0 {
			if _, ok := p.first[[2]int{gi, id}]; !ok {
				p.first[[2]int{gi, id}] = p.scope
			}
		}
	}
	use := func(id int) {
		if id >= 0 {
			p.last[[2]int{gi, id}] = max(p.scope, p.last[[2]int{gi, id}])
		}
	}
	for _, id := range g.Inputs {
		create(id)
		use(id)
	}
	for i, n := range g.Nodes {
		at := p.nodes[p.scope] // in a body: the owner
		if depth == 0 {
			at = i
		}
		p.nextScope(at)
		for _, id := range n.Outputs {
			create(id)
		}
		start := p.scope
		switch n.Op {
		case "IF", "WHILE", "CALL_ONCE":
			for _, a := range bodies {
				if body, ok := n.Attrs.Graph(a); ok {
					p.nextScope(at)
					if err := p.mark(body, depth+1); err != nil {
						return err
					}
				}
			}
		}
		for _, id := range n.Inputs {
			use(id)
		}
		for _, id := range n.Outputs {
			use(id)
		}
		for k, s := range p.scratch {
			if s.Graph == gi && s.Node == i {
				p.scratchLife[k] = [2]int{start, p.scope}
			}
		}
	}
	for _, id := range g.Outputs {
		use(id)
	}
	return nil
}

// nextScope begins the next scope, for a node of the main graph.
func (p *tflm) nextScope(node int) {
	p.scope++
	p.nodes = append(p.nodes, node)
}

// offline reads the model's offline plan: one offset per value of all graphs, -1 for values that
// are still to be planned. It returns nil when the model has no offline plan.
func offline(m *graph.Model) ([]int, error) {
	for _, md := range m.Metadata {
		if md.Name != OfflineKey {
			continue
		}
		values := 0
		for _, g := range m.Graphs {
			values += len(g.Values)
		}
		if len(md.Data) < 12 || len(md.Data)%4 != 0 {
			return nil, fmt.Errorf("metadata %s: %d bytes are not a list of 32-bit integers with a header", OfflineKey, len(md.Data))
		}
		// Header: version, subgraph, number of tensors.
		if n := int(int32(binary.LittleEndian.Uint32(md.Data[8:]))); n != values || len(md.Data)/4-3 < n {
			return nil, fmt.Errorf("metadata %s: has %d offsets and says %d; the model has %d tensors", OfflineKey, len(md.Data)/4-3, n, values)
		}
		out := make([]int, values)
		for i := range out {
			out[i] = int(int32(binary.LittleEndian.Uint32(md.Data[12+4*i:])))
			if out[i] < -1 {
				return nil, fmt.Errorf("metadata %s: tensor %d has offset %d", OfflineKey, i, out[i])
			}
		}
		return out, nil
	}
	return nil, nil
}

func alignUp(n int) int { return (n + TFLMAlign - 1) / TFLMAlign * TFLMAlign }

// place sets the offsets. Fixed buffers come first in their order. The others follow by size, and
// among equals the later one first, because the original fills its list from the end and sorts it
// stably.
func (p *Plan) place() {
	var order []int
	for i := range p.Entries {
		if p.Entries[i].Offline {
			order = append(order, i)
		}
	}
	fixed := len(order)
	for i := len(p.Entries) - 1; i >= 0; i-- {
		if !p.Entries[i].Offline {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order[fixed:], func(a, b int) int {
		return cmp.Compare(alignUp(p.Entries[b].Bytes), alignUp(p.Entries[a].Bytes))
	})
	placed := make([]int, 0, len(order)) // by offset, later among equals last
	for k, i := range order {
		e := &p.Entries[i]
		size := alignUp(e.Bytes)
		if k >= fixed {
			at := 0
			for _, j := range placed {
				q := &p.Entries[j]
				if q.First > e.Last || q.Last < e.First {
					continue
				}
				if q.Offset-at >= size {
					break
				}
				at = max(at, q.Offset+alignUp(q.Bytes))
			}
			e.Offset = at
		}
		at, _ := slices.BinarySearchFunc(placed, e.Offset+1, func(j, off int) int { return cmp.Compare(p.Entries[j].Offset, off) })
		placed = slices.Insert(placed, at, i)
		p.Bytes = max(p.Bytes, e.Offset+size)
	}
}
