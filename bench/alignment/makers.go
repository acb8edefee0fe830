package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// makers make twins of a source, nil where there is nothing to change.
var makers = []struct {
	kind  string
	seeds int
	make  func(a *source, seed uint64) (*twin, error)
}{
	{"equal", 1, func(a *source, _ uint64) (*twin, error) { return newTwin(a), nil }},
	{"half precision", 1, compressed(study.Change{Format: study.Half}, false)},
	{"static QDQ", 1, compressed(study.Change{Format: study.Int8}, false)},
	{"dynamic int8", 1, compressed(study.Change{Format: study.Dynamic8}, false)},
	{"8-bit weights", 1, compressed(study.Change{Format: study.Weight8}, false)},
	{"4-bit weights", 1, compressed(study.Change{Format: study.Weight4}, false)},
	{"pruned to zero", 1, compressed(study.Change{Structure: study.Unstructured, Level: 0.6}, false)},
	{"pruned filters", 1, compressed(study.Change{Structure: study.Filter, Level: 0.4}, true)},
	{"pruned and dynamic", 1, compressed(study.Change{Structure: study.Filter, Level: 0.4, Format: study.Dynamic8}, true)},
	{"other batch", 1, otherBatch},
	{"other size", 1, otherSize},
	{"unfused", 1, unfused},
	{"fused", 1, fusedAgain},
	{"block inserted", 3, inserted},
	{"block removed", 3, removed},
}

// compressed makes a twin with all weights changed.
func compressed(c study.Change, remove bool) func(*source, uint64) (*twin, error) {
	return func(a *source, _ uint64) (*twin, error) {
		var cs []rewrite.Change
		for _, l := range weights.Find(a.m, a.shapes) {
			cs = append(cs, rewrite.Change{Layer: l, Change: c})
		}
		if len(cs) == 0 {
			return nil, nil
		}
		m, effects, err := rewrite.Apply(a.m, cs, rewrite.Options{Remove: remove})
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(effects, func(e rewrite.Effect) bool { return e.Cause == "" }) {
			return nil, nil
		}
		return byValues(a, m), nil
	}
}

// byValues relates a model to its source by the names of values, which a change of formats keeps.
// What makes a value of the source came from the node that made it there; the other nodes are
// helpers of those around them.
func byValues(a *source, m *graph.Model) *twin {
	t := &twin{m: m, from: map[*graph.Node][]*graph.Node{}, helper: map[*graph.Node]bool{}, gone: map[*graph.Node]bool{}}
	for k, g := range m.Graphs {
		if k >= len(a.m.Graphs) {
			break
		}
		makers, named := map[string]*graph.Node{}, map[string]*graph.Node{}
		for _, n := range a.m.Graphs[k].Nodes {
			for _, o := range n.Outputs {
				if o >= 0 {
					makers[a.m.Graphs[k].Values[o].Name] = n
				}
			}
			if n.Name != "" {
				named[n.Name] = n
			}
		}
		t.origins(g, makers, named)
	}
	// Conversions that the twin does without belong to any layer.
	kept := map[*graph.Node]bool{}
	for _, was := range t.from {
		for _, n := range was {
			kept[n] = true
		}
	}
	for _, g := range a.m.Graphs {
		for _, n := range g.Nodes {
			if !kept[n] && slices.Contains([]string{"DEQUANTIZE", "QUANTIZE", "DENSIFY", "Cast", "DequantizeLinear", "QuantizeLinear"}, n.Op) {
				t.gone[n] = true
			}
		}
	}
	return t
}

