package contrib

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestEmpty runs layers with each extent of each input set to zero or one: they must return an
// error or an empty result, and never divide by an extent of zero.
func TestEmpty(t *testing.T) {
	t.Parallel()
	f, i8 := tensor.Float32, tensor.Int8
	tried := 0
	for _, c := range []struct {
		op     string
		attrs  graph.Attrs
		types  []tensor.Type // of the inputs, the last for all that follow
		shapes [][]int
	}{
		{"Conv", nil, nil, [][]int{{2, 4, 5, 6}, {6, 4, 3, 3}, {6}}},
		{"Conv", graph.Attrs{"group": int64(4)}, nil, [][]int{{2, 4, 5, 6}, {4, 1, 3, 3}, {4}}},
		{"Conv", graph.Attrs{"pads": []int64{1, 1, 1, 1}}, nil, [][]int{{1, 16, 6, 6}, {16, 16, 3, 3}}},
		{"Conv", nil, nil, [][]int{{2, 4, 5}, {6, 4, 3}}},
		{"Conv", nil, nil, [][]int{{2, 4, 5, 5, 5}, {6, 4, 3, 3, 3}}},
		{"ConvTranspose", nil, nil, [][]int{{2, 4, 5, 6}, {4, 6, 3, 3}, {6}}},
		{"ConvInteger", nil, []tensor.Type{i8}, [][]int{{2, 4, 5, 6}, {6, 4, 3, 3}}},
		{"DeformConv", nil, nil, [][]int{{2, 4, 5, 6}, {6, 4, 3, 3}, {2, 18, 3, 4}, {6}, {2, 9, 3, 4}}},
		{"MaxPool", graph.Attrs{"kernel_shape": []int64{3, 3}}, nil, [][]int{{2, 4, 5, 6}}},
		{"AveragePool", graph.Attrs{"kernel_shape": []int64{3, 3}}, nil, [][]int{{2, 4, 5, 6}}},
		{"LpPool", graph.Attrs{"kernel_shape": []int64{3, 3}}, nil, [][]int{{2, 4, 5, 6}}},
		{"GlobalAveragePool", nil, nil, [][]int{{2, 4, 5, 6}}},
		{"GlobalMaxPool", nil, nil, [][]int{{2, 4, 5, 6}}},
		{"Gemm", nil, nil, [][]int{{3, 4}, {4, 5}, {5}}},
		{"MatMul", nil, nil, [][]int{{2, 3, 4}, {2, 4, 5}}},
		{"MatMulInteger", nil, []tensor.Type{i8}, [][]int{{3, 4}, {4, 5}}},
		{"LayerNormalization", nil, nil, [][]int{{2, 3, 4}, {4}, {4}}},
		{"InstanceNormalization", nil, nil, [][]int{{2, 3, 4, 5}, {3}, {3}}},
		{"GroupNormalization", graph.Attrs{"num_groups": int64(2)}, nil, [][]int{{2, 4, 4, 5}, {4}, {4}}},
		{"BatchNormalization", nil, nil, [][]int{{2, 3, 4, 5}, {3}, {3}, {3}, {3}}},
		{"LRN", graph.Attrs{"size": int64(3)}, nil, [][]int{{2, 3, 4, 5}}},
		{"LpNormalization", nil, nil, [][]int{{2, 3, 4, 5}}},
		{"MeanVarianceNormalization", nil, nil, [][]int{{2, 3, 4, 5}}},
		{"LSTM", graph.Attrs{"hidden_size": int64(3)}, nil, [][]int{{2, 1, 4}, {1, 12, 4}, {1, 12, 3}}},
		{"GRU", graph.Attrs{"hidden_size": int64(3)}, nil, [][]int{{2, 1, 4}, {1, 9, 4}, {1, 9, 3}}},
		{"RNN", graph.Attrs{"hidden_size": int64(3)}, nil, [][]int{{2, 1, 4}, {1, 3, 4}, {1, 3, 3}}},
		{"Attention", nil, nil, [][]int{{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 4}}},
	} {
		for i, shape := range c.shapes {
			for d := range shape {
				for _, extent := range []int{0, 1} {
					var in []*tensor.Tensor
					for k, s := range c.shapes {
						if k == i {
							s = slices.Clone(s)
							s[d] = extent
						}
						typ := f
						if len(c.types) > 0 {
							typ = c.types[min(k, len(c.types)-1)]
						}
						in = append(in, tensor.New(typ, s...))
					}
					for _, fixed := range []bool{false, true} {
						constant := make([]bool, len(in))
						for k := 1; k < len(in); k++ {
							constant[k] = fixed
						}
						tried++
						n := optest.Node{Domain: graph.ONNX, Op: c.op, Version: 21, Attrs: c.attrs, Const: constant}
						if why := crash(n, in); why != "" {
							t.Errorf("%s, input %d with %s: %s", c.op, i, tensor.FormatShape(in[i].Shape), why)
						}
					}
				}
			}
		}
	}
	if tried < 400 {
		t.Errorf("%d variants", tried)
	}
}

func crash(n optest.Node, in []*tensor.Tensor) (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprint(r) + string(debug.Stack())
		}
	}()
	_, _ = optest.Run(allDefs(), n, in...)
	return ""
}
