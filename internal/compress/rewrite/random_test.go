package rewrite_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/study"
)

// net builds a random network.
type net struct {
	t    *rapid.T
	g    *graph.Graph
	lite bool
	// maps are values of four dimensions that later nodes may read, with their channels and size.
	maps []feature
}

type feature struct{ id, channels, size int }

func (n *net) draw(what string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(n.t, what) }

func (n *net) value(shape ...int) int {
	id := len(n.g.Values)
	n.g.Values = append(n.g.Values, &graph.Value{ID: id, Name: fmt.Sprintf("v%d", id), Type: tensor.Float32, Shape: shape, HasShape: true, Offset: -1})
	return id
}

func (n *net) constant(c *tensor.Tensor) int {
	id := n.value(c.Shape...)
	n.g.Values[id].Type, n.g.Values[id].Const = c.Type, c
	return id
}

// weights is a constant of random non-zero numbers.
func (n *net) weights(shape ...int) int {
	c := tensor.New(tensor.Float32, shape...)
	seed := uint64(n.draw("seed", 1, 1<<30))
	x := tensor.Of[float32](c)
	for i := range x {
		seed = seed*6364136223846793005 + 1442695040888963407
		x[i] = (float32(seed>>40)/(1<<24) - 0.5) + 0.001
	}
	return n.constant(c)
}

func (n *net) ints(v ...int64) int {
	if !n.lite {
		return n.constant(tensor.From(tensor.Int64, []int{len(v)}, v))
	}
	c := tensor.New(tensor.Int32, len(v))
	tensor.WriteInt64(c, 0, v)
	return n.constant(c)
}

func (n *net) node(op string, attrs graph.Attrs, out int, in ...int) int {
	node := &graph.Node{Index: len(n.g.Nodes), Name: fmt.Sprintf("n%d", len(n.g.Nodes)), Op: op, Version: 17, Inputs: in, Outputs: []int{out}, Attrs: attrs}
	if n.lite {
		node.Domain, node.Version = graph.TFLite, 1
	}
	n.g.Nodes = append(n.g.Nodes, node)
	return out
}

// feature adds a four-dimensional value in the format's layout.
func (n *net) feature(channels, size int) feature {
	shape := []int{1, channels, size, size}
	if n.lite {
		shape = []int{1, size, size, channels}
	}
	return feature{n.value(shape...), channels, size}
}

func (n *net) conv(x feature, outs, groups int) feature {
	y := n.feature(outs, x.size)
	switch {
	case !n.lite:
		w := n.weights(outs, x.channels/groups, 3, 3)
		n.node("Conv", graph.Attrs{"group": int64(groups), "pads": []int64{1, 1, 1, 1}, "kernel_shape": []int64{3, 3}}, y.id, x.id, w, n.weights(outs))
	case groups == x.channels && groups > 1:
		n.node("DEPTHWISE_CONV_2D", graph.Attrs{"depth_multiplier": int64(outs / groups), "padding": "SAME", "stride_w": int64(1), "stride_h": int64(1), "fused_activation_function": "RELU"}, y.id, x.id, n.weights(1, 3, 3, outs), n.weights(outs))
	default:
		n.node("CONV_2D", graph.Attrs{"padding": "SAME", "stride_w": int64(1), "stride_h": int64(1), "fused_activation_function": "NONE"}, y.id, x.id, n.weights(outs, 3, 3, x.channels/groups), n.weights(outs))
	}
	return y
}

func (n *net) op(onnx, lite string, attrs graph.Attrs, y feature, in ...int) feature {
	if n.lite {
		onnx = lite
	}
	n.node(onnx, attrs, y.id, in...)
	return y
}