func (t *twin) origins(g *graph.Graph, makers, named map[string]*graph.Node) {
	at := map[int]*graph.Node{}
	taken := map[*graph.Node]bool{}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			if o < 0 {
				continue
			}
			at[o] = n
			if was := makers[g.Values[o].Name]; was != nil {
				t.from[n] = []*graph.Node{was}
				taken[was] = true
			}
		}
	}
	for _, n := range g.Nodes { // what is only there as integers
		if len(n.Outputs) == 0 || n.Outputs[0] < 0 || t.from[n] != nil {
			continue
		}
		name, ok := strings.CutSuffix(g.Values[n.Outputs[0]].Name, "_quantized")
		if was := makers[name]; ok && was != nil && !taken[was] && was.Op == n.Op {
			t.from[n] = []*graph.Node{was}
		}
	}
	for _, n := range g.Nodes { // what multiplies keeps its name
		if was := named[n.Name]; t.from[n] == nil && was != nil && n.Name != "" {
			t.from[n] = []*graph.Node{was}
		}
	}
	// Where a conversion makes the value, what computes it is before it.
	for _, n := range g.Nodes {
		if len(t.from[n]) != 1 || sameWork(n.Op, t.from[n][0].Op) {
			continue
		}
		was := t.from[n][0]
		for x, steps := n, 0; x != nil && steps < 6; steps++ {
			var next *graph.Node
			for _, i := range x.Inputs {
				if m := at[i]; m != nil && (t.from[m] == nil || t.from[m][0] == was) {
					next = m
					break
				}
			}
			if x = next; x != nil && sameWork(x.Op, was.Op) {
				t.from[n] = nil
				t.from[x] = []*graph.Node{was}
				break
			}
		}
	}
	// Helpers belong to the nodes before and after them, the nearest ones that came from some.
	var helpers []*graph.Node
	for _, n := range g.Nodes {
		if t.from[n] == nil {
			helpers = append(helpers, n)
			t.helper[n] = true
		}
	}
	readers := map[int][]*graph.Node{}
	for _, n := range g.Nodes {
		for _, i := range n.Inputs {
			readers[i] = append(readers[i], n)
		}
	}
	near := map[*graph.Node][]*graph.Node{}
	for _, n := range helpers {
		seen := map[*graph.Node]bool{n: true}
		for _, forward := range []bool{true, false} {
			open := []*graph.Node{n}
			for len(open) > 0 {
				x := open[0]
				open = open[1:]
				var next []*graph.Node
				if forward {
					for _, o := range x.Outputs {
						next = append(next, readers[o]...)
					}
				} else {
					for _, i := range x.Inputs {
						if m := at[i]; m != nil {
							next = append(next, m)
						}
					}
				}
				for _, y := range next {
					if seen[y] {
						continue
					}
					seen[y] = true
					if t.helper[y] {
						open = append(open, y)
					} else {
						near[n] = append(near[n], t.from[y]...)
					}
				}
			}
		}
	}
	for _, n := range helpers {
		t.from[n] = near[n]
	}
}

// sameWork reports whether an operator is another one or that on integers.
func sameWork(op, was string) bool {
	return op == was || strings.TrimSuffix(op, "Integer") == was || op == "MatMulInteger" && was == "Gemm" || op == "MatMulNBits" && (was == "Gemm" || was == "MatMul")
}

// otherBatch has four times the batch.
func otherBatch(a *source, _ uint64) (*twin, error) {
	t := newTwin(a)
	t.in = opmeter.Inputs{Batch: 4}
	return t, nil
}

// otherSize has images of another height and width.
func otherSize(a *source, _ uint64) (*twin, error) {
	t := newTwin(a)
	t.in.Shapes = map[string][]int{}
	for i := range a.p.Model.Inputs {
		in := &a.p.Model.Inputs[i]
		if len(in.Shape) != 4 {
			return nil, nil
		}
		s := []int{}
		for _, d := range in.Shape {
			if d >= 16 {
				d = (d*3/2 + 31) / 32 * 32
			}
			s = append(s, int(d))
		}
		t.in.Shapes[in.Name] = s
	}
	return t, nil
}

// uses counts how often values are read.
func uses(g *graph.Graph) map[int]int {
	n := map[int]int{}
	for _, x := range g.Nodes {
		for _, i := range x.Inputs {
			n[i]++
		}
	}
	for _, o := range g.Outputs {
		n[o]++
	}
	return n
}

func (t *twin) value(like int, name string) int {
	g := t.m.Main()
	v := *g.Values[like]
	v.ID, v.Name, v.Const = len(g.Values), fmt.Sprintf("%s_%d", name, len(g.Values)), nil
	g.Values = append(g.Values, &v)
	return v.ID
}

