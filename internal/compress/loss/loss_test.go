package loss

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/mask"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/study"
)

// builder makes small models.
type builder struct {
	g *graph.Graph
	m *graph.Model
	r *rand.Rand
}

func newBuilder(format string, seed uint64) *builder {
	g := &graph.Graph{}
	m := &graph.Model{Format: format, IRVersion: 10, Opsets: map[string]int{"": 17, "com.microsoft": 1}, Graphs: []*graph.Graph{g}}
	return &builder{g, m, rand.New(rand.NewPCG(seed, 3))}
}

func (b *builder) value(t tensor.Type, shape ...int) int {
	id := len(b.g.Values)
	b.g.Values = append(b.g.Values, &graph.Value{ID: id, Name: fmt.Sprintf("v%d", id), Type: t, Shape: shape, HasShape: shape != nil, Offset: -1})
	return id
}

func (b *builder) input(t tensor.Type, shape ...int) int {
	id := b.value(t, shape...)
	b.g.Inputs = append(b.g.Inputs, id)
	return id
}

func (b *builder) constant(t *tensor.Tensor) int {
	id := b.value(t.Type, t.Shape...)
	b.g.Values[id].Const, b.g.Values[id].Quant = t, t.Quant
	return id
}

// random is a constant of normally distributed numbers around mean.
func (b *builder) random(mean float64, shape ...int) int {
	return b.constant(b.normal(mean, shape...))
}

func (b *builder) normal(mean float64, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, shape...)
	tensor.Fill(t, func(int) float64 { return mean + b.r.NormFloat64() })
	return t
}

func (b *builder) codes(t tensor.Type, shape ...int) *tensor.Tensor {
	x := tensor.New(t, shape...)
	lo, n := 0, 256
	if t == tensor.Int8 {
		lo = -127
		n = 255
	}
	tensor.Fill(x, func(int) float64 { return float64(lo + b.r.IntN(n)) })
	return x
}

// node adds a node whose output has the type of out.
func (b *builder) node(op string, attrs graph.Attrs, out tensor.Type, ins ...int) int {
	domain, version := "", 17
	switch {
	case b.m.Format == "tflite":
		domain, version = graph.TFLite, 1
	case op == "MatMulNBits" || op == "MatMulIntegerToFloat":
		domain, version = graph.Microsoft, 1
	}
	id := b.value(out)
	b.g.Nodes = append(b.g.Nodes, &graph.Node{Index: len(b.g.Nodes), Name: fmt.Sprintf("n%d", len(b.g.Nodes)), Domain: domain, Op: op, Version: version, Inputs: ins, Outputs: []int{id}, Attrs: attrs})
	return id
}

