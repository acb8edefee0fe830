package index

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func i64(shape []int, v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, shape, v) }

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

// counted makes a tensor whose element i has the bits of i+1.
func counted(t tensor.Type, shape ...int) *tensor.Tensor {
	x := tensor.New(t, shape...)
	for i := range x.Len() {
		switch bits := t.Bits(); {
		case bits == 0:
			x.Strings[i] = string(rune('a' + i))
		case bits < 8:
			x.Data[i*bits/8] |= byte((i+1)&(1<<bits-1)) << (i * bits % 8)
		case bits == 8:
			x.Data[i] = byte(i + 1)
		default:
			x.Data[i*bits/8], x.Data[i*bits/8+1] = byte(i+1), byte((i+1)>>8)
		}
	}
	return x
}

// word reads element i as counted wrote it.
func word(x *tensor.Tensor, i int) int {
	switch bits := x.Type.Bits(); {
	case bits == 0:
		return int([]rune(x.Strings[i])[0] - 'a' + 1)
	case bits < 8:
		return int(x.Data[i*bits/8]>>(i*bits%8)) & (1<<bits - 1)
	case bits == 8:
		return int(x.Data[i])
	default:
		return int(x.Data[i*bits/8]) | int(x.Data[i*bits/8+1])<<8
	}
}

var widths = []tensor.Type{tensor.Uint8, tensor.Float16, tensor.Float32, tensor.Int64, tensor.Complex128, tensor.Int4, tensor.Uint2, tensor.String}

// fataler is what plain and property tests have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func run(t fataler, n optest.Node, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), n, in...)
	if err != nil {
		t.Fatalf("%s: %v", n.Op, err)
	}
	return out
}

func each(shape []int, f func(at []int, i int)) {
	at := make([]int, len(shape))
	for i := range tensor.Elements(shape) {
		rest := i
		for k := len(shape) - 1; k >= 0; k-- {
			at[k] = rest % shape[k]
			rest /= shape[k]
		}
		f(at, i)
	}
}

func offset(at, shape []int) int {
	o := 0
	for i, d := range shape {
		o = o*d + at[i]
	}
	return o
}

func check(t fataler, got, x *tensor.Tensor, shape []int, from func(at []int) int) {
	t.Helper()
	if !slices.Equal(got.Shape, shape) {
		t.Fatalf("shape %v, want %v", got.Shape, shape)
	}
	each(shape, func(at []int, i int) {
		if g, w := word(got, i), word(x, from(at)); g != w {
			t.Fatalf("%v: at %v got %d, want %d", x.Type, at, g, w)
		}
	})
}

var someShape = rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4)

// indices draws indices below n, some of them counted from the end.
func indices(t *rapid.T, shape []int, n int) (*tensor.Tensor, []int) {
	v := make([]int64, tensor.Elements(shape))
	want := make([]int, len(v))
	for i := range v {
		want[i] = rapid.IntRange(0, n-1).Draw(t, "index")
		v[i] = int64(want[i])
		if rapid.Bool().Draw(t, "from the end") {
			v[i] -= int64(n)
		}
	}
	if rapid.Bool().Draw(t, "int32") {
		w := make([]int32, len(v))
		for i, k := range v {
			w[i] = int32(k)
		}
		return tensor.From(tensor.Int32, shape, w), want
	}
	return i64(shape, v...), want
}

func TestGatherAgainstIndices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := someShape.Draw(t, "shape")
		axis := rapid.IntRange(0, len(shape)-1).Draw(t, "axis")
		ishape := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 2).Draw(t, "index shape")
		idx, at := indices(t, ishape, shape[axis])
		x := counted(rapid.SampledFrom(widths).Draw(t, "type"), shape...)
		got := run(t, optest.Node{Op: "Gather", Version: 13, Attrs: graph.Attrs{"axis": int64(axis)}}, x, idx)[0]
		check(t, got, x, slices.Concat(shape[:axis], ishape, shape[axis+1:]), func(p []int) int {
			mid := offset(p[axis:axis+len(ishape)], ishape)
			return offset(slices.Concat(p[:axis], []int{at[mid]}, p[axis+len(ishape):]), shape)
		})
	})
}

func TestGatherElementsAgainstIndices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := someShape.Draw(t, "shape")
		axis := rapid.IntRange(0, len(shape)-1).Draw(t, "axis")
		ishape := make([]int, len(shape))
		for i, d := range shape {
			ishape[i] = rapid.IntRange(1, d).Draw(t, "dimension")
		}
		ishape[axis] = rapid.IntRange(0, 5).Draw(t, "length")
		idx, at := indices(t, ishape, shape[axis])
		x := counted(rapid.SampledFrom(widths).Draw(t, "type"), shape...)
		got := run(t, optest.Node{Op: "GatherElements", Version: 13, Attrs: graph.Attrs{"axis": int64(axis)}}, x, idx)[0]
		check(t, got, x, ishape, func(p []int) int {
			src := slices.Clone(p)
			src[axis] = at[offset(p, ishape)]
			return offset(src, shape)
		})
	})
}

