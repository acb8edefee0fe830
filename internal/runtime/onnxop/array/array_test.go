package array

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func i64(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

// counted makes a tensor whose element i has the bits of i+1.
func counted(t tensor.Type, shape ...int) *tensor.Tensor {
	x := tensor.New(t, shape...)
	if t == tensor.String {
		for i := range x.Strings {
			x.Strings[i] = string(rune('a' + i))
		}
		return x
	}
	if bits := t.Bits(); bits < 8 {
		for i := range x.Len() {
			x.Data[i*bits/8] |= byte((i+1)&(1<<bits-1)) << (i * bits % 8)
		}
		return x
	}
	w := t.Bits() / 8
	for i := range x.Len() {
		x.Data[i*w] = byte(i + 1)
		if w > 1 {
			x.Data[i*w+1] = byte((i + 1) >> 8)
		}
	}
	return x
}

// word reads element i as counted wrote it.
func word(x *tensor.Tensor, i int) int {
	switch bits := x.Type.Bits(); {
	case bits == 0:
		if x.Strings[i] == "" {
			return 0
		}
		return int([]rune(x.Strings[i])[0] - 'a' + 1)
	case bits < 8:
		return int(x.Data[i*bits/8]>>(i*bits%8)) & (1<<bits - 1)
	case bits == 8:
		return int(x.Data[i])
	default:
		return int(x.Data[i*bits/8]) | int(x.Data[i*bits/8+1])<<8
	}
}

// widths lists element types of every representation.
var widths = []tensor.Type{tensor.Uint8, tensor.Float16, tensor.Float32, tensor.Int64, tensor.Complex128, tensor.Int4, tensor.Uint2, tensor.String}

// fataler is the common interface of plain and property tests.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func run(t fataler, n optest.Node, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), n, in...)
	if err != nil {
		t.Fatalf("%s: %v", n.Op, err)
	}
	return out[0]
}

// each walks all positions of a shape in row-major order.
func each(shape []int, f func(at []int, i int)) {
	at := make([]int, len(shape))
	for i := range tensor.Elements(shape) {
		f(at, i)
		advance(at, shape)
	}
}

func offset(at, shape []int) int {
	o := 0
	for i, d := range shape {
		o = o*d + at[i]
	}
	return o
}

// check compares every element with the source position that from returns, -1 for zero.
func check(t fataler, got, x *tensor.Tensor, shape []int, from func(at []int) int) {
	t.Helper()
	if !slices.Equal(got.Shape, shape) {
		t.Fatalf("shape %v, want %v", got.Shape, shape)
	}
	each(shape, func(at []int, i int) {
		want := 0
		if o := from(at); o >= 0 {
			want = word(x, o)
		}
		if g := word(got, i); g != want {
			t.Fatalf("%v: at %v got %d, want %d", x.Type, at, g, want)
		}
	})
}

var anyShape = rapid.SliceOfN(rapid.IntRange(0, 5), 1, 4)

func TestTransposeAgainstIndices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := anyShape.Draw(t, "shape")
		axes := make([]int, len(shape))
		for i := range axes {
			axes[i] = i
		}
		perm := rapid.Permutation(axes).Draw(t, "perm")
		x := counted(rapid.SampledFrom(widths).Draw(t, "type"), shape...)
		attr := make([]int64, len(perm))
		out := make([]int, len(perm))
		for i, a := range perm {
			attr[i], out[i] = int64(a), shape[a]
		}
		got := run(t, optest.Node{Op: "Transpose", Version: 21, Attrs: graph.Attrs{"perm": attr}}, x)
		check(t, got, x, out, func(at []int) int {
			src := make([]int, len(at))
			for i, a := range perm {
				src[a] = at[i]
			}
			return offset(src, shape)
		})
	})
}