// step adds a block that reads one of the existing values.
func (n *net) step() {
	x := n.maps[n.draw("from", 0, len(n.maps)-1)]
	add := func(f feature) { n.maps = append(n.maps, f) }
	like := func(f feature) feature { return n.feature(f.channels, f.size) }
	switch n.draw("part", 0, 12) {
	case 0, 1:
		add(n.conv(x, n.draw("outputs", 1, 8), 1))
	case 2: // depthwise
		if x.channels > 1 {
			add(n.conv(x, x.channels*n.draw("multiplier", 1, 2), x.channels))
		}
	case 3: // in groups
		if x.channels%2 == 0 && x.channels > 2 {
			add(n.conv(x, 2*n.draw("outputs", 1, 4), 2))
		}
	case 4:
		add(n.op("Relu", "RELU", nil, like(x), x.id))
	case 5:
		if n.lite {
			add(n.op("", "PRELU", nil, like(x), x.id, n.weights(1, 1, x.channels)))
			break
		}
		y := like(x)
		v := n.weights(x.channels)
		for i, c := 0, tensor.Of[float32](n.g.Values[v].Const); i < len(c); i++ {
			c[i] = c[i]*c[i] + 0.5
		}
		n.node("BatchNormalization", graph.Attrs{"epsilon": float32(1e-3)}, y.id, x.id, n.weights(x.channels), n.weights(x.channels), n.weights(x.channels), v)
		add(y)
	case 6: // a residual addition or product
		for _, o := range n.maps {
			if o.id != x.id && o.channels == x.channels && o.size == x.size {
				k := n.draw("sum", 0, 1)
				op := [][2]string{{"Add", "ADD"}, {"Mul", "MUL"}}[k]
				var attrs graph.Attrs
				if n.lite {
					attrs = graph.Attrs{"fused_activation_function": "NONE"}
				}
				add(n.op(op[0], op[1], attrs, like(x), x.id, o.id))
				break
			}
		}
	case 7: // concatenation
		for _, o := range n.maps {
			if o.size == x.size && o.channels+x.channels < 17 {
				axis := int64(1)
				if n.lite {
					axis = 3
				}
				attrs := graph.Attrs{"axis": axis}
				if n.lite {
					attrs["fused_activation_function"] = "NONE"
				}
				add(n.op("Concat", "CONCATENATION", attrs, n.feature(o.channels+x.channels, x.size), x.id, o.id))
				break
			}
		}
	case 8: // pooling
		if x.size%2 == 0 {
			y := n.feature(x.channels, x.size/2)
			if n.lite {
				n.node("MAX_POOL_2D", graph.Attrs{"padding": "VALID", "stride_w": int64(2), "stride_h": int64(2), "filter_width": int64(2), "filter_height": int64(2), "fused_activation_function": "NONE"}, y.id, x.id)
			} else {
				n.node("MaxPool", graph.Attrs{"kernel_shape": []int64{2, 2}, "strides": []int64{2, 2}}, y.id, x.id)
			}
			add(y)
		}
	case 9: // channels in another order
		if x.channels%2 == 0 && x.channels > 2 {
			add(n.shuffle(x))
		}
	case 10: // more channels
		more := n.draw("more", 1, 3)
		y := n.feature(x.channels+more, x.size)
		if n.lite {
			p := tensor.New(tensor.Int32, 4, 2)
			tensor.WriteInt64(p, 7, []int64{int64(more)})
			n.node("PAD", nil, y.id, x.id, n.constant(p))
		} else {
			n.node("Pad", nil, y.id, x.id, n.ints(0, 0, 0, 0, 0, int64(more), 0, 0))
		}
		add(y)
	case 12: // halves of the channels
		if x.channels%2 == 0 {
			a, b := n.feature(x.channels/2, x.size), n.feature(x.channels/2, x.size)
			if n.lite {
				axis := n.constant(tensor.From(tensor.Int32, []int{}, []int32{3}))
				n.node("SPLIT", graph.Attrs{"num_splits": int64(2)}, a.id, axis, x.id)
			} else {
				n.node("Split", graph.Attrs{"axis": int64(1)}, a.id, x.id, n.ints(int64(a.channels), int64(b.channels)))
			}
			last := n.g.Nodes[len(n.g.Nodes)-1]
			last.Outputs = append(last.Outputs, b.id)
			add(a)
			add(b)
		}
	case 11: // each channel by a number made of all
		add(n.squeeze(x))
	}
}

