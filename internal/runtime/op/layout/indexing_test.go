package layout

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func ints[T tensor.Number](typ tensor.Type, v ...T) *tensor.Tensor {
	return tensor.From(typ, []int{len(v)}, v)
}

// upTo returns a tensor of a shape with the elements 0, 1, 2 and so on.
func upTo(shape ...int) *tensor.Tensor {
	x := tensor.New(tensor.Int8, shape...)
	for i := range x.Data {
		x.Data[i] = byte(i)
	}
	return x
}

// made runs a geometry on inputs and returns the elements of output 0.
func made(t *testing.T, g Geometry, err error, in ...*tensor.Tensor) (shape []int, elements []int8) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	c := &op.Call{In: in, Out: []*tensor.Tensor{tensor.New(in[0].Type, g.Shape...)}, Node: &graph.Node{}}
	run, err := g.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second run reuses the memory of the first
		clear(c.Out[0].Data)
		if err := run(c); err != nil {
			t.Fatal(err)
		}
	}
	return g.Shape, tensor.Of[int8](c.Out[0])
}

// TestGeometries moves the elements 0, 1, 2 of small tensors; expected results are computed by
// hand.
func TestGeometries(t *testing.T) {
	t.Parallel()
	x := upTo(2, 3) // 0 1 2 / 3 4 5
	idx := ints[int64](tensor.Int64, 2, 0)
	pairs := tensor.From(tensor.Int32, []int{2, 2}, []int32{1, 2, 0, 1})
	rows := tensor.From(tensor.Int64, []int{2, 1}, []int64{2, 0})
	nine := ints[int8](tensor.Int8, 9)
	for _, tt := range []struct {
		name  string
		of    func() (Geometry, error)
		in    []*tensor.Tensor
		shape []int
		want  []int8
	}{
		{"transpose", func() (Geometry, error) { return Transpose([]int{2, 3}, []int{1, 0}) }, []*tensor.Tensor{x}, []int{3, 2}, []int8{0, 3, 1, 4, 2, 5}},
		{"transpose from the end", func() (Geometry, error) { return Transpose([]int{2, 3}, []int{-1, -2}) }, []*tensor.Tensor{x}, []int{3, 2}, []int8{0, 3, 1, 4, 2, 5}},
		{"transpose three", func() (Geometry, error) { return Transpose([]int{1, 2, 3}, []int{2, 0, 1}) }, []*tensor.Tensor{x}, []int{3, 1, 2}, []int8{0, 3, 1, 4, 2, 5}},
		{"expand", func() (Geometry, error) { return Expand([]int{3, 1}, []int{2, 3, 2}) }, []*tensor.Tensor{upTo(3, 1)}, []int{2, 3, 2}, []int8{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}},
		{"window", func() (Geometry, error) { return StridedSlice([]int{2, 3}, []int{1, 2}, []int{1, -1}, []int{1, 3}) }, []*tensor.Tensor{x}, []int{1, 3}, []int8{5, 4, 3}},
		{"every second", func() (Geometry, error) { return StridedSlice([]int{6}, []int{1}, []int{2}, []int{3}) }, []*tensor.Tensor{upTo(6)}, []int{3}, []int8{1, 3, 5}},
		{"two of a window", func() (Geometry, error) { return StridedSlice([]int{6}, []int{4}, []int{-3}, []int{2}) }, []*tensor.Tensor{upTo(6)}, []int{2}, []int8{4, 1}},
		{"one of any step", func() (Geometry, error) { return StridedSlice([]int{6}, []int{4}, []int{1 << 40}, []int{1}) }, []*tensor.Tensor{upTo(6)}, []int{1}, []int8{4}},
		{"tile", func() (Geometry, error) { return Tile([]int{2, 2}, []int{2, 1}) }, []*tensor.Tensor{upTo(2, 2)}, []int{4, 2}, []int8{0, 1, 2, 3, 0, 1, 2, 3}},
		{"tile columns", func() (Geometry, error) { return Tile([]int{2, 2}, []int{1, 2}) }, []*tensor.Tensor{upTo(2, 2)}, []int{2, 4}, []int8{0, 1, 0, 1, 2, 3, 2, 3}},
		{"tile nothing", func() (Geometry, error) { return Tile([]int{2}, []int{0}) }, []*tensor.Tensor{upTo(2)}, []int{0}, []int8{}},
		{"gather columns", func() (Geometry, error) { return Gather([]int{2, 3}, []int{2}, 1, 0, false) }, []*tensor.Tensor{x, idx}, []int{2, 2}, []int8{2, 0, 5, 3}},
		{"gather rows", func() (Geometry, error) { return Gather([]int{2, 3}, []int{2}, 0, 0, true) }, []*tensor.Tensor{x, ints[int8](tensor.Int8, -1, 0)}, []int{2, 3}, []int8{3, 4, 5, 0, 1, 2}},
		{"gather by batch", func() (Geometry, error) { return Gather([]int{2, 3}, []int{2, 2}, 1, 1, false) }, []*tensor.Tensor{x, tensor.From(tensor.Int32, []int{2, 2}, []int32{0, 2, 1, 1})}, []int{2, 2}, []int8{0, 2, 4, 4}},
		{"gather in batches of rows", func() (Geometry, error) { return Gather([]int{2, 2, 3}, []int{2, 1}, 2, 1, false) }, []*tensor.Tensor{upTo(2, 2, 3), tensor.From(tensor.Int32, []int{2, 1}, []int32{0, 2})}, []int{2, 2, 1}, []int8{0, 3, 8, 11}},
		{"tuples", func() (Geometry, error) { return GatherND([]int{2, 3}, []int{2, 2}, 0, false) }, []*tensor.Tensor{x, pairs}, []int{2}, []int8{5, 1}},
		{"short tuples", func() (Geometry, error) { return GatherND([]int{3, 2}, []int{2, 1}, 0, false) }, []*tensor.Tensor{upTo(3, 2), rows}, []int{2, 2}, []int8{4, 5, 0, 1}},
		{"tuples by batch", func() (Geometry, error) { return GatherND([]int{2, 3}, []int{2, 1}, 1, true) }, []*tensor.Tensor{x, tensor.From(tensor.Int64, []int{2, 1}, []int64{-1, 0})}, []int{2}, []int8{2, 3}},
		{"map", func() (Geometry, error) {
			return Map([]int{2, 3}, []int{2, 2}, func(i int) []int { return [][]int{{1, -1}, {0, 2}}[i] }, 1, nil), nil
		}, []*tensor.Tensor{x, nine}, []int{2, 2}, []int8{3, 5, 9, 9}},
		{"map without a value", func() (Geometry, error) {
			return Map([]int{3}, []int{2}, func(int) []int { return []int{-1, 2} }, 1, ints[int8](tensor.Int8, 7)), nil
		}, []*tensor.Tensor{upTo(3)}, []int{2}, []int8{7, 2}},
		{"concat", func() (Geometry, error) { return Concat([]*tensor.Tensor{x, upTo(2, 1)}, 1) }, []*tensor.Tensor{x, upTo(2, 1)}, []int{2, 4}, []int8{0, 1, 2, 0, 3, 4, 5, 1}},
		{"concat rows", func() (Geometry, error) { return Concat([]*tensor.Tensor{upTo(1, 2), upTo(2, 2)}, 0) }, []*tensor.Tensor{upTo(1, 2), upTo(2, 2)}, []int{3, 2}, []int8{0, 1, 0, 1, 2, 3}},
		{"stack before", func() (Geometry, error) { return Stack([]*tensor.Tensor{upTo(2), upTo(2)}, 0) }, []*tensor.Tensor{upTo(2), upTo(2)}, []int{2, 2}, []int8{0, 1, 0, 1}},
		{"stack behind", func() (Geometry, error) { return Stack([]*tensor.Tensor{upTo(2), upTo(2)}, -1) }, []*tensor.Tensor{upTo(2), upTo(2)}, []int{2, 2}, []int8{0, 0, 1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, err := tt.of()
			shape, got := made(t, g, err, tt.in...)
			if diff := gocmp.Diff(tt.shape, shape); diff != "" {
				t.Error(diff)
			}
			if diff := gocmp.Diff(tt.want, append([]int8{}, got...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGeometriesRefused(t *testing.T) {
	t.Parallel()
	a, b := upTo(2, 3), upTo(2, 2)
	f := tensor.New(tensor.Float32, 2, 3)
	for want, of := range map[string]func() (Geometry, error){
		"permutation [0] for rank 2":                     func() (Geometry, error) { return Transpose([]int{2, 3}, []int{0}) },
		"[0 0] is not a permutation":                     func() (Geometry, error) { return Transpose([]int{2, 3}, []int{0, 0}) },
		"[0 -2] is not a permutation":                    func() (Geometry, error) { return Transpose([]int{2, 3}, []int{0, -2}) },
		"[0 2] is not a permutation":                     func() (Geometry, error) { return Transpose([]int{2, 3}, []int{0, 2}) },
		"3 repeats for rank 2":                           func() (Geometry, error) { return Tile([]int{2, 3}, []int{1, 1, 1}) },
		"cannot repeat -1 times":                         func() (Geometry, error) { return Tile([]int{2}, []int{-1}) },
		"cannot repeat 9223372036854775807 times":        func() (Geometry, error) { return Tile([]int{2}, []int{1<<63 - 1}) },
		"indices have rank 0 with 0":                     func() (Geometry, error) { return GatherND([]int{2}, nil, 0, false) },
		"indices have rank 1 with 1 batch":               func() (Geometry, error) { return GatherND([]int{2}, []int{1}, 1, false) },
		"indices have rank 1 with -1":                    func() (Geometry, error) { return GatherND([]int{2}, []int{1}, -1, false) },
		"indices have rank 3 with 2 batch":               func() (Geometry, error) { return GatherND([]int{2}, []int{2, 1, 1}, 2, false) },
		"indices of length 3 do not fit data of rank 2":  func() (Geometry, error) { return GatherND([]int{2, 3}, []int{1, 3}, 0, false) },
		"indices of length 2 do not fit data of rank 2":  func() (Geometry, error) { return GatherND([]int{2, 3}, []int{2, 2}, 1, false) },
		"batch dimensions of 2x3 and 3x1 differ":         func() (Geometry, error) { return GatherND([]int{2, 3}, []int{3, 1}, 1, false) },
		"input 1 is float32 2x3 and input 0 is int8 2x3": func() (Geometry, error) { return Concat([]*tensor.Tensor{a, f}, 0) },
		"input 1 is int8 2 and input 0 is int8 2x3":      func() (Geometry, error) { return Concat([]*tensor.Tensor{a, upTo(2)}, 0) },
		"input 1 is 2x2: dimension 1 does not match 3":   func() (Geometry, error) { return Concat([]*tensor.Tensor{a, b}, 0) },
		"input 2 is 2x2: dimension 1 does not match 3":   func() (Geometry, error) { return Concat([]*tensor.Tensor{a, a, b}, 0) },
		"input 1 differs from input 0, int8 2x3":         func() (Geometry, error) { return Stack([]*tensor.Tensor{a, b}, 0) },
		"input 2 differs from input 0, int8 2x3":         func() (Geometry, error) { return Stack([]*tensor.Tensor{a, a, nil}, 0) },
		"axis 3 is outside rank 3":                       func() (Geometry, error) { return Stack([]*tensor.Tensor{a, a}, 3) },
		"axis -4 is outside rank 3":                      func() (Geometry, error) { return Stack([]*tensor.Tensor{a, a}, -4) },
	} {
		if g, err := of(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %q", g.Shape, err, want)
		}
	}
	if _, err := Stack([]*tensor.Tensor{a, f}, 0); err == nil {
		t.Error("two types are stacked")
	}
	if _, err := Expand([]int{2}, []int{3}); err == nil {
		t.Error("2 expands to 3")
	}
	// Tables of a map are bounded: 8 bytes for each entry of each axis.
	for limit, ok := range map[int]bool{40: true, 39: false} {
		c := &op.Call{Limit: limit}
		_, err := Map([]int{1, 1}, []int{2, 3}, func(i int) []int { return make([]int, 2+i) }, 1, nil).Run(c)
		if (err == nil) != ok {
			t.Errorf("limit of %d: %v", limit, err)
		}
	}
}

func TestPositions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		x    *tensor.Tensor
		wrap bool
		want []int
		text string
	}{
		{ints[int64](tensor.Int64, 0, 3), false, []int{0, 3}, ""},
		{ints[int32](tensor.Int32, -1, -4), true, []int{3, 0}, ""},
		{ints[uint8](tensor.Uint8, 3), false, []int{3}, ""},
		{ints[int64](tensor.Int64, 4), true, nil, "index 4 is outside 4 elements"},
		{ints[int32](tensor.Int32, -1), false, nil, "index -1 is outside 4 elements"},
		{ints[int16](tensor.Int16, -5), true, nil, "index -5 is outside 4 elements"},
		{ints[float32](tensor.Float32, 1), false, nil, "integers are expected"},
	} {
		got, err := Positions(nil, []int{9, 9}, tt.x, 4, tt.wrap)
		if diff := gocmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%v: %v %s", tt.x.Type, err, diff)
		}
	}
	g, err := NewTuples([]int{2, 3}, []int{1, 2}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	for want, x := range map[string]*tensor.Tensor{
		"index 2 is outside 2 elements":  tensor.From(tensor.Int64, []int{1, 2}, []int64{2, 0}),
		"index 3 is outside 3 elements":  tensor.From(tensor.Int32, []int{1, 2}, []int32{0, 3}),
		"index -1 is outside 3 elements": tensor.From(tensor.Int64, []int{1, 2}, []int64{0, -1}),
		"integers are expected":          tensor.From(tensor.Float32, []int{1, 2}, []float32{0, 0}),
	} {
		if _, err := g.Offsets(x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTruths finds non-zero elements of every kind of type, beyond one block of 256.
func TestTruths(t *testing.T) {
	t.Parallel()
	long := tensor.New(tensor.Int16, 3, 200)
	v := tensor.Of[int16](long)
	v[0], v[255], v[256], v[599] = 1, -1, 2, 3
	for _, tt := range []struct {
		x    *tensor.Tensor
		want []int64 // coordinates, element by element
	}{
		{long, []int64{0, 0, 1, 55, 1, 56, 2, 199}},
		{tensor.From(tensor.Complex64, []int{1, 2}, []complex64{0, 1i}), []int64{0, 1}},
		{tensor.From(tensor.Complex128, []int{2, 1}, []complex128{1, 0}), []int64{0, 0}},
		{&tensor.Tensor{Type: tensor.String, Shape: []int{1, 2}, Data: []byte{}, Strings: []string{"", "a"}}, []int64{0, 1}},
		{tensor.From(tensor.Bool, []int{2, 2}, []uint8{0, 0, 1, 0}), []int64{1, 0}},
	} {
		n, err := CountNonZero(tt.x)
		if err != nil || n != len(tt.want)/2 {
			t.Fatalf("%v: %d, %v", tt.x.Type, n, err)
		}
		by, turned := make([]int64, 2*n), make([]int64, 2*n)
		if err := errors.Join(NonZeroCoordinates(by, tt.x, 2, 1), NonZeroCoordinates(turned, tt.x, 1, n)); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(tt.want, by); diff != "" {
			t.Errorf("%v: %s", tt.x.Type, diff)
		}
		for k := range n {
			if turned[k] != by[2*k] || turned[n+k] != by[2*k+1] {
				t.Errorf("%v: by axis %v", tt.x.Type, turned)
			}
		}
	}
	if _, err := CountNonZero(&tensor.Tensor{Type: tensor.Int8, Shape: []int{1}}); !errors.Is(err, op.ErrDynamic) {
		t.Errorf("elements that are not known: %v", err)
	}
	if _, err := CountNonZero(&tensor.Tensor{Type: tensor.Sequence, Elems: []*tensor.Tensor{}, Data: []byte{}}); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("a sequence has a truth: %v", err)
	}
}

func TestOneHot(t *testing.T) {
	t.Parallel()
	// Indices 2, 0 with depth 3 and 2 inner elements: offsets computed by hand.
	var at []int
	for i, k := range []int{2, 0} {
		at = append(at, OneHotOffset(i, k, 3, 2))
	}
	if diff := gocmp.Diff([]int{4, 1}, at); diff != "" {
		t.Error(diff)
	}
	// second row: 6 to 11; entry 1 of the axis: 8, 9; the second
	if got := OneHotOffset(3, 1, 3, 2); got != 9 {
		t.Error(got)
	}
	c := &op.Call{Out: []*tensor.Tensor{tensor.New(tensor.Int8, 3, 2)}}
	if err := OneHot(c, Of(ints[int8](tensor.Int8, 5)), Of(ints[int8](tensor.Int8, -1)), at); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]int8{-1, 5, -1, -1, 5, -1}, tensor.Of[int8](c.Out[0])); diff != "" {
		t.Error(diff)
	}
	c.Out[0] = tensor.New(tensor.Int8, 0)
	if err := OneHot(c, Of(ints[int8](tensor.Int8, 5)), Of(ints[int8](tensor.Int8, -1)), nil); err != nil {
		t.Error(err)
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	c := &op.Call{
		In:  []*tensor.Tensor{tensor.From(tensor.Bool, []int{2, 1}, []uint8{1, 0}), upTo(1, 3), ints[int8](tensor.Int8, -1)},
		Out: []*tensor.Tensor{tensor.New(tensor.Int8, 2, 3)},
	}
	w, err := broadcast.New([]int{2, 3}, []int{2, 1}, []int{1, 3}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	if err := Select(w, 1)(c); err != nil {
		t.Error(err)
	}
	if diff := gocmp.Diff([]int8{0, 1, 2, -1, -1, -1}, tensor.Of[int8](c.Out[0])); diff != "" {
		t.Error(diff)
	}
}

// TestPickShort selects along walks with short runs, and others.
func TestPickShort(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		out := rapid.SliceOfN(rapid.IntRange(1, 9), 1, 4).Draw(t, "shape")
		operand := func(typ tensor.Type) *tensor.Tensor {
			shape := slices.Clone(out)
			for i := range shape {
				if rapid.Bool().Draw(t, "stands") {
					shape[i] = 1
				}
			}
			x := tensor.New(typ, shape...)
			step := rapid.IntRange(1, 9).Draw(t, "step")
			tensor.Fill(x, func(i int) float64 {
				if typ == tensor.Bool {
					return float64(i * step % 7 % 2)
				}
				return float64(i*step%101 - 50)
			})
			return x
		}
		c := &op.Call{Pool: pool, In: []*tensor.Tensor{operand(tensor.Bool), operand(tensor.Int32), operand(tensor.Int32)}, Out: []*tensor.Tensor{tensor.New(tensor.Int32, out...)}}
		w, err := broadcast.New(out, c.In[0].Shape, c.In[1].Shape, c.In[2].Shape)
		if err != nil {
			t.Fatal(err)
		}
		if err := Select(w, 40)(c); err != nil {
			t.Fatal(err)
		}
		at := make([]int, len(out))
		for _, got := range tensor.Of[int32](c.Out[0]) {
			var from [3]int
			for k, x := range c.In {
				for d, n := range x.Shape {
					from[k] = from[k]*n + at[d]%n
				}
			}
			want := tensor.At(c.In[2], from[2])
			if tensor.At(c.In[0], from[0]) != 0 {
				want = tensor.At(c.In[1], from[1])
			}
			if float64(got) != want {
				t.Fatalf("element %v of %v is %d, want %v", at, out, got, want)
			}
			tensor.Next(at, out)
		}
	})
}

// TestTopK sorts lines along the first axis, ties by position.
func TestTopK(t *testing.T) {
	t.Parallel()
	x := tensor.From(tensor.Int8, []int{3, 2}, []int8{1, 5, 7, 5, 3, 9})
	for _, tt := range []struct {
		largest bool
		values  []int8
		places  []int64
	}{{true, []int8{7, 9, 3, 5}, []int64{1, 2, 2, 0}}, {false, []int8{1, 5, 3, 5}, []int64{0, 0, 2, 1}}} {
		for _, want := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
			c := &op.Call{In: []*tensor.Tensor{x}, Out: make([]*tensor.Tensor, 2)}
			if want[0] {
				c.Out[0] = tensor.New(tensor.Int8, 2, 2)
			}
			if want[1] {
				c.Out[1] = tensor.New(tensor.Int64, 2, 2)
			}
			run, err := TopK([]int{3, 2}, 0, tt.largest)
			if err == nil {
				err = run(c)
			}
			if err != nil {
				t.Fatal(err)
			}
			if want[0] && !gocmp.Equal(tensor.Of[int8](c.Out[0]), tt.values) {
				t.Errorf("values %v, want %v", tensor.Of[int8](c.Out[0]), tt.values)
			}
			if want[1] && !gocmp.Equal(tensor.Of[int64](c.Out[1]), tt.places) {
				t.Errorf("places %v, want %v", tensor.Of[int64](c.Out[1]), tt.places)
			}
		}
	}
	if l := LinesOf([]int{2, 3, 4}, 1); l.Outer != 2 || l.N != 3 || l.Inner != 4 {
		t.Errorf("%+v", l)
	}
	run, err := TopK([]int{1}, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(&op.Call{In: []*tensor.Tensor{tensor.New(tensor.Complex64, 1)}, Out: []*tensor.Tensor{tensor.New(tensor.Complex64, 1)}}); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("complex numbers have an order: %v", err)
	}
	ordered := map[tensor.Type]bool{
		tensor.Float32: true, tensor.Float16: true, tensor.Bool: true, tensor.String: true, tensor.Int8: true, tensor.Uint64: true,
		tensor.Int4: false, tensor.Complex64: false, tensor.Sequence: false,
	}
	for typ, want := range ordered {
		if Sortable(typ) != want {
			t.Errorf("%v has an order: %v", typ, !want)
		}
	}
	// Keys of a long tensor continue after a block of 256, in the given buffer.
	long := tensor.New(tensor.Uint8, 300)
	long.Data[256], long.Data[299] = 7, 9
	buf := make([]uint64, 0, 300)
	k, err := Keys(buf, long)
	if err != nil || len(k) != 300 || k[256] != 7 || k[299] != 9 || k[255] != 0 || &k[0] != &buf[:1][0] {
		t.Errorf("%d keys, %v", len(k), err)
	}
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reduction string
		// 1 2 3 4 5 6 in blocks of 2: block 2 gets -3 9, -1 is skipped, block 0 gets 1 1
		want []int8
	}{
		{"", []int8{1, 1, 3, 4, -3, 9}},
		{"none", []int8{1, 1, 3, 4, -3, 9}},
		{"add", []int8{2, 3, 3, 4, 2, 15}},
		{"mul", []int8{1, 2, 3, 4, -15, 54}},
		{"max", []int8{1, 2, 3, 4, 5, 9}},
		{"min", []int8{1, 1, 3, 4, -3, 6}},
	} {
		f, err := Updater(tensor.Int8, tt.reduction)
		if err != nil {
			t.Fatal(err)
		}
		y := ints[int8](tensor.Int8, 1, 2, 3, 4, 5, 6)
		f(y, ints[int8](tensor.Int8, -3, 9, 50, 50, 1, 1), []int{2, -1, 0}, 2)
		if diff := gocmp.Diff(tt.want, tensor.Of[int8](y)); diff != "" {
			t.Errorf("%q: %s", tt.reduction, diff)
		}
	}
	// float16 and bfloat16: 1.5 + 2 = 3.5; booleans by "or" and "and".
	for typ, v := range map[tensor.Type][3]uint16{tensor.Float16: {0x3e00, 0x4000, 0x4300}, tensor.BFloat16: {0x3fc0, 0x4000, 0x4060}} {
		f, err := Updater(typ, "add")
		if err != nil {
			t.Fatal(err)
		}
		y := tensor.From(typ, []int{1}, v[:1])
		if f(y, tensor.From(typ, []int{1}, v[1:2]), []int{0}, 1); tensor.Of[uint16](y)[0] != v[2] {
			t.Errorf("%v: %#x", typ, tensor.Of[uint16](y)[0])
		}
	}
	for reduction, want := range map[string][]uint8{"add": {0, 1, 1, 1}, "max": {0, 1, 1, 1}, "mul": {0, 0, 0, 1}, "min": {0, 0, 0, 1}} {
		f, err := Updater(tensor.Bool, reduction)
		if err != nil {
			t.Fatal(err)
		}
		y := tensor.From(tensor.Bool, []int{4}, []uint8{0, 0, 1, 1})
		if f(y, tensor.From(tensor.Bool, []int{4}, []uint8{0, 1, 0, 1}), []int{0, 1, 2, 3}, 1); !gocmp.Equal(y.Data, want) {
			t.Errorf("%s of truth values: %v, want %v", reduction, y.Data, want)
		}
	}
	if _, err := Updater(tensor.Int8, "sum"); err == nil || err.Error() != `reduction is "sum"` {
		t.Error(err)
	}
	if _, err := Updater(tensor.Complex64, "add"); !errors.Is(err, op.ErrUnsupported) {
		t.Error(err)
	}
	if f, err := Updater(tensor.String, "none"); err != nil || f == nil {
		t.Error(err)
	}
}

// TestUpdatedWindow writes an update into a tensor, clamped so that it fits.
func TestUpdatedWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		start []int
		at    int
		want  []int8
	}{
		{[]int{0, 1}, 1, []int8{0, 9, 9, 3, 4, 5}},
		{[]int{1, 0}, 3, []int8{0, 1, 2, 9, 9, 5}},
		{[]int{-5, 9}, 1, []int8{0, 9, 9, 3, 4, 5}},
		{[]int{7, -1}, 3, []int8{0, 1, 2, 9, 9, 5}},
	} {
		if got := Fitted(tt.start, []int{2, 3}, []int{1, 2}); got != tt.at {
			t.Errorf("start %v is element %d, want %d", tt.start, got, tt.at)
		}
		run, err := DynamicUpdateSlice([]int{2, 3}, []int{1, 2}, func(*op.Call) ([]int, error) { return tt.start, nil })
		if err != nil {
			t.Fatal(err)
		}
		c := &op.Call{In: []*tensor.Tensor{upTo(2, 3), tensor.From(tensor.Int8, []int{1, 2}, []int8{9, 9})}, Out: []*tensor.Tensor{tensor.New(tensor.Int8, 2, 3)}}
		if err := run(c); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(tt.want, tensor.Of[int8](c.Out[0])); diff != "" {
			t.Errorf("start %v: %s", tt.start, diff)
		}
	}
	if _, err := DynamicUpdateSlice([]int{2, 3}, []int{2}, nil); err == nil || err.Error() != "update of rank 1 for rank 2" {
		t.Error(err)
	}
	if _, err := DynamicUpdateSlice([]int{2, 3}, []int{2, 4}, nil); err == nil || err.Error() != "update 2x4 is larger than 2x3" {
		t.Error(err)
	}
	if _, err := DynamicUpdateSlice([]int{2, 3}, []int{2, 3}, nil); err != nil {
		t.Error(err)
	}
	wrong := errors.New("no start")
	run, err := DynamicUpdateSlice([]int{2}, []int{1}, func(*op.Call) ([]int, error) { return nil, wrong })
	if err != nil || !errors.Is(run(&op.Call{}), wrong) {
		t.Error("the start's error is lost")
	}
}

