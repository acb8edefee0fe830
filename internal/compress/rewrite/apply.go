package rewrite

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// Change is what happens to a layer.
type Change struct {
	Layer *weights.Layer
	study.Change
	// Matrix are the new weights as [weights.Layer.Read] has them; nil prunes those of the file by
	// magnitude. Those that are zero stay zero in every format.
	Matrix []float32
}

// Range is from where to where a value reaches.
type Range struct{ Lo, Hi float32 }

// Options say how changes are made.
type Options struct {
	// Ranges are those of values, by name, for [study.Int8]. For values that are not there, made
	// data tells.
	Ranges map[string]Range
	// Remove takes pruned channels and filters out of the model, with all that computes or
	// reads them. Without it they are zero.
	Remove bool
}

// Effect is what became of a change.
type Effect struct {
	// Nodes are the names of the operators that now compute with the changed weights, those of their first
	// outputs where they have none.
	Nodes []string
	// Zeros are the weights that are zero, of Weights; with [Options.Remove] of those that are left.
	Zeros, Weights int64
	// Removed are the outputs (of [study.Filter]) or inputs (of [study.Channel]) that were taken out.
	Removed int
	// Cause says why the layer, or a part of the change, stayed as it was, "" if all was done.
	Cause study.Cause
}

// Apply makes a model with changes. Effects are by change. A change that cannot be made leaves its layer as
// it is and says why; an error is of changes that make no sense.
//
// Levels of channels and filters are exact where nothing is coupled. What an addition, a depthwise convolution or
// another order of channels ties together goes together, by the mean of its shares of the layers' scores: filters if all layers that
// make them are among the changes, channels if all that read them are. It is zero in all of them, with all weights that
// read it, so that the model with zeros and the one from which it was taken out have the same outputs but for the order of
// sums. (TFLite's operators with integer weights beside floats quantise what they read by its range, in which what was
// taken out counted.) What cannot go for want of that becomes zero in its own layer only, and is [study.Coupled] where it
// was to be taken out.
//
// Numbers: float16 stands before Cast or DEQUANTIZE; 8 bits have a scale for each output (one for all below ONNX's
// operator set 13, to which models are raised where that is possible) and stand behind DequantizeLinear or, in TFLite, in
// operators that quantise activations themselves, before DEQUANTIZE for the rest; 4 bits are MatMulNBits for products and GatherBlockQuantized for tables in
// ONNX, DequantizeLinear of operator set 21 else, and in TFLite dense layers and convolutions. Int8 puts codes around
// operators: QuantizeLinear and DequantizeLinear, or integer operators between QUANTIZE and DEQUANTIZE; what is fetched from a table is
// fetched as codes. TFLite's SVDF and LSTMs take 8-bit weights beside floats where all their weights are changed so, and floats made of them
// where some are; Int8 of all their weights makes them integers, states and all, where they have no more than gates and states.
//
// Layers in bodies of control flow change there; what their graph reads and makes stays, and so do values that only it knows
// the channels of.
func Apply(m *graph.Model, changes []Change, o Options) (*graph.Model, []Effect, error) {
	effects := make([]Effect, len(changes))
	seen := map[*tensor.Tensor]bool{}
	for i := range changes {
		c := &changes[i]
		if err := c.check(m); err != nil {
			return nil, nil, err
		}
		if seen[c.Layer.Const] {
			return nil, nil, fmt.Errorf("two changes of %q", c.Layer.Weight)
		}
		seen[c.Layer.Const] = true
	}
	by, graphs := byGraph(changes)
	if len(graphs) > 0 && graphs[len(graphs)-1] > 0 { // all graphs have the same operator set
		layers := make([]*weights.Layer, len(changes))
		for i := range changes {
			layers[i] = changes[i].Layer
		}
		m = raised(m, changes, layers)
	}
	before := m
	a := &applier{written: map[*tensor.Tensor]*tensor.Tensor{}}
	for _, g := range graphs {
		list := by[g]
		local := make([]Change, len(list))
		part := m
		if g > 0 {
			part = weights.Body(m, g)
		}
		some := make([]Effect, len(list))
		for k, x := range list {
			local[k] = changes[x.change]
			local[k].Layer = x.layer.Local()
		}
		part = a.apply(part, local, some, o, &ranges{m: m, graph: g, given: o.Ranges})
		if g > 0 {
			part = weights.WithBody(m, g, part)
		}
		m = part
		for k, x := range list {
			effects[x.change].add(some[k])
		}
	}
	m = a.sweep(m, changes)
	if m.Format == "tflite" {
		m = sparse(before, m)
	}
	return m, effects, nil
}

