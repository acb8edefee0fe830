package align

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// written writes pairs as "Conv Relu | FusedConv: fused", with a question mark where they are not
// certain.
func written(a, b *profile.Profile, ps []Pair) string {
	var out []string
	for _, p := range ps {
		ops := func(q *profile.Profile, ls []int64) string {
			var s []string
			for _, i := range ls {
				s = append(s, q.Layers[i].Op)
			}
			return strings.Join(s, " ")
		}
		line := ops(a, p.A) + " | " + ops(b, p.B) + ": " + string(p.Kind)
		if !p.Certain && p.Kind != Inserted && p.Kind != Removed {
			line += " ?"
		}
		out = append(out, strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}

// built makes a profile.
func built(dtype string, build func(g *maker)) *profile.Profile {
	g := &maker{dtype: dtype}
	build(g)
	return g.profile()
}

// small are shapes of vectors and images.
var (
	vector = []int64{1, 16}
	image  = []int64{1, 8, 8, 8}
)

// linear adds a product and its bias.
func (g *maker) linear(name, in string) string {
	g.add("MatMul", name+"_product", []string{in}, vector, []int64{16, 16})
	return g.add("Add", name, []string{name + "_product"}, vector, []int64{16})
}

// dynamic adds a product of integers as quantisers write it, with its bias.
func (g *maker) dynamic(name, in string) string {
	g.add("DynamicQuantizeLinear", name+"_q", []string{in}, vector)
	q := g.last()
	q.Outputs = []profile.Tensor{
		{Name: name + "_q", DType: "uint8", Shape: vector}, {Name: name + "_scale", DType: "float32", Shape: []int64{}}, {Name: name + "_zero", DType: "uint8", Shape: []int64{}},
	}
	g.add("MatMulInteger", name+"_sums", []string{name + "_q"}, vector, []int64{16, 16})
	m := g.last()
	m.Inputs[0].DType, m.Inputs[1].DType = "uint8", "int8"
	m.Inputs = append(m.Inputs, profile.Tensor{Name: name + "_zero", DType: "uint8", Shape: []int64{}})
	g.add("Cast", name+"_floats", []string{name + "_sums"}, vector)
	g.add("Mul", name+"_both", []string{name + "_scale"}, []int64{}, []int64{})
	g.add("Mul", name+"_scaled", []string{name + "_floats", name + "_both"}, vector)
	return g.add("Add", name, []string{name + "_scaled"}, vector, []int64{16})
}

// plain is convolution, activation, pooling and classifier.
func plain(g *maker) {
	x := g.conv("a", "in", 8, 3)
	x = g.add("Relu", "b", []string{x}, image)
	x = g.add("MaxPool", "c", []string{x}, image)
	x = g.conv("d", x, 8, 1)
	g.add("Softmax", "e", []string{x}, image)
}

// oneFile changes what an engine says of the layers of a model.
func oneFile(p *profile.Profile, change func(p *profile.Profile)) *profile.Profile {
	change(p)
	return p
}

// clip adds a convolution and a limit.
func (g *maker) clip(limit string) {
	g.add("Clip", "b", []string{g.conv("a", "in", 8, 3)}, image)
	g.last().Options = []profile.Option{{Key: "min", Value: "0"}, {Key: "max", Value: limit}}
}

// lite makes the operators those of TFLite.
func literal(p *profile.Profile, act string) *profile.Profile {
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Op == "Conv" {
			l.Op, l.Domain = "CONV_2D", ""
			l.Options = []profile.Option{{Key: "padding", Value: "same"}, {Key: "stride", Value: "1x1"}, {Key: "activation", Value: act}}
			w := l.Inputs[1].Shape
			l.Inputs[1].Shape = []int64{w[0], w[2], w[3], w[1]}
		}
	}
	return p
}

func TestKinds(t *testing.T) {
	t.Parallel()
	renamed := func(p *profile.Profile) *profile.Profile {
		p.Model.StructureSHA256 = strings.Repeat("b", 64)
		for i := range p.Layers {
			l := &p.Layers[i]
			l.Name = ""
			for _, ts := range [][]profile.Tensor{l.Inputs, l.Outputs} {
				for k := range ts {
					ts[k].Name = "x" + ts[k].Name
				}
			}
		}
		return p
	}
	for _, tt := range []struct {
		name string
		a, b *profile.Profile
		want string
	}{
		{
			"renamed", built("", plain), renamed(built("", plain)),
			"Conv | Conv: same\nRelu | Relu: same\nMaxPool | MaxPool: same\nConv | Conv: same\nSoftmax | Softmax: same",
		},
		{
			"half precision", built("", plain), built("float16", plain),
			"Conv | Conv: quantised\nRelu | Relu: quantised\nMaxPool | MaxPool: quantised\nConv | Conv: quantised\nSoftmax | Softmax: quantised",
		},
		{
			"TFLite, float against int8", literal(built("", func(g *maker) { g.conv("b", g.conv("a", "in", 8, 3), 8, 1) }), "relu"),
			literal(built("int8", func(g *maker) { g.conv("b", g.conv("a", "in", 8, 3), 8, 1) }), "relu"),
			"CONV_2D | CONV_2D: quantised\nCONV_2D | CONV_2D: quantised",
		},
		{
			"fewer channels", built("", plain), built("", func(g *maker) {
				x := g.conv("a", "in", 4, 3)
				x = g.add("Relu", "b", []string{x}, []int64{1, 4, 8, 8})
				x = g.add("MaxPool", "c", []string{x}, []int64{1, 4, 8, 8})
				g.add("Conv", "d", []string{x}, image, []int64{8, 4, 1, 1}, []int64{8})
				g.add("Softmax", "e", []string{"d"}, image)
			}),
			"Conv | Conv: pruned\nRelu | Relu: resized\nMaxPool | MaxPool: resized\nConv | Conv: pruned\nSoftmax | Softmax: same",
		},
		{
			"more zeros", built("", plain), renamed(built("", func(g *maker) {
				plain(g)
				g.p.Layers[0].Sparsity = &profile.Sparsity{Weights: new(0.5)}
			})),
			"Conv | Conv: pruned\nRelu | Relu: same\nMaxPool | MaxPool: same\nConv | Conv: same\nSoftmax | Softmax: same",
		},
		{
			"other batch", built("", plain), built("", func(g *maker) {
				plain(g)
				for i := range g.p.Layers {
					g.p.Layers[i].Inputs[0].Shape, g.p.Layers[i].Outputs[0].Shape = []int64{4, 8, 8, 8}, []int64{4, 8, 8, 8}
				}
			}),
			"Conv | Conv: resized\nRelu | Relu: resized\nMaxPool | MaxPool: resized\nConv | Conv: resized\nSoftmax | Softmax: resized",
		},
		{
			"fused", built("", func(g *maker) {
				x := g.conv("a", "in", 8, 3)
				x = g.add("BatchNormalization", "n", []string{x}, image, []int64{8}, []int64{8}, []int64{8}, []int64{8})
				g.conv("c", g.add("Relu", "b", []string{x}, image), 8, 1)
			}), built("", func(g *maker) {
				x := g.conv("a", "in", 8, 3)
				g.last().Op, g.last().Domain = "FusedConv", "com.microsoft"
				g.conv("c", x, 8, 1)
			}),
			"Conv BatchNormalization Relu | FusedConv: fused\nConv | Conv: same",
		},
		{
			"static int8 in two ways", built("", func(g *maker) {
				deq := func(name string, shape []int64) string {
					g.add("DequantizeLinear", name, nil, shape, shape)
					g.last().Inputs[0].DType, g.last().Constant = "int8", true
					return name
				}
				g.add("QuantizeLinear", "q", []string{"in"}, image)
				g.last().Outputs[0].DType = "int8"
				g.add("DequantizeLinear", "dq", []string{"q"}, image)
				g.last().Inputs[0].DType = "int8"
				g.add("Conv", "c", []string{"dq", deq("w", []int64{8, 8, 1, 1})}, image)
				g.last().Inputs[1].Shape = []int64{8, 8, 1, 1}
				g.add("QuantizeLinear", "p", []string{"c"}, image)
				g.add("Softmax", "s", []string{"p"}, image)
			}), built("int8", func(g *maker) {
				g.add("QLinearConv", "c", []string{"in"}, image, []int64{}, []int64{}, []int64{8, 8, 1, 1})
				g.add("Softmax", "s", []string{"c"}, image)
				g.last().Inputs[0].DType = "float32"
			}),
			"QuantizeLinear DequantizeLinear DequantizeLinear Conv QuantizeLinear | QLinearConv: fused\nSoftmax | Softmax: same",
		},
		{
			"an activation less", built("", func(g *maker) { g.conv("c", g.add("Relu", "b", []string{g.conv("a", "in", 8, 3)}, image), 8, 1) }),
			built("", func(g *maker) { g.conv("c", g.conv("a", "in", 8, 3), 8, 1) }),
			"Conv | Conv: same\nRelu | : removed\nConv | Conv: same",
		},
		{
			"dynamic int8", built("", func(g *maker) {
				g.add("Softmax", "s", []string{g.linear("b", g.add("Relu", "r", []string{g.linear("a", "in")}, vector))}, vector)
			}),
			built("", func(g *maker) {
				g.add("Softmax", "s", []string{g.dynamic("b", g.add("Relu", "r", []string{g.dynamic("a", "in")}, vector))}, vector)
			}),
			"MatMul | DynamicQuantizeLinear MatMulInteger Cast Mul Mul: quantised\nAdd | Add: same\nRelu | Relu: same\nMatMul | DynamicQuantizeLinear MatMulInteger Cast Mul Mul: quantised\nAdd | Add: same\nSoftmax | Softmax: same",
		},
		{
			"inserted", built("", plain), built("", func(g *maker) {
				x := g.conv("a", "in", 8, 3)
				x = g.add("Relu", "b", []string{x}, image)
				x = g.conv("new", x, 8, 5)
				x = g.add("MaxPool", "c", []string{x}, image)
				x = g.conv("d", x, 8, 1)
				g.add("Softmax", "e", []string{x}, image)
			}),
			"Conv | Conv: same\nRelu | Relu: same\n| Conv: inserted\nMaxPool | MaxPool: same\nConv | Conv: same\nSoftmax | Softmax: same",
		},
		{
			"replaced", built("", plain), built("", func(g *maker) {
				plain(g)
				g.p.Layers[2].Op = "LpNormalization"
			}),
			"Conv | Conv: same\nRelu | Relu: same\nMaxPool | LpNormalization: replaced ?\nConv | Conv: same\nSoftmax | Softmax: same",
		},
		{
			"other options", built("", plain), built("", func(g *maker) {
				plain(g)
				g.p.Layers[4].Options = []profile.Option{{Key: "axis", Value: "2"}}
			}),
			"Conv | Conv: same\nRelu | Relu: same\nMaxPool | MaxPool: same\nConv | Conv: same\nSoftmax | Softmax: replaced",
		},
		{
			"another kernel at one place", built("", plain), built("", func(g *maker) {
				x := g.conv("a", "in", 8, 3)
				x = g.add("Relu", "b", []string{x}, image)
				x = g.add("MaxPool", "c", []string{x}, image)
				x = g.conv("d", x, 8, 5)
				g.add("Softmax", "e", []string{x}, image)
			}),
			"Conv | Conv: same\nRelu | Relu: same\nMaxPool | MaxPool: same\nConv | Conv: replaced ?\nSoftmax | Softmax: same",
		},
		{
			"a default that one file states", built("", plain), built("", func(g *maker) {
				plain(g)
				g.p.Layers[4].Options = []profile.Option{{Key: "axis", Value: "3"}}
			}),
			"Conv | Conv: same\nRelu | Relu: same\nMaxPool | MaxPool: same\nConv | Conv: same\nSoftmax | Softmax: same",
		},
		{
			"what an engine adds", built("", plain), built("", func(g *maker) {
				plain(g)
				for i := range g.p.Layers {
					g.p.Layers[i].Options = append(g.p.Layers[i].Options, profile.Option{Key: "node_index", Value: "7"})
				}
			}),
			"Conv | Conv: same\nRelu | Relu: same\nMaxPool | MaxPool: same\nConv | Conv: same\nSoftmax | Softmax: same",
		},
		{
			"numbers of nodes", built("", func(g *maker) {
				plain(g)
				g.p.Layers[4].Options = []profile.Option{{Key: "node_index", Value: "4"}}
			}), built("", func(g *maker) {
				plain(g)
				g.p.Layers[4].Options = []profile.Option{{Key: "node_index", Value: "9"}}
			}),
			"Conv | Conv: same\nRelu | Relu: same\nMaxPool | MaxPool: same\nConv | Conv: same\nSoftmax | Softmax: same",
		},
		{
			"one file in two engines", built("", plain), oneFile(built("", plain), func(p *profile.Profile) {
				p.Layers[0].Sparsity = &profile.Sparsity{Weights: new(0.5)}
				p.Layers[4].Options = []profile.Option{{Key: "alpha", Value: "7"}}
			}),
			"Conv | Conv: same\nRelu | Relu: same\nMaxPool | MaxPool: same\nConv | Conv: same\nSoftmax | Softmax: same",
		},
		{
			"other bounds", built("", func(g *maker) { g.clip("6") }), built("", func(g *maker) { g.clip("3") }),
			"Conv | Conv: same\nClip | Clip: replaced",
		},
		{
			"ONNX against TFLite", built("", func(g *maker) {
				x := g.conv("stem", "in", 8, 3)
				for k := range 3 {
					x = g.add("Relu", fmt.Sprint("r", k), []string{g.conv(fmt.Sprint("c", k), x, 8, 3)}, image)
				}
				y := g.conv("boxes", x, 8, 1)
				for _, op := range []string{"Sub", "Mul", "Exp"} {
					y = g.add(op, "decode"+op, []string{y}, image, []int64{1})
				}
				g.add("Concat", "out", []string{y, y}, image)
				g.add("Softmax", "s", []string{g.conv("scores", x, 8, 1)}, image)
			}), literal(built("", func(g *maker) {
				x := g.conv("stem2", "in", 8, 3)
				for k := range 3 {
					x = g.conv(fmt.Sprint("d", k), g.add("PAD", fmt.Sprint("p", k), []string{x}, image, []int64{4, 2}), 8, 3)
				}
				g.add("SOFTMAX", "s2", []string{g.conv("scores2", x, 8, 1)}, image)
				y := g.conv("boxes2", x, 8, 1)
				g.add("CONCATENATION", "out2", []string{y, y}, image)
			}), "relu"),
			"Conv | CONV_2D: same\nConv Relu | PAD CONV_2D: same\nConv Relu | PAD CONV_2D: same\nConv Relu | PAD CONV_2D: same ?\nConv Sub Mul | CONV_2D: fused ?\n" +
				"Exp | : removed\nConcat | CONCATENATION: same\nConv | CONV_2D: same ?\nSoftmax | SOFTMAX: same",
		},
		{
			"padding of channels", built("", func(g *maker) {
				r := g.add("Relu", "r", []string{g.conv("a", "in", 8, 3)}, image)
				g.add("ConstantOfShape", "z", nil, image, []int64{4})
				p := g.add("Concat", "p", []string{r, "z"}, image)
				g.add("Softmax", "e", []string{g.add("Add", "s", []string{g.conv("d", r, 8, 1), p}, image)}, image)
			}), literal(built("", func(g *maker) {
				r := g.add("RELU", "r2", []string{g.conv("a2", "in", 8, 3)}, image)
				p := g.add("PAD", "p2", []string{r}, image, []int64{4, 2})
				g.add("SOFTMAX", "e2", []string{g.add("ADD", "s2", []string{g.conv("d2", r, 8, 1), p}, image)}, image)
			}), "none"),
			"Conv | CONV_2D: same ?\nRelu | RELU: same ?\nConstantOfShape Concat | PAD: fused ?\nConv | CONV_2D: same\nAdd | ADD: same\nSoftmax | SOFTMAX: same",
		},
		{
			"operands exchanged", built("", func(g *maker) {
				a, b := g.conv("a", "in", 8, 3), g.conv("b", "in", 8, 1)
				g.add("Softmax", "d", []string{g.add("Sub", "c", []string{a, b}, image)}, image)
			}), built("", func(g *maker) {
				a, b := g.conv("a", "in", 8, 3), g.conv("b", "in", 8, 1)
				g.add("Softmax", "d", []string{g.add("Sub", "c", []string{b, a}, image)}, image)
			}),
			"Conv | Conv: same\nConv | Conv: same\nSub | Sub: replaced ?\nSoftmax | Softmax: same",
		},
		{
			"a normalisation of several operators", built("", func(g *maker) {
				x := g.linear("a", "in")
				m := g.add("ReduceMean", "m", []string{x}, vector)
				d := g.add("Sub", "d", []string{x, m}, vector)
				v := g.add("ReduceMean", "v", []string{g.add("Mul", "q", []string{d, d}, vector)}, vector)
				y := g.add("Div", "n", []string{d, g.add("Sqrt", "s", []string{v}, vector)}, vector)
				g.linear("z", y)
			}), built("", func(g *maker) {
				g.linear("z", g.add("LayerNormalization", "n", []string{g.linear("a", "in")}, vector, []int64{16}, []int64{16}))
			}),
			"MatMul | MatMul: same\nAdd | Add: same\nReduceMean Sub Mul ReduceMean Sqrt Div | LayerNormalization: fused ?\nMatMul | MatMul: same\nAdd | Add: same",
		},
		{
			"no tensors: names", built("", func(g *maker) {
				g.p.Layers = []profile.Layer{{Op: "Conv", Name: "net/a/Conv"}, {Op: "Conv", Name: "net/b/Conv"}, {Op: "Add", Name: "net/c/Add"}}
			}), built("", func(g *maker) {
				g.p.Layers = []profile.Layer{{Op: "CONV_2D", Name: "net/b/Conv2D"}, {Op: "CONV_2D", Name: "net/a/Conv2D"}}
			}),
			"Conv | CONV_2D: same ?\nConv | CONV_2D: same ?\nAdd | : removed",
		},
	} {
		ps := Layers(tt.a, tt.b)
		if got := written(tt.a, tt.b, ps); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
		var mirror []string
		for _, p := range Layers(tt.b, tt.a) {
			mirror = append(mirror, fmt.Sprint(p.mirrored()))
		}
		var have []string
		for _, p := range ps {
			have = append(have, fmt.Sprint(p))
		}
		slices.Sort(mirror)
		slices.Sort(have)
		if !slices.Equal(mirror, have) {
			t.Errorf("%s: the other way round\n%v\nare not\n%v", tt.name, mirror, have)
		}
	}
}

// TestSwallowed: an engine that adds in the convolution has one row for both, and options that a
// record does not have are not other ones.
func TestSwallowed(t *testing.T) {
	t.Parallel()
	a := built("", func(g *maker) {
		x := g.conv("stem", "in", 8, 3)
		y := g.conv("c", x, 8, 3)
		g.add("Softmax", "s", []string{g.add("Add", "add", []string{y, x}, image)}, image)
	})
	record := built("", func(g *maker) {
		x := g.conv("stem", "in", 8, 3)
		y := g.conv("c", x, 8, 3)
		g.last().Inputs = append(g.last().Inputs, g.tensor(x, image, false))
		g.add("Softmax", "s", []string{y}, image)
	})
	for i := range record.Layers {
		l := &record.Layers[i]
		l.Options, l.Outputs = []profile.Option{{Key: "node_index", Value: "7"}}, nil
		for k := range l.Inputs {
			l.Inputs[k].Name = ""
		}
	}
	record.Model, record.Target.Kind = profile.Model{Name: "net"}, profile.TargetImport
	var got []string
	for _, p := range Layers(a, record) {
		got = append(got, fmt.Sprint(p.A, p.B, " ", p.Kind))
	}
	want := []string{"[0] [0] same", "[1 2] [1] fused", "[3] [2] same"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLeadingOfConstants names a row by the operator that reads constants.
func TestLeadingOfConstants(t *testing.T) {
	t.Parallel()
	z, c := &profile.Layer{Op: "ConstantOfShape"}, &profile.Layer{Op: "Concat"}
	if l := Leading(profile.Layers{z, c}); l != c {
		t.Errorf("%s", l.Op)
	}
}

// TestWeighed tells equal blocks apart by their weights, where both profiles have their statistics.
func TestWeighed(t *testing.T) {
	t.Parallel()
	made := func(names string, weighed bool, means ...float64) *profile.Profile {
		g := &maker{}
		x := "in"
		for _, m := range means {
			x = g.conv(fmt.Sprint(names, len(g.p.Layers)), x, 8, 3)
			if weighed {
				g.last().Weights = &profile.Weights{DType: "float32", Shape: []int64{8, 8, 3, 3}, Min: new(-1.0), Max: new(1.0), Mean: &m, StdDev: new(0.5)}
			}
		}
		g.add("Softmax", "s", []string{x}, image)
		return g.profile()
	}
	for _, c := range []struct {
		weighed bool
		removed string
	}{{true, "[2] []"}, {false, ""}} {
		got := ""
		for _, p := range Layers(made("x", c.weighed, .1, .2, .3, .4, .5), made("renamed", c.weighed, .1, .2, .4, .5)) {
			if p.Kind == Removed {
				got = fmt.Sprint(p.A, " ", p.B)
			}
		}
		if c.weighed && got != c.removed || got == "" {
			t.Errorf("weighed %v: removed %q, want %q", c.weighed, got, c.removed)
		}
	}
}

// TestRepeatedReaders follows equal structure across layers of which there are several equal ones,
// such as those that read the shape of an input in each block.
func TestRepeatedReaders(t *testing.T) {
	t.Parallel()
	made := func(names string, tables ...int64) *profile.Profile {
		g := &maker{}
		x := g.conv(names+"stem", "in", 8, 3)
		for k, n := range tables {
			s := g.add("Shape", fmt.Sprint(names, "s", k), []string{"in"}, []int64{4})
			s = g.add("Gather", fmt.Sprint(names, "n", k), []string{s}, []int64{1}, []int64{1})
			x = g.add("Gather", fmt.Sprint(names, "g", k), []string{x}, image, []int64{n})
			x = g.add("OneHot", fmt.Sprint(names, "o", k), []string{x, s}, image)
		}
		g.add("Softmax", names+"end", []string{x}, image)
		return g.profile()
	}
	var gone []int64
	for _, p := range Layers(made("a", 30, 60, 120, 240), made("b", 30, 60, 120)) {
		if p.Kind == Removed {
			gone = append(gone, p.A...)
		}
	}
	if !slices.Contains(gone, 15) || !slices.Contains(gone, 16) || len(gone) > 4 {
		t.Errorf("removed %v, want the last block", gone)
	}
}
