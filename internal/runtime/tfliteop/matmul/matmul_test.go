package matmul

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

const (
	f32 = tensor.Float32
	i4  = tensor.Int4
	i8  = tensor.Int8
	u8  = tensor.Uint8
	i16 = tensor.Int16
	i32 = tensor.Int32
	i64 = tensor.Int64
)

var clamps = []struct {
	name   string
	lo, hi float64
}{{"NONE", math.Inf(-1), math.Inf(1)}, {"RELU", 0, math.Inf(1)}, {"RELU6", 0, 6}, {"RELU_N1_TO_1", -1, 1}}

// TestFullyConnected compares fully connected layers with the definition, for every pair of
// types: zero points at both ends, one scale or one for each output, with and without biases, one
// row and many.
func TestFullyConnected(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range [][3]tensor.Type{{f32, f32, f32}, {i8, i8, i8}, {i8, i4, i8}, {i8, i8, i16}, {u8, u8, u8}, {u8, u8, i16}, {i16, i8, i16}, {i16, i4, i16}} {
		for i := range 24 {
			rows, in, out := []int{1, 2, 3, 4, 9}[i%5], 1+r.IntN(13), 1+r.IntN(9)
			if i == 23 {
				rows, in, out = 40, 40, 40
			}
			act := clamps[i%4]
			lo, hi := optest.Ends(typ[0])
			wlo, whi := optest.Ends(typ[1])
			zx, zw, zo := 0, 0, 0
			sx, so, sw := 0.5, 8.0*float64(in), []float64{0.25}
			switch typ[0] {
			case f32:
				lo, hi, wlo, whi, so, sw, sx = -9, 9, -9, 9, 1, []float64{1}, 1
			case i8:
				zx = []int{lo, hi, 7}[i%3]
			case u8:
				zx, zw = []int{lo, hi, 7}[i%3], []int{wlo, whi, 130}[i/3%3]
			case i16:
				so *= 128
			}
			if typ[2] == i8 || typ[2] == u8 {
				olo, ohi := optest.Ends(typ[2])
				zo = []int{olo, ohi, 3}[i/2%3]
			}
			if i%2 == 1 && typ[0] != f32 && typ[0] != u8 {
				for len(sw) < out {
					sw = append(sw, math.Ldexp(1, -1-r.IntN(3)))
				}
			}
			x, w, b := optest.Draw(r, rows*in, lo, hi), optest.Draw(r, out*in, wlo, whi), optest.Draw(r, out, -3000, 3000)
			if typ[0] == f32 {
				b = optest.Draw(r, out, -9, 9)
			}
			bt := i32
			if typ[0] == i16 && i%3 > 0 {
				bt = i64
			} else if typ[0] == f32 {
				bt = f32
			}
			var want []float64
			for row := range rows {
				for o := range out {
					sum := 0.0
					if i%5 != 2 {
						sum = b[o]
					}
					for k := range in {
						sum += (x[row*in+k] - float64(zx)) * (w[o*in+k] - float64(zw))
					}
					v := min(max(sum*sx*sw[min(o, len(sw)-1)], act.lo), act.hi) / so
					if typ[2] != f32 {
						a, z := optest.Ends(typ[2])
						v = min(max(v+float64(zo), float64(a)), float64(z))
					}
					want = append(want, v)
				}
			}
			qx, qw, qo := optest.Rounded(zx, sx), optest.Rounded(zw, sw...), optest.Rounded(zo, so)
			if typ[0] == f32 {
				qx, qw, qo = nil, nil, nil
			}
			args := []*tensor.Tensor{optest.Of(typ[0], qx, []int{rows, in}, x...), optest.Of(typ[1], qw, []int{out, in}, w...), optest.Of(bt, nil, []int{out}, b...)}
			if i%5 == 2 {
				args = args[:2]
			}
			n := optest.Lite("FULLY_CONNECTED", graph.Attrs{"fused_activation_function": act.name}, typ[2], qo)
			got, err := optest.Run(Defs(), n, args...)
			if err != nil {
				t.Fatal(err)
			}
			tol := 0.76 // rounds twice
			if typ[0] == f32 {
				tol = 0 // integers
			}
			what := typ[0].String() + " by " + typ[1].String() + " to " + typ[2].String()
			optest.Near(t, what, got[0], want, tol, 0)
			if n.Const[1] = false; typ[0] == f32 || typ[0] == i8 && typ[1] == i8 && bt == i32 {
				// Weights that may change from run to run.
				got, err := optest.Run(Defs(), n, args...)
				if err != nil {
					t.Fatal(err)
				}
				optest.Near(t, what+", open weights", got[0], want, tol, 0)
			}
		}
	}
}

