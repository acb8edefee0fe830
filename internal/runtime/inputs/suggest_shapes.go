package inputs

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// Hint holds plausible sizes for all open dimensions of a model.
type Hint struct {
	// Dims are sizes by the names of dimensions, sorted as in Order. They are used if all open
	// dimensions of all inputs have names and several inputs share them.
	Dims  map[string]int
	Order []string
	// Shapes are the inputs' whole shapes otherwise, by input position; nil for inputs without
	// open dimensions and for inputs from files.
	Shapes [][]int
}

// Default sizes by the use of an input.
const (
	imageSize  = 224
	tokenCount = 128
	sampleSize = 512
	waveSize   = 16000
)

// Suggest finds sizes for open dimensions without a given size, nil without any. Sizes
// follow from the use of an input. If they cause contradictions in the model, a few others are
// tried, and those with the fewest contradictions are returned.
func Suggest(m *graph.Model, ins []*tensor.Tensor, src []Source, o Options) *Hint {
	g := m.Main()
	if !slices.ContainsFunc(src, func(s Source) bool { return s.Assumed != nil }) {
		return nil
	}
	o, err := byValue(m, o)
	if err != nil {
		return nil
	}
	var best *Hint
	least := -1
	for _, batch := range []int{1, 16, tokenCount} {
		for _, scale := range []int{1, 2} {
			h, shapes := suggestion(g, ins, src, o, batch, scale)
			n := contradictions(m, shapes, o)
			if n >= 0 && (best == nil || n < least) {
				best, least = h, n
			}
			if least == 0 {
				return best
			}
		}
	}
	return best
}

// contradictions returns the number of nodes that cannot run with inputs of the given shapes, -1
// if the model cannot be planned with them.
func contradictions(m *graph.Model, shapes []*tensor.Tensor, o Options) int {
	for _, x := range shapes {
		if afford(x.Type, x.Shape, o.MaxBytes, 0) != nil {
			return -1
		}
	}
	p, err := plan.Make(m, shapes, plan.Options{Registry: operators.Registry(), MaxBytes: o.MaxBytes})
	if err != nil {
		return -1
	}
	n := 0
	for _, s := range p.Slots() {
		if s.State == plan.Failed { // skipped nodes depend on failed ones
			n++
		}
	}
	return n
}

// suggestion makes sizes with a batch and a scale for all others.
func suggestion(g *graph.Graph, ins []*tensor.Tensor, src []Source, o Options, batch, scale int) (*Hint, []*tensor.Tensor) {
	named, count := true, 0
	d := &dims{given: map[string]int{}, taken: map[string]int{}}
	known := DimNames(g)
	size := func(k, i int) int {
		if isBatch(g.Values[g.Inputs[k]], i) {
			return batch
		}
		return scale * defaultSize(g, g.Inputs[k], i)
	}
	for k, id := range g.Inputs {
		v := g.Values[id]
		if src[k].Assumed != nil {
			count++
		}
		for i := range ins[k].Shape {
			n := dimName(v, i)
			open := i < len(src[k].Assumed) && src[k].Assumed[i]
			switch {
			case n == "":
				named = named && !open
			case compound(n, known):
			case !open:
				d.given[n] = ins[k].Shape[i]
			case d.taken[n] == 0:
				d.taken[n] = size(k, i)
			}
		}
	}
	d.derive(known)
	h := &Hint{Shapes: make([][]int, len(ins))}
	out := make([]*tensor.Tensor, len(ins))
	for k, id := range g.Inputs {
		x := *ins[k]
		out[k] = &x
		v := g.Values[id]
		for i := range x.Shape {
			if i >= len(src[k].Assumed) || !src[k].Assumed[i] {
				continue
			}
			if h.Shapes[k] == nil {
				x.Shape = slices.Clone(x.Shape)
				x.Data = nil
				h.Shapes[k] = x.Shape
			}
			x.Shape[i] = size(k, i)
			if s, ok := d.value(dimName(v, i)); ok {
				x.Shape[i] = s
			}
		}
	}
	// Shapes that were given in the options have to be given again.
	for k, id := range g.Inputs {
		if _, ok := o.Shapes[g.Values[id].Name]; ok && h.Shapes[k] == nil {
			h.Shapes[k] = ins[k].Shape
		}
	}
	if named && len(o.Shapes) == 0 && count > len(d.taken) {
		h.Dims, h.Order, h.Shapes = map[string]int{}, nil, nil
		for _, n := range known {
			_, asked := o.Dims[n]
			if _, ok := d.taken[n]; ok && !compound(n, known) || asked {
				h.Dims[n], _ = d.value(n)
				h.Order = append(h.Order, n)
			}
		}
	}
	return h, out
}

// isBatch reports whether an open dimension is the batch: the first one, or the middle one of
// three if the others are fixed, as in states of recurrent layers.
func isBatch(v *graph.Value, i int) bool {
	if len(v.Shape) == 3 && i == 1 && v.Shape[0] >= 0 && v.Shape[2] >= 0 {
		return true
	}
	return i == 0 && (len(v.Shape) > 1 || !isWideInt(v.Type))
}

// defaultSize returns a usual size of an open dimension after the first.
func defaultSize(g *graph.Graph, id, axis int) int {
	v := g.Values[id]
	rank := len(v.Shape)
	if isWideInt(v.Type) {
		return tokenCount
	}
	switch uses := consumer(g, id); {
	case uses == "" && rank == 2:
		return sampleSize
	case uses == "":
		return tokenCount
	case rank == 4:
		return imageSize
	case rank == 3 && axis == 2 && v.Shape[1] == 1:
		return waveSize
	}
	if rank == 2 {
		return sampleSize
	}
	return tokenCount
}

// consumer returns the first convolution or pooling that reads an input, directly or through
// operators that preserve its elements; "" for none.
func consumer(g *graph.Graph, id int) string {
	from := map[int]bool{id: true}
	for _, n := range g.Nodes {
		if !slices.ContainsFunc(n.Inputs[:min(1, len(n.Inputs))], func(i int) bool { return from[i] }) &&
			!(n.Op == "TRANSPOSE_CONV" && len(n.Inputs) > 2 && from[n.Inputs[2]]) {
			continue
		}
		op := strings.ToUpper(n.Op)
		if strings.Contains(op, "CONV") || strings.Contains(op, "POOL") || op == "RESIZE" || strings.HasPrefix(op, "RESIZE_") {
			return n.Op
		}
		if !imagePreserving[op] {
			continue
		}
		for _, out := range n.Outputs {
			if out >= 0 {
				from[out] = true
			}
		}
	}
	return ""
}

// imagePreserving lists operators before a convolution whose output is still an image.
var imagePreserving = map[string]bool{
	"CAST": true, "IDENTITY": true, "TRANSPOSE": true, "PAD": true, "PADV2": true, "ADD": true, "SUB": true, "MUL": true, "DIV": true,
	"QUANTIZELINEAR": true, "DEQUANTIZELINEAR": true, "DYNAMICQUANTIZELINEAR": true, "QUANTIZE": true, "DEQUANTIZE": true,
	"BATCHNORMALIZATION": true, "UNSQUEEZE": true, "EXPAND_DIMS": true, "RESHAPE": true, "CLIP": true, "GATHER": true, "MIRROR_PAD": true,
}
