package blocks

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/profile"
)

// net makes profiles of networks.
type net struct {
	p profile.Profile
	// named gives layers names with the number of their block, and scopes for none.
	named bool
	block int
}

// add adds a layer that reads tensors, those with a first "w" constant, and returns its result.
func (n *net) add(op string, shape []int64, ins ...string) string {
	i := len(n.p.Layers)
	out := fmt.Sprint("t", i)
	l := profile.Layer{
		Index: int64(i), Op: op, State: profile.Ran, Params: new(int64(10)), Latency: profile.Value(profile.Measured, float64(1+i%7), ""),
		Outputs: []profile.Tensor{{Name: out, Shape: shape}},
	}
	if n.named {
		l.Name = fmt.Sprintf("model/layers.%d/%s", n.block, op)
	}
	for _, in := range ins {
		t := profile.Tensor{Name: in, Shape: shape}
		if strings.HasPrefix(in, "w") {
			t = profile.Tensor{Name: in, Constant: true, Shape: []int64{shape[len(shape)-1], int64(len(in))}}
		}
		l.Inputs = append(l.Inputs, t)
	}
	n.p.Layers = append(n.p.Layers, l)
	return out
}

// last is the layer that was added last.
func (n *net) last() *profile.Layer { return &n.p.Layers[len(n.p.Layers)-1] }

var wide, narrow = []int64{1, 4, 32}, []int64{1, 2, 4, 16}

// decoderLayer adds a layer of a transformer, of 13 operators.
func (n *net) decoderLayer(x string) string {
	h := n.add("RMSNormalization", wide, x, "w")
	q, k := n.add("MatMul", narrow, h, "wq"), n.add("MatMul", narrow, h, "wk")
	v := n.add("MatMul", narrow, h, "wv")
	s := n.add("Softmax", narrow, n.add("MatMul", narrow, q, k))
	x = n.add("Add", wide, x, n.add("MatMul", wide, n.add("MatMul", narrow, s, v), "wo"))
	h = n.add("RMSNormalization", wide, x, "w")
	return n.add("Add", wide, x, n.add("MatMul", wide, n.add("MatMul", []int64{1, 4, 64}, h, "wup"), "wdown"))
}

func decoder(layers int, named bool) *net {
	n := &net{}
	x := n.add("Gather", wide, "w", "ids")
	for i := range layers {
		n.named, n.block = named, i
		x = n.decoderLayer(x)
	}
	n.named = false
	n.add("MatMul", []int64{1, 4, 100}, n.add("RMSNormalization", wide, x, "w"), "whead")
	return n
}

// text describes blocks: count, layers of each, first layer, parts.
func text(bs []profile.Block) (out []string) {
	for i := range bs {
		b := &bs[i]
		s := fmt.Sprintf("%d×%d from %d %s", b.Count, len(b.Layers), b.Layers[0].Layers[0], b.Part)
		for _, p := range b.Parts {
			s += " " + string(p.Name)
		}
		out = append(out, strings.Join(strings.Fields(s), " "))
	}
	return out
}