// placed is a layer of a change, or its twin.
type placed struct {
	change int
	layer  *weights.Layer
}

// byGraph sorts changes by the graphs that have their layers.
func byGraph(changes []Change) (by map[int][]placed, graphs []int) {
	by = map[int][]placed{}
	for i := range changes {
		l := changes[i].Layer
		by[l.Graph] = append(by[l.Graph], placed{i, l})
		for _, t := range l.Twins {
			by[t.Graph] = append(by[t.Graph], placed{i, t})
		}
	}
	return by, slices.Sorted(maps.Keys(by))
}

// add joins what became of a change in another graph.
func (f *Effect) add(x Effect) {
	f.Nodes = append(f.Nodes, x.Nodes...)
	f.Zeros, f.Weights, f.Removed = max(f.Zeros, x.Zeros), max(f.Weights, x.Weights), max(f.Removed, x.Removed)
	if f.Cause == "" {
		f.Cause = x.Cause
	}
}

// applier makes the changes of all graphs. written are new constants by those whose place they take.
type applier struct {
	written map[*tensor.Tensor]*tensor.Tensor
}

// sweep puts new constants in the place of old ones in graphs that hand them to others, and leaves out what nobody reads any
// more.
func (a *applier) sweep(m *graph.Model, changes []Change) *graph.Model {
	old := map[*tensor.Tensor]bool{}
	for i := range changes {
		if l := changes[i].Layer; l.Graph > 0 || len(l.Twins) > 0 {
			old[l.Const] = true
		}
	}
	if len(old) == 0 {
		return m
	}
	for at := range m.Graphs {
		consts, gone := map[int]*tensor.Tensor{}, map[int]bool{}
		for id, v := range m.Graphs[at].Values {
			switch {
			case !old[v.Const] || v.Const == nil:
			case a.written[v.Const] != nil:
				consts[id] = a.written[v.Const]
			case !reads(m, at, id):
				gone[id] = true
			}
		}
		if len(consts)+len(gone) == 0 {
			continue
		}
		part := m
		if at > 0 {
			part = weights.Body(m, at)
		}
		part = weights.With(part, consts)
		g := part.Main()
		for id := range gone {
			v := *g.Values[id]
			v.Const, v.Sparse, v.Quant, v.Offset = nil, nil, nil, -1
			g.Values[id] = &v
		}
		if at > 0 {
			part = weights.WithBody(m, at, part)
		}
		m = part
	}
	return m
}

// reads reports whether a graph reads a value, or hands it to others.
func reads(m *graph.Model, at, id int) bool {
	g := m.Graphs[at]
	if slices.Contains(g.Outputs, id) || slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool { return slices.Contains(n.Inputs, id) }) {
		return true
	}
	return slices.ContainsFunc(m.Graphs, func(b *graph.Graph) bool {
		return b.Parent == g && slices.ContainsFunc(b.Captures, func(c graph.Capture) bool { return c.Outer == id })
	})
}