// data generates samples for the model's inputs.
func (b *builder) data(t testing.TB, n int) *samples.Set {
	t.Helper()
	dir := t.TempDir()
	for _, id := range b.g.Inputs {
		v := b.g.Values[id]
		x := tensor.New(v.Type, append([]int{n}, v.Shape...)...)
		each := x.Len() / n
		gain := make([]float64, n)
		for i := range gain {
			gain[i] = math.Exp(b.r.NormFloat64() / 2)
		}
		tensor.Fill(x, func(i int) float64 {
			if v.Type.IsInteger() {
				return float64(b.r.IntN(10))
			}
			return max(-0.5, b.r.NormFloat64()) * gain[i/each]
		})
		f, err := os.Create(filepath.Join(dir, v.Name+".npy"))
		if err != nil {
			t.Fatal(err)
		}
		if err := npy.Write(f, x); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := samples.Open(b.m, samples.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMemoryLimit bounds the sessions of a job with its data. The error names need and limit.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	b := newBuilder("onnx", 1)
	x := b.input(tensor.Float32, 1, 64)
	w := b.constant(b.normal(0, 64, 64))
	b.g.Outputs = []int{b.node("MatMul", nil, tensor.Float32, x, w)}
	// The data has 2048 bytes.
	for limit, fails := range map[int]bool{0: false, 1 << 24: false, 2200: true} {
		s, err := samples.Open(b.m, samples.Options{Made: 8, SessionBytes: limit})
		if err != nil {
			t.Fatal(err)
		}
		if _, held := s.Memory(); held != 8*64*4 {
			t.Errorf("%d bytes of data, want %d", held, 8*64*4)
		}
		err = runAll(t.Context(), b.m, s.Pick([]int{0, 1}), 1, func(int, *engine.Session) error { return nil })
		e, ok := errors.AsType[*op.LimitError](err)
		if ok != fails || (err != nil) != fails || fails && (e.Limit != limit || e.Want <= 8*64*4) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// outputsBy runs a model over samples and returns its first output as numbers, samples
// concatenated.
func outputsBy(t testing.TB, m *graph.Model, s *samples.Set) []float64 {
	t.Helper()
	e, err := engine.New(m, s.Inputs(0), engine.Options{Registry: operators.Registry(), Threads: 1, Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var out []float64
	for run := range s.Runs() {
		if err := setInputs(e, s.Inputs(run), run > 0); err != nil {
			t.Fatal(err)
		}
		if err := e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		out = append(out, toReal(withQuant(e.Output(0), m.Main().Values[m.Main().Outputs[0]]))...)
	}
	return out
}

// points runs a job.
func points(t testing.TB, j *Job) map[study.Change]study.LossPoint {
	t.Helper()
	got := map[study.Change]study.LossPoint{}
	j.Point = func(p study.LossPoint) error {
		if p.Layer == 0 {
			got[p.Change] = p
		}
		return nil
	}
	if _, err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return got
}

func changes(structures []study.Structure, levels ...float64) []study.Change {
	var out []study.Change
	for _, s := range structures {
		for _, l := range levels {
			out = append(out, study.Change{Structure: s, Level: l})
		}
	}
	return out
}

// quantised dequantises a value.
func (b *builder) quantised(id int, scale float32, zero int64) int {
	b.g.Values[id].Quant = &tensor.Quant{Scale: []float32{scale}, Zero: []int64{zero}}
	return id
}

func (b *builder) scalar(v float32) int {
	return b.constant(tensor.From(tensor.Float32, []int{}, []float32{v}))
}

// layers are operators with weights: a builder for each, and the tolerance for rounded results.
var layers = []struct {
	name   string
	format string
	build  func(b *builder) int
	alone  bool
}{
	{"conv", "onnx", func(b *builder) int {
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{3, 3}, "pads": []int64{1, 1, 1, 1}}, tensor.Float32, b.input(tensor.Float32, 1, 8, 6, 7), b.random(0, 12, 8, 3, 3), b.random(0, 12))
	}, false},
	{"conv of many columns", "onnx", func(b *builder) int {
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{3, 3}, "pads": []int64{1, 1, 1, 1}}, tensor.Float32, b.input(tensor.Float32, 1, 16, 9, 9), b.random(0, 8, 16, 3, 3))
	}, false},
	{"conv with stride and dilation", "onnx", func(b *builder) int {
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{3, 2}, "pads": []int64{2, 0, 1, 1}, "strides": []int64{2, 3}, "dilations": []int64{2, 1}}, tensor.Float32, b.input(tensor.Float32, 1, 4, 11, 10), b.random(0, 8, 4, 3, 2), b.random(1, 8))
	}, false},
	{"conv that sees padding alone", "onnx", func(b *builder) int {
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{3, 9}, "pads": []int64{1, 4, 1, 4}, "strides": []int64{3, 3}}, tensor.Float32, b.input(tensor.Float32, 1, 4, 1, 2), b.random(0, 8, 4, 3, 9))
	}, false},
	{"conv of groups", "onnx", func(b *builder) int {
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{3, 3}, "group": int64(2)}, tensor.Float32, b.input(tensor.Float32, 1, 16, 6, 6), b.random(0, 8, 8, 3, 3), b.random(0, 8))
	}, false},
	{"conv of batch", "onnx", func(b *builder) int {
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{1, 1}}, tensor.Float32, b.input(tensor.Float32, 3, 40, 6, 6), b.random(0, 8, 40, 1, 1), b.random(0, 8))
	}, false},
	{"depthwise", "onnx", func(b *builder) int {
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{3, 3}, "group": int64(8), "auto_pad": "SAME_LOWER", "strides": []int64{2, 2}}, tensor.Float32, b.input(tensor.Float32, 1, 8, 8, 8), b.random(0, 8, 1, 3, 3), b.random(0, 8))
	}, false},
	{"conv 1D", "onnx", func(b *builder) int {
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{5}, "auto_pad": "SAME_UPPER", "strides": []int64{2}}, tensor.Float32, b.input(tensor.Float32, 1, 4, 20), b.random(0, 8, 4, 5))
	}, false},
	{"conv 3D", "onnx", func(b *builder) int {
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{2, 3, 2}, "pads": []int64{1, 1, 0, 0, 1, 1}}, tensor.Float32, b.input(tensor.Float32, 1, 4, 5, 6, 4), b.random(0, 8, 4, 2, 3, 2))
	}, false},
	{"transposed", "onnx", func(b *builder) int {
		return b.node("ConvTranspose", graph.Attrs{"kernel_shape": []int64{3, 3}, "pads": []int64{1, 0, 0, 1}, "strides": []int64{2, 2}, "output_padding": []int64{1, 0}, "dilations": []int64{1, 2}}, tensor.Float32, b.input(tensor.Float32, 1, 8, 4, 5), b.random(0, 8, 6, 3, 3), b.random(0, 6))
	}, false},
	{"transposed of groups", "onnx", func(b *builder) int {
		return b.node("ConvTranspose", graph.Attrs{"kernel_shape": []int64{3, 3}, "group": int64(2), "strides": []int64{2, 2}, "output_shape": []int64{9, 10}}, tensor.Float32, b.input(tensor.Float32, 1, 8, 5, 5), b.random(0, 8, 4, 3, 3))
	}, false},
	{"gemm", "onnx", func(b *builder) int {
		return b.node("Gemm", graph.Attrs{"alpha": float32(0.5), "beta": float32(2), "transB": int64(1)}, tensor.Float32, b.input(tensor.Float32, 3, 40), b.random(0, 12, 40), b.random(0, 12))
	}, false},
	{"gemm of few inputs", "onnx", func(b *builder) int {
		return b.node("Gemm", nil, tensor.Float32, b.input(tensor.Float32, 1, 300), b.random(0, 300, 12), b.random(0, 12))
	}, false},
	{"gemm of the transposed", "onnx", func(b *builder) int {
		return b.node("Gemm", graph.Attrs{"transA": int64(1)}, tensor.Float32, b.input(tensor.Float32, 40, 50), b.random(0, 40, 8))
	}, false},
	{"matmul", "onnx", func(b *builder) int {
		return b.node("MatMul", nil, tensor.Float32, b.input(tensor.Float32, 2, 7, 40), b.random(0, 40, 12))
	}, false},
	{"matmul by several", "onnx", func(b *builder) int {
		return b.node("MatMul", nil, tensor.Float32, b.input(tensor.Float32, 1, 3, 9, 8), b.random(0, 3, 8, 5))
	}, false},
	{"matmul from the left", "onnx", func(b *builder) int {
		return b.node("MatMul", nil, tensor.Float32, b.random(0, 12, 40), b.input(tensor.Float32, 2, 40, 9))
	}, false},
	{"embedding", "onnx", func(b *builder) int {
		return b.node("Gather", nil, tensor.Float32, b.random(0, 10, 8), b.input(tensor.Int64, 1, 6))
	}, false},
	{"integers behind DequantizeLinear", "onnx", func(b *builder) int {
		w := b.node("DequantizeLinear", graph.Attrs{"axis": int64(0)}, tensor.Float32, b.constant(b.codes(tensor.Int8, 12, 8, 3, 3)), b.constant(tensor.From(tensor.Float32, []int{12}, slices.Repeat([]float32{.01, .02, .03}, 4))), b.constant(tensor.New(tensor.Int8, 12)))
		bias := b.node("DequantizeLinear", nil, tensor.Float32, b.constant(tensor.From(tensor.Int32, []int{12}, slices.Repeat([]int32{100, -50, 3}, 4))), b.scalar(0.01))
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{3, 3}}, tensor.Float32, b.input(tensor.Float32, 1, 8, 6, 6), w, bias)
	}, false},
	{"embedding of codes", "tflite", func(b *builder) int {
		w := b.codes(tensor.Int8, 10, 8)
		w.Quant = &tensor.Quant{Scale: []float32{0.1}, Zero: []int64{3}}
		return b.quantised(b.node("GATHER", nil, tensor.Int8, b.constant(w), b.input(tensor.Int32, 1, 6)), 0.1, 3)
	}, false},
	{"matmul of integers", "onnx", func(b *builder) int {
		return b.node("MatMulInteger", nil, tensor.Int32, b.input(tensor.Uint8, 4, 16), b.constant(b.codes(tensor.Int8, 16, 8)), b.constant(tensor.From(tensor.Uint8, []int{}, []uint8{3})))
	}, false},
	{"lstm", "onnx", func(b *builder) int {
		return b.node("LSTM", graph.Attrs{"hidden_size": int64(6)}, tensor.Float32, b.input(tensor.Float32, 5, 1, 4), b.random(0, 1, 24, 4), b.random(0, 1, 24, 6), b.random(0, 1, 48))
	}, true},
	{"lite conv", "tflite", func(b *builder) int {
		return b.node("CONV_2D", graph.Attrs{"stride_h": int64(2), "stride_w": int64(1), "padding": "SAME", "dilation_h_factor": int64(1), "dilation_w_factor": int64(2)}, tensor.Float32, b.input(tensor.Float32, 1, 7, 8, 8), b.random(0, 12, 3, 3, 8), b.random(0, 12))
	}, false},
	{"lite conv 1×1", "tflite", func(b *builder) int {
		return b.node("CONV_2D", graph.Attrs{"stride_h": int64(1), "stride_w": int64(1), "padding": "VALID"}, tensor.Float32, b.input(tensor.Float32, 1, 7, 8, 40), b.random(0, 12, 1, 1, 40), b.random(0, 12))
	}, false},
	{"lite depthwise", "tflite", func(b *builder) int {
		return b.node("DEPTHWISE_CONV_2D", graph.Attrs{"stride_h": int64(2), "stride_w": int64(2), "padding": "SAME", "depth_multiplier": int64(2)}, tensor.Float32, b.input(tensor.Float32, 1, 8, 7, 4), b.random(0, 1, 3, 3, 8), b.random(0, 8))
	}, false},
	{"lite transposed", "tflite", func(b *builder) int {
		return b.node("TRANSPOSE_CONV", graph.Attrs{"stride_h": int64(2), "stride_w": int64(2), "padding": "SAME"}, tensor.Float32, b.constant(tensor.From(tensor.Int32, []int{4}, []int32{1, 10, 8, 6})), b.random(0, 6, 3, 3, 8), b.input(tensor.Float32, 1, 5, 4, 8))
	}, false},
	{"lite dense", "tflite", func(b *builder) int {
		return b.node("FULLY_CONNECTED", nil, tensor.Float32, b.input(tensor.Float32, 2, 40), b.random(0, 12, 40), b.random(0, 12))
	}, false},
	{"lite product", "tflite", func(b *builder) int {
		return b.node("BATCH_MATMUL", graph.Attrs{"adj_y": true}, tensor.Float32, b.input(tensor.Float32, 1, 9, 16), b.random(0, 1, 12, 16))
	}, false},
}

