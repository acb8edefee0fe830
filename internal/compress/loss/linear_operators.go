package loss

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// kind says how an operator multiplies with its weights.
type kind uint8

const (
	conv kind = iota // channels before the spatial axes
	convLast
	deconv
	deconvLast
	rows    // each input is a row of the data
	columns // each input is a column of the data, the weights are the left operand
	flat    // each input has as many elements as the weights have columns
	lookup  // each input is the index of a column
)

// operand is a weight operand in which an operator is linear: the inputs with the weights, the
// data, its scale and zero point, and the bias. Except for weights and data, inputs below 1 are
// absent.
type operand struct {
	kind              kind
	weights, data     int
	scale, zero, bias int
	alpha             bool   // the product is scaled by alpha, the bias by beta
	transposed        string // the attribute that transposes the data
}

var linear = map[string][]operand{
	"Conv":                 {{kind: conv, weights: 1, bias: 2}},
	"FusedConv":            {{kind: conv, weights: 1, bias: 2}},
	"NhwcConv":             {{kind: convLast, weights: 1, bias: 2}},
	"QLinearConv":          {{kind: conv, weights: 3, scale: 1, zero: 2, bias: 8}},
	"ConvInteger":          {{kind: conv, weights: 1, zero: 2}},
	"ConvTranspose":        {{kind: deconv, weights: 1, bias: 2}},
	"Gemm":                 {{kind: rows, weights: 1, bias: 2, alpha: true, transposed: "transA"}, {kind: columns, data: 1, bias: -1, alpha: true, transposed: "transB"}},
	"MatMul":               {{kind: rows, weights: 1}, {kind: columns, data: 1}},
	"QLinearMatMul":        {{kind: rows, weights: 3, scale: 1, zero: 2}, {kind: columns, data: 3, scale: 4, zero: 5}},
	"MatMulInteger":        {{kind: rows, weights: 1, zero: 2}, {kind: columns, data: 1, zero: 3}},
	"MatMulIntegerToFloat": {{kind: rows, weights: 1, scale: 2, zero: 4, bias: 6}},
	"MatMulNBits":          {{kind: rows, weights: 1, bias: 5}},
	"Gather":               {{kind: lookup, data: 1}},
	"CONV_2D":              {{kind: convLast, weights: 1, bias: 2}},
	"DEPTHWISE_CONV_2D":    {{kind: convLast, weights: 1, bias: 2}},
	"CONV_3D":              {{kind: convLast, weights: 1, bias: 2}},
	"TRANSPOSE_CONV":       {{kind: deconvLast, weights: 1, data: 2, bias: 3}},
	"FULLY_CONNECTED":      {{kind: flat, weights: 1, bias: 2}},
	"BATCH_MATMUL":         {{kind: rows, weights: 1, transposed: "adj_x"}, {kind: columns, data: 1, transposed: "adj_y"}},
	"GATHER":               {{kind: lookup, data: 1}},
	"EMBEDDING_LOOKUP":     {{kind: lookup, weights: 1}},
}

// linearOp describes how a node multiplies with the weights of a layer.
type linearOp struct {
	operand
	node  *graph.Node
	layer *weights.Layer
	data  int // ids of values, -1 for none
	scale int
	zero  int
	bias  int
	// window has the kernel sizes of a convolution.
	window []int
}

// linearOpsOf describes how each of a layer's nodes multiplies with its weights; false where one
// is not linear in them or not supported.
func linearOpsOf(m *graph.Model, l *weights.Layer) ([]*linearOp, bool) {
	if l.MixedLayouts || l.Graph > 0 {
		return nil, false
	}
	g := m.Main()
	var out []*linearOp
	for i, k := range l.Nodes {
		n := g.Nodes[k]
		at := l.Input
		if i > 0 {
			at = inputOf(g, n, l)
		}
		j := slices.IndexFunc(linear[n.Op], func(o operand) bool { return o.weights == at })
		if j < 0 || n.Op == "Gather" && n.Domain != graph.ONNX {
			return nil, false
		}
		o := linear[n.Op][j]
		id := func(i, least int) int {
			if i < least || i >= len(n.Inputs) {
				return -1
			}
			return n.Inputs[i]
		}
		p := &linearOp{operand: o, node: n, layer: l, data: id(o.data, 0), scale: id(o.scale, 1), zero: id(o.zero, 1), bias: id(o.bias, 1)}
		if p.data < 0 || !p.supported(g) || len(out) > 0 && (p.kind == lookup) != (out[0].kind == lookup) {
			return nil, false
		}
		out = append(out, p)
	}
	return out, true
}

// inputOf returns the input at which a node reads weights that it shares with the layer's first
// node.
func inputOf(g *graph.Graph, n *graph.Node, l *weights.Layer) int {
	made := weights.Producers(g)
	for _, i := range weights.Inputs(n) {
		if i < len(n.Inputs) && n.Inputs[i] >= 0 {
			if s := weights.SourceOf(g, made, n.Inputs[i]); s != nil && s.Value == l.Value {
				return i
			}
		}
	}
	return -1
}

// supported finds the window, and rejects variants that the table does not describe.
func (p *linearOp) supported(g *graph.Graph) bool {
	n, l := p.node, p.layer
	switch p.kind {
	case conv, convLast, deconv, deconvLast:
		p.window = windowOf(g, p)
		return p.window != nil && tensor.Elements(p.window) == l.Taps
	case lookup:
		return n.Attrs.Int("batch_dims", 0) == 0 && l.Taps == 1
	case columns:
		if n.Op == "Gemm" && len(n.Inputs) > 2 && n.Inputs[2] >= 0 {
			return false // a bias per column or element
		}
	}
	if n.Op == "FusedMatMul" || l.Taps != 1 {
		return false
	}
	return n.Op != "FULLY_CONNECTED" || n.Attrs.Str("weights_format", "DEFAULT") == "DEFAULT"
}

// windowOf returns the kernel sizes; nil where unknown.
func windowOf(g *graph.Graph, p *linearOp) []int {
	n, l := p.node, p.layer
	if k := n.Attrs.Ints("kernel_shape"); k != nil {
		return k
	}
	shape := l.Const.Shape
	if v := g.Values[n.Inputs[p.weights]]; v.Const != nil {
		shape = v.Const.Shape
	}
	if len(shape) < 3 {
		return nil
	}
	last := len(shape) - 1
	switch n.Op {
	case "CONV_3D":
		return shape[:last-1]
	case "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "NhwcConv":
		return shape[1:last]
	}
	return shape[2:]
}

// neededValues lists the values that the second moments need.
func (p *linearOp) neededValues() []int {
	return slices.DeleteFunc([]int{p.data, p.scale, p.zero, p.bias}, func(id int) bool { return id < 0 })
}
