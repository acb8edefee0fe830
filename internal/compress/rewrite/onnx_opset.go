package rewrite

import (
	"maps"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// movedAttributes lists attributes that became inputs, from the given one on: operators, operator
// set, input.
var movedAttributes = []struct {
	ops, attrs   []string
	since, input int
}{
	{[]string{"Squeeze", "Unsqueeze", "ReduceSum"}, []string{"axes"}, 13, 1},
	{[]string{"Split"}, []string{"split"}, 13, 1},
	{[]string{"ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}, []string{"axes"}, 18, 1},
	{[]string{"Clip"}, []string{"min", "max"}, 11, 1},
	{[]string{"Dropout"}, []string{"ratio"}, 12, 1},
	{[]string{"Pad"}, []string{"pads", "value"}, 11, 1},
	{[]string{"Slice"}, []string{"starts", "ends", "axes"}, 10, 1},
	{[]string{"TopK"}, []string{"k"}, 10, 1},
}

// incompatibleSince lists operators whose semantics changed at an operator set in ways that are
// not converted here.
var incompatibleSince = map[string]int{
	"Scan": 9, "DFT": 20, "GroupNormalization": 21, "Scatter": 11, "TfIdfVectorizer": 0, "MaxUnpool": 0, "Loop": 11,
}

// raiseOpset returns the model with a higher operator set of the ONNX domain; the same model if
// it has that already. It is nil where an operator cannot be converted. shape returns the shapes
// of values of the main graph, nil where unknown.
//
// Source: the change log of ONNX's operators.
func raiseOpset(m *graph.Model, to int, shape func(id int) []int) *graph.Model {
	from := m.Opsets[graph.ONNX]
	if from >= to {
		return m
	}
	if from < 7 { // different broadcasting rules
		return nil
	}
	out := *m
	out.Content, out.Close = nil, nil
	out.Opsets = maps.Clone(m.Opsets)
	out.Opsets[graph.ONNX] = to
	out.IRVersion = max(m.IRVersion, irVersion(to))
	out.Graphs = slices.Clone(m.Graphs)
	single := onlyFloat32(m)
	for i, g := range m.Graphs {
		r := &opsetRaiser{from: from, to: to, single: single, shape: shape}
		next := *g
		r.g = &next
		if i > 0 {
			r.shape = func(id int) []int {
				if v := next.Values[id]; v.HasShape {
					return v.Shape
				}
				return nil
			}
		}
		next.Values, next.Nodes = slices.Clone(g.Values), slices.Clone(g.Nodes)
		for k, n := range g.Nodes {
			if n.Domain != graph.ONNX {
				continue
			}
			c := *n
			c.Version, c.Inputs, c.Attrs = to, slices.Clone(n.Inputs), maps.Clone(n.Attrs)
			if !r.node(&c) {
				return nil
			}
			next.Nodes[k] = &c
		}
		out.Graphs[i] = &next
	}
	for _, g := range out.Graphs {
		// Graphs that are not run by this part of a model may have a parent in the complete
		// model.
		if at := slices.Index(m.Graphs, g.Parent); g.Parent != nil && at >= 0 {
			g.Parent = out.Graphs[at]
		}
	}
	return &out
}

// irVersion returns the lowest IR version that supports an operator set.
func irVersion(opset int) int {
	for _, v := range []struct{ opset, ir int }{{21, 10}, {19, 9}, {15, 8}, {12, 7}} {
		if opset >= v.opset {
			return v.ir
		}
	}
	return 4
}

// opsetRaiser converts the nodes of a graph.
type opsetRaiser struct {
	g        *graph.Graph
	from, to int
	single   bool // all floats are float32
	shape    func(id int) []int
}

// onlyFloat32 reports whether float32 is the only floating-point type of a model.
func onlyFloat32(m *graph.Model) bool {
	other := func(t tensor.Type) bool { return t.IsFloat() && t != tensor.Float32 }
	casts := []int64{dataTypes[tensor.Float16], dataTypes[tensor.Float64], dataTypes[tensor.BFloat16]}
	return !slices.ContainsFunc(m.Graphs, func(g *graph.Graph) bool {
		return slices.ContainsFunc(g.Values, func(v *graph.Value) bool { return other(v.Type) || v.Const != nil && other(v.Const.Type) }) ||
			slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool { return n.Op == "Cast" && slices.Contains(casts, int64(n.Attrs.Int("to", 1))) })
	})
}

// node converts a mutable node; false where that is not possible.
func (r *opsetRaiser) node(n *graph.Node) bool {
	g, from, to := r.g, r.from, r.to
	if operandAt(n.Inputs, 0) < 0 || operandAt(n.Outputs, 0) < 0 {
		return true
	}
	passes := func(v int) bool { return from < v && to >= v }
	if v, ok := incompatibleSince[n.Op]; ok && passes(v) {
		return false
	}
	switch n.Op {
	case "Softmax", "LogSoftmax", "Hardmax":
		if !passes(13) {
			break
		}
		// Before 13 it was over all dimensions from the axis on.
		shape := r.shape(n.Inputs[0])
		axis := n.Attrs.Int("axis", 1)
		if axis < 0 {
			axis += len(shape)
		}
		if axis < 0 || axis >= len(shape) || slices.ContainsFunc(shape[axis+1:], func(d int) bool { return d != 1 }) {
			return false
		}
		setAttr(n, "axis", int64(axis))
	case "BatchNormalization":
		if len(n.Outputs) > 1 && passes(14) || n.Attrs.Int("spatial", 1) != 1 {
			return false
		}
		delete(n.Attrs, "spatial")
	case "Upsample", "Resize":
		if !upgradeResize(g, n, from, to) {
			return false
		}
	case "Dropout":
		if len(n.Outputs) > 1 && passes(12) {
			return false
		}
	case "Split": // equal parts need a count
		if passes(18) && len(n.Inputs) < 2 && !n.Attrs.Has("split") {
			setAttr(n, "num_outputs", int64(len(n.Outputs)))
		}
	case "RoiAlign":
		if passes(16) && !n.Attrs.Has("coordinate_transformation_mode") {
			setAttr(n, "coordinate_transformation_mode", "output_half_pixel")
		}
	case "GridSample":
		if s := n.Attrs.Str("mode", ""); passes(20) && s != "" {
			setAttr(n, "mode", strings.TrimPrefix(s, "bi"))
		}
	}
	if n.Op == "Clip" && passes(11) && !r.single && g.Values[n.Inputs[0]].Type != tensor.Float32 {
		return false
	}
	for _, a := range movedAttributes {
		for i, attr := range a.attrs {
			if slices.Contains(a.ops, n.Op) && passes(a.since) {
				attrToOperand(g, n, attr, a.input+i)
			}
		}
	}
	return true
}

func setAttr(n *graph.Node, name string, v any) {
	if n.Attrs == nil {
		n.Attrs = graph.Attrs{}
	}
	n.Attrs[name] = v
}

// attrToOperand replaces an attribute by a constant operand.
func attrToOperand(g *graph.Graph, n *graph.Node, attr string, input int) {
	var c *tensor.Tensor
	switch v := n.Attrs[attr].(type) {
	case []int64:
		c = tensor.From(tensor.Int64, []int{len(v)}, v)
	case int64:
		c = tensor.From(tensor.Int64, []int{1}, []int64{v})
	case []float32:
		c = tensor.From(tensor.Float32, []int{len(v)}, v)
	case float32:
		c = tensor.From(tensor.Float32, nil, []float32{v})
	default:
		return
	}
	delete(n.Attrs, attr)
	for len(n.Inputs) <= input {
		n.Inputs = append(n.Inputs, -1)
	}
	v := &graph.Value{ID: len(g.Values), Name: g.Values[n.Outputs[0]].Name + "/" + attr, Type: c.Type, Shape: c.Shape, HasShape: true, Const: c, Offset: -1}
	g.Values = append(g.Values, v)
	n.Inputs[input] = v.ID
}

// upgradeResize converts Upsample and the first version of Resize: the scales moved to another
// input, and sampling positions became an attribute.
func upgradeResize(g *graph.Graph, n *graph.Node, from, to int) bool {
	if from >= 11 || to < 11 {
		return n.Op == "Resize" || to < 10
	}
	mode := n.Attrs.Str("mode", "nearest")
	if mode != "nearest" && mode != "linear" {
		return false
	}
	attrToOperand(g, n, "scales", 1)
	if len(n.Inputs) != 2 {
		return false
	}
	n.Op, n.Inputs = "Resize", []int{n.Inputs[0], -1, n.Inputs[1]}
	setAttr(n, "coordinate_transformation_mode", "asymmetric")
	setAttr(n, "nearest_mode", "floor")
	return true
}
