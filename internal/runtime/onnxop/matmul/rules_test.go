package matmul

import (
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func of[T tensor.Number](typ tensor.Type, shape []int, v ...T) *tensor.Tensor {
	return tensor.From(typ, shape, v)
}

// cast returns a tensor with the same elements in another type.
func cast(typ tensor.Type, x *tensor.Tensor) *tensor.Tensor {
	if x == nil {
		return nil
	}
	y := tensor.New(typ, x.Shape...)
	tensor.Fill(y, func(i int) float64 { return tensor.At(x, i) })
	return y
}

// run runs an operator in several types and with constants: small integers are exact in all of
// them.
func run(t *testing.T, op string, attrs graph.Attrs, shape []int, want []float64, types []tensor.Type, in ...*tensor.Tensor) {
	t.Helper()
	for _, typ := range types {
		for _, fixed := range []bool{false, true} {
			use, c := make([]*tensor.Tensor, len(in)), make([]bool, len(in))
			for i, x := range in {
				use[i], c[i] = cast(typ, x), fixed && i > 0
			}
			out, err := optest.Run(Defs(), optest.Node{Op: op, Version: 13, Attrs: attrs, Const: c}, use...)
			if err != nil {
				t.Fatalf("%s %v of %v: %v", op, attrs, typ, err)
			}
			if why := optest.Differ(out[0], want, 0, 0); why != "" || !slices.Equal(out[0].Shape, shape) {
				t.Errorf("%s %v of %v, constants %v: shape %v, %s", op, attrs, typ, fixed, out[0].Shape, why)
			}
		}
	}
}

func refuse(t *testing.T, want, op string, attrs graph.Attrs, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Op: op, Version: 13, Attrs: attrs}, in...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %v: %v, want %q", op, attrs, err, want)
	}
}

var (
	reals   = []tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16}
	numbers = []tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16, tensor.Int32, tensor.Int64}
)

