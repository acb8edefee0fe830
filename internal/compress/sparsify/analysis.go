package sparsify

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// Analysis is what Sparsify stores of a model: its operators in graph order.
type Analysis struct {
	Nodes []*Node `json:"nodes"`
}

// Node is one operator. Fields that are null in Sparsify's files are nil.
type Node struct {
	// ID is the name of the first output.
	ID     string `json:"id"`
	OpType string `json:"op_type"`
	// InputNames and OutputNames exclude constants.
	InputNames  []string `json:"input_names"`
	OutputNames []string `json:"output_names"`
	// InputShapes has a list for each input with a known shape, OutputShapes one for the first
	// output; unknown dimensions are nil.
	InputShapes  Shapes `json:"input_shapes"`
	OutputShapes Shapes `json:"output_shapes"`
	// Params counts weights and bias of prunable operators, else 0.
	Params   int64 `json:"params"`
	Prunable bool  `json:"prunable"`
	// PrunableParams counts weights, -1 for operators that cannot be pruned.
	PrunableParams       int64 `json:"prunable_params"`
	PrunableParamsZeroed int64 `json:"prunable_params_zeroed"`
	// PrunableEquationSensitivity is [Sensitivity] of the node.
	PrunableEquationSensitivity *float64 `json:"prunable_equation_sensitivity"`
	Flops                       *float64 `json:"flops"`
	WeightName                  *string  `json:"weight_name"`
	WeightShape                 Dims     `json:"weight_shape"`
	BiasName                    *string  `json:"bias_name"`
	BiasShape                   Dims     `json:"bias_shape"`
	// Attributes are JSON: numbers keep all their digits.
	Attributes map[string]jsonx.Raw `json:"attributes"`
}

// Dims is a shape; nil stands for null, and a nil dimension is unknown.
type Dims []*int64

// Shapes are several shapes, nil for null.
type Shapes []Dims

// MarshalJSON writes null for an unknown shape.
func (d Dims) MarshalJSON() ([]byte, error) {
	if d == nil {
		return []byte("null"), nil
	}
	return jsonx.Marshal([]*int64(d))
}

// MarshalYAML writes null for an unknown shape.
func (d Dims) MarshalYAML() (any, error) {
	if d == nil {
		return nil, nil
	}
	return []*int64(d), nil
}

// MarshalJSON writes null for unknown shapes.
func (s Shapes) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("null"), nil
	}
	return jsonx.Marshal([]Dims(s))
}

// With appends a shape in which negative dimensions are unknown.
func (s Shapes) With(shape []int) Shapes { return append(s, dims(shape)) }

func dims(shape []int) Dims {
	d := make(Dims, len(shape))
	for i, n := range shape {
		if n >= 0 {
			d[i] = new(int64(n))
		}
	}
	return d
}

// ints returns a shape with 1 for unknown dimensions, as in Sparsify's computations.
func (d Dims) ints() []int64 {
	out := make([]int64, len(d))
	for i, n := range d {
		out[i] = 1
		if n != nil {
			out[i] = *n
		}
	}
	return out
}

// elements is the product of the known dimensions.
func (d Dims) elements() float64 { return product(d.ints()) }

// Analyse describes the operators of the main graph. Shapes returns the shape of a value by its
// id: nil if unknown, -1 for an unknown dimension.
//
// With compat, nodes are those that Sparsify finds (Conv, Gemm and MatMul with a constant,
// directly or behind Reshape and Transpose), and FLOPs are Sparsify's, defects included
// ([Flops]). Otherwise layers determines what can be pruned, zeros are relative to the zero
// point, and FLOPs are opmeter's operation counts, with two per multiply-accumulate.
func Analyse(m *graph.Model, shapes func(id int) []int, layers []study.Layer, compat bool) *Analysis {
	g := m.Main()
	a := &Analysis{Nodes: []*Node{}}
	b := &analyser{m: m, g: g, shapes: shapes, made: weights.Producers(g)}
	of := map[int][]*study.Layer{}
	for i := range layers {
		if layers[i].Graph > 0 {
			continue
		}
		of[layers[i].Node] = append(of[layers[i].Node], &layers[i])
	}
	taken := map[string]bool{}
	for _, n := range g.Nodes {
		x := b.node(n)
		if x.ID == "" || taken[x.ID] { // outputs without a name, or with a duplicate one, in TFLite
			x.ID = fmt.Sprintf("%s#%d", x.ID, n.Index)
		}
		taken[x.ID] = true
		if compat {
			b.weights(n, x)
			x.Flops = Flops(x)
		} else {
			b.layers(x, n, of[n.Index])
			x.Flops = b.ops(n)
		}
		if x.Prunable {
			x.PrunableEquationSensitivity = new(Sensitivity(x.InputShapes, x.OutputShapes, x.Params))
		}
		a.Nodes = append(a.Nodes, x)
	}
	return a
}

