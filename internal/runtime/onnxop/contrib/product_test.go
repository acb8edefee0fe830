package contrib

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestMatMul compares NumPy's broadcasting with an element-wise definition.
func TestMatMul(t *testing.T) {
	t.Parallel()
	kinds := append([]tensor.Type{tensor.Int32}, elem.Floats...)
	rapid.Check(t, func(t *rapid.T) {
		batch := rapid.SliceOfN(rapid.IntRange(1, 3), 0, 2).Draw(t, "batch")
		m, n, k := rapid.IntRange(1, 9).Draw(t, "m"), rapid.IntRange(1, 9).Draw(t, "n"), rapid.IntRange(1, 9).Draw(t, "k")
		operand := func(name string, rows, cols int) []int {
			var s []int
			for _, d := range batch[rapid.IntRange(0, len(batch)).Draw(t, name):] {
				if rapid.Bool().Draw(t, name) {
					d = 1
				}
				s = append(s, d)
			}
			return append(s, rows, cols)
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "type")
		r := source(rapid.Uint64().Draw(t, "seed"))
		a, b := random(r, kind, operand("a", m, k)...), random(r, kind, operand("b", k, n)...)
		out, err := optest.Run(defs, optest.Node{Op: "MatMul", Version: 13, Const: []bool{false, r.IntN(2) == 0}}, a, b)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := tensor.Broadcast(a.Shape[:a.Rank()-2], b.Shape[:b.Rank()-2])
		if err != nil {
			t.Fatal(err)
		}
		shape = append(shape, m, n)
		if diff := cmp.Diff(shape, out[0].Shape, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		sa, sb := matmul.BroadcastStrides(a.Shape[:a.Rank()-2], len(shape)-2), matmul.BroadcastStrides(b.Shape[:b.Rank()-2], len(shape)-2)
		at := make([]int, len(shape))
		var want []float64
		for range tensor.Elements(shape) {
			pa, pb := 0, 0
			for d := range len(shape) - 2 {
				pa += at[d] * sa[d]
				pb += at[d] * sb[d]
			}
			i, j := at[len(at)-2], at[len(at)-1]
			s := 0.0
			for q := range k {
				s += tensor.At(a, (pa*m+i)*k+q) * tensor.At(b, (pb*k+q)*n+j)
			}
			want = append(want, s)
			tensor.Next(at, shape)
		}
		compare(t, out[0], want, tolerance(kind))
	})
}

func TestMatMulVectors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		a, b, out []int
	}{
		{"vector vector", []int{3}, []int{3}, []int{}},
		{"vector matrix", []int{3}, []int{3, 2}, []int{2}},
		{"matrix vector", []int{2, 3}, []int{3}, []int{2}},
		{"vector batch", []int{3}, []int{4, 3, 2}, []int{4, 2}},
		{"batch vector", []int{4, 2, 3}, []int{3}, []int{4, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := tensor.New(tensor.Float32, c.a...), tensor.New(tensor.Float32, c.b...)
			for _, x := range []*tensor.Tensor{a, b} {
				for i := range x.Len() {
					tensor.Of[float32](x)[i] = 2
				}
			}
			y := run(t, optest.Node{Op: "MatMul", Version: 13}, a, b)[0]
			want := make([]float64, tensor.Elements(c.out))
			for i := range want {
				want[i] = 12
			}
			near(t, c.name, y, want, 0)
			if len(y.Shape) != len(c.out) {
				t.Errorf("shape %v, want %v", y.Shape, c.out)
			}
		})
	}
}