// TestFullyConnectedOfFloats: low-bit weights with float activations: 16-bit and block-quantised
// weights are converted to floats, bytes are multiplied as integers.
func TestFullyConnectedOfFloats(t *testing.T) {
	t.Parallel()
	x := optest.Of(f32, nil, []int{2, 2}, 127, -64, 0, 0)
	n := optest.Lite("FULLY_CONNECTED", nil, f32, nil)
	// Steps of 1: 127·2-64·4 = -2, times a scale of 1/2 and 1/4; a row of zeros gives the bias.
	for _, attrs := range []graph.Attrs{nil, {"fused_activation_function": "RELU"}} {
		n.Attrs = attrs
		low := -1.0
		if attrs != nil {
			low = 0
		}
		optest.Exactly(t, "one scale", Defs(), n, []int{2, 2}, []float64{low, 95.5, 0, 0}, x, optest.Of(i8, optest.Rounded(0, 0.5), []int{2, 2}, 2, 4, 1, -1))
		optest.Exactly(t, "a scale a row", Defs(), n, []int{2, 2}, []float64{low, 47.75, 0, 0}, x, optest.Of(i8, optest.Rounded(0, 0.5, 0.25), []int{2, 2}, 2, 4, 1, -1))
		optest.Exactly(t, "with a bias", Defs(), n, []int{2, 2}, []float64{9, 57.75, 10, 10}, x, optest.Of(i8, optest.Rounded(0, 0.5, 0.25), []int{2, 2}, 2, 4, 1, -1), optest.Row(f32, nil, 10, 10))
	}
	n.Attrs = nil
	optest.Exactly(t, "half precision", Defs(), n, []int{2, 1}, []float64{0, 0}, x, optest.Of(tensor.Float16, nil, []int{1, 2}, 64, 127))
	optest.Exactly(t, "uint8 means int8", Defs(), n, []int{2, 1}, []float64{-127, 0}, x, optest.Of(u8, optest.Rounded(128, 1), []int{1, 2}, 255, 0))
	blocks := &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}, Axis: 1, Block: 1}
	optest.Exactly(t, "blocks", Defs(), n, []int{2, 1}, []float64{127*3 - 64*2*5, 0}, x, optest.Of(i8, blocks, []int{1, 2}, 3, 5))
	// Asymmetric: the range of 0 to 255 in 255 steps.
	n.Attrs = graph.Attrs{"asymmetric_quantize_inputs": true}
	optest.Exactly(t, "asymmetric", Defs(), n, []int{1, 1}, []float64{255*2 - 10}, optest.Of(f32, nil, []int{1, 2}, 255, 10), optest.Of(i8, optest.Rounded(0, 1), []int{1, 2}, 2, -1))
}