// shuffle permutes channels as ShuffleNet does.
func (n *net) shuffle(x feature) feature {
	c, s := x.channels, x.size
	y := n.feature(c, s)
	if n.lite {
		a, b := n.value(1, s, s, 2, c/2), n.value(1, s, s, c/2, 2)
		n.node("RESHAPE", graph.Attrs{"new_shape": []int64{1, int64(s), int64(s), 2, int64(c / 2)}}, a, x.id, n.ints(1, int64(s), int64(s), 2, int64(c/2)))
		n.node("TRANSPOSE", nil, b, a, n.ints(0, 1, 2, 4, 3))
		n.node("RESHAPE", graph.Attrs{"new_shape": []int64{1, int64(s), int64(s), int64(c)}}, y.id, b, n.ints(1, int64(s), int64(s), int64(c)))
		return y
	}
	a, b := n.value(1, 2, c/2, s, s), n.value(1, c/2, 2, s, s)
	n.node("Reshape", nil, a, x.id, n.ints(1, 2, int64(c/2), int64(s), int64(s)))
	n.node("Transpose", graph.Attrs{"perm": []int64{0, 2, 1, 3, 4}}, b, a)
	n.node("Reshape", nil, y.id, b, n.ints(1, -1, int64(s), int64(s)))
	return y
}

// squeeze adds a squeeze-and-excitation block: each channel is scaled by two dense layers of all
// channel means.
func (n *net) squeeze(x feature) feature {
	y := n.feature(x.channels, x.size)
	mid := n.draw("middle", 1, 4)
	if n.lite {
		p := n.feature(x.channels, 1)
		n.node("MEAN", graph.Attrs{"keep_dims": true}, p.id, x.id, n.ints(1, 2))
		q := n.conv(n.conv(p, mid, 1), x.channels, 1)
		r := n.op("", "LOGISTIC", nil, n.feature(x.channels, 1), q.id)
		return n.op("", "MUL", graph.Attrs{"fused_activation_function": "NONE"}, y, x.id, r.id)
	}
	p := n.feature(x.channels, 1)
	n.node("GlobalAveragePool", nil, p.id, x.id)
	q := n.conv(n.conv(p, mid, 1), x.channels, 1)
	r := n.op("Sigmoid", "", nil, n.feature(x.channels, 1), q.id)
	return n.op("Mul", "", nil, y, x.id, r.id)
}

// head adds dense layers that turn a value into an output.
func (n *net) head(x feature) int {
	in := x.channels * x.size * x.size
	mid, out := n.draw("hidden", 1, 6), n.draw("classes", 1, 4)
	flat, h, y := n.value(1, in), n.value(1, mid), n.value(1, out)
	if n.lite {
		n.node("RESHAPE", graph.Attrs{"new_shape": []int64{-1, int64(in)}}, flat, x.id, n.ints(-1, int64(in)))
		dense := graph.Attrs{"fused_activation_function": "RELU", "weights_format": "DEFAULT", "keep_num_dims": false}
		n.node("FULLY_CONNECTED", dense, h, flat, n.weights(mid, in), n.weights(mid))
		return n.node("FULLY_CONNECTED", dense, y, h, n.weights(out, mid), n.weights(out))
	}
	if n.draw("flatten", 0, 1) == 0 {
		n.node("Flatten", graph.Attrs{"axis": int64(1)}, flat, x.id)
	} else {
		n.node("Reshape", nil, flat, x.id, n.ints(1, int64(in)))
	}
	n.node("Gemm", graph.Attrs{"transB": int64(1)}, h, flat, n.weights(mid, in), n.weights(mid))
	z := n.node("MatMul", nil, n.value(1, out), h, n.weights(mid, out))
	return n.node("Add", nil, y, z, n.weights(out))
}

// draw builds a random network of either format.
func draw(t *rapid.T) *graph.Model {
	n := &net{t: t, g: &graph.Graph{Name: "net"}, lite: rapid.Bool().Draw(t, "tflite")}
	x := n.feature(n.draw("channels", 1, 4), 4)
	n.g.Inputs = []int{x.id}
	n.maps = []feature{n.conv(x, n.draw("first", 2, 8), 1)}
	for range n.draw("parts", 1, 10) {
		n.step()
	}
	n.g.Outputs = []int{n.head(n.maps[len(n.maps)-1])}
	if n.draw("outputs", 0, 3) == 0 {
		f := n.maps[n.draw("second", 0, len(n.maps)-1)]
		n.g.Outputs = append(n.g.Outputs, f.id)
	}
	m := &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{n.g}}
	if n.lite {
		m.Format, m.IRVersion, m.Opsets = "tflite", 3, nil
	}
	return m
}