// tuplesFor draws index tuples into dims.
func tuplesFor(t *rapid.T, outer, dims []int) (*tensor.Tensor, [][]int) {
	n := tensor.Elements(outer)
	var v []int64
	want := make([][]int, n)
	for i := range want {
		for _, d := range dims {
			k := rapid.IntRange(0, d-1).Draw(t, "index")
			want[i] = append(want[i], k)
			v = append(v, int64(k-d*rapid.IntRange(0, 1).Draw(t, "from the end")))
		}
	}
	return i64(append(slices.Clone(outer), len(dims)), v...), want
}

func TestGatherNDAgainstIndices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := someShape.Draw(t, "shape")
		batch := rapid.IntRange(0, len(shape)-1).Draw(t, "batch")
		k := rapid.IntRange(0, len(shape)-batch).Draw(t, "k")
		outer := slices.Concat(shape[:batch], rapid.SliceOfN(rapid.IntRange(0, 3), 0, 2).Draw(t, "outer"))
		idx, at := tuplesFor(t, outer, shape[batch:batch+k])
		x := counted(rapid.SampledFrom(widths).Draw(t, "type"), shape...)
		got := run(t, optest.Node{Op: "GatherND", Version: 13, Attrs: graph.Attrs{"batch_dims": int64(batch)}}, x, idx)[0]
		check(t, got, x, slices.Concat(outer, shape[batch+k:]), func(p []int) int {
			return offset(slices.Concat(p[:batch], at[offset(p[:len(outer)], outer)], p[len(outer):]), shape)
		})
	})
}

var reductions = map[string]func(a, b int32) int32{
	"none": func(_, b int32) int32 { return b },
	"add":  func(a, b int32) int32 { return a + b },
	"mul":  func(a, b int32) int32 { return a * b },
	"max":  func(a, b int32) int32 { return max(a, b) },
	"min":  func(a, b int32) int32 { return min(a, b) },
}

func TestScatterAgainstIndices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := someShape.Draw(t, "shape")
		x := counted(tensor.Int32, shape...)
		red := rapid.SampledFrom([]string{"none", "add", "mul", "max", "min"}).Draw(t, "reduction")
		f := reductions[red]

		axis := rapid.IntRange(0, len(shape)-1).Draw(t, "axis")
		ishape := make([]int, len(shape))
		for i, d := range shape {
			ishape[i] = rapid.IntRange(1, d).Draw(t, "dimension")
		}
		idx, at := indices(t, ishape, shape[axis])
		u := counted(tensor.Int32, ishape...)
		want := slices.Clone(tensor.Of[int32](x))
		each(ishape, func(p []int, i int) {
			dst := slices.Clone(p)
			dst[axis] = at[i]
			o := offset(dst, shape)
			want[o] = f(want[o], int32(i+1))
		})
		got := run(t, optest.Node{Op: "ScatterElements", Version: 18, Attrs: graph.Attrs{"axis": int64(axis), "reduction": red}}, x, idx, u)[0]
		if d := cmp.Diff(want, tensor.Of[int32](got)); d != "" {
			t.Fatalf("ScatterElements: %s", d)
		}

		k := rapid.IntRange(0, len(shape)).Draw(t, "k")
		outer := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 2).Draw(t, "outer")
		tuples, places := tuplesFor(t, outer, shape[:k])
		u = counted(tensor.Int32, slices.Concat(outer, shape[k:])...)
		want = slices.Clone(tensor.Of[int32](x))
		each(u.Shape, func(p []int, i int) {
			o := offset(slices.Concat(places[offset(p[:len(outer)], outer)], p[len(outer):]), shape)
			want[o] = f(want[o], int32(i+1))
		})
		got = run(t, optest.Node{Op: "ScatterND", Version: 18, Attrs: graph.Attrs{"reduction": red}}, x, tuples, u)[0]
		if d := cmp.Diff(want, tensor.Of[int32](got)); d != "" {
			t.Fatalf("ScatterND: %s", d)
		}
	})
}