var pruned = []study.Structure{study.Unstructured, study.TwoOfFour, study.Block4, study.Block1x4, study.Block4x1, study.Channel, study.Filter}

// The error in closed form is that of pruning and running the layer, for every kind of layer,
// structure and level.
func TestOutputIsThatOfRunning(t *testing.T) {
	t.Parallel()
	for i, tt := range layers {
		for _, choice := range []string{ByMagnitude, ByError} {
			t.Run(tt.name+" by "+choice, func(t *testing.T) {
				t.Parallel()
				b := newBuilder(tt.format, uint64(i))
				b.g.Outputs = []int{tt.build(b)}
				s := b.data(t, 6)
				ls := weights.Find(b.m, nil)
				if len(ls) == 0 {
					t.Fatal("no layers")
				}
				j := &Job{Model: b.m, Layers: ls, Data: s, Settings: study.LossSettings{Method: study.OutputError, Choice: choice, Changes: changes(pruned, 0, 0.05, 0.3, 0.5, 0.8, 0.99, 1)}, Threads: 2}
				energy := map[int][]float32{}
				j.Energy = func(layer int, means []float32) error { energy[layer] = means; return nil }
				got := points(t, j)
				base := outputsBy(t, b.m, s)
				l := ls[0]
				if _, ok := linearOpsOf(b.m, l); ok == tt.alone {
					t.Fatalf("in closed form: %t, want %t", ok, !tt.alone)
				}
				scores := scoresFor(t, b.m, l, s, choice == ByError && !tt.alone)
				if means := energy[0]; (means != nil) != (choice == ByError && !tt.alone) {
					t.Errorf("energies: %v", means)
				} else if means != nil {
					for k, v := range ErrorScores(l.Read(nil), l.Rows, l.Cols, means) {
						// sums in another order, of single numbers
						if math.Abs(float64(v-scores[k])) > 1e-4*float64(scores[k]) {
							t.Errorf("score %d: %v, want %v", k, v, scores[k])
							break
						}
					}
				}
				for c, p := range got {
					order, why := mask.New(l, scores, c.Structure)
					if why != p.Cause {
						t.Errorf("%+v: cause %q, want %q", c, p.Cause, why)
					}
					if order == nil {
						continue
					}
					mat := l.Read(nil)
					order.Zero(mat, c.Level)
					num, den := squaredDistance(outputsBy(t, weights.WithConstants(b.m, map[int]*tensor.Tensor{l.Value: l.Write(mat)}), s), base)
					want := num / den
					v := *p.Value.Median
					if math.Abs(v-want) > 1e-4*want+1e-7 {
						t.Errorf("%s at %v: %v, want %v", c.Structure, c.Level, v, want)
					}
					if ci := p.Value.CI95; want > 0 && (ci == nil || ci[0] > v || ci[1] < v) {
						t.Errorf("%s at %v: interval %v around %v", c.Structure, c.Level, ci, v)
					}
				}
			})
		}
	}
}