type analyser struct {
	m      *graph.Model
	g      *graph.Graph
	shapes func(id int) []int
	made   []*graph.Node
}

// node fills in everything independent of weights.
func (b *analyser) node(n *graph.Node) *Node {
	x := &Node{OpType: n.Op, InputNames: []string{}, OutputNames: []string{}, PrunableParams: -1, Attributes: map[string]jsonx.Raw{}}
	for k, v := range n.Attrs {
		x.Attributes[k] = attribute(v)
	}
	var in Shapes
	for _, id := range n.Inputs {
		if id < 0 || b.g.Values[id].Const != nil {
			continue
		}
		x.InputNames = append(x.InputNames, b.g.Values[id].Name)
		if s := b.shapes(id); s != nil {
			in = in.With(s)
		}
	}
	x.InputShapes = in
	for i, id := range n.Outputs {
		if id < 0 {
			continue
		}
		v := b.g.Values[id]
		if x.ID == "" {
			x.ID = v.Name
		}
		x.OutputNames = append(x.OutputNames, v.Name)
		if s := b.shapes(id); s != nil && i == 0 {
			x.OutputShapes = Shapes{dims(s)}
		}
	}
	return x
}

// attribute returns the JSON value of an attribute, null for tensors and graphs.
func attribute(v any) jsonx.Raw {
	switch x := v.(type) {
	case int64, string, bool, []int64, []string:
	case float32:
		v = finite(x)
	case []float32:
		out := make([]any, len(x))
		for i, f := range x {
			out[i] = finite(f)
		}
		v = out
	case []byte:
		v = string(x)
	default:
		v = nil
	}
	b, err := jsonx.Marshal(v)
	if err != nil {
		return jsonx.Raw("null")
	}
	return b
}

func finite(f float32) any {
	if x := float64(f); !math.IsNaN(x) && !math.IsInf(x, 0) {
		return x
	}
	return nil
}

// weights finds weight and bias as Sparsify does.
func (b *analyser) weights(n *graph.Node, x *Node) {
	if n.Domain != graph.ONNX {
		return
	}
	var w *graph.Value
	switch strings.ToLower(n.Op) {
	case "conv":
		w = b.constant(n, 1)
	case "gemm", "matmul":
		w = b.constant(n, 0)
		if other := b.constant(n, 1); w == nil {
			w = other
		} else if other != nil {
			w = nil
		}
	}
	if w == nil || !w.Const.Known() || !w.Const.Type.IsNumber() {
		return
	}
	x.WeightName, x.WeightShape = &w.Name, dims(w.Const.Shape)
	x.Prunable, x.PrunableParams, x.PrunableParamsZeroed = true, int64(w.Const.Len()), zeros(w.Const)
	x.Params = x.PrunableParams
	if !strings.EqualFold(n.Op, "MatMul") {
		b.bias(n, 2, x)
	}
}

// bias records a constant operand and adds its elements to the parameters.
func (b *analyser) bias(n *graph.Node, i int, x *Node) {
	if i >= len(n.Inputs) || n.Inputs[i] < 0 {
		return
	}
	if v := b.g.Values[n.Inputs[i]]; v.Const != nil {
		x.BiasName, x.BiasShape = &v.Name, dims(v.Const.Shape)
		x.Params += int64(v.Const.Len())
	}
}

// constant traces an operand through Reshape and Transpose to a constant of the file.
func (b *analyser) constant(n *graph.Node, i int) *graph.Value {
	if i >= len(n.Inputs) {
		return nil
	}
	id := n.Inputs[i]
	for range len(b.g.Nodes) + 1 {
		if id < 0 {
			return nil
		}
		if v := b.g.Values[id]; v.Const != nil {
			return v
		}
		p := b.made[id]
		if p == nil || p.Op != "Reshape" && p.Op != "Transpose" || len(p.Inputs) == 0 {
			return nil
		}
		id = p.Inputs[0]
	}
	return nil
}

// zeros counts elements that are exactly zero.
func zeros(x *tensor.Tensor) (n int64) {
	const piece = 1 << 12
	var buf [piece]float64
	for from, all := 0, x.Len(); from < all; from += piece {
		part := buf[:min(piece, all-from)]
		tensor.Read(part, x, from)
		for _, v := range part {
			if v == 0 {
				n++
			}
		}
	}
	return n
}