func TestScatterTypes(t *testing.T) {
	t.Parallel()
	for _, typ := range widths {
		x, u := counted(typ, 3), counted(typ, 1)
		got := run(t, optest.Node{Op: "ScatterND", Version: 13}, x, i64([]int{1, 1}, 2), u)[0]
		if g := []int{word(got, 0), word(got, 1), word(got, 2)}; !slices.Equal(g, []int{1, 2, 1}) {
			t.Errorf("%v: %v", typ, g)
		}
	}
	half := func(v ...float32) *tensor.Tensor {
		x := tensor.New(tensor.Float16, len(v))
		for i, f := range v {
			tensor.Of[uint16](x)[i] = tensor.F32ToF16(f)
		}
		return x
	}
	got := run(t, optest.Node{Op: "ScatterElements", Version: 18, Attrs: graph.Attrs{"reduction": "add"}}, half(1, 2), i64([]int{2}, 1, 1), half(.5, .25))[0]
	if d := cmp.Diff(half(1, 2.75), got); d != "" {
		t.Error(d)
	}
	bools := func(v ...uint8) *tensor.Tensor { return tensor.From(tensor.Bool, []int{len(v)}, v) }
	got = run(t, optest.Node{Op: "ScatterElements", Version: 18, Attrs: graph.Attrs{"reduction": "mul"}}, bools(1, 1), i64([]int{1}, 0), bools(0))[0]
	if d := cmp.Diff(bools(0, 1), got); d != "" {
		t.Error(d)
	}
}

// TestScatterInPlace scatters a tensor into itself on shared memory, as the
// planner may arrange.
func TestScatterInPlace(t *testing.T) {
	t.Parallel()
	x, idx := f32([]int{3}, 1, 2, 3), i64([]int{3}, 1, 2, 0)
	y := *x
	c := &op.Call{Node: &graph.Node{Version: 18}, In: []*tensor.Tensor{x, idx, x}, Out: []*tensor.Tensor{&y}}
	run, err := prepareScatterElements(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(c); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f32([]int{3}, 3, 1, 2), &y); d != "" {
		t.Error(d)
	}
}

func TestTopKAgainstSort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := someShape.Draw(t, "shape")
		axis := rapid.IntRange(0, len(shape)-1).Draw(t, "axis")
		shape[axis] = rapid.IntRange(1, 40).Draw(t, "length")
		largest := rapid.Bool().Draw(t, "largest")
		x := tensor.New(tensor.Float32, shape...)
		v := tensor.Of[float32](x)
		for i := range v {
			v[i] = float32(rapid.IntRange(0, 9).Draw(t, "value"))
			if v[i] == 9 {
				v[i] = float32(math.NaN())
			}
		}
		k := rapid.IntRange(0, shape[axis]).Draw(t, "k")
		n := optest.Node{Op: "TopK", Version: 11, Outputs: 2, Attrs: graph.Attrs{"axis": int64(axis), "largest": map[bool]int64{true: 1}[largest]}}
		got := run(t, n, x, i64([]int{1}, int64(k)))
		out := slices.Clone(shape)
		out[axis] = k
		if !slices.Equal(got[0].Shape, out) || !slices.Equal(got[1].Shape, out) {
			t.Fatalf("shapes %v and %v, want %v", got[0].Shape, got[1].Shape, out)
		}
		each(out, func(at []int, i int) {
			lane := slices.Clone(at)
			order := make([]int, shape[axis])
			value := func(p int) float64 {
				lane[axis] = p
				f := float64(v[offset(lane, shape)])
				if f != f {
					f = 100
				}
				return f
			}
			for p := range order {
				order[p] = p
			}
			slices.SortStableFunc(order, func(a, b int) int {
				d := int(value(a) - value(b))
				if largest {
					d = -d
				}
				return d
			})
			if g := tensor.Of[int64](got[1])[i]; int(g) != order[at[axis]] {
				t.Fatalf("at %v got %d, want %d", at, g, order[at[axis]])
			}
		})
	})
}