// scoresFor computes scores from the definition.
func scoresFor(t *testing.T, m *graph.Model, l *weights.Layer, s *samples.Set, byError bool) []float32 {
	t.Helper()
	w := l.Read(nil)
	if !byError {
		return scoresOf(w, l.Rows, nil, false)
	}
	ps, _ := linearOpsOf(m, l)
	j := &Job{Model: m, Layers: []*weights.Layer{l}, Data: s}
	u := &momentGroup{products: ps, layers: []*groupLayer{{layer: l, products: ps}}}
	if err := j.collectMoments(context.Background(), []*momentGroup{u}, true, 0, 0); err != nil || u.failed != nil {
		t.Fatal(err, u.failed)
	}
	return scoresOf(w, l.Rows, u.m, true)
}

// Layers of integers, whose outputs are rounded to codes, come close to the closed form of the
// numbers that the codes stand for.
func TestOutputOfCodes(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct {
		name, format string
		build        func(b *builder) int
	}{
		{"QLinearConv", "onnx", func(b *builder) int {
			zero := func(z uint8) int { return b.constant(tensor.From(tensor.Uint8, []int{}, []uint8{z})) }
			return b.quantised(b.node("QLinearConv", graph.Attrs{"kernel_shape": []int64{3, 3}, "pads": []int64{1, 1, 1, 1}}, tensor.Uint8,
				b.input(tensor.Uint8, 1, 8, 6, 6), b.scalar(0.1), zero(4), b.constant(b.codes(tensor.Int8, 12, 8, 3, 3)), b.scalar(0.02), b.constant(tensor.New(tensor.Int8)), b.scalar(0.3), zero(128), b.constant(tensor.From(tensor.Int32, []int{12}, slices.Repeat([]int32{900, -400, 30}, 4)))), 0.3, 128)
		}},
		{"lite conv", "tflite", func(b *builder) int { return liteCodes(b, "CONV_2D", 12, 3, 3, 8) }},
		{"lite depthwise", "tflite", func(b *builder) int { return liteCodes(b, "DEPTHWISE_CONV_2D", 1, 3, 3, 8) }},
		{"lite dense", "tflite", func(b *builder) int { return liteCodes(b, "FULLY_CONNECTED", 12, 40) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(tt.format, uint64(i))
			b.g.Outputs = []int{tt.build(b)}
			s := b.data(t, 6)
			l := weights.Find(b.m, nil)[0]
			if _, ok := linearOpsOf(b.m, l); !ok {
				t.Fatal("not in closed form")
			}
			cs := changes([]study.Structure{study.Unstructured, study.Filter}, 0.5, 0.8)
			got := points(t, &Job{Model: b.m, Layers: []*weights.Layer{l}, Data: s, Settings: study.LossSettings{Method: study.OutputError, Changes: cs}})
			base := outputsBy(t, b.m, s)
			for _, c := range cs {
				order, _ := mask.New(l, scoresFor(t, b.m, l, s, false), c.Structure)
				mat := l.Read(nil)
				order.Zero(mat, c.Level)
				num, den := squaredDistance(outputsBy(t, weights.WithConstants(b.m, map[int]*tensor.Tensor{l.Value: l.Write(mat)}), s), base)
				// Outputs are rounded to codes: 255 of them over some six deviations make a
				// thousandth of the energy each way.
				if v, want := *got[c].Value.Median, num/den; math.Abs(v-want) > 0.02*want {
					t.Errorf("%+v: %v, want %v", c, v, want)
				}
			}
		})
	}
}