func (t *twin) constant(name string, c *tensor.Tensor) int {
	g := t.m.Main()
	v := &graph.Value{ID: len(g.Values), Name: fmt.Sprintf("%s_%d", name, len(g.Values)), Type: c.Type, Shape: c.Shape, HasShape: true, Const: c, Offset: -1}
	g.Values = append(g.Values, v)
	return v.ID
}

func filled(value float32, shape ...int) *tensor.Tensor {
	c := tensor.New(tensor.Float32, shape...)
	c.Alloc()
	for i := range tensor.Of[float32](c) {
		tensor.Of[float32](c)[i] = value
	}
	return c
}

// after puts nodes behind the node at a position.
func after(g *graph.Graph, at int, ns ...*graph.Node) {
	g.Nodes = slices.Insert(g.Nodes, at+1, ns...)
	number(g)
}

// unfused has separate operators for what one does: normalisation behind convolutions, bias behind
// products, activations of TFLite.
func unfused(a *source, _ uint64) (*twin, error) {
	t := newTwin(a)
	g := t.m.Main()
	changed := false
	for at := 0; at < len(g.Nodes); at++ {
		n := g.Nodes[at]
		was := t.from[n]
		switch {
		case n.Op == "Conv" && n.Domain == "" && len(n.Inputs) > 1 && g.Values[n.Inputs[1]].Const != nil && g.Values[n.Inputs[1]].Type == tensor.Float32:
			channels := g.Values[n.Inputs[1]].Const.Shape[0]
			y := t.value(n.Outputs[0], "unnormalised")
			ins := []int{y}
			for k, v := range []float32{1, 0, 0, 1} {
				ins = append(ins, t.constant(fmt.Sprint("norm", k), filled(v, channels)))
			}
			bn := &graph.Node{Name: n.Name + "_norm", Op: "BatchNormalization", Version: n.Version, Inputs: ins, Outputs: slices.Clone(n.Outputs), Attrs: graph.Attrs{"epsilon": float32(1e-5)}}
			n.Inputs, n.Outputs = n.Inputs[:2], []int{y}
			after(g, at, bn)
			t.from[bn], t.helper[bn] = was, true
			at++
		case n.Op == "Gemm" && len(n.Inputs) == 3 && g.Values[n.Inputs[1]].Const != nil && n.Attrs.Float("alpha", 1) == 1 && n.Attrs.Float("beta", 1) == 1 && !n.Attrs.Bool("transA", false):
			if n.Attrs.Bool("transB", false) {
				s := g.Values[n.Inputs[1]].Const
				if s.Type != tensor.Float32 {
					continue
				}
				n.Inputs[1] = t.constant("transposed", filled(0.1, s.Shape[1], s.Shape[0]))
			}
			y := t.value(n.Outputs[0], "product")
			add := &graph.Node{Name: n.Name + "_bias", Op: "Add", Version: n.Version, Inputs: []int{y, n.Inputs[2]}, Outputs: slices.Clone(n.Outputs)}
			n.Op, n.Attrs, n.Inputs, n.Outputs = "MatMul", nil, n.Inputs[:2], []int{y}
			after(g, at, add)
			t.from[add], t.helper[add] = was, true
			at++
		case n.Attrs.Str("fused_activation_function", "NONE") == "RELU" || n.Attrs.Str("fused_activation_function", "NONE") == "RELU6":
			if v := g.Values[n.Outputs[0]]; v.Type != tensor.Float32 {
				continue
			}
			y := t.value(n.Outputs[0], "inactive")
			act := &graph.Node{Op: n.Attrs.Str("fused_activation_function", ""), Domain: graph.TFLite, Version: 1, Inputs: []int{y}, Outputs: slices.Clone(n.Outputs)}
			attrs := graph.Attrs{}
			for k, v := range n.Attrs {
				attrs[k] = v
			}
			attrs["fused_activation_function"] = "NONE"
			n.Attrs, n.Outputs = attrs, []int{y}
			after(g, at, act)
			t.from[act], t.helper[act] = was, true
			at++
		default:
			continue
		}
		changed = true
	}
	if !changed {
		return nil, nil
	}
	return t, nil
}