func TestFullyConnectedShapes(t *testing.T) {
	t.Parallel()
	w := optest.Of(f32, nil, []int{2, 3}, 1, 0, 0, 0, 1, 1)
	x := func(shape ...int) *tensor.Tensor { return optest.Of(f32, nil, shape, 1, 2, 3, 4, 5, 6) }
	keep := graph.Attrs{"keep_num_dims": true}
	for _, c := range []struct {
		attrs graph.Attrs
		in    []int
		out   []int
	}{
		{nil, []int{2, 1, 3}, []int{2, 2}},
		{keep, []int{2, 1, 3}, []int{2, 1, 2}},
		{keep, []int{1, 6}, []int{2, 2}}, // rows that the last axis does not show
		{nil, []int{6}, []int{2, 2}},
	} {
		optest.Exactly(t, "shape", Defs(), optest.Lite("FULLY_CONNECTED", c.attrs, f32, nil), c.out, []float64{1, 5, 4, 11}, x(c.in...), w)
	}
	optest.Exactly(t, "empty", Defs(), optest.Lite("FULLY_CONNECTED", nil, f32, nil), []int{0, 2}, nil, x(0, 3), w)
	q := optest.Rounded(0, 1)
	row := func(t tensor.Type, q *tensor.Quant) *tensor.Tensor { return optest.Of(t, q, []int{1, 2}, 1, 2) }
	wt := func(t tensor.Type, q *tensor.Quant) *tensor.Tensor { return optest.Of(t, q, []int{2, 2}, 1, 2, 3, 4) }
	block := &tensor.Quant{Scale: []float32{1, 2}, Zero: []int64{0, 0}, Axis: 1, Block: 1}
	act := graph.Attrs{"fused_activation_function": "TANH"}
	for _, c := range []struct {
		what  string
		attrs graph.Attrs
		out   tensor.Type
		qo    *tensor.Quant
		text  string
		in    []*tensor.Tensor
	}{
		{"no weights", nil, f32, nil, "input 1 is missing", []*tensor.Tensor{row(f32, nil)}},
		{"rank", nil, f32, nil, "weights have rank 1", []*tensor.Tensor{row(f32, nil), optest.Row(f32, nil, 1, 2)}},
		{"rows", nil, f32, nil, "does not divide into rows of 2", []*tensor.Tensor{optest.Row(f32, nil, 1, 2, 3), wt(f32, nil)}},
		{"no columns", nil, f32, nil, "does not divide into rows of 0", []*tensor.Tensor{row(f32, nil), optest.Of(f32, nil, []int{2, 0})}},
		{"biases", nil, f32, nil, "3 biases for 2 outputs", []*tensor.Tensor{row(f32, nil), wt(f32, nil), optest.Row(f32, nil, 1, 2, 3)}},
		{"format", graph.Attrs{"weights_format": "SHUFFLED4x16INT8"}, f32, nil, "weights format SHUFFLED4x16INT8", []*tensor.Tensor{row(f32, nil), wt(f32, nil)}},
		{"types", nil, i8, q, "int8 input with uint8 weights", []*tensor.Tensor{row(i8, q), wt(u8, q)}},
		{"output", nil, u8, q, "int8 input with uint8 output", []*tensor.Tensor{row(i8, q), wt(i8, q)}},
		{"wide output", nil, i8, q, "int16 input with int8 output", []*tensor.Tensor{row(i16, q), wt(i8, q)}},
		{"blocks", nil, i8, q, "blockwise weights with integer", []*tensor.Tensor{row(i8, q), wt(i8, block)}},
		{"no scale of weights", nil, i8, q, "weights without quantisation", []*tensor.Tensor{row(i8, q), wt(i8, nil)}},
		{"no scale of input", nil, i8, q, "without quantisation", []*tensor.Tensor{row(i8, nil), wt(i8, q)}},
		{"no scale of output", nil, i8, nil, "without quantisation", []*tensor.Tensor{row(i8, q), wt(i8, q)}},
		{"scales", nil, i8, q, "3 scales for 2 channels", []*tensor.Tensor{row(i8, q), wt(i8, optest.Rounded(0, 1, 1, 1))}},
		{"float biases", nil, i8, q, "float32 biases", []*tensor.Tensor{row(i8, q), wt(i8, q), optest.Row(f32, nil, 1, 2)}},
		{"wide biases", nil, i16, q, "int8 biases", []*tensor.Tensor{row(i16, q), wt(i8, q), optest.Row(i8, nil, 1, 2)}},
		{"activation", act, f32, nil, "fused activation TANH", []*tensor.Tensor{row(f32, nil), wt(f32, nil)}},
		{"activation of bytes", act, i8, q, "fused activation TANH", []*tensor.Tensor{row(i8, q), wt(i8, q)}},
		{"activation of words", act, i16, q, "fused activation TANH", []*tensor.Tensor{row(i16, q), wt(i8, q)}},
		{"activation beside bytes", act, f32, nil, "fused activation TANH", []*tensor.Tensor{row(f32, nil), wt(i8, q)}},
		{"hybrid scales", nil, f32, nil, "3 scales for 2 rows", []*tensor.Tensor{row(f32, nil), wt(i8, optest.Rounded(0, 1, 1, 1))}},
	} {
		optest.Refused(t, c.what, Defs(), optest.Lite("FULLY_CONNECTED", c.attrs, c.out, c.qo), c.text, c.in...)
	}
	open := optest.Lite("FULLY_CONNECTED", nil, i16, q)
	open.Const = nil
	optest.Refused(t, "open wide weights", Defs(), open, "weights that are not constant", row(i16, q), wt(i8, q))
	open.Const = []bool{false, true, false}
	optest.Refused(t, "open wide biases", Defs(), open, "not constant", row(i16, q), wt(i8, q), optest.Row(i32, nil, 1, 2))
	open.OutTypes[0] = i8
	optest.Refused(t, "open biases", Defs(), open, "not constant", row(i8, q), wt(i8, q), optest.Row(i32, nil, 1, 2))
}