// liteCodes builds a TFLite operator on int8 values.
func liteCodes(b *builder, op string, shape ...int) int {
	last := shape[len(shape)-1]
	in, outs, axis, step := []int{1, 6, 6, last}, shape[0], 0, float32(0.2)
	switch op {
	case "FULLY_CONNECTED":
		in = []int{2, last}
	case "DEPTHWISE_CONV_2D":
		outs, axis, step = last, 3, 0.05 // small sums
	}
	w := b.codes(tensor.Int8, shape...)
	w.Quant = &tensor.Quant{Scale: slices.Repeat([]float32{0.01}, outs), Zero: make([]int64, outs), Axis: axis}
	bias := tensor.New(tensor.Int32, outs)
	tensor.Fill(bias, func(int) float64 { return float64(b.r.IntN(2000) - 1000) })
	bias.Quant = &tensor.Quant{Scale: slices.Repeat([]float32{0.001}, outs), Zero: make([]int64, outs)}
	attrs := graph.Attrs{"stride_h": int64(1), "stride_w": int64(1), "padding": "SAME", "depth_multiplier": int64(1)}
	return b.quantised(b.node(op, attrs, tensor.Int8, b.quantised(b.input(tensor.Int8, in...), 0.1, -3), b.constant(w), b.constant(bias)), step, 5)
}

