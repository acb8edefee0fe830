package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestConstantIndices uses indices as constants, whose offsets are computed once, and as inputs.
func TestConstantIndices(t *testing.T) {
	t.Parallel()
	idx := func(shape []int, v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, shape, v) }
	x := tensor.New(tensor.Float32, 4, 6)
	tensor.Fill(x, func(i int) float64 { return float64(i) })
	updates := func(shape ...int) *tensor.Tensor {
		u := tensor.New(tensor.Float32, shape...)
		tensor.Fill(u, func(i int) float64 { return float64(100 + i) })
		return u
	}
	for _, tt := range []struct {
		name, op string
		axis     int
		in       []*tensor.Tensor
	}{
		{"rows", "Gather", 0, []*tensor.Tensor{x, idx([]int{3}, 1, 2, 0)}},
		{"runs", "Gather", 1, []*tensor.Tensor{x, idx([]int{2, 3}, 1, 2, 3, -3, 4, 5)}},
		{"one", "Gather", 1, []*tensor.Tensor{x, idx(nil, 2)}},
		{"none", "Gather", 1, []*tensor.Tensor{x, idx([]int{0})}},
		{"tuples", "GatherND", 0, []*tensor.Tensor{x, idx([]int{4, 2}, 0, 1, 0, 2, 3, 4, 3, 5)}},
		{"elements", "GatherElements", 1, []*tensor.Tensor{x, idx([]int{2, 3}, 0, 1, 2, 5, 5, 0)}},
		{"into tuples", "ScatterND", 0, []*tensor.Tensor{x, idx([]int{2, 1}, 3, 1), updates(2, 6)}},
		{"into elements", "ScatterElements", 0, []*tensor.Tensor{x, idx([]int{2, 2}, 3, 0, 1, 0), updates(2, 2)}},
	} {
		node := optest.Node{Op: tt.op, Version: 13, Attrs: graph.Attrs{}}
		if tt.op != "GatherND" && tt.op != "ScatterND" {
			node.Attrs["axis"] = int64(tt.axis)
		}
		want, err := optest.Run(Defs(), node, tt.in...)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		node.Const = []bool{false, true, false}[:len(tt.in)]
		got, err := optest.Run(Defs(), node, tt.in...)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tensor.Of[float32](want[0]), tensor.Of[float32](got[0])); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestNonZeroTruths compares the coordinates of booleans with those of numbers.
func TestNonZeroTruths(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{}, {7}, {3, 5}, {2, 3, 4}, {2, 0, 3}, {300}} {
		truths, numbers := tensor.New(tensor.Bool, shape...), tensor.New(tensor.Float32, shape...)
		for i := range numbers.Len() {
			if i*i%3 == 1 {
				truths.Data[i], tensor.Of[float32](numbers)[i] = 1, 5
			}
		}
		node := optest.Node{Op: "NonZero", Version: 13}
		want, err := optest.Run(Defs(), node, numbers)
		if err != nil {
			t.Fatal(err)
		}
		got, err := optest.Run(Defs(), node, truths)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tensor.Of[int64](want[0]), tensor.Of[int64](got[0])); diff != "" || !cmp.Equal(want[0].Shape, got[0].Shape) {
			t.Errorf("%v: %s", shape, diff)
		}
	}
}