// apply changes layers of a model's main graph.
func (a *applier) apply(m *graph.Model, changes []Change, effects []Effect, o Options, r *ranges) *graph.Model {
	mats := make([][]float32, len(changes))
	layers := make([]*weights.Layer, len(changes))
	for i := range changes {
		c, f := &changes[i], &effects[i]
		for _, n := range c.Layer.Nodes {
			f.Nodes = append(f.Nodes, nodeName(m.Main(), m.Main().Nodes[n]))
		}
		mats[i], f.Cause = c.weights()
		layers[i] = c.Layer
	}
	if slices.ContainsFunc(changes, func(c Change) bool { return c.Structure.Removes() }) {
		m = whole(m, changes, effects, mats, layers, o.Remove)
	}
	if r.graph == 0 {
		m = raised(m, changes, layers)
		r.m = m
	}
	e := newEdit(m)
	for i := range changes {
		c, f, l, mat := &changes[i], &effects[i], layers[i], mats[i]
		if mat == nil {
			continue
		}
		f.Zeros, f.Weights = zeros(mat), int64(len(mat))
		if c.Format != study.Same {
			cause := e.store(l, mat, c.Format, r)
			if cause == "" {
				continue
			}
			f.Cause = cause
		}
		if c.Structure != study.Dense || c.Matrix != nil {
			next := l.Write(mat)
			// Graphs share it unless one lost channels or filters that others keep.
			if have := a.written[c.Layer.Const]; have != nil && have.Type == next.Type && slices.Equal(have.Shape, next.Shape) && bytes.Equal(have.Data, next.Data) {
				next = have
			}
			a.written[c.Layer.Const] = next
			e.set(l.Value, next)
		}
	}
	if m.Format == "tflite" {
		(&liteFormats{e}).join()
	}
	return e.finish()
}

// nodeName is a node's name, or that of its first output where it has none.
func nodeName(g *graph.Graph, n *graph.Node) string {
	if out := operandAt(n.Outputs, 0); n.Name == "" && out >= 0 {
		return g.Values[out].Name
	}
	return n.Name
}

// whole makes channels and filters of changes zero, with all that goes with them, and takes them out where that is
// asked for. mats become the weights and layers the layers of the model that it returns.
func whole(m *graph.Model, changes []Change, effects []Effect, mats [][]float32, layers []*weights.Layer, remove bool) *graph.Model {
	p := prune(m, changes, effects, mats)
	consts := map[int]*tensor.Tensor{}
	for v, mat := range p.mats {
		consts[v] = p.by[v].Write(mat)
	}
	next := weights.With(m, consts)
	if remove && len(p.removed) > 0 {
		if out, ok := p.takeOut(next); ok {
			next = out
		} else {
			for i := range changes {
				p.stuck[i], p.gone[i] = p.stuck[i] || p.gone[i] > 0, 0
			}
		}
	}
	by := map[int]*weights.Layer{}
	for _, l := range weights.Find(next, nil) {
		by[l.Value] = l
	}
	for i := range changes {
		l := by[changes[i].Layer.Value]
		if mats[i] == nil || l == nil {
			continue
		}
		layers[i], mats[i] = l, l.Read(nil)
		if remove && changes[i].Structure.Removes() {
			effects[i].Removed = p.gone[i]
			if p.stuck[i] {
				effects[i].Cause = study.Coupled
			}
		}
	}
	return next
}

// raised is the model with the operator set that the formats need, where it can have that.
func raised(m *graph.Model, changes []Change, layers []*weights.Layer) *graph.Model {
	if m.Format != "onnx" {
		return m
	}
	var shapes func(id int) []int
	for i, c := range changes {
		to := 0
		if c.Layer.Quant != nil || c.Layer.Fixed != "" {
			continue
		}
		switch c.Format {
		case study.Int8, study.Weight8:
			to = 13 // scales for channels
		case study.Weight4:
			g := m.Graphs[layers[i].Graph]
			if n := g.Nodes[layers[i].Node]; (c.Layer.Input != 1 || n.Op != "MatMul" && n.Op != "Gemm") && !fetches4(g, layers[i]) {
				to = 21 // integers of four bits
			}
		}
		if m.Opsets[graph.ONNX] >= to {
			continue
		}
		if shapes == nil {
			shapes = planned(m)
		}
		if next := raise(m, to, shapes); next != nil {
			m = next
		}
	}
	return m
}

