package rewrite

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// liteFormats stores weights of TFLite models in other formats.
type liteFormats struct{ *edit }

// versions of operators with hybrid, integer and 4-bit weights, as TFLite's converter numbers
// them.
var versions = map[string]struct{ hybrid, whole, four int }{
	"CONV_2D":           {5, 3, 7},
	"DEPTHWISE_CONV_2D": {6, 3, 0},
	"FULLY_CONNECTED":   {12, 12, 10},
	"TRANSPOSE_CONV":    {0, 3, 0},
	"BATCH_MATMUL":      {0, 2, 0},
}

// store stores a layer's weights in another format.
func (f *liteFormats) store(l *weights.Layer, mat []float32, to study.Format) study.Cause {
	if l.Const.Type != tensor.Float32 && l.Const.Type != tensor.Float16 {
		return study.NoFormat
	}
	switch to {
	case study.Half:
		c := toFloat16(l, mat)
		if c == nil {
			return study.NoFormat
		}
		f.storeBehindDequantize(l, c, 3)
		return ""
	case study.Weight8:
		_, several := jointOperators[f.g.Nodes[l.Node].Op]
		q := quantiseSymmetric(l, mat, tensor.Int8, !several, nil)
		q.c.Quant = q.quant()
		if !f.hybrid(l, q.c) {
			f.storeBehindDequantize(l, q.c, 5)
		}
		return ""
	case study.Weight4:
		q := quantiseSymmetric(l, mat, tensor.Int4, true, nil)
		q.c.Quant = q.quant()
		if !f.hybrid(l, q.c) {
			return study.NoFormat
		}
		return ""
	case study.Int8:
		return f.int8(l, mat)
	}
	return study.NoFormat
}

// storeBehindDequantize stores a constant and converts it to float with DEQUANTIZE, unless the
// layer has one already.
func (f *liteFormats) storeBehindDequantize(l *weights.Layer, c *tensor.Tensor, version int) {
	if l.Const.Type == tensor.Float16 { // a DEQUANTIZE node exists already
		f.setConst(l.Value, c)
		for _, s := range l.Sources {
			for _, n := range s.Chain {
				if n.Op == "DEQUANTIZE" {
					f.mutableNode(n.Index).Version = version
				}
			}
		}
		return
	}
	id := f.addConst(f.freshName(f.g.Values[l.Value].Name, "_quantized"), c)
	v := f.mutableValue(l.Value)
	v.Const, v.Sparse, v.Quant, v.Offset = nil, nil, nil, -1
	f.insertAfter(&graph.Node{Domain: graph.TFLite, Op: "DEQUANTIZE", Version: version, Inputs: []int{id}, Outputs: []int{l.Value}}, id)
}

// inputOf returns the input at which the k-th operator of a layer reads its weights.
func (e *edit) inputOf(l *weights.Layer, k int) int {
	n := e.g.Nodes[l.Nodes[k]]
	if n.Index == l.Node {
		return l.Input
	}
	want := l.Value
	if c := l.Sources[k].Chain; len(c) > 0 {
		want = c[len(c)-1].Outputs[0]
	}
	return slices.Index(n.Inputs, want)
}

// readDirectly reports whether all operators read the layer's constant in its stored layout.
func readDirectly(l *weights.Layer) bool {
	return !l.MixedLayouts && !slices.ContainsFunc(l.Sources, func(s *weights.Source) bool {
		return slices.ContainsFunc(s.Chain, func(n *graph.Node) bool { return n.Op != "DEQUANTIZE" && n.Op != "DENSIFY" })
	})
}

// hybrid gives operators integer weights with float activations, which they quantise themselves.
// It is false where one cannot.
func (f *liteFormats) hybrid(l *weights.Layer, c *tensor.Tensor) bool {
	for _, at := range l.Nodes {
		n := f.g.Nodes[at]
		if n.Domain != graph.TFLite || versions[n.Op].hybrid == 0 || !readDirectly(l) || f.g.Values[n.Inputs[0]].Type != tensor.Float32 ||
			n.Attrs.Str("weights_format", "DEFAULT") != "DEFAULT" {
			return false
		}
		// no kernel unpacks 4-bit depthwise weights
		if n.Op == "CONV_2D" && l.Groups > 1 || n.Op == "DEPTHWISE_CONV_2D" && c.Type == tensor.Int4 {
			return false
		}
	}
	id := f.addConst(f.freshName(f.g.Values[l.Value].Name, "_quantized"), c)
	for k, at := range l.Nodes {
		in := f.inputOf(l, k)
		n := f.mutableNode(at)
		n.Inputs[in] = id
		if n.Version = versions[n.Op].hybrid; c.Type == tensor.Int4 {
			n.Version = versions[n.Op].four
		}
		f.floatBias(n)
	}
	return true
}