// fusedAgain has one operator for what several do: convolution and activation, product and bias,
// activations of TFLite.
func fusedAgain(a *source, _ uint64) (*twin, error) {
	t := newTwin(a)
	g := t.m.Main()
	read := uses(g)
	by := map[int]*graph.Node{}
	for _, n := range g.Nodes {
		for _, i := range n.Inputs {
			by[i] = n
		}
	}
	drop := map[*graph.Node]bool{}
	for _, n := range g.Nodes {
		if drop[n] || len(n.Outputs) == 0 || read[n.Outputs[0]] != 1 {
			continue
		}
		next := by[n.Outputs[0]]
		if next == nil {
			continue
		}
		switch {
		case n.Op == "Conv" && n.Domain == "" && (next.Op == "Relu" || next.Op == "Sigmoid" || next.Op == "Tanh"):
			attrs := graph.Attrs{}
			for k, v := range n.Attrs {
				attrs[k] = v
			}
			attrs["activation"] = next.Op
			n.Op, n.Domain, n.Version, n.Attrs = "FusedConv", graph.Microsoft, 1, attrs
			opsets := map[string]int{graph.Microsoft: 1}
			for k, v := range t.m.Opsets {
				opsets[k] = v
			}
			t.m.Opsets = opsets
		case n.Op == "MatMul" && next.Op == "Add" && len(a.shapes(n.Outputs[0])) == 2 && len(a.shapes(n.Inputs[0])) == 2:
			k := 1 - slices.Index(next.Inputs, n.Outputs[0])
			bias := next.Inputs[k]
			if g.Values[bias].Const == nil || len(g.Values[bias].Const.Shape) != 1 {
				continue
			}
			n.Op, n.Inputs = "Gemm", append(slices.Clone(n.Inputs), bias)
		case n.Op == "CONV_2D" && (next.Op == "RELU" || next.Op == "RELU6"), n.Op == "DEPTHWISE_CONV_2D" && (next.Op == "RELU" || next.Op == "RELU6"):
			attrs := graph.Attrs{}
			for k, v := range n.Attrs {
				attrs[k] = v
			}
			attrs["fused_activation_function"] = next.Op
			n.Attrs = attrs
		default:
			continue
		}
		n.Outputs = slices.Clone(next.Outputs)
		t.from[n] = append(slices.Clone(t.from[n]), t.from[next]...)
		for _, was := range t.from[next] {
			t.gone[was] = true
		}
		drop[next] = true
	}
	if len(drop) == 0 {
		return nil, nil
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *graph.Node) bool { return drop[n] })
	return t, nil
}