// layers fills in the weights that opmeter found.
func (b *analyser) layers(x *Node, n *graph.Node, ls []*study.Layer) {
	for _, l := range ls {
		if l.Fixed == study.NoZero || l.Fixed == study.Shared {
			continue
		}
		if !x.Prunable {
			x.Prunable, x.PrunableParams = true, 0
			x.WeightName, x.WeightShape = &l.Weight, dims(l.Shape)
		}
		x.PrunableParams += l.Weights()
		x.PrunableParamsZeroed += l.Zeros
		x.Params += l.Params
	}
	switch n.Op {
	case "Conv", "ConvTranspose", "Gemm", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED":
		if params := x.Params; x.Prunable {
			b.bias(n, 2, x)
			x.Params = params // includes the bias already
		}
	}
}

// ops counts operations, nil if unknown.
func (b *analyser) ops(n *graph.Node) *float64 {
	known := func(ids []int) []*tensor.Tensor {
		out := make([]*tensor.Tensor, len(ids))
		for i, id := range ids {
			if id < 0 {
				continue
			}
			v := b.g.Values[id]
			if out[i] = v.Const; out[i] != nil {
				continue
			}
			out[i] = &tensor.Tensor{}
			if s := b.shapes(id); s != nil && !slices.ContainsFunc(s, func(d int) bool { return d < 0 }) {
				out[i] = &tensor.Tensor{Type: v.Type, Shape: s}
				if v.Type == tensor.Invalid {
					out[i].Type = tensor.Float32 // counts are independent of the type
				}
			}
		}
		return out
	}
	w := count.Count(b.m, b.g, n, known(n.Inputs), known(n.Outputs))
	if w.Ops == nil {
		return nil
	}
	return new(float64(*w.Ops))
}

// Sensitivity is Sparsify's estimate of the loss without a layer's weights: input and output
// values per parameter, times the ratio by which the layer widens or narrows. Sizes of several
// inputs are multiplied; unknown dimensions are left out.
func Sensitivity(in, out Shapes, params int64) float64 {
	if params == 0 {
		return 0
	}
	volume := func(s Shapes) float64 {
		if len(s) == 0 {
			return 0
		}
		p := 1.0
		for _, d := range s {
			p *= d.elements()
		}
		return p
	}
	i, o := volume(in), volume(out)
	narrows := 1.0
	if i > 0 && o > 0 {
		narrows = max(i/o, o/i)
	}
	return (i + o) / float64(params) * narrows
}

// Sparsity is the share of zero weights of prunable nodes; false without any.
func (a *Analysis) Sparsity() (share float64, ok bool) {
	var all, zero int64
	for _, n := range a.Nodes {
		if n.Prunable {
			all, zero = all+n.PrunableParams, zero+n.PrunableParamsZeroed
		}
	}
	if all == 0 {
		return 0, false
	}
	return float64(zero) / float64(all), true
}

// SparseTraining reports whether Sparsify would suggest training the model as a sparse one: more
// than 40 % of the weights are zero.
func (a *Analysis) SparseTraining() bool {
	s, ok := a.Sparsity()
	return ok && s > 0.4
}

// JSON writes the analysis as Sparsify stores it.
func (a *Analysis) JSON() ([]byte, error) { return jsonx.MarshalIndent(a) }

// ParseAnalysis reads the output of [Analysis.JSON] and of Sparsify. Errors name the file.
func ParseAnalysis(data []byte, file string) (*Analysis, error) {
	a := &Analysis{}
	if err := jsonx.Unmarshal(data, a); err != nil {
		return nil, fmt.Errorf("%s: an analysis of Sparsify was expected: %w", file, err)
	}
	if a.Nodes == nil {
		return nil, fmt.Errorf("%s: an analysis of Sparsify was expected: it has no list nodes", file)
	}
	seen := map[string]bool{}
	for i, n := range a.Nodes {
		switch {
		case n == nil || n.ID == "":
			return nil, fmt.Errorf("%s: nodes[%d]: an operator with an id was expected", file, i)
		case seen[n.ID]:
			return nil, fmt.Errorf("%s: nodes[%d]: id %q stands twice", file, i, n.ID)
		case n.Params < 0 || n.Prunable && (n.PrunableParams < 0 || n.PrunableParams > n.Params || n.PrunableParamsZeroed < 0 || n.PrunableParamsZeroed > n.PrunableParams):
			return nil, fmt.Errorf("%s: nodes[%d] (%s): counts of parameters contradict each other", file, i, n.ID)
		}
		seen[n.ID] = true
	}
	return a, nil
}