// TestEinsum has each rule of the notation on small integers.
func TestEinsum(t *testing.T) {
	t.Parallel()
	a := f32([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	b := f32([]int{3, 2}, 1, 0, 0, 1, 1, 1)
	sq := f32([]int{2, 2}, 1, 2, 3, 4)
	v := f32([]int{3}, 1, 2, 3)
	for _, tt := range []struct {
		equation string
		in       []*tensor.Tensor
		shape    []int
		want     []float64
	}{
		{"ij,jk->ik", []*tensor.Tensor{a, b}, []int{2, 2}, []float64{4, 5, 10, 11}},
		{"ij,jk", []*tensor.Tensor{a, b}, []int{2, 2}, []float64{4, 5, 10, 11}},
		{" ij , jk -> ki ", []*tensor.Tensor{a, b}, []int{2, 2}, []float64{4, 10, 5, 11}},
		{"ij->ji", []*tensor.Tensor{a}, []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
		// in alphabetical order
		{"ba", []*tensor.Tensor{a}, []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
		{"ij->i", []*tensor.Tensor{a}, []int{2}, []float64{6, 15}},
		{"ij->", []*tensor.Tensor{a}, []int{}, []float64{21}},
		{"ii->i", []*tensor.Tensor{sq}, []int{2}, []float64{1, 4}},
		{"ii", []*tensor.Tensor{sq}, []int{}, []float64{5}},
		{"i,i->", []*tensor.Tensor{v, v}, []int{}, []float64{14}},
		{"i,j->ij", []*tensor.Tensor{f32([]int{2}, 2, 3), v}, []int{2, 3}, []float64{2, 4, 6, 3, 6, 9}},
		{"ij,j,i->i", []*tensor.Tensor{a, v, f32([]int{2}, 1, 10)}, []int{2}, []float64{14, 320}},
		{"aB->Ba", []*tensor.Tensor{a}, []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
		{"...j->...", []*tensor.Tensor{a}, []int{2}, []float64{6, 15}},
		{"...ij,jk->...ik", []*tensor.Tensor{f32([]int{2, 1, 3}, 1, 2, 3, 4, 5, 6), b}, []int{2, 1, 2}, []float64{4, 5, 10, 11}},
		// axes of an ellipsis align at the right
		{"...i,...i->...", []*tensor.Tensor{a, v}, []int{2}, []float64{14, 32}},
		{"...i,i", []*tensor.Tensor{a, v}, []int{2}, []float64{14, 32}},
		{"i...->...i", []*tensor.Tensor{a}, []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
		{"...,...->...", []*tensor.Tensor{a, f32([]int{2, 1}, 1, 10)}, []int{2, 3}, []float64{1, 2, 3, 40, 50, 60}},
		{"ij,ij->ij", []*tensor.Tensor{a, f32([]int{1, 3}, 1, 2, 3)}, []int{2, 3}, []float64{1, 4, 9, 4, 10, 18}},
		{"ij,ij->j", []*tensor.Tensor{f32([]int{1, 3}, 1, 2, 3), a}, []int{3}, []float64{5, 14, 27}},
		{"->", []*tensor.Tensor{f32([]int{}, 7)}, []int{}, []float64{7}},
		{"hdi,hdj->hij", []*tensor.Tensor{f32([]int{2, 1, 2}, 1, 2, 3, 4), f32([]int{2, 1, 2}, 1, 10, 1, 10)}, []int{2, 2, 2}, []float64{1, 10, 2, 20, 3, 30, 4, 40}},
		{"hij,hdj->hdi", []*tensor.Tensor{f32([]int{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8), f32([]int{2, 2, 2}, 1, 0, 0, 1, 1, 1, 2, 0)}, []int{2, 2, 2}, []float64{1, 3, 2, 4, 11, 15, 10, 14}},
		{"ij,kj->ikj", []*tensor.Tensor{sq, sq}, []int{2, 2, 2}, []float64{1, 4, 3, 8, 3, 8, 9, 16}},
		{"ijk,ijl->kl", []*tensor.Tensor{f32([]int{2, 2, 1}, 1, 2, 3, 4), f32([]int{2, 2, 1}, 1, 2, 3, 4)}, []int{1, 1}, []float64{30}},
	} {
		run(t, "Einsum", graph.Attrs{"equation": tt.equation}, tt.shape, tt.want, append(numbers, tensor.Int16, tensor.Uint64), tt.in...)
	}
	for _, tt := range []struct {
		equation, want string
		in             []*tensor.Tensor
	}{
		{"ij,jk->ik", "with 1 inputs", []*tensor.Tensor{a}},
		{"ij", "with 2 inputs", []*tensor.Tensor{a, b}},
		{"ij,ij->ij", "axis sizes 2 and 3", []*tensor.Tensor{a, b}},
		{"ijk->i", `einsum term "ijk" for rank 2`, []*tensor.Tensor{a}},
		{"i->i", `einsum term "i" for rank 2`, []*tensor.Tensor{a}},
		{"ijk...->i", `for rank 2`, []*tensor.Tensor{a}},
		{"i1->i", `einsum term "i1"`, []*tensor.Tensor{a}},
		{"......->", `einsum term`, []*tensor.Tensor{a}},
		{"ij->k", "output label", []*tensor.Tensor{a}},
		{"ij->ii", "output label", []*tensor.Tensor{a}},
		{"ij->i.", `einsum term "i."`, []*tensor.Tensor{a}},
		{"i,i->", "einsum of float32 and float64", []*tensor.Tensor{v, cast(tensor.Float64, v)}},
	} {
		refuse(t, tt.want, "Einsum", graph.Attrs{"equation": tt.equation}, tt.in...)
	}
}

func TestGemm(t *testing.T) {
	t.Parallel()
	a, at := f32([]int{2, 3}, 1, 2, 3, 4, 5, 6), f32([]int{3, 2}, 1, 4, 2, 5, 3, 6)
	b, bt := f32([]int{3, 2}, 1, 0, 0, 1, 1, 1), f32([]int{2, 3}, 1, 0, 1, 0, 1, 1)
	ta, tb := int64(1), int64(1)
	product := []float64{4, 5, 10, 11}
	run(t, "Gemm", nil, []int{2, 2}, product, numbers, a, b)
	run(t, "Gemm", graph.Attrs{"transA": ta}, []int{2, 2}, product, numbers, at, b)
	run(t, "Gemm", graph.Attrs{"transB": tb}, []int{2, 2}, product, numbers, a, bt)
	run(t, "Gemm", graph.Attrs{"transA": ta, "transB": tb}, []int{2, 2}, product, numbers, at, bt)
	run(t, "Gemm", graph.Attrs{"alpha": float32(2)}, []int{2, 2}, []float64{8, 10, 20, 22}, numbers, a, b)
	for _, tt := range []struct {
		c    *tensor.Tensor
		want []float64
	}{
		{f32([]int{2}, 100, 200), []float64{104, 205, 110, 211}},
		{f32([]int{1, 2}, 100, 200), []float64{104, 205, 110, 211}},
		{f32([]int{2, 1}, 100, 200), []float64{104, 105, 210, 211}},
		{f32([]int{2, 2}, 100, 200, 300, 400), []float64{104, 205, 310, 411}},
		{f32([]int{}, 100), []float64{104, 105, 110, 111}},
		{f32([]int{1}, 100), []float64{104, 105, 110, 111}},
		{f32([]int{1, 1}, 100), []float64{104, 105, 110, 111}},
	} {
		run(t, "Gemm", nil, []int{2, 2}, tt.want, numbers, a, b, tt.c)
		half := make([]float64, 4)
		for i, w := range tt.want {
			half[i] = product[i] + (w-product[i])/2
		}
		run(t, "Gemm", graph.Attrs{"beta": float32(.5)}, []int{2, 2}, half, numbers, a, b, tt.c)
		run(t, "Gemm", graph.Attrs{"beta": float32(0)}, []int{2, 2}, product, numbers, a, b, tt.c)
	}
	run(t, "Gemm", graph.Attrs{"alpha": float32(2), "beta": float32(3)}, []int{2, 2}, []float64{308, 610, 320, 622}, numbers, a, b, f32([]int{2}, 100, 200))
	refuse(t, "2x3 times 2x3 with transA=false, transB=false", "Gemm", nil, a, bt)
	refuse(t, "transA=true", "Gemm", graph.Attrs{"transA": ta}, a, b)
	refuse(t, "2x3 times 3", "Gemm", nil, a, f32([]int{3}, 1, 2, 3))
	refuse(t, "3 times 3x2", "Gemm", nil, f32([]int{3}, 1, 2, 3), b)
	refuse(t, "input C of shape 3 for a 2x2 result", "Gemm", nil, a, b, f32([]int{3}, 1, 2, 3))
	refuse(t, "input C of shape 3x1 for a 2x2 result", "Gemm", nil, a, b, f32([]int{3, 1}, 1, 2, 3))
	refuse(t, "input C of shape 1x1x1", "Gemm", nil, a, b, f32([]int{1, 1, 1}, 1))
	refuse(t, "input 1 is missing", "Gemm", nil, a)
}

// TestMatMul broadcasts all but the last two axes; vectors are a row on the left, a column on the
// right.
func TestMatMul(t *testing.T) {
	t.Parallel()
	a, b, v := f32([]int{2, 3}, 1, 2, 3, 4, 5, 6), f32([]int{3, 2}, 1, 0, 0, 1, 1, 1), f32([]int{3}, 1, 2, 3)
	run(t, "MatMul", nil, []int{2, 2}, []float64{4, 5, 10, 11}, numbers, a, b)
	run(t, "MatMul", nil, []int{2}, []float64{4, 5}, numbers, v, b)
	run(t, "MatMul", nil, []int{2}, []float64{14, 32}, numbers, a, v)
	run(t, "MatMul", nil, []int{}, []float64{14}, numbers, v, v)
	rows := f32([]int{2, 1, 3}, 1, 2, 3, 4, 5, 6)
	run(t, "MatMul", nil, []int{2, 1, 2}, []float64{4, 5, 10, 11}, numbers, rows, b)
	two := f32([]int{2, 3, 1}, 1, 0, 0, 0, 0, 10)
	run(t, "MatMul", nil, []int{2, 1, 1}, []float64{1, 60}, numbers, rows, two)
	run(t, "MatMul", nil, []int{2, 2, 1}, []float64{1, 4, 30, 60}, numbers, a, two)
	run(t, "MatMul", nil, []int{2, 2, 1, 1}, []float64{1, 30, 4, 60}, numbers, f32([]int{2, 1, 1, 3}, 1, 2, 3, 4, 5, 6), two)
	run(t, "MatMul", nil, []int{2, 2}, []float64{0, 0, 0, 0}, reals, f32([]int{2, 0}), f32([]int{0, 2}))
	for _, in := range [][]*tensor.Tensor{{a, a}, {v, a}, {a, f32([]int{2}, 1, 2)}, {two, f32([]int{3, 1, 1}, 1, 2, 3)}, {f32([]int{}, 1), v}} {
		if _, err := optest.Run(Defs(), optest.Node{Op: "MatMul", Version: 13}, in...); err == nil {
			t.Errorf("%v times %v", in[0].Shape, in[1].Shape)
		}
	}
}

// TestIntegerProducts subtracts zero points before multiplication: per tensor, per row, per
// column.
func TestIntegerProducts(t *testing.T) {
	t.Parallel()
	u8 := func(shape []int, v ...uint8) *tensor.Tensor { return of(tensor.Uint8, shape, v...) }
	i8 := func(shape []int, v ...int8) *tensor.Tensor { return of(tensor.Int8, shape, v...) }
	a, b := u8([]int{2, 2}, 11, 12, 13, 14), u8([]int{2, 2}, 1, 2, 3, 4)
	product := func(want []float64, in ...*tensor.Tensor) {
		t.Helper()
		for _, fixed := range []bool{false, true} {
			out, err := optest.Run(Defs(), optest.Node{Op: "MatMulInteger", Version: 10, Const: []bool{false, fixed, fixed, fixed}}, in...)
			if err != nil {
				t.Fatal(err)
			}
			if why := optest.Differ(out[0], want, 0, 0); why != "" || out[0].Type != tensor.Int32 {
				t.Errorf("constants %v: %s", fixed, why)
			}
		}
	}
	product([]float64{47, 70, 55, 82}, a, b)
	product([]float64{7, 10, 15, 22}, a, b, u8([]int{}, 10))
	product([]float64{7, 10, 7, 10}, a, b, u8([]int{2}, 10, 12))
	product([]float64{4, 7, 8, 15}, a, b, u8([]int{}, 10), u8([]int{}, 1))
	product([]float64{7, 4, 15, 8}, a, b, u8([]int{}, 10), u8([]int{2}, 0, 2))
	product([]float64{-5, 11}, i8([]int{1, 2}, -1, 2), i8([]int{2, 2}, 1, -3, -2, 4), i8([]int{}, 0))
	product([]float64{7, 10, 5, 8}, u8([]int{2, 1, 2}, 11, 12, 11, 12), u8([]int{2, 2, 2}, 1, 2, 3, 4, 1, 2, 2, 3), u8([]int{}, 10))
	refuse(t, "zero point 3 for 2x2", "MatMulInteger", nil, a, b, u8([]int{3}, 1, 1, 1))
	refuse(t, "zero point 3 for 2x2", "MatMulInteger", nil, a, b, nil, u8([]int{3}, 1, 1, 1))
	refuse(t, "MatMulInteger of float32 and uint8", "MatMulInteger", nil, f32([]int{2, 2}, 1, 2, 3, 4), b)
	refuse(t, "MatMulInteger of uint8 and float32", "MatMulInteger", nil, a, f32([]int{2, 2}, 1, 2, 3, 4))

	// Sums 7 10 15 22 as above; steps of 0.5 x 4 / 2 = 1, by columns 1 and 2, by rows 1 and 3;
	// zero point 3.
	q := func(as, bs *tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{a, as, u8([]int{}, 10), b, bs, u8([]int{}, 0), f32([]int{}, 2), u8([]int{}, 3)}
	}
	half, four := f32([]int{}, .5), f32([]int{}, 4)
	for _, tt := range []struct {
		as, bs *tensor.Tensor
		want   []float64
	}{{half, four, []float64{10, 13, 18, 25}}, {half, f32([]int{2}, 4, 8), []float64{10, 23, 18, 47}}, {f32([]int{2}, .5, 1.5), four, []float64{10, 13, 48, 69}}, {half, f32([]int{}, 80), []float64{143, 203, 255, 255}}} {
		out, err := optest.Run(Defs(), optest.Node{Op: "QLinearMatMul", Version: 10}, q(tt.as, tt.bs)...)
		if err != nil {
			t.Fatal(err)
		}
		if why := optest.Differ(out[0], tt.want, 0, 0); why != "" || out[0].Type != tensor.Uint8 {
			t.Errorf("scales %v, %v: %s", tt.as.Shape, tt.bs.Shape, why)
		}
	}
	three := f32([]int{3}, 1, 1, 1)
	refuse(t, "scales of shapes 3, scalar", "QLinearMatMul", nil, q(three, four)...)
	refuse(t, "scales of shapes scalar, 3", "QLinearMatMul", nil, q(half, three)...)
	in := q(half, four)
	in[6] = three
	refuse(t, "scales of shapes scalar, scalar, 3", "QLinearMatMul", nil, in...)
	in[7] = half
	refuse(t, "output of float32", "QLinearMatMul", nil, in...)
}