func TestReversedSequences(t *testing.T) {
	t.Parallel()
	reverse := func(lengths ...int32) (*tensor.Tensor, error) {
		run, err := ReversedSequences([]int{2, 3}, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := &op.Call{In: []*tensor.Tensor{upTo(2, 3), ints(tensor.Int32, lengths...)}, Out: []*tensor.Tensor{tensor.New(tensor.Int8, 2, 3)}}
		return c.Out[0], run(c)
	}
	for _, tt := range []struct{ lengths, want []int }{{[]int{3, 2}, []int{2, 1, 0, 4, 3, 5}}, {[]int{0, 1}, []int{0, 1, 2, 3, 4, 5}}} {
		y, err := reverse(int32(tt.lengths[0]), int32(tt.lengths[1]))
		for i, want := range tt.want {
			if err != nil || int(y.Data[i]) != want {
				t.Fatalf("lengths %v: %v, %v", tt.lengths, y.Data, err)
			}
		}
	}
	for want, lengths := range map[string][]int32{"length 4 of sequence 1 is outside 0 to 3": {0, 4}, "length -1 of sequence 0 is outside 0 to 3": {-1, 0}} {
		if _, err := reverse(lengths...); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	run, err := ReversedSequences([]int{2, 2}, 0, 1) // time before batch
	if err != nil {
		t.Fatal(err)
	}
	c := &op.Call{In: []*tensor.Tensor{upTo(2, 2), ints[int64](tensor.Int64, 1, 2)}, Out: []*tensor.Tensor{tensor.New(tensor.Int8, 2, 2)}}
	if err := run(c); err != nil || !gocmp.Equal(c.Out[0].Data, []byte{0, 3, 2, 1}) {
		t.Errorf("%v, %v", c.Out[0].Data, err)
	}
}

func TestCutAndParts(t *testing.T) {
	t.Parallel()
	x := upTo(2, 3)
	c := &op.Call{In: []*tensor.Tensor{nil, x}, Out: []*tensor.Tensor{{}, nil, {}}}
	SetSplitOutputs(c, x, 1, []int{1, 0, 2})
	if !gocmp.Equal(c.Out[0].Shape, []int{2, 1}) || !gocmp.Equal(c.Out[2].Shape, []int{2, 2}) || c.Out[2].Type != tensor.Int8 || !gocmp.Equal(x.Shape, []int{2, 3}) {
		t.Errorf("%+v", c.Out)
	}
	c.Out[0].Alloc()
	c.Out[2].Alloc()
	run, err := Split(c, 1, x.Shape, 1, []int{1, 0, 2})
	if err == nil {
		err = run(c)
	}
	if err != nil || !gocmp.Equal(c.Out[0].Data, []byte{0, 3}) || !gocmp.Equal(c.Out[2].Data, []byte{1, 2, 4, 5}) {
		t.Errorf("%v %v %v", c.Out[0].Data, c.Out[2].Data, err)
	}
	if got := Sizes([]*tensor.Tensor{x, upTo(2, 1)}, 1); !gocmp.Equal(got, []int{3, 1}) {
		t.Error(got)
	}
	if Outer([]int{2, 3, 5}, 1) != 2 || Inner([]int{2, 3, 5}, 1) != 5 || Outer([]int{2}, 0) != 1 || Inner([]int{2}, 0) != 1 {
		t.Error("dimensions before and after an axis")
	}
	if diff := gocmp.Diff([]int{-1, 0, -1, 1, -1}, SpreadAxis(3, 5, 1, 2)); diff != "" {
		t.Error(diff)
	}
	if diff := gocmp.Diff([]int{1, 2}, SpreadAxis(4, 2, -1, 1)); diff != "" {
		t.Error(diff)
	}
}

func TestScalars(t *testing.T) {
	t.Parallel()
	if v, err := Scalar(ints[int32](tensor.Int32, -4)); v != -4 || err != nil {
		t.Error(v, err)
	}
	if _, err := Scalar(ints[int32](tensor.Int32, 1, 2)); err == nil || err.Error() != "2 elements where one is expected" {
		t.Error(err)
	}
	if _, err := Scalar(nil); err == nil {
		t.Error("nothing is a number")
	}
	for _, x := range []*tensor.Tensor{tensor.New(tensor.Int64, 2), tensor.New(tensor.Int32, 2), tensor.New(tensor.Int16, 2)} {
		if err := PutInts(x, []int{-3, 7}); err != nil {
			t.Fatal(err)
		}
		got, err := op.Ints(x)
		if err != nil || !gocmp.Equal(got, []int{-3, 7}) {
			t.Errorf("%v: %v %v", x.Type, got, err)
		}
		if err := PutInts(x, []int{1}); err == nil || err.Error() != "shape has changed since planning" {
			t.Error(err)
		}
	}
}

// TestCopies checks that copies share only data that is never written.
func TestCopies(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 3, 1<<18 - 1, 1 << 18, 1<<18 + 5} {
		src, dst := tensor.New(tensor.Uint8, n), tensor.New(tensor.Uint8, n)
		for i := range src.Data {
			src.Data[i] = byte(i*7 + 1)
		}
		Copy(nil, dst, src)
		if !bytes.Equal(src.Data, dst.Data) {
			t.Errorf("%d bytes differ", n)
		}
		if Aliased(dst, src) || n > 0 && !Aliased(src, src) {
			t.Errorf("%d bytes: aliased", n)
		}
	}
	s := &tensor.Tensor{Type: tensor.String, Strings: []string{"a", "b"}}
	d := &tensor.Tensor{Type: tensor.String, Strings: make([]string, 2)}
	if Copy(nil, d, s); !gocmp.Equal(d.Strings, s.Strings) || &d.Strings[0] == &s.Strings[0] {
		t.Errorf("strings %q", d.Strings)
	}
	q := &tensor.Tensor{Type: tensor.Sequence, Elem: tensor.Int8, Elems: []*tensor.Tensor{upTo(1)}}
	e := &tensor.Tensor{Type: tensor.Sequence}
	if Copy(nil, e, q); e.Elem != tensor.Int8 || len(e.Elems) != 1 {
		t.Errorf("sequence %+v", e)
	}
	if w := Of(tensor.New(tensor.Int4, 3)); w.Width != 1 || len(w.Bytes) != 2 {
		t.Errorf("half bytes are moved as %+v", w)
	}
	if w := Of(tensor.New(tensor.Complex128, 1)); w.Width != 16 {
		t.Errorf("width %d", w.Width)
	}
}

// TestPlanned checks that preparation happens once when the parameters are constant, and in each
// run otherwise.
func TestPlanned(t *testing.T) {
	t.Parallel()
	x := upTo(1)
	for _, tt := range []struct {
		name   string
		fixed  []bool
		in     []*tensor.Tensor
		params []int
		builds int // calls during preparation and two runs
	}{
		{"all constant", []bool{false, true, true}, []*tensor.Tensor{x, x, x}, nil, 1},
		{"one is not", []bool{false, true, false}, []*tensor.Tensor{x, x, x}, nil, 2},
		{"it does not decide", []bool{false, true, false}, []*tensor.Tensor{x, x, x}, []int{1}, 1},
		{"it is absent", []bool{false, true, false}, []*tensor.Tensor{x, x, nil}, nil, 1},
		{"the first decides", []bool{false, true, true}, []*tensor.Tensor{x, x, x}, []int{0}, 2},
		{"none decides", []bool{false, false, false}, []*tensor.Tensor{x, x, x}, []int{None}, 1},
	} {
		builds, runs := 0, 0
		c := &op.Call{In: tt.in, Fixed: tt.fixed}
		run, err := PrepareOnce(func(*op.Call) (op.Run, error) {
			builds++
			return func(*op.Call) error { runs++; return nil }, nil
		}, tt.params...)(c)
		if err = errors.Join(err, run(c), run(c)); err != nil {
			t.Fatal(err)
		}
		if builds != tt.builds || runs != 2 {
			t.Errorf("%s: built %d times, want %d; run %d times", tt.name, builds, tt.builds, runs)
		}
	}
	wrong := errors.New("wrong")
	run, err := PrepareOnce(func(*op.Call) (op.Run, error) { return nil, wrong })(&op.Call{In: []*tensor.Tensor{x, x}, Fixed: []bool{false, false}})
	if err != nil || !errors.Is(run(&op.Call{}), wrong) {
		t.Error("the error of building is lost")
	}
}

// TestDef infers and runs with the same reading of the parameters.
func TestDef(t *testing.T) {
	t.Parallel()
	d := Def("d", "Turn", 1, func(c *op.Call) (Geometry, error) { return Transpose(c.In[0].Shape, []int{1, 0}) })
	if d.Domain != "d" || d.Name != "Turn" {
		t.Errorf("%s:%s", d.Domain, d.Name)
	}
	c := &op.Call{In: []*tensor.Tensor{upTo(2, 3)}, Out: []*tensor.Tensor{{}}, Node: &graph.Node{}}
	if err := d.Infer(c); err != nil || c.Out[0].Type != tensor.Int8 || !gocmp.Equal(c.Out[0].Shape, []int{3, 2}) {
		t.Fatalf("%+v, %v", c.Out[0], err)
	}
	c.Out[0].Alloc()
	run, err := d.Prepare(c)
	if err = errors.Join(err, run(c)); err != nil || !gocmp.Equal(c.Out[0].Data, []byte{0, 3, 1, 4, 2, 5}) {
		t.Errorf("%v, %v", c.Out[0].Data, err)
	}
	if err := d.Infer(&op.Call{In: []*tensor.Tensor{nil}}); err == nil || err.Error() != "input 0 is missing" {
		t.Error(err)
	}
	bad := &op.Call{In: []*tensor.Tensor{upTo(2)}, Out: []*tensor.Tensor{tensor.New(tensor.Int8, 2)}, Node: &graph.Node{}}
	if d.Infer(bad) == nil {
		t.Error("rank 1 is turned")
	}
	if _, err := d.Prepare(bad); err == nil {
		t.Error("rank 1 is turned")
	}
	same := &op.Call{In: []*tensor.Tensor{upTo(2)}, Out: []*tensor.Tensor{{}}}
	if err := SameAsInput(same); err != nil || !gocmp.Equal(same.Out[0].Shape, []int{2}) || same.Out[0].Type != tensor.Int8 {
		t.Errorf("%+v", same.Out[0])
	}
	if same.Out[0].Shape[0] = 7; same.In[0].Shape[0] != 2 {
		t.Error("the shapes share memory")
	}
}

// TestWidened transposes int4: 1 -2 3 / 4 -5 6 becomes 1 4 -2 -5 3 6.
func TestWidened(t *testing.T) {
	t.Parallel()
	x := &tensor.Tensor{Type: tensor.Int4, Shape: []int{2, 3}, Data: []byte{0xe1, 0x43, 0x6b}}
	y := tensor.New(tensor.Int4, 3, 2)
	d := Def("", "Turn", 1, func(c *op.Call) (Geometry, error) { return Transpose(c.In[0].Shape, []int{1, 0}) })
	c := &op.Call{In: []*tensor.Tensor{x}, Out: []*tensor.Tensor{y, nil}, Node: &graph.Node{}}
	run, err := d.Prepare(c)
	for range 2 {
		if err = errors.Join(err, run(c)); err != nil || !gocmp.Equal(y.Data, []byte{0x41, 0xbe, 0x63}) {
			t.Fatalf("% x, %v", y.Data, err)
		}
	}
	for typ, wide := range map[tensor.Type]tensor.Type{
		tensor.Int4: tensor.Int8, tensor.Int2: tensor.Int8, tensor.Uint4: tensor.Uint8, tensor.Uint2: tensor.Uint8, tensor.Float4E2M1: tensor.Uint8, tensor.Int8: tensor.Int8, tensor.Float32: tensor.Float32,
	} {
		x := tensor.New(typ, 5)
		if Packed(x) != (typ != wide) || Unpack(x).Type != wide || Unpack(x).Len() != 5 {
			t.Errorf("%v is unpacked to %v", typ, Unpack(x).Type)
		}
	}
	if Packed(nil) || Unpack(nil) != nil || Unpack(&tensor.Tensor{Type: tensor.Int2, Shape: []int{3}}).Len() != 3 {
		t.Error("what is absent or not known")
	}
	bits := &tensor.Tensor{Type: tensor.Int2, Shape: []int{5}, Data: []byte{0b_11_10_01_00, 0b01}}
	if got := tensor.Of[int8](Unpack(bits)); !gocmp.Equal(got, []int8{0, 1, -2, -1, 1}) {
		t.Errorf("quarters of a byte: %v", got)
	}
	for _, typ := range []tensor.Type{tensor.Sequence, tensor.Resource} {
		if _, err := d.Prepare(&op.Call{In: []*tensor.Tensor{x}, Out: []*tensor.Tensor{{Type: typ}}}); !errors.Is(err, op.ErrUnsupported) {
			t.Errorf("a result of type %v: %v", typ, err)
		}
	}
	// A result whose shape the inner operator determines is packed in its new shape.
	dynamic := WithUnpacked(op.Simple(func(c *op.Call) error {
		z, err := c.Make(0, tensor.Int8, []int{3})
		if err == nil {
			copy(z.Data, []byte{1, 0xff, 3})
		}
		return err
	}))
	for _, out := range []*tensor.Tensor{{Type: tensor.Int4, Shape: []int{9}}} {
		c := &op.Call{In: []*tensor.Tensor{x}, Out: []*tensor.Tensor{out}}
		run, err := dynamic(c)
		if err = errors.Join(err, run(c)); err != nil || !gocmp.Equal(out.Data, []byte{0xf1, 0x03}) || !gocmp.Equal(out.Shape, []int{3}) {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