// TestTransposeLarge exceeds the sizes from which work is divided among threads.
func TestTransposeLarge(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{3, 300, 301}, {40, 70, 3, 33}, {1, 257, 513, 1}, {20, 10, 600}} {
		for _, perm := range [][]int64{{0, 2, 1}, {2, 0, 1}, {1, 2, 0}, {0, 2, 1, 3}, {0, 3, 1, 2}, {3, 2, 1, 0}} {
			if len(perm) != len(shape) {
				continue
			}
			x := tensor.New(tensor.Int32, shape...)
			for i, v := 0, tensor.Of[int32](x); i < len(v); i++ {
				v[i] = int32(i)
			}
			got := run(t, optest.Node{Op: "Transpose", Version: 13, Attrs: graph.Attrs{"perm": perm}}, x)
			v := tensor.Of[int32](got)
			src := make([]int, len(shape))
			each(got.Shape, func(at []int, i int) {
				for k, a := range perm {
					src[a] = at[k]
				}
				if int(v[i]) != offset(src, shape) {
					t.Fatalf("%v %v: at %v got %d", shape, perm, at, v[i])
				}
			})
		}
	}
}

func TestSliceAgainstIndices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := anyShape.Draw(t, "shape")
		x := counted(rapid.SampledFrom(widths).Draw(t, "type"), shape...)
		var starts, ends, axes, steps []int64
		out, index := slices.Clone(shape), make([][]int, len(shape))
		for i, d := range shape {
			for k := range d {
				index[i] = append(index[i], k)
			}
			if !rapid.Bool().Draw(t, "cut") {
				continue
			}
			s, e := rapid.Int64Range(-7, 7).Draw(t, "start"), rapid.Int64Range(-7, 7).Draw(t, "end")
			step := rapid.SampledFrom([]int64{1, 2, 3, -1, -2, -9223372036854775808}).Draw(t, "step")
			starts, ends, steps = append(starts, s), append(ends, e), append(steps, step)
			axes = append(axes, int64(i-len(shape)*rapid.IntRange(0, 1).Draw(t, "negative axis")))
			index[i] = python(int(s), int(e), int(step), d)
			out[i] = len(index[i])
		}
		got := run(t, optest.Node{Op: "Slice", Version: 13}, x, i64(starts...), i64(ends...), i64(axes...), i64(steps...))
		check(t, got, x, out, func(at []int) int {
			src := make([]int, len(at))
			for i, a := range at {
				src[i] = index[i][a]
			}
			return offset(src, shape)
		})
	})
}

// python lists the indices of Python's slice start:end:step, except that ONNX moves a start
// before the first element onto it when going backwards.
func python(start, end, step, n int) (out []int) {
	fix := func(v, lo, hi int) int {
		if v < 0 {
			v += n
		}
		return min(max(v, lo), hi)
	}
	if step > 0 {
		for i := fix(start, 0, n); i < fix(end, 0, n); i += step {
			out = append(out, i)
		}
		return out
	}
	for i := fix(start, 0, n-1); i > fix(end, -1, n-1) && i >= 0; i += step {
		out = append(out, i)
	}
	return out
}

func TestPadAgainstIndices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "shape")
		mode := rapid.SampledFrom([]string{"constant", "edge", "wrap", "reflect"}).Draw(t, "mode")
		x := counted(rapid.SampledFrom(widths).Draw(t, "type"), shape...)
		r := len(shape)
		pads, out := make([]int64, 2*r), make([]int, r)
		for i, d := range shape {
			if rapid.Bool().Draw(t, "pad") {
				pads[i] = rapid.Int64Range(0, 5).Draw(t, "before")
				pads[r+i] = rapid.Int64Range(0, 5).Draw(t, "after")
				if d > 1 && rapid.Bool().Draw(t, "crop") {
					pads[i] = -1
				}
			}
			out[i] = d + int(pads[i]+pads[r+i])
		}
		got := run(t, optest.Node{Op: "Pad", Version: 19, Attrs: graph.Attrs{"mode": mode}}, x, i64(pads...))
		check(t, got, x, out, func(at []int) int {
			src := make([]int, r)
			for i, a := range at {
				lo := max(0, int(-pads[i]))
				n, k := shape[i]-lo, a-max(0, int(pads[i]))
				switch {
				case k >= 0 && k < n:
				case mode == "constant":
					return -1
				case mode == "edge":
					k = min(max(k, 0), n-1)
				case mode == "wrap":
					for k < 0 {
						k += n
					}
					k %= n
				case n == 1:
					k = 0
				default:
					for k < 0 || k >= n {
						if k < 0 {
							k = -k
						} else {
							k = 2*(n-1) - k
						}
					}
				}
				src[i] = lo + k
			}
			return offset(src, shape)
		})
	})
}

func TestConcatSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 3).Draw(t, "shape")
		axis := rapid.IntRange(0, len(shape)-1).Draw(t, "axis")
		sizes := rapid.SliceOfN(rapid.Int64Range(0, 3), 1, 4).Draw(t, "sizes")
		shape[axis] = 0
		for _, s := range sizes {
			shape[axis] += int(s)
		}
		x := counted(rapid.SampledFrom(widths).Draw(t, "type"), shape...)
		attrs := graph.Attrs{"axis": int64(axis - len(shape))}
		parts, err := optest.Run(Defs(), optest.Node{Op: "Split", Version: 13, Attrs: attrs, Outputs: len(sizes)}, x, i64(sizes...))
		if err != nil {
			t.Fatal(err)
		}
		from := 0
		for i, p := range parts {
			want := slices.Clone(shape)
			want[axis] = int(sizes[i])
			check(t, p, x, want, func(at []int) int {
				src := slices.Clone(at)
				src[axis] += from
				return offset(src, shape)
			})
			from += int(sizes[i])
		}
		back := run(t, optest.Node{Op: "Concat", Version: 13, Attrs: attrs}, parts...)
		check(t, back, x, shape, func(at []int) int { return offset(at, shape) })
	})
}

func TestExpandTile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 3), 1, 4).Draw(t, "shape")
		x := counted(rapid.SampledFrom(widths).Draw(t, "type"), shape...)
		reps, tiled, wide := make([]int64, len(shape)), make([]int, len(shape)), make([]int, len(shape))
		target := []int64{}
		for i, d := range shape {
			reps[i] = rapid.Int64Range(0, 3).Draw(t, "repeat")
			tiled[i], wide[i] = d*int(reps[i]), d
			if d == 1 {
				wide[i] = int(reps[i])
			}
			target = append(target, int64(wide[i]))
		}
		check(t, run(t, optest.Node{Op: "Tile", Version: 13}, x, i64(reps...)), x, tiled, func(at []int) int {
			src := make([]int, len(at))
			for i, a := range at {
				src[i] = a % shape[i]
			}
			return offset(src, shape)
		})
		target = append([]int64{2}, target...)
		check(t, run(t, optest.Node{Op: "Expand", Version: 13}, x, i64(target...)), x, append([]int{2}, wide...), func(at []int) int {
			src := make([]int, len(shape))
			for i := range src {
				if shape[i] > 1 {
					src[i] = at[i+1]
				}
			}
			return offset(src, shape)
		})
	})
}

