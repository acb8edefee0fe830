package count_test

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
)

// TestHostileNodes gives every rule random inputs, shapes and attributes: no
// panic, no negative figure.
func TestHostileNodes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	sizes := []int{0, 1, 2, 3, 4, 8, 17, 1 << 20, 1 << 31, -1, -7}
	numbers := []int64{0, 1, 2, 3, 5, -1, 1 << 40, -1 << 62}
	names := []string{
		"stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor", "depth_multiplier", "filter_height", "filter_width", "radius", "size", "group",
		"q_num_heads", "kv_num_heads", "num_heads", "sampling_ratio", "axis", "num_scan_inputs", "kernel_output_feature_dimension", "stride_d", "dilation_d_factor",
	}
	lists := []string{"strides", "dilations", "pads", "kernel_shape", "lhs_contracting_dimensions", "window_dimensions", "scan_input_axes", "qkv_hidden_sizes"}
	words := map[string][]string{
		"padding": {"SAME", "VALID", "?"}, "auto_pad": {"SAME_UPPER", "SAME_LOWER", "VALID"}, "mode": {"linear", "cubic", "?"}, "kernel_type": {"BASIC", "FULL"},
		"equation": {"ij,jk->ik", "...i,...i", "i...i", "..., ->", "ü,ü", "->", "abc"}, "update_rule": {"linear", "delta"}, "fused_activation_function": {"RELU6", "?"},
	}
	random := func() *tensor.Tensor {
		switch r.IntN(12) {
		case 0:
			return nil
		case 1:
			return ints(numbers[r.IntN(len(numbers))])
		case 2:
			return &tensor.Tensor{Type: tensor.Sequence}
		case 3:
			return &tensor.Tensor{}
		}
		x := &tensor.Tensor{Type: tensor.Float32}
		for range r.IntN(6) {
			n := 6
			if r.IntN(20) == 0 {
				n = len(sizes)
			}
			x.Shape = append(x.Shape, sizes[r.IntN(n)])
		}
		return x
	}
	m, g := &graph.Model{Graphs: []*graph.Graph{{}}}, &graph.Graph{}
	counted := 0
	for _, rule := range count.Rules() {
		for _, op := range rule.Names {
			for range 60 {
				n := &graph.Node{Domain: rule.Domain, Op: op, Attrs: graph.Attrs{}, Version: r.IntN(25)}
				for _, a := range names {
					if r.IntN(3) == 0 {
						n.Attrs[a] = numbers[r.IntN(len(numbers))]
					}
				}
				for _, a := range lists {
					if r.IntN(3) == 0 {
						v := make([]int64, r.IntN(5))
						for i := range v {
							v[i] = numbers[r.IntN(len(numbers))]
						}
						n.Attrs[a] = v
					}
				}
				for a, w := range words {
					if r.IntN(3) == 0 {
						n.Attrs[a] = w[r.IntN(len(w))]
					}
				}
				var in, out []*tensor.Tensor
				for range r.IntN(8) {
					in = append(in, random())
				}
				for range r.IntN(3) {
					out = append(out, random())
				}
				w := count.Count(m, g, n, in, out)
				describe.Options(n)
				count.Bodies(m, n, in, out)
				for _, v := range []*int64{w.Ops, w.MACs, w.MACsExecuted, w.MLTKOps, w.MLTKMACs, w.Params, w.WeightBytes, w.BytesRead, w.BytesWritten} {
					if v != nil && *v < 0 {
						t.Fatalf("%s %v: %d", op, n.Attrs, *v)
					}
				}
				if w.MACs != nil && *w.MACs > 0 {
					counted++
				}
			}
		}
	}
	t.Logf("%d with multiply-accumulates", counted)
}
