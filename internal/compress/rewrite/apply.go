package rewrite

import (
	"bytes"
	"cmp"
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

// Change is a change of a layer.
type Change struct {
	Layer *weights.Layer
	study.Change
	// Matrix has the new weights in the order of [weights.Layer.Read]; nil prunes those of the
	// file by magnitude. Zero weights stay zero in every format.
	Matrix []float32
}

// Range is the range of a value.
type Range struct{ Lo, Hi float32 }

// Options control how changes are made.
type Options struct {
	// Ranges are the ranges of values, by name, for [study.Int8]. Missing ones are determined on
	// synthetic inputs.
	Ranges map[string]Range
	// Remove removes pruned channels and filters from the model, with everything that computes or
	// reads them. Without it they are zero.
	Remove bool
}

// Effect is the result of a change.
type Effect struct {
	// Nodes are the names of the operators that compute with the changed weights, or those of
	// their first outputs.
	Nodes []string
	// Zeros is the number of zero weights, Weights the number of all; with [Options.Remove] of
	// the remaining ones.
	Zeros, Weights int64
	// Removed is the number of removed outputs (of [study.Filter]) or inputs (of
	// [study.Channel]).
	Removed int
	// Cause says why the layer, or a part of the change, stayed unchanged; "" if all was done.
	Cause study.Cause
}

// Apply makes a model with changes. Effects are by change. A change that cannot be made leaves
// its layer unchanged and states the cause; an error means invalid changes.
//
// Levels of channels and filters are exact where nothing is coupled. Units coupled by an
// addition, a depthwise convolution or a permutation of channels are pruned together, ranked by
// the mean of their shares of the layers' scores: filters if all layers that produce them are
// among the changes, channels if all layers that read them are. They are zero in all of these
// layers, with all weights that read them, so the model with zeros and the one with the units
// removed have the same outputs apart from summation order. (TFLite's hybrid operators, with
// integer weights and float inputs, quantise their inputs by a range that includes the removed
// units.) Units that cannot be pruned together become zero in their own layer only, and the cause
// is [study.Coupled] where they were to be removed.
//
// Formats: float16 weights are followed by Cast or DEQUANTIZE. 8-bit weights have a scale per
// output (one for all below ONNX operator set 13, to which models are upgraded where possible).
// They are followed by DequantizeLinear; in TFLite they belong to operators that quantise
// activations themselves, or are followed by DEQUANTIZE. 4-bit weights are MatMulNBits for matrix
// multiplications and GatherBlockQuantized for lookup tables in ONNX, otherwise DequantizeLinear
// of operator set 21; in TFLite they are limited to dense layers and convolutions.
//
// Int8 quantises activations: with QuantizeLinear and DequantizeLinear, or with integer operators
// between QUANTIZE and DEQUANTIZE. Lookup tables are read as quantised values. TFLite's SVDF and
// LSTM take 8-bit weights with float activations if all their weights are changed so, else
// dequantised weights. Int8 of all their weights makes them integer operators including states,
// if they have only gates and states.
//
// Layers in control flow subgraphs change there. Inputs and outputs of the subgraph keep their
// shapes, and so do values whose channels only the subgraph knows.
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
	if len(graphs) > 0 && graphs[len(graphs)-1] > 0 { // all graphs share one operator set
		layers := make([]*weights.Layer, len(changes))
		for i := range changes {
			layers[i] = changes[i].Layer
		}
		m = withOpsetFor(m, changes, layers)
	}
	before := m
	a := &applier{written: map[*tensor.Tensor]*tensor.Tensor{}}
	for _, g := range graphs {
		list := by[g]
		local := make([]Change, len(list))
		some := make([]Effect, len(list))
		for k, x := range list {
			local[k] = changes[x.change]
			local[k].Layer = x.layer.Local()
		}
		ranges := &activationRanges{m: m, graph: g, given: o.Ranges}
		m = inGraph(m, g, func(part *graph.Model) *graph.Model { return a.apply(part, local, some, o, ranges) })
		for k, x := range list {
			effects[x.change].add(some[k])
		}
	}
	m = a.replaceCaptured(m, changes)
	if m.Format == "tflite" {
		m = restoreSparse(before, m)
	}
	return m, effects, nil
}

// graphChange is a changed layer or its twin in one graph.
type graphChange struct {
	change int
	layer  *weights.Layer
}

// byGraph groups changes by the graphs of their layers.
func byGraph(changes []Change) (by map[int][]graphChange, graphs []int) {
	by = map[int][]graphChange{}
	for i := range changes {
		for _, l := range changes[i].Layer.Readings() {
			by[l.Graph] = append(by[l.Graph], graphChange{i, l})
		}
	}
	return by, slices.Sorted(maps.Keys(by))
}