func TestSpaceAndDepth(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"DCR", "CRD"} {
		for _, typ := range widths {
			attrs := graph.Attrs{"mode": mode, "blocksize": int64(2)}
			x := counted(typ, 2, 4, 3, 2)
			y := run(t, optest.Node{Op: "DepthToSpace", Version: 28, Attrs: attrs}, x)
			check(t, y, x, []int{2, 1, 6, 4}, func(at []int) int {
				// One output channel: both modes order blocks by row, then column.
				return offset([]int{at[0], at[2]%2*2 + at[3]%2, at[2] / 2, at[3] / 2}, x.Shape)
			})
			back := run(t, optest.Node{Op: "SpaceToDepth", Version: 28, Attrs: attrs}, y)
			check(t, back, x, x.Shape, func(at []int) int { return offset(at, x.Shape) })
		}
	}
	// Two output channels distinguish the modes.
	x := counted(tensor.Uint8, 1, 8, 1, 1)
	for mode, want := range map[string][]byte{"DCR": {1, 3, 5, 7, 2, 4, 6, 8}, "CRD": {1, 2, 3, 4, 5, 6, 7, 8}} {
		attrs := graph.Attrs{"mode": mode, "blocksize": int64(2)}
		y := run(t, optest.Node{Op: "DepthToSpace", Version: 13, Attrs: attrs}, x)
		if d := cmp.Diff(want, y.Data); d != "" {
			t.Errorf("%s: %s", mode, d)
		}
		back := run(t, optest.Node{Op: "SpaceToDepth", Version: 28, Attrs: attrs}, y)
		if d := cmp.Diff(x.Data, back.Data); d != "" {
			t.Errorf("%s back: %s", mode, d)
		}
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	x := counted(tensor.Int4, 2, 3, 1, 4)
	empty := tensor.New(tensor.Float32, 0, 3)
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
		want []int
	}{
		{"identity", optest.Node{Op: "Identity", Version: 1}, []*tensor.Tensor{x}, []int{2, 3, 1, 4}},
		{"reshape 1", optest.Node{Op: "Reshape", Version: 1, Attrs: graph.Attrs{"shape": []int64{-1, 4}}}, []*tensor.Tensor{x}, []int{6, 4}},
		{"reshape keep", optest.Node{Op: "Reshape", Version: 13}, []*tensor.Tensor{x, i64(0, -1)}, []int{2, 12}},
		{"reshape zero", optest.Node{Op: "Reshape", Version: 14, Attrs: graph.Attrs{"allowzero": int64(1)}}, []*tensor.Tensor{empty, i64(3, 0)}, []int{3, 0}},
		{"flatten", optest.Node{Op: "Flatten", Version: 13, Attrs: graph.Attrs{"axis": int64(-2)}}, []*tensor.Tensor{x}, []int{6, 4}},
		{"flatten 0", optest.Node{Op: "Flatten", Version: 13, Attrs: graph.Attrs{"axis": int64(0)}}, []*tensor.Tensor{x}, []int{1, 24}},
		{"squeeze", optest.Node{Op: "Squeeze", Version: 13}, []*tensor.Tensor{x}, []int{2, 3, 4}},
		{"squeeze axes", optest.Node{Op: "Squeeze", Version: 13}, []*tensor.Tensor{x, i64(-2)}, []int{2, 3, 4}},
		{"squeeze 11", optest.Node{Op: "Squeeze", Version: 11, Attrs: graph.Attrs{"axes": []int64{2}}}, []*tensor.Tensor{x}, []int{2, 3, 4}},
		{"unsqueeze", optest.Node{Op: "Unsqueeze", Version: 13}, []*tensor.Tensor{x, i64(-1, 0)}, []int{1, 2, 3, 1, 4, 1}},
		{"unsqueeze 1", optest.Node{Op: "Unsqueeze", Version: 1, Attrs: graph.Attrs{"axes": []int64{1}}}, []*tensor.Tensor{x}, []int{2, 1, 3, 1, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := run(t, tt.node, tt.in...)
			if d := cmp.Diff(tt.want, got.Shape); d != "" {
				t.Fatal(d)
			}
			if d := cmp.Diff(tt.in[0].Data, got.Data); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestMade covers operators that compute a few numbers.
func TestMade(t *testing.T) {
	t.Parallel()
	x := counted(tensor.Float32, 2, 3, 4)
	scalar := func(v float32) *tensor.Tensor { return f32(nil, v) }
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
		want *tensor.Tensor
	}{
		{"shape", optest.Node{Op: "Shape", Version: 15, Attrs: graph.Attrs{"start": int64(-2), "end": int64(9)}}, []*tensor.Tensor{x}, i64(3, 4)},
		{"shape none", optest.Node{Op: "Shape", Version: 15, Attrs: graph.Attrs{"start": int64(2), "end": int64(1)}}, []*tensor.Tensor{x}, i64()},
		{"size", optest.Node{Op: "Size", Version: 1}, []*tensor.Tensor{x}, tensor.From(tensor.Int64, nil, []int64{24})},
		{"constant floats", optest.Node{Op: "Constant", Version: 12, Attrs: graph.Attrs{"value_floats": []float32{1, 2}}}, nil, f32([]int{2}, 1, 2)},
		{"constant int", optest.Node{Op: "Constant", Version: 12, Attrs: graph.Attrs{"value_int": int64(7)}}, nil, tensor.From(tensor.Int64, nil, []int64{7})},
		{
			"constant sparse", optest.Node{Op: "Constant", Version: 12, Attrs: graph.Attrs{"sparse_value": []*tensor.Tensor{
				f32([]int{2}, 5, 6), tensor.From(tensor.Int64, []int{2, 2}, []int64{0, 1, 1, 0}), i64(2, 2),
			}}}, nil, f32([]int{2, 2}, 0, 5, 6, 0),
		},
		{"constant of shape", optest.Node{Op: "ConstantOfShape", Version: 9}, []*tensor.Tensor{i64(2, 2)}, f32([]int{2, 2}, 0, 0, 0, 0)},
		{
			"constant of shape int4",
			optest.Node{Op: "ConstantOfShape", Version: 21, Attrs: graph.Attrs{"value": tensor.From(tensor.Uint8, []int{1}, []uint8{3})}},
			[]*tensor.Tensor{i64(3)},
			tensor.From(tensor.Uint8, []int{3}, []uint8{3, 3, 3}),
		},
		{"eye", optest.Node{Op: "EyeLike", Version: 9, Attrs: graph.Attrs{"k": int64(1)}}, []*tensor.Tensor{tensor.New(tensor.Float32, 2, 3)}, f32([]int{2, 3}, 0, 1, 0, 0, 0, 1)},
		{"range", optest.Node{Op: "Range", Version: 11}, []*tensor.Tensor{scalar(1), scalar(2), scalar(.25)}, f32([]int{4}, 1, 1.25, 1.5, 1.75)},
		{
			"range back",
			optest.Node{Op: "Range", Version: 11},
			[]*tensor.Tensor{tensor.From(tensor.Int64, nil, []int64{10}), tensor.From(tensor.Int64, nil, []int64{4}), tensor.From(tensor.Int64, nil, []int64{-4})},
			i64(10, 6),
		},
		{"trilu", optest.Node{Op: "Trilu", Version: 14, Attrs: graph.Attrs{"upper": int64(0)}}, []*tensor.Tensor{f32([]int{2, 3}, 1, 2, 3, 4, 5, 6), tensor.From(tensor.Int64, nil, []int64{1})}, f32([]int{2, 3}, 1, 2, 0, 4, 5, 6)},
		{"tile 1", optest.Node{Op: "Tile", Version: 1}, []*tensor.Tensor{f32([]int{1, 2}, 1, 2), scalar(2), scalar(1)}, f32([]int{1, 4}, 1, 2, 1, 2)},
		{"reverse", optest.Node{Op: "ReverseSequence", Version: 10, Attrs: graph.Attrs{"time_axis": int64(1), "batch_axis": int64(0)}}, []*tensor.Tensor{f32([]int{2, 3}, 1, 2, 3, 4, 5, 6), i64(2, 3)}, f32([]int{2, 3}, 2, 1, 3, 6, 5, 4)},
		{"det", optest.Node{Op: "Det", Version: 11}, []*tensor.Tensor{f32([]int{2, 2, 2}, 0, 1, 2, 3, 1, 2, 2, 4)}, f32([]int{2}, -2, 0)},
		{"col2im", optest.Node{Op: "Col2Im", Version: 18}, []*tensor.Tensor{f32([]int{1, 2, 2}, 1, 2, 3, 4), i64(3), i64(2)}, f32([]int{1, 1, 3}, 1, 5, 4)},
		{"center", optest.Node{Op: "CenterCropPad", Version: 18}, []*tensor.Tensor{f32([]int{3, 1}, 1, 2, 3), i64(2, 2)}, f32([]int{2, 2}, 1, 0, 2, 0)},
		{"split uneven", optest.Node{Op: "Split", Version: 18, Attrs: graph.Attrs{"num_outputs": int64(2)}, Outputs: 2}, []*tensor.Tensor{f32([]int{3}, 1, 2, 3)}, f32([]int{2}, 1, 2)},
		{"dynamic slice", optest.Node{Op: "DynamicSlice", Version: 9}, []*tensor.Tensor{f32([]int{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8), i64(0, 1), i64(-1, 1000), i64(0, 1)}, f32([]int{1, 3}, 2, 3, 4)},
		{"dynamic slice without axes", optest.Node{Op: "DynamicSlice", Version: 1}, []*tensor.Tensor{f32([]int{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8), i64(1, 0), i64(2, 3)}, f32([]int{1, 3}, 5, 6, 7)},
		{"dynamic slice from beyond", optest.Node{Op: "DynamicSlice", Version: 9}, []*tensor.Tensor{f32([]int{2, 2}, 1, 2, 3, 4), i64(7), i64(9), i64(1)}, f32([]int{2, 0})},
		{"slice 1", optest.Node{Op: "Slice", Version: 1, Attrs: graph.Attrs{"starts": []int64{-2}, "ends": []int64{99}}}, []*tensor.Tensor{f32([]int{3}, 1, 2, 3)}, f32([]int{2}, 2, 3)},
		{"pad 2", optest.Node{Op: "Pad", Version: 2, Attrs: graph.Attrs{"pads": []int64{1, -1}, "value": float32(9)}}, []*tensor.Tensor{f32([]int{3}, 1, 2, 3)}, f32([]int{3}, 9, 1, 2)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := run(t, tt.node, tt.in...)
			if got.Shape == nil {
				got.Shape = tt.want.Shape
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestRefused gives operators invalid inputs; none may panic.
func TestRefused(t *testing.T) {
	t.Parallel()
	x := counted(tensor.Float32, 2, 3)
	for _, tt := range []struct {
		name string
		node optest.Node
		in   []*tensor.Tensor
	}{
		{"reshape", optest.Node{Op: "Reshape", Version: 13}, []*tensor.Tensor{x, i64(4, -1)}},
		{"reshape twice", optest.Node{Op: "Reshape", Version: 13}, []*tensor.Tensor{x, i64(-1, -1)}},
		{"reshape huge", optest.Node{Op: "Reshape", Version: 13}, []*tensor.Tensor{x, i64(1<<62, 1<<62)}},
		{"transpose", optest.Node{Op: "Transpose", Version: 13, Attrs: graph.Attrs{"perm": []int64{0, 0}}}, []*tensor.Tensor{x}},
		{"squeeze", optest.Node{Op: "Squeeze", Version: 13}, []*tensor.Tensor{x, i64(0)}},
		{"unsqueeze", optest.Node{Op: "Unsqueeze", Version: 13}, []*tensor.Tensor{x, i64(1, 1)}},
		{"concat", optest.Node{Op: "Concat", Version: 13, Attrs: graph.Attrs{"axis": int64(0)}}, []*tensor.Tensor{x, counted(tensor.Float32, 2, 2)}},
		{"split", optest.Node{Op: "Split", Version: 13, Outputs: 2}, []*tensor.Tensor{x, i64(1, 2)}},
		{"slice step", optest.Node{Op: "Slice", Version: 13}, []*tensor.Tensor{x, i64(0), i64(1), i64(0), i64(0)}},
		{"slice axis", optest.Node{Op: "Slice", Version: 13}, []*tensor.Tensor{x, i64(0), i64(1), i64(5)}},
		{"tile", optest.Node{Op: "Tile", Version: 13}, []*tensor.Tensor{x, i64(-1, 1)}},
		{"tile huge", optest.Node{Op: "Tile", Version: 13}, []*tensor.Tensor{x, i64(1<<40, 1<<40)}},
		{"pad away", optest.Node{Op: "Pad", Version: 13}, []*tensor.Tensor{x, i64(-3, 0, 0, 0)}},
		{"pad nothing", optest.Node{Op: "Pad", Version: 13, Attrs: graph.Attrs{"mode": "edge"}}, []*tensor.Tensor{x, i64(-2, 0, 1, 0)}},
		{"range", optest.Node{Op: "Range", Version: 11}, []*tensor.Tensor{f32(nil, 0), f32(nil, 1), f32(nil, 0)}},
		{"constant", optest.Node{Op: "Constant", Version: 13}, nil},
		{"constant of shape", optest.Node{Op: "ConstantOfShape", Version: 9}, []*tensor.Tensor{i64(-1)}},
		{"depth", optest.Node{Op: "DepthToSpace", Version: 13, Attrs: graph.Attrs{"blocksize": int64(2)}}, []*tensor.Tensor{counted(tensor.Float32, 1, 3, 1, 1)}},
		{"reverse", optest.Node{Op: "ReverseSequence", Version: 10}, []*tensor.Tensor{x, i64(1, 2, 9)}},
		{"col2im", optest.Node{Op: "Col2Im", Version: 18}, []*tensor.Tensor{x, i64(3), i64(2)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if out, err := optest.Run(Defs(), tt.node, tt.in...); err == nil {
				t.Errorf("gives %v", out[0].Shape)
			}
		})
	}
}

// TestInPlace runs the reshaping operators on shared memory, as the planner does.
func TestInPlace(t *testing.T) {
	t.Parallel()
	x := counted(tensor.Float32, 4)
	y := *x
	c := &op.Call{In: []*tensor.Tensor{x}, Out: []*tensor.Tensor{&y}}
	run, err := prepareKeep(c)
	if err = errors.Join(err, run(c)); err != nil {
		t.Fatal(err)
	}
	if word(&y, 3) != 4 {
		t.Error("elements were lost")
	}
}

// TestCol2Im compares with the sum over all columns, pixel by pixel.
func TestCol2Im(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.IntRange(1, 3).Draw(t, "rank")
		var image, block, stride, dilation, pads, count []int64
		many, cells := int64(1), int64(1)
		for range r {
			b, d, s := rapid.Int64Range(1, 3).Draw(t, "block"), rapid.Int64Range(1, 2).Draw(t, "dilation"), rapid.Int64Range(1, 3).Draw(t, "stride")
			before, after := rapid.Int64Range(0, 3).Draw(t, "before"), rapid.Int64Range(0, 3).Draw(t, "after")
			size := rapid.Int64Range(max(1, d*(b-1)+1-before-after), 20).Draw(t, "size")
			n := (size+before+after-d*(b-1)-1)/s + 1
			image, block, stride, dilation, count = append(image, size), append(block, b), append(stride, s), append(dilation, d), append(count, n)
			pads = slices.Insert(pads, len(pads)/2, before)
			pads = append(pads, after)
			many, cells = many*n, cells*b
		}
		x := tensor.New(tensor.Float32, 2, 2*int(cells), int(many))
		for i := range x.Len() {
			tensor.Of[float32](x)[i] = float32(i*7%23) - 11
		}
		ints := func(v []int64) []int {
			return slices.Collect(func(yield func(int) bool) {
				for _, n := range v {
					yield(int(n))
				}
			})
		}
		out, err := optest.Run(Defs(), optest.Node{Op: "Col2Im", Version: 18, Attrs: graph.Attrs{"strides": stride, "dilations": dilation, "pads": pads}}, x, i64(image...), i64(block...))
		if err != nil {
			t.Fatal(err)
		}
		plane := tensor.Elements(ints(image))
		want, at, pos := make([]float32, 4*plane), make([]int, r), make([]int, r)
		for p := range 4 {
			for cell := range int(cells) {
				tensor.Unravel(cell, ints(block), at)
				for b := range int(many) {
					tensor.Unravel(b, ints(count), pos)
					to, inside := 0, true
					for d := range r {
						q := pos[d]*int(stride[d]) + at[d]*int(dilation[d]) - int(pads[d])
						inside = inside && q >= 0 && q < int(image[d])
						to = to*int(image[d]) + q
					}
					if inside {
						want[p*plane+to] += tensor.Of[float32](x)[(p*int(cells)+cell)*int(many)+b]
					}
				}
			}
		}
		if diff := cmp.Diff(want, tensor.Of[float32](out[0])); diff != "" {
			t.Fatal(diff)
		}
	})
}