// TestBatchMatmul compares batches of products with the definition, each operand transposed or
// not.
func TestBatchMatmul(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	batches := []struct {
		x, y, out []int
		at        [][2]int // matrices that meet
	}{
		{nil, nil, nil, [][2]int{{0, 0}}},
		{[]int{2}, []int{2}, []int{2}, [][2]int{{0, 0}, {1, 1}}},
		{[]int{3}, nil, []int{3}, [][2]int{{0, 0}, {1, 0}, {2, 0}}},
		{nil, []int{1, 2}, []int{1, 2}, [][2]int{{0, 0}, {0, 1}}},
		{[]int{2, 1}, []int{3}, []int{2, 3}, [][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}},
	}
	for _, typ := range [][3]tensor.Type{{f32, f32, f32}, {f32, i8, f32}, {i8, i8, i8}, {i8, i8, i32}, {i16, i16, i16}, {i16, i8, i16}} {
		for i := range 40 {
			b := batches[i/4%5]
			adjX, adjY := i&1 != 0, i&2 != 0
			m, k, n := 1+r.IntN(5), 1+r.IntN(6), 1+r.IntN(5)
			if i/20 == 1 {
				m += 8 // worth packing the other operand for
				if i%3 == 0 {
					m, k = m+20, k+30 // and turning this one in vectors
				}
			}
			lo, hi := optest.Ends(typ[0])
			ylo, yhi := optest.Ends(typ[1])
			zx, zy, zo, sx, sy, so := 0, 0, 0, 0.5, []float64{0.25}, 4.0
			switch {
			case typ[0] == f32:
				lo, hi, ylo, yhi, sx, so = -9, 9, -9, 9, 1, 1
				if typ[1] == f32 {
					sy = []float64{1}
				}
			case typ[2] == i32:
				sx, so, sy = 1, 1, []float64{1}
			case typ[0] == i8:
				zx, zy, zo = []int{lo, hi, 5}[i%3], []int{ylo, yhi, -5}[i/3%3], []int{lo, hi, 9}[i/2%3]
				so *= 16
			default:
				so *= 1 << 12
				if typ[1] == i8 {
					zy = []int{0, ylo, yhi}[i%3]
				}
			}
			if typ[2] == i8 && i%4 < 3 && i%5 == 0 {
				zy = 0
				for len(sy) < n {
					sy = append(sy, math.Ldexp(1, -r.IntN(3)))
				}
			}
			count := func(shape []int) int {
				c := 1
				for _, d := range shape {
					c *= d
				}
				return c
			}
			x, y := optest.Draw(r, count(b.x)*m*k, lo, hi), optest.Draw(r, count(b.y)*k*n, ylo, yhi)
			if typ[1] == i8 && typ[0] == f32 {
				// The largest of each row is 127: steps of one.
				for q := range x {
					x[q] = float64(r.IntN(255) - 127)
				}
				for q := range count(b.x) {
					for row := range m {
						if adjX {
							x[q*m*k+row] = 127
						} else {
							x[q*m*k+row*k] = 127
						}
					}
				}
			}
			var want []float64
			for _, at := range b.at {
				for row := range m {
					for col := range n {
						sum := 0.0
						for c := range k {
							xi, yi := row*k+c, c*n+col
							if adjX {
								xi = c*m + row
							}
							if adjY {
								yi = col*k + c
							}
							sum += (x[at[0]*m*k+xi] - float64(zx)) * (y[at[1]*k*n+yi] - float64(zy))
						}
						v := sum * sx * sy[min(col, len(sy)-1)] / so
						if typ[2] == i8 || typ[2] == i16 {
							a, z := optest.Ends(typ[2])
							v = min(max(v+float64(zo), float64(a)), float64(z))
						}
						want = append(want, v)
					}
				}
			}
			xs, ys := append(append([]int{}, b.x...), m, k), append(append([]int{}, b.y...), k, n)
			qy := optest.Rounded(zy, sy...)
			qy.Axis = len(ys) - 1
			if adjX {
				xs[len(xs)-1], xs[len(xs)-2] = m, k
			}
			if adjY {
				ys[len(ys)-1], ys[len(ys)-2] = k, n
				qy.Axis--
			}
			qx, qo := optest.Rounded(zx, sx), optest.Rounded(zo, so)
			if typ[1] == f32 {
				qx, qy, qo = nil, nil, nil
			}
			node := optest.Lite("BATCH_MATMUL", graph.Attrs{"adj_x": adjX, "adj_y": adjY}, typ[2], qo)
			out, err := optest.Run(Defs(), node, optest.Of(typ[0], qx, xs, x...), optest.Of(typ[1], qy, ys, y...))
			if err != nil {
				t.Fatal(err)
			}
			tol := 0.0
			if typ[2] == i8 || typ[2] == i16 {
				tol = 0.76
			}
			if got, shape := tensor.FormatShape(out[0].Shape), tensor.FormatShape(append(append([]int{}, b.out...), m, n)); got != shape {
				t.Fatalf("shape %s, want %s", got, shape)
			}
			optest.Near(t, typ[0].String()+" by "+typ[1].String(), out[0], want, tol, 0)
		}
	}
}