// add merges the effect of a change in another graph.
func (f *Effect) add(x Effect) {
	f.Nodes = append(f.Nodes, x.Nodes...)
	f.Zeros, f.Weights, f.Removed = max(f.Zeros, x.Zeros), max(f.Weights, x.Weights), max(f.Removed, x.Removed)
	f.Cause = cmp.Or(f.Cause, x.Cause)
}

// applier applies the changes of all graphs. written maps old constants to new ones.
type applier struct {
	written map[*tensor.Tensor]*tensor.Tensor
}

// replaceCaptured replaces constants in graphs that pass them to subgraphs, and drops constants
// without readers.
func (a *applier) replaceCaptured(m *graph.Model, changes []Change) *graph.Model {
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
			case !isRead(m, at, id):
				gone[id] = true
			}
		}
		if len(consts)+len(gone) == 0 {
			continue
		}
		m = inGraph(m, at, func(part *graph.Model) *graph.Model {
			part = weights.WithConstants(part, consts)
			g := part.Main()
			for id := range gone {
				v := *g.Values[id]
				v.Const, v.Sparse, v.Quant, v.Offset = nil, nil, nil, -1
				g.Values[id] = &v
			}
			return part
		})
	}
	return m
}

// inGraph changes a graph of a model as the main graph of a model.
func inGraph(m *graph.Model, at int, change func(part *graph.Model) *graph.Model) *graph.Model {
	if at == 0 {
		return change(m)
	}
	return weights.WithBody(m, at, change(weights.Body(m, at)))
}

// isRead reports whether a graph reads a value, returns it, or passes it to a subgraph.
func isRead(m *graph.Model, at, id int) bool {
	g := m.Graphs[at]
	return usedOutside(m, g, id) || slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool { return slices.Contains(n.Inputs, id) })
}

// apply changes layers of a model's main graph.
func (a *applier) apply(m *graph.Model, changes []Change, effects []Effect, o Options, r *activationRanges) *graph.Model {
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
		m = pruneUnits(m, changes, effects, mats, layers, o.Remove)
	}
	if r.graph == 0 {
		m = withOpsetFor(m, changes, layers)
		r.m = m
	}
	e := newEdit(m)
	for i := range changes {
		c, f, l, mat := &changes[i], &effects[i], layers[i], mats[i]
		if mat == nil {
			continue
		}
		f.Zeros, f.Weights = zeros(mat), int64(len(mat))
		if c.Format != study.OriginalFormat {
			cause := e.store(l, mat, c.Format, r)
			if cause == "" {
				continue
			}
			f.Cause = cause
		}
		if c.Structure != study.Dense || c.Matrix != nil {
			next := l.Write(mat)
			// Graphs share the constant unless one lost channels or filters that others keep.
			if have := a.written[c.Layer.Const]; have != nil && have.Type == next.Type && slices.Equal(have.Shape, next.Shape) && bytes.Equal(have.Data, next.Data) {
				next = have
			}
			a.written[c.Layer.Const] = next
			e.setConst(l.Value, next)
		}
	}
	if m.Format == "tflite" {
		(&liteFormats{e}).finishJoint()
	}
	return e.finish()
}

// nodeName returns a node's name, or that of its first output if it has none.
func nodeName(g *graph.Graph, n *graph.Node) string {
	if out := operandAt(n.Outputs, 0); n.Name == "" && out >= 0 {
		return g.Values[out].Name
	}
	return n.Name
}

// pruneUnits makes channels and filters zero, with everything coupled to them, and removes them
// if asked. It stores the weights in mats, and the layers of the returned model in layers.
func pruneUnits(m *graph.Model, changes []Change, effects []Effect, mats [][]float32, layers []*weights.Layer, remove bool) *graph.Model {
	p := prune(m, changes, effects, mats)
	consts := map[int]*tensor.Tensor{}
	for v, mat := range p.mats {
		consts[v] = p.by[v].Write(mat)
	}
	next := weights.WithConstants(m, consts)
	if remove && len(p.removed) > 0 {
		if out, ok := p.removeUnits(next); ok {
			next = out
		} else {
			for i := range changes {
				p.notRemovable[i], p.removedUnits[i] = p.notRemovable[i] || p.removedUnits[i] > 0, 0
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
			effects[i].Removed = p.removedUnits[i]
			if p.notRemovable[i] {
				effects[i].Cause = study.Coupled
			}
		}
	}
	return next
}

// withOpsetFor returns the model upgraded to the operator set that the formats need, where
// possible.
func withOpsetFor(m *graph.Model, changes []Change, layers []*weights.Layer) *graph.Model {
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
			to = 13 // per-channel scales
		case study.Dynamic8:
			to = dynamicOpset
		case study.Weight4:
			g := m.Graphs[layers[i].Graph]
			if n := g.Nodes[layers[i].Node]; (c.Layer.Input != 1 || n.Op != "MatMul" && n.Op != "Gemm") && !supportsGather4(g, layers[i]) {
				to = 21 // 4-bit integers
			}
		}
		if m.Opsets[graph.ONNX] >= to {
			continue
		}
		if shapes == nil {
			shapes = knownShapes(m)
		}
		if next := raiseOpset(m, to, shapes); next != nil {
			m = next
		}
	}
	return m
}