// inserted has one more block somewhere: a convolution or product with an activation.
func inserted(a *source, seed uint64) (*twin, error) {
	t := newTwin(a)
	g := t.m.Main()
	r := rand.New(rand.NewPCG(seed, 3))
	for _, at := range r.Perm(len(g.Nodes)) {
		n := g.Nodes[at]
		if at, ok := a.at[t.from[n][0]]; !ok || a.p.Layers[at].Constant || n.Op == "DEQUANTIZE" || n.Op == "DENSIFY" {
			continue // weights
		}
		if len(n.Outputs) != 1 || g.Values[n.Outputs[0]].Quant != nil || slices.Contains(g.Outputs, n.Outputs[0]) || g.Values[n.Outputs[0]].Type != tensor.Float32 && t.m.Format == "tflite" {
			continue
		}
		s := a.shapes(n.Outputs[0])
		lite := t.m.Format == "tflite"
		if !lite && (n.Op != "Relu" && n.Op != "Conv" && n.Op != "Add" && n.Op != "MatMul" && n.Op != "MaxPool" && n.Op != "Concat" && n.Op != "Clip" && n.Op != "LayerNormalization") {
			continue
		}
		x := n.Outputs[0]
		y, z := t.value(x, "inserted"), t.value(x, "inserted_relu")
		var layer, act *graph.Node
		switch {
		case lite && len(s) == 4:
			w := t.constant("inserted_weights", filled(0.01, s[3], 1, 1, s[3]))
			layer = &graph.Node{Op: "CONV_2D", Domain: graph.TFLite, Version: 1, Table: "Conv2DOptions", Inputs: []int{x, w, t.constant("inserted_bias", filled(0, s[3]))}, Outputs: []int{y}, Attrs: graph.Attrs{"padding": "SAME", "stride_w": int64(1), "stride_h": int64(1), "dilation_w_factor": int64(1), "dilation_h_factor": int64(1)}}
			act = &graph.Node{Op: "RELU", Domain: graph.TFLite, Version: 1, Inputs: []int{y}, Outputs: []int{z}}
		case lite && len(s) == 2:
			layer = &graph.Node{Op: "FULLY_CONNECTED", Domain: graph.TFLite, Version: 1, Table: "FullyConnectedOptions", Inputs: []int{x, t.constant("inserted_weights", filled(0.01, s[1], s[1])), -1}, Outputs: []int{y}}
			act = &graph.Node{Op: "RELU", Domain: graph.TFLite, Version: 1, Inputs: []int{y}, Outputs: []int{z}}
		case !lite && len(s) == 4 && s[1] > 1:
			layer = &graph.Node{Name: "inserted", Op: "Conv", Version: 13, Inputs: []int{x, t.constant("inserted_weights", filled(0.01, s[1], s[1], 1, 1))}, Outputs: []int{y}, Attrs: graph.Attrs{"kernel_shape": []int64{1, 1}}}
			act = &graph.Node{Name: "inserted_relu", Op: "Relu", Version: 13, Inputs: []int{y}, Outputs: []int{z}}
		case !lite && (len(s) == 2 || len(s) == 3) && s[len(s)-1] > 1:
			c := s[len(s)-1]
			layer = &graph.Node{Name: "inserted", Op: "MatMul", Version: 13, Inputs: []int{x, t.constant("inserted_weights", filled(0.01, c, c))}, Outputs: []int{y}}
			act = &graph.Node{Name: "inserted_relu", Op: "Relu", Version: 13, Inputs: []int{y}, Outputs: []int{z}}
		default:
			continue
		}
		for _, c := range g.Nodes {
			for k, i := range c.Inputs {
				if i == x {
					c.Inputs[k] = z
				}
			}
		}
		after(g, at, layer, act)
		return t, nil
	}
	return nil, nil
}

// removed lacks one block: what an addition adds to its first operand, or an operator between
// values of one shape.
func removed(a *source, seed uint64) (*twin, error) {
	t := newTwin(a)
	g := t.m.Main()
	r := rand.New(rand.NewPCG(seed, 5))
	for _, at := range r.Perm(len(g.Nodes)) {
		n := g.Nodes[at]
		if len(n.Outputs) != 1 || slices.Contains(g.Outputs, n.Outputs[0]) {
			continue
		}
		var data []int
		for _, i := range n.Inputs {
			if i >= 0 && g.Values[i].Const == nil {
				data = append(data, i)
			}
		}
		s := a.shapes(n.Outputs[0])
		residual := len(data) == 2 && (n.Op == "Add" || n.Op == "ADD")
		layer := len(data) == 1 && (n.Op == "Conv" || n.Op == "CONV_2D" || n.Op == "MatMul" || n.Op == "FULLY_CONNECTED" || n.Op == "DEPTHWISE_CONV_2D")
		if !(residual || layer) || len(s) == 0 {
			continue
		}
		k := slices.IndexFunc(data, func(i int) bool { return slices.Equal(a.shapes(i), s) })
		if k < 0 || len(g.Nodes) < 4 {
			continue
		}
		if q := g.Values[data[k]].Quant; q != nil {
			continue
		}
		for _, c := range g.Nodes {
			for j, i := range c.Inputs {
				if i == n.Outputs[0] {
					c.Inputs[j] = data[k]
				}
			}
		}
		g.Nodes = slices.Delete(g.Nodes, at, at+1)
		sweep(g)
		return t, nil
	}
	return nil, nil
}

// sweep removes nodes that nothing reads.
func sweep(g *graph.Graph) {
	for again := true; again; {
		read := uses(g)
		n := len(g.Nodes)
		g.Nodes = slices.DeleteFunc(g.Nodes, func(n *graph.Node) bool {
			return !slices.ContainsFunc(n.Outputs, func(o int) bool { return o >= 0 && read[o] > 0 })
		})
		again = len(g.Nodes) < n
	}
	number(g)
}