// Where positions are very many, some lines of them stand for all.
func TestManyPositions(t *testing.T) {
	t.Parallel()
	for _, groups := range []int{1, 8} {
		b := newBuilder("onnx", 9)
		b.g.Outputs = []int{b.node("Conv", graph.Attrs{"kernel_shape": []int64{3, 3}, "pads": []int64{1, 1, 1, 1}, "group": int64(groups)}, tensor.Float32, b.input(tensor.Float32, 1, 8, 48, 48), b.random(0, 8, 8/groups, 3, 3), b.random(0, 8))}
		s := b.data(t, 90)
		l := weights.Find(b.m, nil)[0]
		m := &moments{runs: s.Runs()}
		ps, _ := linearOpsOf(b.m, l)
		g, _ := ps[0].geometry([]int{1, 8, 48, 48}, nil)
		if _, step := m.sampledLines(g, 1); step < 3 {
			t.Fatalf("every %d. line", step)
		}
		cs := changes([]study.Structure{study.Unstructured}, 0.2, 0.6, 0.9)
		got := points(t, &Job{Model: b.m, Layers: []*weights.Layer{l}, Data: s, Settings: study.LossSettings{Method: study.OutputError, Changes: cs}})
		base := outputsBy(t, b.m, s)
		for _, c := range cs {
			order, _ := mask.New(l, scoresFor(t, b.m, l, s, false), c.Structure)
			mat := l.Read(nil)
			order.Zero(mat, c.Level)
			num, den := squaredDistance(outputsBy(t, weights.WithConstants(b.m, map[int]*tensor.Tensor{l.Value: l.Write(mat)}), s), base)
			// what is promised of the closed form
			if v, want := *got[c].Value.Median, num/den; math.Abs(v-want) > 0.01*want {
				t.Errorf("%d groups, %+v: %v, want %v", groups, c, v, want)
			}
		}
	}
}