func TestGemm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, n, k := rapid.IntRange(1, 7).Draw(t, "m"), rapid.IntRange(1, 7).Draw(t, "n"), rapid.IntRange(1, 7).Draw(t, "k")
		ta, tb := rapid.Bool().Draw(t, "ta"), rapid.Bool().Draw(t, "tb")
		cs := rapid.SampledFrom([][]int{nil, {}, {1}, {n}, {1, n}, {m, 1}, {m, n}}).Draw(t, "c")
		alpha := rapid.SampledFrom([]float32{1, 0.5}).Draw(t, "alpha")
		kind := rapid.SampledFrom(elem.Floats).Draw(t, "type")
		r := source(rapid.Uint64().Draw(t, "seed"))
		shape := func(trans bool, a, b int) []int {
			if trans {
				return []int{b, a}
			}
			return []int{a, b}
		}
		a, b := random(r, kind, shape(ta, m, k)...), random(r, kind, shape(tb, k, n)...)
		in := []*tensor.Tensor{a, b}
		if cs != nil {
			in = append(in, random(r, kind, cs...))
		}
		out, err := optest.Run(defs, optest.Node{
			Op: "Gemm", Version: 13, Const: []bool{false, r.IntN(2) == 0},
			Attrs: graph.Attrs{"transA": ta, "transB": tb, "alpha": alpha, "beta": float32(1)},
		}, in...)
		if err != nil {
			t.Fatal(err)
		}
		at := func(x *tensor.Tensor, trans bool, i, j int) float64 {
			if trans {
				i, j = j, i
			}
			return tensor.At(x, i*x.Shape[1]+j)
		}
		var want []float64
		for i := range m {
			for j := range n {
				s := 0.0
				for q := range k {
					s += at(a, ta, i, q) * at(b, tb, q, j)
				}
				s *= float64(alpha)
				if cs != nil {
					st := matmul.BroadcastStrides(cs, 2)
					s += tensor.At(in[2], i*st[0]+j*st[1])
				}
				want = append(want, s)
			}
		}
		compare(t, out[0], want, tolerance(kind))
	})
}

func TestMatMulNBits(t *testing.T) {
	t.Parallel()
	sizes := []struct {
		m, n, k, block int
		tolerance      float64
	}{
		{3, 5, 40, 16, 1e-4},
		{9, 70, 40, 16, 1e-4}, // several pieces of a matrix
		// weights that stay as they are; sums of 312 products of up to 128
		{2, 440, 312, 32, 1e-3},
		{17, 440, 312, 64, 1e-3}, // and are widened for many rows
	}
	for i := range 3 * len(sizes) {
		bits, size := 2<<(i%3), sizes[i/3]
		m, n, k, block := size.m, size.n, size.k, size.block
		blocks := (k + block - 1) / block
		r := source(uint64(bits))
		a, w := random(r, tensor.Float32, m, k), random(r, tensor.Uint8, n, blocks, block*bits/8)
		scale := random(r, tensor.Float32, n*blocks)
		per := (blocks*bits + 7) / 8
		zero := random(r, tensor.Uint8, n*per)
		node := optest.Node{Domain: graph.Microsoft, Op: "MatMulNBits", Version: 1, Attrs: graph.Attrs{
			"K": int64(k), "N": int64(n), "bits": int64(bits), "block_size": int64(block),
		}}
		if i%2 == 1 && size.n > 100 {
			zero = nil
		}
		y := run(t, node, a, w, scale, zero)[0]
		node.Const = []bool{false, true, true, true}
		kept := run(t, node, a, w, scale, zero)[0]
		field := func(b []byte, i int) float64 { return float64(int(b[i*bits/8]) >> (i * bits % 8) & (1<<bits - 1)) }
		var want []float64
		for i := range m {
			for j := range n {
				s := 0.0
				for q := range k {
					b, z := q/block, float64(int(1)<<(bits-1))
					if zero != nil {
						z = field(zero.Data[j*per:], b)
					}
					s += tensor.At(a, i*k+q) * (field(w.Data[j*blocks*block*bits/8:], q) - z) * tensor.At(scale, j*blocks+b)
				}
				want = append(want, s)
			}
		}
		near(t, "product", y, want, size.tolerance)
		near(t, "product with weights that are kept", kept, want, size.tolerance)
		if bits == 4 {
			// 8-bit activations have an error of up to 1/254; those of a sum of 312 add up to 1.2
			// in random directions, times scales of up to one.
			node.Attrs["accuracy_level"] = int64(4)
			near(t, "product of codes", run(t, node, a, w, scale, zero)[0], want, 0.8)
		}
		// The same zero points as numbers, and an explicit block for each row of weights.
		if zero != nil {
			numbers := tensor.New(tensor.Float32, n*blocks)
			for at := range n * blocks {
				tensor.Of[float32](numbers)[at] = float32(field(zero.Data[at/blocks*per:], at%blocks))
			}
			delete(node.Attrs, "accuracy_level")
			near(t, "product with zero points of floats", run(t, node, a, w, scale, numbers)[0], want, size.tolerance)
			index := tensor.New(tensor.Int32, k)
			for q := range k {
				tensor.Of[int32](index)[q] = int32(q / block)
			}
			near(t, "product with blocks of rows", run(t, node, a, w, scale, numbers, index)[0], want, size.tolerance)
			slices.Reverse(tensor.Of[int32](index))
			for j := range want {
				want[j] = 0
				for q := range k {
					b, col := (k-1-q)/block, j%n
					want[j] += tensor.At(a, j/n*k+q) * (field(w.Data[col*blocks*block*bits/8:], q) - tensor.At(numbers, col*blocks+b)) * tensor.At(scale, col*blocks+b)
				}
			}
			near(t, "product with blocks of rows in another order", run(t, node, a, w, scale, numbers, index)[0], want, size.tolerance)
			node.Const = nil
			near(t, "the same with weights that may change", run(t, node, a, w, scale, numbers, index)[0], want, size.tolerance)
		}
	}
}