// store stores a layer's weights in another format.
func (e *edit) store(l *weights.Layer, mat []float32, to study.Format, r *ranges) study.Cause {
	if l.Quant != nil { // of integers there is one format
		if b := l.Bits(); b == 8 && (to == study.Weight8 || to == study.Int8 && e.integral(l)) || b == 4 && to == study.Weight4 {
			e.set(l.Value, l.Write(mat))
			return ""
		}
		return study.NoFormat
	}
	if !l.Whole() || quantised(l) { // a constant has one format, and what rounds it has that
		return study.NoFormat
	}
	if to == study.Half && l.Const.Type == tensor.Float16 {
		e.set(l.Value, l.Write(mat))
		return ""
	}
	if e.coded == nil {
		e.coded, e.ranges = map[int]coded{}, r
	}
	if e.m.Format == "tflite" {
		return (&liteFormats{e}).store(l, mat, to)
	}
	return (&onnxFormats{e}).store(l, mat, to)
}

// quantised reports whether a Quant of QONNX makes codes of the weights.
func quantised(l *weights.Layer) bool {
	return slices.ContainsFunc(l.Sources, func(s *weights.Source) bool {
		return slices.ContainsFunc(s.Chain, func(n *graph.Node) bool { return n.Op == "Quant" })
	})
}

// integral reports whether what a layer multiplies with integer weights is integers too.
func (e *edit) integral(l *weights.Layer) bool {
	if l.Data < 0 {
		return false
	}
	if n := e.g.Nodes[l.Node]; strings.HasPrefix(n.Op, "QLinear") || strings.Contains(n.Op, "Integer") || n.Op == "QGemm" {
		return true
	}
	maker := e.made[l.Data]
	return e.g.Values[l.Data].Type.IsInteger() || maker != nil && maker.Op == "DequantizeLinear"
}

func zeros(mat []float32) (n int64) {
	for _, x := range mat {
		if x == 0 {
			n++
		}
	}
	return n
}

// of reports whether a layer is one of a model.
func of(m *graph.Model, l *weights.Layer) bool {
	return l.Graph >= 0 && l.Graph < len(m.Graphs) && l.Value < len(m.Graphs[l.Graph].Values) && m.Graphs[l.Graph].Values[l.Value].Const == l.Const
}

func (c *Change) check(m *graph.Model) error {
	l := c.Layer
	switch {
	case l == nil:
		return fmt.Errorf("a change of no layer")
	case !of(m, l) || slices.ContainsFunc(l.Twins, func(t *weights.Layer) bool { return !of(m, t) }):
		return fmt.Errorf("layer %q is of another model", l.Name)
	case !(c.Level >= 0 && c.Level <= 1):
		return fmt.Errorf("layer %q: level %v, want 0 to 1", l.Name, c.Level)
	case c.Matrix != nil && len(c.Matrix) != l.Rows*l.Cols:
		return fmt.Errorf("layer %q: %d weights, want %d", l.Name, len(c.Matrix), l.Rows*l.Cols)
	case c.Structure != study.Dense && !slices.Contains(study.Structures(), c.Structure):
		return fmt.Errorf("layer %q: no structure %q", l.Name, c.Structure)
	case c.Format != study.Same && !slices.Contains(study.Formats(), c.Format):
		return fmt.Errorf("layer %q: no format %q", l.Name, c.Format)
	}
	for i, x := range c.Matrix {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("layer %q: weight %d is %v", l.Name, i, x)
		}
	}
	return nil
}

// weights are the new weights, nil with a cause where they cannot be changed.
func (c *Change) weights() ([]float32, study.Cause) {
	l := c.Layer
	if l.Fixed != "" && (l.Fixed != study.AllZero || c.Format == study.Same) {
		return nil, l.Fixed
	}
	if c.Matrix != nil {
		return slices.Clone(c.Matrix), ""
	}
	mat := l.Read(nil)
	if c.Structure == study.Dense || c.Structure.Removes() {
		return mat, ""
	}
	scores := make([]float32, len(mat))
	for i, x := range mat {
		scores[i] = float32(math.Abs(float64(x)))
	}
	order, cause := mask.New(l, scores, c.Structure)
	if cause != "" {
		return nil, cause
	}
	order.Zero(mat, c.Level)
	return mat, ""
}