func TestTables(t *testing.T) {
	t.Parallel()
	x := f32([]int{2, 3}, 2, 1, 1, 3, 0, 3)
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
		want []*tensor.Tensor
	}{
		{"nonzero", optest.Node{Op: "NonZero", Version: 13}, []*tensor.Tensor{f32([]int{2, 2}, 1, 0, 0, 2)}, []*tensor.Tensor{i64([]int{2, 2}, 0, 1, 0, 1)}},
		{"compress", optest.Node{Op: "Compress", Version: 11, Attrs: graph.Attrs{"axis": int64(-1)}}, []*tensor.Tensor{x, tensor.From(tensor.Bool, []int{2}, []uint8{0, 1})}, []*tensor.Tensor{f32([]int{2, 1}, 1, 0)}},
		{"compress flat", optest.Node{Op: "Compress", Version: 9}, []*tensor.Tensor{x, tensor.From(tensor.Bool, []int{4}, []uint8{1, 0, 0, 1})}, []*tensor.Tensor{f32([]int{2}, 2, 3)}},
		{
			"one hot",
			optest.Node{Op: "OneHot", Version: 11, Attrs: graph.Attrs{"axis": int64(0)}},
			[]*tensor.Tensor{i64([]int{3}, 1, -1, 7), i64([]int{1}, 2), f32([]int{2}, 5, 6)},
			[]*tensor.Tensor{f32([]int{2, 3}, 5, 5, 5, 6, 6, 5)},
		},
		{
			"one hot 9",
			optest.Node{Op: "OneHot", Version: 9},
			[]*tensor.Tensor{f32([]int{2}, 1, -1), f32(nil, 2), f32([]int{2}, 0, 1)},
			[]*tensor.Tensor{f32([]int{2, 2}, 0, 1, 0, 0)},
		},
		{
			"unique",
			optest.Node{Op: "Unique", Version: 11, Outputs: 4},
			[]*tensor.Tensor{x},
			[]*tensor.Tensor{f32([]int{4}, 0, 1, 2, 3), i64([]int{4}, 4, 1, 0, 3), i64([]int{6}, 2, 1, 1, 3, 0, 3), i64([]int{4}, 1, 2, 1, 2)},
		},
		{
			"unique unsorted",
			optest.Node{Op: "Unique", Version: 11, Outputs: 4, Attrs: graph.Attrs{"sorted": int64(0)}},
			[]*tensor.Tensor{x},
			[]*tensor.Tensor{f32([]int{4}, 2, 1, 3, 0), i64([]int{4}, 0, 1, 3, 4), i64([]int{6}, 0, 1, 1, 2, 3, 2), i64([]int{4}, 1, 2, 2, 1)},
		},
		{
			"unique rows",
			optest.Node{Op: "Unique", Version: 11, Outputs: 2, Attrs: graph.Attrs{"axis": int64(1)}},
			[]*tensor.Tensor{f32([]int{2, 3}, 1, 0, 1, 2, 5, 2)},
			[]*tensor.Tensor{f32([]int{2, 2}, 0, 1, 5, 2), i64([]int{2}, 1, 0)},
		},
		{"top k 1", optest.Node{Op: "TopK", Version: 1, Outputs: 2, Attrs: graph.Attrs{"k": int64(1)}}, []*tensor.Tensor{x}, []*tensor.Tensor{f32([]int{2, 1}, 2, 3), i64([]int{2, 1}, 0, 0)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, run(t, tt.node, tt.in...)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	x := f32([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
	}{
		{"gather", optest.Node{Op: "Gather", Version: 13}, []*tensor.Tensor{x, i64([]int{1}, 2)}},
		{"gather axis", optest.Node{Op: "Gather", Version: 13, Attrs: graph.Attrs{"axis": int64(2)}}, []*tensor.Tensor{x, i64([]int{1}, 0)}},
		{"gather floats", optest.Node{Op: "Gather", Version: 13}, []*tensor.Tensor{x, f32([]int{1}, 0)}},
		{"elements", optest.Node{Op: "GatherElements", Version: 13}, []*tensor.Tensor{x, i64([]int{1, 4}, 0, 0, 0, 0)}},
		{"tuples", optest.Node{Op: "GatherND", Version: 13}, []*tensor.Tensor{x, i64([]int{1, 3}, 0, 0, 0)}},
		{"tuple range", optest.Node{Op: "GatherND", Version: 13}, []*tensor.Tensor{x, i64([]int{1, 2}, 0, 3)}},
		{"scatter", optest.Node{Op: "ScatterND", Version: 13}, []*tensor.Tensor{x, i64([]int{1, 2}, 0, 0), f32([]int{2}, 1, 2)}},
		{"reduction", optest.Node{Op: "ScatterND", Version: 18, Attrs: graph.Attrs{"reduction": "sub"}}, []*tensor.Tensor{x, i64([]int{1, 2}, 0, 0), f32([]int{1}, 1)}},
		{"top k", optest.Node{Op: "TopK", Version: 11, Outputs: 2}, []*tensor.Tensor{x, i64([]int{1}, 4)}},
		{"compress", optest.Node{Op: "Compress", Version: 11, Attrs: graph.Attrs{"axis": int64(0)}}, []*tensor.Tensor{x, tensor.From(tensor.Bool, []int{3}, []uint8{0, 1, 1})}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if out, err := optest.Run(Defs(), tt.node, tt.in...); err == nil {
				t.Errorf("gives %v", out[0])
			}
		})
	}
}