func TestBatchMatmulRefused(t *testing.T) {
	t.Parallel()
	q := optest.Rounded(0, 1)
	of := func(t tensor.Type, q *tensor.Quant, shape ...int) *tensor.Tensor { return optest.Of(t, q, shape) }
	along := func(axis int, n int) *tensor.Quant {
		s := make([]float64, n)
		for i := range s {
			s[i] = 1
		}
		a := optest.Rounded(0, s...)
		a.Axis = axis
		return a
	}
	for _, c := range []struct {
		what string
		out  tensor.Type
		qo   *tensor.Quant
		text string
		x, y *tensor.Tensor
	}{
		{"one input", f32, nil, "input 1 is missing", of(f32, nil, 2, 2), nil},
		{"rank of x", f32, nil, "inputs of rank 1 and 2", of(f32, nil, 2), of(f32, nil, 2, 2)},
		{"rank of y", f32, nil, "inputs of rank 2 and 1", of(f32, nil, 2, 2), of(f32, nil, 2)},
		{"inner", f32, nil, "inner dimensions 3 and 2 differ", of(f32, nil, 2, 3), of(f32, nil, 2, 3)},
		{"batches", f32, nil, "", of(f32, nil, 2, 1, 1), of(f32, nil, 3, 1, 1)},
		{"types", f32, nil, "float32 times int16", of(f32, nil, 1, 1), of(i16, q, 1, 1)},
		{"output", i16, q, "int8 times int8 to int16", of(i8, q, 1, 1), of(i8, q, 1, 1)},
		{"no scale of x", i8, q, "without quantisation", of(i8, nil, 1, 1), of(i8, q, 1, 1)},
		{"no scale of y", i8, q, "without quantisation", of(i8, q, 1, 1), of(i8, nil, 1, 1)},
		{"no scale of the output", i8, nil, "without quantisation", of(i8, q, 1, 1), of(i8, q, 1, 1)},
		{"scales of rows", i8, q, "along another axis", of(i8, q, 2, 2), of(i8, along(0, 2), 2, 2)},
		{"scales too many", i8, q, "along another axis", of(i8, q, 2, 2), of(i8, along(1, 3), 2, 2)},
		{"hybrid by channel", f32, nil, "float times int8 by channel", of(f32, nil, 2, 2), of(i8, along(1, 2), 2, 2)},
	} {
		optest.Refused(t, c.what, Defs(), optest.Lite("BATCH_MATMUL", nil, c.out, c.qo), c.text, c.x, c.y)
	}
}

// TestBatchMatmulThreads: batches that threads share are bit-exact.
func TestBatchMatmulThreads(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for _, batch := range []int{1, 2, 3, 4, 13} {
		x, y := tensor.New(f32, batch, 40, 41), tensor.New(f32, batch, 41, 42)
		for _, v := range []*tensor.Tensor{x, y} {
			for i := range tensor.Of[float32](v) {
				tensor.Of[float32](v)[i] = r.Float32() - 0.5
			}
		}
		var want []float32
		for _, threads := range []int{1, 2, 3} {
			out, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "BATCH_MATMUL", Version: 1, Threads: threads}, x, y)
			if err != nil {
				t.Fatal(err)
			}
			got := tensor.Of[float32](out[0])
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d matrices differ by %d threads", batch, threads)
			}
		}
	}
}
