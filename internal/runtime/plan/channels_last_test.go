package plan_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// quantisedGraph builds graphs of operators on quantised values.
type quantisedGraph struct {
	*net
	kind  tensor.Type
	codes func(shape ...int) *tensor.Tensor
}

// microsoft adds a node of the domain com.microsoft.
func (b quantisedGraph) microsoft(name string, a graph.Attrs, in ...int) int {
	id := b.node(name, a, in...)
	n := b.g.Nodes[len(b.g.Nodes)-1]
	n.Domain, n.Version = graph.Microsoft, 1
	return id
}

// scaled adds a scale and a zero point.
func (b quantisedGraph) scaled(scale float32, zero int64) []int {
	return []int{b.constant(scalar32(scale)), b.constant(zeroPoint(b.kind, zero))}
}

func (b quantisedGraph) conv(x, in, out, k, stride int) int {
	ids := append([]int{x}, b.scaled(0.05, 3)...)
	ids = append(append(ids, b.constant(b.codes(out, in, k, k))), b.scaled(0.02, 0)...)
	p := int64(k / 2)
	return b.node("QLinearConv", graph.Attrs{"pads": []int64{p, p, p, p}, "strides": []int64{int64(stride), int64(stride)}}, append(ids, b.scaled(2, 5)...)...)
}

func (b quantisedGraph) add(x, y int) int {
	ids := append([]int{x}, b.scaled(0.05, 3)...)
	ids = append(append(ids, y), b.scaled(0.07, 1)...)
	return b.microsoft("QLinearAdd", nil, append(ids, b.scaled(0.08, 2)...)...)
}

func (b quantisedGraph) clip(x int) int {
	return b.node("Clip", nil, x, b.constant(zeroPoint(b.kind, 4)), b.constant(zeroPoint(b.kind, 100)))
}

func (b quantisedGraph) pool(x int) int {
	return b.node("MaxPool", graph.Attrs{"kernel_shape": []int64{3, 3}, "strides": []int64{2, 2}, "pads": []int64{1, 1, 1, 1}}, x)
}

func (b quantisedGraph) mean(x int) int {
	return b.microsoft("QLinearGlobalAveragePool", nil, append(append([]int{x}, b.scaled(0.05, 3)...), b.scaled(0.04, 1)...)...)
}

func (b quantisedGraph) sigmoid(x int) int {
	return b.microsoft("QLinearSigmoid", nil, append(append([]int{x}, b.scaled(0.05, 3)...), b.scaled(0.01, 0)...)...)
}

func plainCodes(shape ...int) *tensor.Tensor { return tensor.New(tensor.Uint8, shape...) }

// TestLastChains lists which operators read (r) and write (m) channels-last values, in file
// order.
func TestLastChains(t *testing.T) {
	t.Parallel()
	if simd.IntKernels() == nil || !simd.ElementKernels().HasRescaleColumns() {
		t.Skip("no kernels for it")
	}
	tests := []struct {
		name     string
		channels int
		build    func(b quantisedGraph, x int) int
		want     []string
	}{
		{"chain", 16, func(b quantisedGraph, x int) int { return b.conv(b.conv(x, 16, 32, 3, 1), 32, 16, 3, 1) }, []string{"m", "r"}},
		{"block", 16, func(b quantisedGraph, x int) int {
			a := b.conv(x, 16, 32, 3, 1)
			return b.mean(b.clip(b.add(b.conv(a, 32, 32, 3, 1), a)))
		}, []string{"m", "rm", "rm", "r"}},
		{"first of few channels", 3, func(b quantisedGraph, x int) int { return b.conv(b.pool(b.conv(x, 3, 32, 3, 2)), 32, 16, 1, 1) }, []string{"m", "rm", "r"}},
		{"sum with an input", 16, func(b quantisedGraph, x int) int { return b.conv(b.add(b.conv(x, 16, 16, 3, 1), x), 16, 16, 3, 1) }, []string{"", "", ""}},
		{"small product", 16, func(b quantisedGraph, x int) int { return b.conv(b.conv(x, 16, 32, 1, 1), 32, 16, 1, 1) }, []string{"", ""}},
		{"other reader", 16, func(b quantisedGraph, x int) int {
			a := b.conv(x, 16, 16, 3, 1)
			b.g.Outputs = append(b.g.Outputs, b.node("Flatten", nil, a))
			return b.conv(a, 16, 16, 3, 1)
		}, []string{"", "", ""}},
		{"output", 16, func(b quantisedGraph, x int) int {
			a := b.conv(x, 16, 16, 3, 1)
			b.g.Outputs = append(b.g.Outputs, a)
			return b.conv(a, 16, 16, 3, 1)
		}, []string{"", ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := quantisedGraph{newNet(), tensor.Uint8, plainCodes}
			b.g.Outputs = append(b.g.Outputs, test.build(b, b.input(plainCodes(1, test.channels, 20, 20))))
			p, err := plan.Make(b.model(), b.in, plan.Options{Registry: operators.Registry()})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, task := range p.Main.Tasks {
				if task.State != plan.Runs {
					continue // the clamp is fused into the operator before it
				}
				s := ""
				if task.Call.NHWCIn {
					s = "r"
				}
				if task.Call.NHWCOut {
					s += "m"
				}
				got = append(got, s)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("channels are last for %q, want %q", got, test.want)
			}
		})
	}
}