// TestMatMulNBitsRows: with accuracy_level 4, rows are rounded to 8 bits per block, whatever their
// number, the size of the weights, and whether they are constant. Exact calls, blocks in another
// order and zero points that are numbers have float32 rows.
func TestMatMulNBitsRows(t *testing.T) {
	t.Parallel()
	const block = 32
	for _, size := range [][2]int{{64, 64}, {60, 70}, {440, 312}} {
		n, k := size[0], size[1]
		blocks := (k + block - 1) / block
		for _, bits := range []int{2, 4, 8} {
			r := source(uint64(n + bits))
			const most = 20
			a, w, scale := random(r, tensor.Float32, most, k), random(r, tensor.Uint8, n, blocks, block*bits/8), random(r, tensor.Float32, n*blocks)
			rounded := tensor.New(tensor.Float32, most, k)
			for i := range most * blocks {
				from := i/blocks*k + i%blocks*block
				to := min(from+block, (i/blocks+1)*k)
				top := 0.0
				for j := from; j < to; j++ {
					top = max(top, math.Abs(tensor.At(a, j)))
				}
				for j := from; j < to; j++ {
					by := 127 / float32(top)
					tensor.Of[float32](rounded)[j] = float32(math.RoundToEven(float64(tensor.Of[float32](a)[j]*by)) * top / 127)
				}
			}
			product := func(x *tensor.Tensor) []float64 {
				want := make([]float64, most*n)
				for i := range want {
					for q := range k {
						at := i % n * blocks * block * bits
						field := int(w.Data[(at+q*bits)/8]) >> (q * bits % 8) & (1<<bits - 1)
						want[i] += tensor.At(x, i/n*k+q) * float64(field-1<<(bits-1)) * tensor.At(scale, i%n*blocks+q/block)
					}
				}
				return want
			}
			want, floats := product(rounded), product(a)
			tolerance := 1e-5 * float64(k) * float64(int(1)<<bits)
			zeros, index := tensor.New(tensor.Float32, n*blocks), tensor.New(tensor.Int32, k)
			tensor.Fill(zeros, func(int) float64 { return float64(int(1) << (bits - 1)) })
			tensor.Fill(index, func(i int) float64 { return float64(i / block) })
			for rows := 1; rows <= most; rows += 1 + rows/4 {
				x := tensor.From(tensor.Float32, []int{rows, k}, tensor.Of[float32](a)[:rows*k])
				for _, constant := range []bool{false, true} {
					node := optest.Node{
						Domain: graph.Microsoft, Op: "MatMulNBits", Version: 1, Const: []bool{false, constant, constant, constant, constant},
						Attrs: graph.Attrs{"K": int64(k), "N": int64(n), "bits": int64(bits), "block_size": int64(block), "accuracy_level": int64(4)},
					}
					near(t, "rounded rows", run(t, node, x, w, scale)[0], want[:rows*n], tolerance)
					near(t, "zero points that are numbers", run(t, node, x, w, scale, zeros)[0], floats[:rows*n], tolerance)
					near(t, "blocks of rows", run(t, node, x, w, scale, nil, index)[0], floats[:rows*n], tolerance)
					node.Exact = true
					near(t, "exact", run(t, node, x, w, scale)[0], floats[:rows*n], tolerance)
				}
			}
		}
	}
}

