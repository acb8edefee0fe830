package inputuse

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// propagated are operators that pass uses on and require nothing.
var propagated = []string{
	"Concat", "Split", "Cast", "Identity", "Unsqueeze", "Reshape", "Transpose", "Expand", "Tile", "Gather", "Slice", "Where", "Max", "Clip", "Mod",
	"Add", "Sub", "Mul", "Div", "ReduceSum", "ReduceMin", "Pack", "UNPACK", "STRIDED_SLICE", "SLICE", "GATHER", "FLOOR_DIV", "SQUEEZE", "REVERSE_V2",
}

// numbers are values of attributes and constants: usual ones, and those at the edges.
var numbers = []int64{0, 1, 2, 3, 7, -1, -2, -3, -7, 31, 1 << 31, 1 << 40, math.MaxInt64, math.MinInt64}

// attributes are all names that the package reads.
var attributes = []string{
	"axis", "batch_dims", "begin_mask", "ellipsis_mask", "end_mask", "gather_axis", "layout", "new_axis_mask", "seq_dim", "shrink_axis_mask",
	"time_axis", "stride_d", "stride_h", "stride_w", "value", "to",
}

// hostile makes a graph of some operators with arbitrary attributes, shapes and constants.
func hostile(r *rand.Rand, ops []graph.Node) *graph.Model {
	g := &graph.Graph{}
	pick := func() int64 { return numbers[r.IntN(len(numbers))] }
	value := func() int {
		v := &graph.Value{ID: len(g.Values), Name: "v", Type: tensor.Int64}
		switch r.IntN(4) {
		case 0:
			list := make([]int64, r.IntN(6))
			for i := range list {
				list[i] = pick()
			}
			shape := []int{len(list)}
			if len(list) == 1 && r.IntN(2) == 0 {
				shape = []int{}
			}
			v.Const = tensor.From(tensor.Int64, shape, list)
			v.Shape, v.HasShape = shape, true
		case 1: // an unknown shape
		default:
			v.HasShape = true
			for range r.IntN(5) {
				v.Shape = append(v.Shape, []int{-1, 0, 1, 2, 3, 5, 1 << 40}[r.IntN(7)])
			}
		}
		g.Values = append(g.Values, v)
		return v.ID
	}
	for i := range ops {
		n := ops[i]
		n.Index, n.Attrs = i, graph.Attrs{}
		for _, name := range attributes {
			if r.IntN(3) == 0 {
				n.Attrs[name] = pick()
			}
		}
		for range r.IntN(8) {
			switch {
			case r.IntN(8) == 0:
				n.Inputs = append(n.Inputs, -1)
			case len(g.Values) > 0 && r.IntN(2) == 0:
				n.Inputs = append(n.Inputs, r.IntN(len(g.Values)))
			default:
				n.Inputs = append(n.Inputs, value())
			}
		}
		for range r.IntN(3) {
			out := value()
			g.Values[out].Const = nil
			n.Outputs = append(n.Outputs, out)
		}
		g.Nodes = append(g.Nodes, &n)
	}
	for id, v := range g.Values {
		if v.Const == nil {
			g.Inputs = append(g.Inputs, id)
		}
	}
	return &graph.Model{Graphs: []*graph.Graph{g}}
}

// TestHostile: no attribute, shape or constant makes the analysis panic or allocate much.
func TestHostile(t *testing.T) {
	t.Parallel()
	var all []graph.Node
	for domain, table := range map[string]map[string]func(*call){graph.ONNX: onnxRequirements, graph.Microsoft: microsoftRequirements, graph.TFLite: liteRequirements} {
		for op := range table {
			all = append(all, graph.Node{Domain: domain, Op: op})
		}
	}
	for _, op := range propagated {
		all = append(all, graph.Node{Op: op}, graph.Node{Domain: graph.TFLite, Op: op})
	}
	slices.SortFunc(all, func(a, b graph.Node) int { return slices.Compare([]string{a.Domain, a.Op}, []string{b.Domain, b.Op}) })
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 100 * len(all) {
		// Uses go backwards: the operator under test is first or last.
		ops := []graph.Node{all[r.IntN(len(all))], all[r.IntN(len(all))], all[i%len(all)]}
		if i%2 == 0 {
			slices.Reverse(ops)
		}
		m := hostile(r, ops)
		func() {
			defer func() {
				if e := recover(); e != nil {
					t.Fatalf("graph %d: %v: %+v %+v %+v", i, e, *m.Graphs[0].Nodes[0], *m.Graphs[0].Nodes[1], *m.Graphs[0].Nodes[2])
				}
			}()
			Of(m)
		}()
	}
}