// floatBias converts a constant float16 bias behind DEQUANTIZE to float32.
func (f *liteFormats) floatBias(n *graph.Node) {
	if len(n.Inputs) < 3 || n.Inputs[2] < 0 || f.g.Values[n.Inputs[2]].Const != nil {
		return
	}
	s := weights.SourceOf(f.g, f.made, n.Inputs[2])
	if s == nil || len(s.Chain) == 0 {
		return
	}
	c := f.g.Values[s.Value].Const
	if c.Type != tensor.Float16 {
		return
	}
	b := tensor.New(tensor.Float32, c.Shape...)
	tensor.Read(tensor.Of[float32](b), c, 0)
	n.Inputs[2] = f.addConst(f.freshName(f.g.Values[s.Value].Name, "_float"), b)
}

// integerActivations are the fused activation functions of integer operators.
var integerActivations = []string{"NONE", "RELU", "RELU6", "RELU_N1_TO_1"}

// int8 converts operators to integer arithmetic: inputs are quantised, and outputs dequantised
// unless the next operator reads integers.
func (f *liteFormats) int8(l *weights.Layer, mat []float32) study.Cause {
	if !readDirectly(l) {
		return study.NoFormat
	}
	if isLookup(f.edit, l, "GATHER") {
		f.gather(l, mat)
		return ""
	}
	if _, ok := jointOperators[f.g.Nodes[l.Node].Op]; ok {
		return f.storeJointPart(l, mat)
	}
	type place struct {
		data, bias int
		b          []float32
		quantised  *tensor.Tensor // bias
	}
	places := make([]place, len(l.Nodes))
	for i, at := range l.Nodes {
		n := f.g.Nodes[at]
		p := place{data: 0, bias: 2}
		if n.Op == "TRANSPOSE_CONV" {
			p = place{data: 2, bias: 3}
		}
		if n.Domain != graph.TFLite || versions[n.Op].whole == 0 || n.Op == "CONV_2D" && l.Groups > 1 || f.inputOf(l, i) != 1 ||
			!slices.Contains(integerActivations, n.Attrs.Str("fused_activation_function", "NONE")) || n.Attrs.Str("weights_format", "DEFAULT") != "DEFAULT" ||
			f.g.Values[n.Inputs[p.data]].Type != tensor.Float32 || len(n.Outputs) != 1 {
			return study.NoFormat
		}
		if len(n.Inputs) > p.bias && n.Inputs[p.bias] >= 0 {
			s := weights.SourceOf(f.g, f.made, n.Inputs[p.bias])
			if s == nil || !f.g.Values[s.Value].Const.Type.IsFloat() || f.g.Values[s.Value].Const.Len() != l.Rows {
				return study.NoFormat
			}
			p.b = make([]float32, l.Rows)
			tensor.Read(p.b, f.g.Values[s.Value].Const, 0)
		}
		if !f.rangesKnown(n.Inputs[p.data], n.Outputs[0]) {
			return study.NotRun
		}
		places[i] = p
	}
	least := make([]float32, l.Rows)
	for i, at := range l.Nodes {
		raiseMinScales(least, places[i].b, f.scale(f.g.Nodes[at].Inputs[places[i].data]))
	}
	// Matrix multiplications have a single scale for all weights.
	one := slices.ContainsFunc(l.Nodes, func(at int) bool { return f.g.Nodes[at].Op == "BATCH_MATMUL" })
	q := quantiseSymmetric(l, mat, tensor.Int8, !one, least)
	q.c.Quant = q.quant()
	for i, at := range l.Nodes {
		if p := &places[i]; p.b != nil {
			if p.quantised = f.bias(p.b, q, f.quantiseInput(f.g.Nodes[at].Inputs[p.data])); p.quantised == nil {
				return study.NoFormat
			}
		}
	}
	id := f.addConst(f.freshName(f.g.Values[l.Value].Name, "_quantized"), q.c)
	for i, at := range l.Nodes {
		n := f.mutableNode(at)
		p := places[i]
		n.Inputs[1] = id
		n.Inputs[p.data] = f.quantiseInput(n.Inputs[p.data]).id
		if p.quantised != nil {
			n.Inputs[p.bias] = f.addConst(f.freshName(f.g.Values[n.Inputs[p.bias]].Name, "_quantized"), p.quantised)
		}
		n.Version = versions[n.Op].whole
		f.quantiseOutput(n)
	}
	return ""
}