// outputs runs a model that was written and read.
func outputs(t *rapid.T, m *graph.Model) []*tensor.Tensor {
	b, err := rewrite.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if m.Format == "tflite" {
		m, err = tflite.Parse(b, "m.tflite")
	} else {
		m, err = onnx.Parse(b, "m.onnx", "")
	}
	if err != nil {
		t.Fatal(err)
	}
	in, _, err := inputs.Inputs(m, inputs.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out []*tensor.Tensor
	for i := range m.Main().Outputs {
		x := s.Output(i)
		if x == nil {
			t.Fatalf("output %d could not be computed", i)
		}
		out = append(out, x.Clone())
	}
	return out
}

// TestRandomRemoval removes channels and filters from random networks. The rest computes the same
// as the network with zeros, loses exactly the requested number where nothing is coupled, and is
// not larger.
func TestRandomRemoval(t *testing.T) {
	t.Parallel()
	taken := tally{} // by operator around the network
	rapid.Check(t, func(t *rapid.T) {
		m := draw(t)
		around := m.Format
		if rapid.Bool().Draw(t, "in a body") {
			m = wrapped(t, m)
			around = m.Main().Nodes[0].Op
		}
		outputs(t, m) // the network is sound
		layers := weights.All(m, nil)
		var changes []rewrite.Change
		all := rapid.IntRange(0, 3).Draw(t, "all")
		for i, l := range layers {
			k := all
			if k == 0 {
				k = rapid.IntRange(0, 3).Draw(t, fmt.Sprint("change", i))
			}
			if k > 0 {
				s := []study.Structure{study.Filter, study.Channel, study.Unstructured}[k-1]
				level := rapid.SampledFrom([]float64{0.5, 0.25, 0.75, 0.1, 0.9, 0, 1}).Draw(t, fmt.Sprint("level", i))
				changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Structure: s, Level: level}})
			}
		}
		zeroed, _, err := rewrite.Apply(m, changes, rewrite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		removed, effects, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := removed.Validate(); err != nil {
			t.Fatal(err)
		}
		want := outputs(t, zeroed)
		for i, got := range outputs(t, removed) {
			a, b := tensor.Of[float32](got), tensor.Of[float32](want[i])
			if len(a) != len(b) {
				t.Fatalf("output %d has %d elements, want %d", i, len(a), len(b))
			}
			most := float32(0)
			for _, x := range b {
				most = max(most, x, -x)
			}
			for k := range a {
				if d := a[k] - b[k]; max(d, -d) > 1e-4*most+1e-6 {
					t.Fatalf("output %d: element %d is %v, want %v", i, k, a[k], b[k])
				}
			}
		}
		for i, e := range effects {
			l := changes[i].Layer
			if e.Weights > l.Weights() {
				t.Fatalf("%s has %d weights, had %d", l.Name, e.Weights, l.Weights())
			}
		}
		taken.add(around, effects)
	})
	taken.check(t, 10)
}

// tally counts random models by kind, and those with removed units.
type tally map[string]*struct{ models, out int }

func (c tally) add(kind string, effects []rewrite.Effect) {
	if c[kind] == nil {
		c[kind] = new(struct{ models, out int })
	}
	c[kind].models++
	if slices.ContainsFunc(effects, func(e rewrite.Effect) bool { return e.Removed > 0 }) {
		c[kind].out++
	}
}

// check requires that units were removed in at least one of five models of each kind with enough
// models.
func (c tally) check(t *testing.T, enough int) {
	t.Helper()
	for kind, n := range c {
		if n.models >= enough && 5*n.out < n.models {
			t.Errorf("something was taken out of %d of %d models of %s", n.out, n.models, kind)
		}
		t.Logf("%s: taken out of %d of %d", kind, n.out, n.models)
	}
}