// TestFind finds the blocks of networks with and without names.
func TestFind(t *testing.T) {
	t.Parallel()
	transformer := []string{"1×1 from 0 embedding", "3×13 from 1 norm attention MLP", "1×1 from 40 norm", "1×1 from 41 head"}
	for name, c := range map[string]struct {
		net  *net
		want []string
	}{
		"decoder without names": {decoder(3, false), transformer},
		"decoder":               {decoder(3, true), transformer},
		"products of one layer": {decoder(1, true), []string{"3×1 from 2"}},
		"residual blocks": {func() *net {
			n := &net{}
			x := n.add("Conv", wide, "in", "wstem")
			for stage := range 2 {
				shape := []int64{1, 4, int64(32 << stage)}
				x = n.add("Conv", shape, x, "wproject")
				for range 3 {
					x = n.add("Add", shape, x, n.add("Conv", shape, n.add("Conv", shape, x, "wa"), "wbb"))
				}
			}
			return n
		}(), []string{"3×3 from 2", "3×3 from 12"}},
		// Norms add the residual, which is absent before the first block.
		"fused residuals": {func() *net {
			n := &net{}
			x := n.add("Gather", wide, "w", "ids")
			y := n.add("SimplifiedLayerNormalization", wide, x, "w")
			for range 4 {
				y = n.add("MatMul", wide, n.add("GroupQueryAttention", narrow, n.add("MatMul", narrow, y, "wqkv"), "cache"), "wo")
				y = n.add("SkipSimplifiedLayerNormalization", wide, y, x, "w")
				y = n.add("MatMul", wide, n.add("MatMul", []int64{1, 4, 64}, y, "wup"), "wdown")
				y = n.add("SkipSimplifiedLayerNormalization", wide, y, x, "w")
			}
			n.add("MatMul", []int64{1, 4, 100}, y, "whead")
			return n
		}(), []string{"1×1 from 0 embedding", "4×7 from 1 norm attention MLP", "1×1 from 29 norm", "1×1 from 30 head"}},
		// The first layer has another MLP.
		"another first layer": {func() *net {
			n := &net{}
			x := n.decoderLayer(n.add("Gather", wide, "w", "ids"))
			n.p.Layers[12].Outputs[0].Shape = []int64{1, 4, 96}
			for range 2 {
				x = n.decoderLayer(x)
			}
			n.add("MatMul", []int64{1, 4, 100}, n.add("RMSNormalization", wide, x, "w"), "whead")
			return n
		}(), []string{"1×1 from 0 embedding", "1×3 from 1 norm", "3×1 from 2", "1×5 from 5 attention", "1×3 from 11 MLP", "2×13 from 14 norm attention MLP", "1×1 from 41 head"}},
		"no repetition": {func() *net {
			n := &net{}
			x := "in"
			for i := range 12 {
				x = n.add("Conv", []int64{1, 4, int64(1 + i)}, x, "w")
			}
			return n
		}(), nil},
		"chain of equal layers": {func() *net {
			n := &net{}
			x := "in"
			for range 4 {
				x = n.add("Gemm", wide, x, "w")
			}
			return n
		}(), []string{"4×1 from 0"}},
		"two equal layers": {func() *net {
			n := &net{}
			n.add("Gemm", wide, n.add("Gemm", wide, "in", "w"), "w")
			return n
		}(), nil},
		// Layers of the second block run in another order: only names tell.
		"another order": {func() *net {
			n := &net{named: true}
			for i, ops := range [][]string{{"Conv", "Gemm", "Elu"}, {"Gemm", "Conv", "Elu"}, {"Elu", "Conv", "Gemm"}} {
				n.block = i
				for _, op := range ops {
					n.add(op, wide, "in")
				}
			}
			return n
		}(), []string{"3×3 from 0"}},
		"numbers of operators": {func() *net {
			n := &net{}
			for i, op := range []string{"Conv", "Elu", "Gemm", "Conv", "Tanh", "Elu"} {
				n.add(op, []int64{1, int64(i)}, "in")
				n.last().Name = fmt.Sprintf("%s_%d", op, i)
			}
			return n
		}(), nil},
		"shapes that are not known": {func() *net {
			n := &net{}
			for range 4 {
				n.add("Conv", nil, "in")
				n.add("Elu", nil, "in")
			}
			return n
		}(), nil},
		// An alternative would be three blocks of the layers of two.
		"blocks of two kinds": {func() *net {
			n := &net{}
			x := "in"
			for range 3 {
				x = n.add("Elu", wide, n.add("Conv", wide, x, "wa"))
				x = n.add("Elu", wide, n.add("Conv", wide, x, "wbb"))
			}
			return n
		}(), []string{"3×4 from 0"}},
	} {
		if d := cmp.Diff(c.want, text(Find(&c.net.p))); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestBodies: the layers of a body of control flow are blocks of their own.
func TestBodies(t *testing.T) {
	t.Parallel()
	n := &net{}
	for i := range 8 {
		n.add([]string{"Conv", "Elu"}[i%2], wide, "in")
		if i >= 4 {
			n.last().Graph, n.last().Parent = "body", new(int64(0))
		}
	}
	if d := cmp.Diff([]string{"2×2 from 0", "2×2 from 4"}, text(Find(&n.p))); d != "" {
		t.Error(d)
	}
}

// TestWith: layers that another one computes belong to it, those that are computed before belong to
// the reader of their results.
func TestWith(t *testing.T) {
	t.Parallel()
	n := &net{}
	for range 3 {
		w := n.add("Transpose", wide, "w")
		n.last().State = profile.Folded
		c := n.add("Conv", wide, "in", w)
		n.add("Relu", wide, c)
		n.last().State, n.last().FusedInto = profile.Fused, new(n.last().Index-1)
		n.add("Elu", wide, "in")
	}
	bs := Find(&n.p)
	if d := cmp.Diff([]string{"3×2 from 1"}, text(bs)); d != "" {
		t.Fatal(d)
	}
	if d := cmp.Diff([]int64{0, 2, 4, 6, 8, 10}, bs[0].Layers[0].With); d != "" {
		t.Error(d)
	}
}

// TestFigures: times of a block are sums of its layers, summarised over the blocks, in each phase.
func TestFigures(t *testing.T) {
	t.Parallel()
	n := &net{}
	for i := range 3 {
		for k, op := range []string{"Conv", "Elu"} {
			n.add(op, wide, "in")
			n.last().Latency = profile.Value(profile.Measured, float64(10*i*i+k), "")
			if i+k > 0 { // one is missing
				n.last().Figures = map[string]*profile.Metric{"prefill_4_s": profile.Value(profile.Measured, 1, "")}
			}
		}
	}
	n.p.Language = &profile.LanguageModel{Phases: []profile.Phase{{Quantity: "prefill_4_s"}, {Quantity: "latency_s"}}}
	b := Find(&n.p)[0]
	want := &profile.Metric{Kind: profile.Measured, Method: method, N: new(int64(3)), Median: new(21.0), Mean: new(103.0 / 3), Min: new(1.0), Max: new(81.0)}
	if d := cmp.Diff(want, b.Figures["latency_s"]); d != "" {
		t.Error(d)
	}
	if b.Figures["prefill_4_s"] != nil || *b.Layers[1].Figures["prefill_4_s"].Mean != 1 {
		t.Errorf("%v and %v", b.Figures["prefill_4_s"], b.Layers[1].Figures["prefill_4_s"])
	}
}

// TestStepwise finds norms that consist of several operators.
func TestStepwise(t *testing.T) {
	t.Parallel()
	n := &net{}
	for range 2 {
		x := n.add("Add", wide, "x", n.add("MatMul", narrow, "t0", "t1"))
		n.add("Pow", wide, x)
		for _, op := range []string{"ReduceMean", "Add", "Sqrt", "Div", "Mul"} {
			n.add(op, wide, x)
		}
		n.add("MatMul", wide, x, "wup")
	}
	var got []string
	for _, l := range Find(&n.p)[0].Layers {
		got = append(got, string(l.Part))
	}
	if want := strings.Fields("attention attention norm norm norm norm norm norm MLP"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAny: in any network each layer is in one place, blocks are equal, and the times of the blocks
// are those of their layers.
func TestAny(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := &net{}
		unit := rapid.SliceOfN(rapid.SampledFrom([]string{"Conv", "Elu", "MatMul", "RMSNormalization", "Gather"}), 1, 6)
		for range rapid.IntRange(1, 4).Draw(t, "units") {
			ops := unit.Draw(t, "unit")
			for i := range rapid.IntRange(1, 5).Draw(t, "times") {
				n.block, n.named = i, rapid.Bool().Draw(t, "named")
				for _, op := range ops {
					n.add(op, wide, fmt.Sprint("t", rapid.IntRange(0, max(0, len(n.p.Layers)-1)).Draw(t, "in")))
					n.last().State = rapid.SampledFrom([]profile.State{profile.Ran, profile.Ran, profile.Ran, profile.Fused, profile.Folded}).Draw(t, "state")
					if n.last().State == profile.Fused {
						into := int64(rapid.IntRange(0, len(n.p.Layers)).Draw(t, "into"))
						if into >= n.last().Index {
							n.last().State = profile.Ran
						} else {
							n.last().FusedInto = &into
						}
					}
				}
			}
		}
		n.p.Schema, n.p.Model.Name, n.p.Target = profile.SchemaV1, "x", profile.Target{ID: "host", Kind: profile.TargetHost}
		n.p.Blocks = Find(&n.p)
		if err := n.p.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, b := range n.p.Blocks {
			sum := 0.0
			for _, l := range b.Layers {
				for _, x := range l.Layers {
					if got := n.p.Layers[x].Op; got != n.p.Layers[l.Layers[0]].Op || n.p.Layers[x].State != profile.Ran {
						t.Fatalf("layer %d is %s, %s", x, got, n.p.Layers[x].State)
					}
					sum += *n.p.Layers[x].Latency.Median
				}
			}
			if m := b.Figures["latency_s"]; math.Abs(*m.Mean*float64(b.Count)-sum) > 1e-9*sum || *m.Min > *m.Median || *m.Max < *m.Median {
				t.Fatalf("%+v, want a sum of %v", m, sum)
			}
		}
	})
}
