package array

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func run(t *rapid.T, name string, attrs graph.Attrs, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: name, Attrs: attrs, Const: make([]bool, len(in))}, in...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got[0]
}

func list(v ...int) *tensor.Tensor {
	x := tensor.New(tensor.Int32, len(v))
	for i, e := range v {
		tensor.Of[int32](x)[i] = int32(e)
	}
	return x
}

func shapeOf(t *rapid.T, rank, top int) []int {
	return rapid.SliceOfN(rapid.IntRange(1, top), rank, rank).Draw(t, "shape")
}

// TestInverses inverts operators by their inverses.
func TestInverses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := iota32(shapeOf(t, rapid.IntRange(1, 5).Draw(t, "rank"), 6)...)
		perm := rapid.Permutation([]int{0, 1, 2, 3, 4}[:x.Rank()]).Draw(t, "perm")
		back := make([]int, len(perm))
		for i, a := range perm {
			back[a] = i
		}
		if diff := cmp.Diff(x, run(t, "TRANSPOSE", nil, run(t, "TRANSPOSE", nil, x, list(perm...)), list(back...))); diff != "" {
			t.Fatalf("transpose: %s", diff)
		}
		turn := list(perm[:rapid.IntRange(0, len(perm)).Draw(t, "axes")]...)
		if diff := cmp.Diff(x, run(t, "REVERSE_V2", nil, run(t, "REVERSE_V2", nil, x, turn), turn)); diff != "" {
			t.Fatalf("reverse: %s", diff)
		}
		pads, size := make([]int, 2*x.Rank()), make([]int, x.Rank())
		begin := make([]int, x.Rank())
		for i := range pads {
			pads[i] = rapid.IntRange(0, 3).Draw(t, "pad")
		}
		for i := range size {
			begin[i], size[i] = pads[2*i], x.Shape[i]
		}
		p := list(pads...)
		p.Shape = []int{x.Rank(), 2}
		padded := run(t, "PAD", nil, x, p)
		if diff := cmp.Diff(x, run(t, "SLICE", nil, padded, list(begin...), list(size...))); diff != "" {
			t.Fatalf("pad: %s", diff)
		}
		sum := func(x *tensor.Tensor) (s float32) {
			for _, v := range tensor.Of[float32](x) {
				s += v
			}
			return s
		}
		if sum(padded) != sum(x) {
			t.Fatalf("padding of %v is not zero", pads)
		}
	})
}

func TestSpaceAndDepth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.IntRange(1, 3).Draw(t, "block")
		s := shapeOf(t, 4, 3)
		x := iota32(s[0], s[1]*b, s[2]*b, s[3])
		attrs := graph.Attrs{"block_size": int64(b)}
		if diff := cmp.Diff(x, run(t, "DEPTH_TO_SPACE", attrs, run(t, "SPACE_TO_DEPTH", attrs, x))); diff != "" {
			t.Fatal(diff)
		}
		y := iota32(shapeOf(t, 4, 5)...)
		block := []int{b, rapid.IntRange(1, 3).Draw(t, "other block")}
		var edges []int
		for i, b := range block {
			before := rapid.IntRange(0, 3).Draw(t, "before")
			n := y.Shape[i+1] + before
			edges = append(edges, before, (b-n%b)%b+b*rapid.IntRange(0, 1).Draw(t, "more"))
		}
		e := list(edges...)
		e.Shape = []int{2, 2}
		if diff := cmp.Diff(y, run(t, "BATCH_TO_SPACE_ND", nil, run(t, "SPACE_TO_BATCH_ND", nil, y, list(block...), e), list(block...), e)); diff != "" {
			t.Fatalf("blocks %v, edges %v: %s", block, edges, diff)
		}
	})
}

// TestStridedSliceWalk compares with a walk by hand.
func TestStridedSliceWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "n")
		begin, end := rapid.IntRange(-10, 10).Draw(t, "begin"), rapid.IntRange(-10, 10).Draw(t, "end")
		step := rapid.SampledFrom([]int{-3, -2, -1, 1, 2, 3}).Draw(t, "step")
		beginMask, endMask := rapid.Bool().Draw(t, "begin mask"), rapid.Bool().Draw(t, "end mask")
		x := iota32(n)
		attrs := graph.Attrs{"begin_mask": beginMask, "end_mask": endMask}
		got := slices.Clone(tensor.Of[float32](run(t, "STRIDED_SLICE", attrs, x, list(begin), list(end), list(step))))
		// A step reaches what the same step without limits reaches, if it is between begin and
		// end.
		at := func(i int) int {
			if i < 0 {
				return i + n
			}
			return i
		}
		var want []float32
		i := min(max(at(begin), 0), n)
		if step < 0 {
			i = min(max(at(begin), -1), n-1)
		}
		if beginMask {
			i = 0
			if step < 0 {
				i = n - 1
			}
		}
		for ; i >= 0 && i < n; i += step {
			if !endMask && (step > 0 && i >= at(end) || step < 0 && i <= max(at(end), -1)) {
				break
			}
			want = append(want, float32(i+1))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestJoinAndSplit splits joined tensors.
func TestJoinAndSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(1, 4).Draw(t, "rank")
		axis := rapid.IntRange(0, rank-1).Draw(t, "axis")
		shape := shapeOf(t, rank, 4)
		var parts []*tensor.Tensor
		var sizes []int
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			s := slices.Clone(shape)
			s[axis] = rapid.IntRange(0, 4).Draw(t, "size")
			sizes = append(sizes, s[axis])
			x := iota32(s...)
			for i, v := 0, tensor.Of[float32](x); i < len(v); i++ {
				v[i] += float32(1000 * len(parts))
			}
			parts = append(parts, x)
		}
		joined := run(t, "CONCATENATION", graph.Attrs{"axis": int64(axis - rank)}, parts...)
		got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "SPLIT_V", Outputs: len(parts)}, joined, list(sizes...), scalar(int32(axis)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parts, got); diff != "" {
			t.Fatal(diff)
		}
		packed := run(t, "PACK", graph.Attrs{"axis": int64(axis)}, parts[0], parts[0])
		un, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "UNPACK", Attrs: graph.Attrs{"axis": int64(axis)}, Outputs: 2}, packed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]*tensor.Tensor{parts[0], parts[0]}, un); diff != "" {
			t.Fatal(diff)
		}
	})
}