func TestQLinearMatMul(t *testing.T) {
	t.Parallel()
	for _, kind := range elem.Bytes {
		r := source(3)
		a, b := random(r, kind, 4, 6), random(r, kind, 6, 5)
		one := func(v float32) *tensor.Tensor { return tensor.From(tensor.Float32, nil, []float32{v}) }
		az, bz, yz := random(r, kind), random(r, kind), random(r, kind)
		y := run(t, optest.Node{Op: "QLinearMatMul", Version: 21}, a, one(0.5), az, b, one(0.25), bz, one(16), yz)[0]
		lo, hi := 0.0, 255.0
		if kind == tensor.Int8 {
			lo, hi = -128, 127
		}
		var want []float64
		for i := range 4 {
			for j := range 5 {
				s := 0.0
				for q := range 6 {
					s += (tensor.At(a, i*6+q) - tensor.At(az, 0)) * (tensor.At(b, q*5+j) - tensor.At(bz, 0))
				}
				// Powers of two make the scaling exact, ties to even included.
				want = append(want, min(max(math.RoundToEven(s/128)+tensor.At(yz, 0), lo), hi))
			}
		}
		near(t, kind.String(), y, want, 0)
	}
}

// TestQGemmByColumns uses per-column scales, zero points and biases, with weights that are
// constant or not, transposed or not.
func TestQGemmByColumns(t *testing.T) {
	t.Parallel()
	const m, k, n = 5, 70, 37
	for _, kind := range elem.Bytes {
		r := source(5)
		for trial := range 16 {
			turned, constant, zeros := trial&1 != 0, trial&2 != 0, trial&4 != 0
			shape := []int{k, n}
			if turned {
				shape = []int{n, k}
			}
			a, b, bias := random(r, kind, m, k), random(r, kind, shape...), random(r, tensor.Int32, n)
			if trial&8 != 0 {
				bias = random(r, tensor.Int32, m, n)
			}
			az, yz, bz := random(r, kind), random(r, kind), random(r, kind)
			if zeros {
				bz = random(r, kind, n)
			}
			scales := tensor.New(tensor.Float32, n)
			for i := range tensor.Of[float32](scales) {
				tensor.Of[float32](scales)[i] = float32(int(1)<<(i%3)) / 4
			}
			one := func(v float32) *tensor.Tensor { return tensor.From(tensor.Float32, nil, []float32{v}) }
			node := optest.Node{Domain: graph.Microsoft, Op: "QGemm", Version: 1, Attrs: graph.Attrs{"transB": int64(trial & 1)}}
			if constant {
				node.Const = []bool{3: true, 4: true, 5: true}
			}
			y := run(t, node, a, one(0.5), az, b, scales, bz, bias, one(1024), yz)[0]
			var want []float64
			for i := range m {
				for j := range n {
					s := tensor.At(bias, (i*n+j)%bias.Len())
					for q := range k {
						at := q*n + j
						if turned {
							at = j*k + q
						}
						s += (tensor.At(a, i*k+q) - tensor.At(az, 0)) * (tensor.At(b, at) - tensor.At(bz, j%bz.Len()))
					}
					// Powers of two make the scaling exact, ties to even included.
					v := math.RoundToEven(s*0.5*tensor.At(scales, j)/1024) + tensor.At(yz, 0)
					lo, hi := 0.0, 255.0
					if kind == tensor.Int8 {
						lo, hi = -128, 127
					}
					want = append(want, min(max(v, lo), hi))
				}
			}
			near(t, kind.String(), y, want, 0)
		}
	}
}

func TestTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"), rapid.IntRange(1, 100).Draw(t, "times"))
		flip := rapid.SampledFrom([]byte{0, 0x80}).Draw(t, "flip")
		want := int64(0)
		for _, b := range v {
			want += int64(b ^ flip)
		}
		if got := total(v, flip); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}