// gather makes lookups return quantised values, followed by DEQUANTIZE.
func (f *liteFormats) gather(l *weights.Layer, mat []float32) {
	q := quantiseSymmetric(l, mat, tensor.Int8, false, nil)
	q.c.Quant = q.quant()
	id := f.addConst(f.freshName(f.g.Values[l.Value].Name, "_quantized"), q.c)
	for _, at := range l.Nodes {
		n := f.mutableNode(at)
		n.Inputs[0], n.Version = id, max(n.Version, 2)
		out := n.Outputs[0]
		v := addQuantisedOutput(f.edit, out)
		v.Quant = q.c.Quant
		n.Outputs[0], f.made[v.ID] = v.ID, n
		f.insertAfter(&graph.Node{Domain: graph.TFLite, Op: "DEQUANTIZE", Version: 2, Inputs: []int{v.ID}, Outputs: []int{out}}, v.ID)
		if _, ok := f.activations[out]; !ok {
			f.activations[out] = activationQuant{v.ID, q.scale[0], 0}
		}
	}
}

// bias quantises a bias with the scales of the products.
func (f *liteFormats) bias(b []float32, q *quantWeights, in activationQuant) *tensor.Tensor {
	scales := make([]float32, len(q.scale))
	for i, s := range q.scale {
		scales[i] = s * in.scale
	}
	c := quantiseBias(b, func(i int) float64 { return float64(scales[min(i, len(scales)-1)]) })
	if c != nil {
		c.Quant = &tensor.Quant{Scale: scales, Zero: make([]int64, len(scales))}
	}
	return c
}

// rangesKnown reports whether values are quantised already, or have known ranges.
func (e *edit) rangesKnown(ids ...int) bool {
	return !slices.ContainsFunc(ids, func(id int) bool {
		if _, ok := e.activations[id]; ok {
			return false
		}
		_, ok := e.ranges.rangeOf(id)
		return !ok
	})
}

// scale returns the scale of a value's quantisation, existing or planned.
func (e *edit) scale(id int) float32 {
	if c, ok := e.activations[id]; ok {
		return c.scale
	}
	s, _ := e.affine(id)
	return s
}

// affine returns the planned quantisation of an activation.
func (e *edit) affine(id int) (scale float32, zero int64) {
	r, _ := e.ranges.rangeOf(id)
	if e.symmetric[id] {
		most := max(-r.Lo, r.Hi)
		r = Range{-most * 128 / 127, most}
	}
	return AffineParams(r)
}

// quantiseInput returns a value's quantised form, adding QUANTIZE unless it exists.
func (f *liteFormats) quantiseInput(id int) activationQuant {
	if c, ok := f.activations[id]; ok {
		return c
	}
	c, v := f.addQuantisedValue(id)
	f.insertAfter(&graph.Node{Domain: graph.TFLite, Op: "QUANTIZE", Version: 1, Inputs: []int{id}, Outputs: []int{v.ID}}, id)
	return c
}

// addQuantisedValue adds the quantised form of a value.
func (f *liteFormats) addQuantisedValue(id int) (activationQuant, *graph.Value) {
	var c activationQuant
	c.scale, c.zero = f.affine(id)
	v := addQuantisedOutput(f.edit, id)
	v.Quant = &tensor.Quant{Scale: []float32{c.scale}, Zero: []int64{c.zero}}
	c.id = v.ID
	f.activations[id] = c
	return c, v
}

// quantiseOutput makes an operator's output quantised, followed by DEQUANTIZE.
func (f *liteFormats) quantiseOutput(n *graph.Node) {
	id := n.Outputs[0]
	c, ok := f.activations[id]
	if ok { // a QUANTIZE node had quantised the float output
		q := f.made[c.id]
		f.removed[q] = true
	} else {
		c, _ = f.addQuantisedValue(id)
	}
	n.Outputs[0] = c.id
	f.made[c.id] = n
	f.insertAfter(&graph.Node{Domain: graph.TFLite, Op: "DEQUANTIZE", Version: 2, Inputs: []int{c.id}, Outputs: []int{id}}, c.id)
}