// store stores a layer's weights in another format.
func (e *edit) store(l *weights.Layer, mat []float32, to study.Format, r *activationRanges) study.Cause {
	if l.Quant != nil { // quantised weights have only their own format
		if b := l.Bits(); b == 8 && (to == study.Weight8 || to == study.Int8 && e.integerData(l)) || b == 4 && to == study.Weight4 {
			e.setConst(l.Value, l.Write(mat))
			return ""
		}
		return study.NoFormat
	}
	// a constant has a single format; a Quant node determines it
	if !l.CoversConstant() || hasQuantNode(l) {
		return study.NoFormat
	}
	if to == study.Half && l.Const.Type == tensor.Float16 {
		e.setConst(l.Value, l.Write(mat))
		return ""
	}
	e.ranges = r
	if e.m.Format == "tflite" {
		return (&liteFormats{e}).store(l, mat, to)
	}
	return (&onnxFormats{e}).store(l, mat, to)
}

// hasQuantNode reports whether a QONNX Quant node quantises the weights.
func hasQuantNode(l *weights.Layer) bool {
	return slices.ContainsFunc(l.Sources, func(s *weights.Source) bool {
		return slices.ContainsFunc(s.Chain, func(n *graph.Node) bool { return n.Op == "Quant" })
	})
}

// integerData reports whether the input that a layer multiplies with integer weights is quantised
// too.
func (e *edit) integerData(l *weights.Layer) bool {
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

// belongsTo reports whether a layer belongs to a model.
func belongsTo(m *graph.Model, l *weights.Layer) bool {
	return l.Graph >= 0 && l.Graph < len(m.Graphs) && l.Value < len(m.Graphs[l.Graph].Values) && m.Graphs[l.Graph].Values[l.Value].Const == l.Const
}

func (c *Change) check(m *graph.Model) error {
	l := c.Layer
	switch {
	case l == nil:
		return fmt.Errorf("a change of no layer")
	case !belongsTo(m, l) || slices.ContainsFunc(l.Twins, func(t *weights.Layer) bool { return !belongsTo(m, t) }):
		return fmt.Errorf("layer %q is of another model", l.Name)
	case !(c.Level >= 0 && c.Level <= 1):
		return fmt.Errorf("layer %q: level %v, want 0 to 1", l.Name, c.Level)
	case c.Matrix != nil && len(c.Matrix) != l.Rows*l.Cols:
		return fmt.Errorf("layer %q: %d weights, want %d", l.Name, len(c.Matrix), l.Rows*l.Cols)
	case c.Structure != study.Dense && !slices.Contains(study.Structures(), c.Structure):
		return fmt.Errorf("layer %q: no structure %q", l.Name, c.Structure)
	case c.Format != study.OriginalFormat && !slices.Contains(study.Formats(), c.Format):
		return fmt.Errorf("layer %q: no format %q", l.Name, c.Format)
	}
	for i, x := range c.Matrix {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("layer %q: weight %d is %v", l.Name, i, x)
		}
	}
	return nil
}

// weights returns the new weights, or nil with a cause where they cannot be changed.
func (c *Change) weights() ([]float32, study.Cause) {
	l := c.Layer
	if l.Fixed != "" && (l.Fixed != study.AllZero || c.Format == study.OriginalFormat) {
		return nil, l.Fixed
	}
	if c.Matrix != nil {
		return slices.Clone(c.Matrix), ""
	}
	mat := l.Read(nil)
	if c.Structure == study.Dense || c.Structure.Removes() {
		return mat, ""
	}
	if cause := mask.Prune(l, mat, mask.Magnitudes(mat), c.Change); cause != "" {
		return nil, cause
	}
	return mat, ""
}