// Intervals from the energy of the inputs are about as long as those from the errors of each
// sample.
func TestIntervals(t *testing.T) {
	t.Parallel()
	for i, tt := range layers {
		if tt.alone || tt.name == "embedding" || tt.name == "embedding of codes" {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(tt.format, uint64(i))
			b.g.Outputs = []int{tt.build(b)}
			s := b.data(t, 40)
			l := weights.Find(b.m, nil)[0]
			cs := changes([]study.Structure{study.Unstructured}, 0.3, 0.6, 0.9)
			got := points(t, &Job{Model: b.m, Layers: []*weights.Layer{l}, Data: s, Settings: study.LossSettings{Method: study.OutputError, Changes: cs}})
			base := outputsBy(t, b.m, s)
			short, long := 0.0, 0.0
			for _, c := range cs {
				order, _ := mask.New(l, scoresFor(t, b.m, l, s, false), c.Structure)
				mat := l.Read(nil)
				order.Zero(mat, c.Level)
				out := outputsBy(t, weights.WithConstants(b.m, map[int]*tensor.Tensor{l.Value: l.Write(mat)}), s)
				n := len(out) / s.Runs()
				num, den := make([]float64, s.Runs()), make([]float64, s.Runs())
				for r := range num {
					num[r], den[r] = squaredDistance(out[r*n:(r+1)*n], base[r*n:(r+1)*n])
				}
				lo, hi := BootstrapInterval(len(num), 0, func(times []float32) float64 { return ratio(num, den, times) })
				ci := got[c].Value.CI95
				short, long = short+ci[1]-ci[0], long+hi-lo
			}
			t.Logf("%.3g, each sample %.3g", short, long)
			if short < long/3 || short > 3*long {
				t.Errorf("%v long, by the errors of each sample %v", short, long)
			}
		})
	}
}