// TestLast compares chains of quantised operators in any memory order with the operators one by
// one, bit-exactly.
func TestLast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := quantisedGraph{net: newNet(), kind: tensor.Uint8}
		if rapid.Bool().Draw(t, "signed") {
			b.kind = tensor.Int8
		}
		state := rapid.Uint64().Draw(t, "codes")
		b.codes = func(shape ...int) *tensor.Tensor {
			x := tensor.New(b.kind, shape...)
			for i := range x.Data {
				state = state*6364136223846793005 + 1442695040888963407
				x.Data[i] = byte(state >> 56)
			}
			return x
		}
		draw := func(name string, of ...int) int { return rapid.SampledFrom(of).Draw(t, name) }
		ch, size := draw("channels", 1, 3, 16, 24, 40), draw("size", 1, 5, 8, 14, 19)
		x := b.input(b.codes(draw("images", 1, 2), ch, size, size))
		for range rapid.IntRange(1, 6).Draw(t, "operators") {
			switch draw("operator", 0, 0, 0, 1, 2, 3, 4, 5) {
			case 0:
				out, k, stride := draw("out", 2, 16, 33, 48, 70), draw("window", 1, 3, 5), draw("stride", 1, 1, 2)
				x, ch = b.conv(x, ch, out, k, stride), out
			case 1:
				x = b.clip(x)
			case 2:
				x = b.pool(x)
			case 3:
				x = b.sigmoid(x)
			case 4:
				x = b.add(b.conv(x, ch, ch, 3, 1), x)
			case 5:
				b.g.Outputs = append(b.g.Outputs, b.mean(x))
			}
			if rapid.IntRange(0, 9).Draw(t, "seen") == 0 {
				b.g.Outputs = append(b.g.Outputs, x)
			}
		}
		b.g.Outputs = append(b.g.Outputs, x)
		want := outputs(t, b.net, engine.Options{Registry: operators.Registry(), KeepAll: true})
		for _, threads := range []int{1, 3} {
			for i, got := range outputs(t, b.net, engine.Options{Registry: operators.Registry(), Threads: threads}) {
				if !slices.Equal(got.Data, want[i].Data) {
					t.Fatalf("output %d of %v by %d threads: %v, one by one %v", i, got.Shape, threads, got.Data, want[i].Data)
				}
			}
		}
	})
}

// outputs returns the outputs of the second run.
func outputs(t interface{ Fatal(...any) }, b *net, o engine.Options) []*tensor.Tensor {
	s, err := engine.New(b.model(), b.in, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	var out []*tensor.Tensor
	for i := range b.g.Outputs {
		out = append(out, s.Output(i).Clone())
	}
	return out
}

// TestLastReverted makes an operator in the middle of a chain fail to prepare: its neighbours
// exchange values in the file's order again.
func TestLastReverted(t *testing.T) {
	t.Parallel()
	var all []op.Def
	for _, d := range operators.Registry().All() {
		all = append(all, *d)
	}
	refused := *operators.Registry().Find(graph.Microsoft, "QLinearSigmoid", 1)
	refused.Prepare = func(*op.Call) (op.Run, error) { return nil, op.Unsupported("for this test") }
	b := quantisedGraph{newNet(), tensor.Uint8, func(shape ...int) *tensor.Tensor {
		x := plainCodes(shape...)
		for i := range x.Data {
			x.Data[i] = byte(i * i % 251)
		}
		return x
	}}
	a := b.conv(b.input(b.codes(1, 16, 9, 9)), 16, 32, 3, 1)
	real := b.node("Sigmoid", nil, b.node("DequantizeLinear", nil, append([]int{a}, b.scaled(0.05, 3)...)...))
	c := b.node("QuantizeLinear", nil, append([]int{real}, b.scaled(0.01, 0)...)...)
	b.g.Outputs = append(b.g.Outputs, b.conv(c, 32, 16, 3, 1))
	want := outputs(t, b.net, engine.Options{Registry: operators.Registry(), KeepAll: true})
	got := outputs(t, b.net, engine.Options{Registry: op.NewRegistry(all, []op.Def{refused})})
	if !slices.Equal(got[0].Data, want[0].Data) {
		t.Errorf("%v, one by one %v", got[0].Data, want[0].Data)
	}
}
