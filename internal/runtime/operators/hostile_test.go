package operators

import (
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/flexbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	litearray "github.com/opmeter/opmeter/internal/runtime/tfliteop/array"
	litecontrol "github.com/opmeter/opmeter/internal/runtime/tfliteop/control"
	litewise "github.com/opmeter/opmeter/internal/runtime/tfliteop/elementwise"
	litesignal "github.com/opmeter/opmeter/internal/runtime/tfliteop/signal"
	litestablehlo "github.com/opmeter/opmeter/internal/runtime/tfliteop/stablehlo"
	litevision "github.com/opmeter/opmeter/internal/runtime/tfliteop/vision"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

var (
	hostileTypes = []tensor.Type{
		tensor.Float32, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint32, tensor.Uint64, tensor.Bool,
		tensor.String, tensor.Complex64, tensor.Int4, tensor.Float16, tensor.Resource,
	}
	hostileInts = []string{
		"axis", "batch_dims", "block_size", "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask", "seq_dim", "batch_dim", "ngram_size",
		"max_skip_size", "dimension", "iota_dimension", "index_vector_dim", "fft_length", "shift", "start_index", "end_index", "num_channels", "frame_size", "frame_step",
		"delay_length", "stacker_left_context", "stacker_right_context", "stacker_step", "smoothing_bits", "spectral_subtraction_bits", "snr_shift", "max_detections",
		"max_classes_per_detection", "num_classes", "detections_per_class", "stride", "output_height", "output_width", "left_rotation_idx", "right_rotation_idx",
	}
	hostileLists = []string{
		"new_shape", "squeeze_dims", "permutation", "broadcast_dimensions", "start_indices", "limit_indices", "strides", "edge_padding_low", "edge_padding_high",
		"interior_padding", "slice_sizes", "offset_dims", "collapsed_slice_dims", "start_index_map", "update_window_dims", "inserted_window_dims",
		"scatter_dims_to_operand_dims", "dimensions", "window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding", "subset_idxs",
	}
)

// source draws the numbers of one case, which its seed identifies.
type source struct{ *rand.Rand }

func (r source) between(lo, hi int) int { return lo + r.IntN(hi-lo+1) }
func (r source) coin() bool             { return r.IntN(2) == 0 }

func (r source) list(lo, hi, most int) []int {
	v := make([]int, r.IntN(most+1))
	for i := range v {
		v[i] = r.between(lo, hi)
	}
	return v
}

func pick[T any](r source, v []T) T { return v[r.IntN(len(v))] }

// anyTensor draws a small tensor with small values, because those pass the first checks most
// often.
func anyTensor(r source, known tensor.Type) *tensor.Tensor {
	typ := known
	if r.IntN(3) == 0 || typ == tensor.Invalid {
		typ = pick(r, hostileTypes)
	}
	x := tensor.New(typ, r.list(0, 4, 4)...)
	switch typ {
	case tensor.String:
		for i := range x.Strings {
			x.Strings[i] = pick(r, []string{"", "a", "a b c d e"})
		}
	case tensor.Resource:
		x.Strings = []string{"resource//a"}
	case tensor.Int32:
		for i, v := 0, tensor.Of[int32](x); i < len(v); i++ {
			v[i] = int32(r.between(-2, 4))
		}
	case tensor.Int64:
		for i, v := 0, tensor.Of[int64](x); i < len(v); i++ {
			v[i] = int64(r.between(-2, 4))
		}
	case tensor.Float32:
		for i, v := 0, tensor.Of[float32](x); i < len(v); i++ {
			v[i] = float32(r.between(-2, 4))
		}
	default:
		// Little-endian: the first byte of each element makes it small.
		for i := 0; i < len(x.Data); i += max(typ.Bits()/8, 1) {
			x.Data[i] = byte(r.IntN(4))
		}
	}
	return x
}

// TestHostile gives operators invalid inputs and options: they must return an error or a result,
// but never panic.
func TestHostile(t *testing.T) {
	t.Parallel()
	for _, defs := range [][]op.Def{litearray.Defs(), litecontrol.Defs(), litewise.Defs(), litesignal.Defs(), litestablehlo.Defs(), litevision.Defs()} {
		for _, d := range defs {
			t.Run(d.Name, func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(100) {
					hostile(t, seed, d, defs)
				}
			})
		}
	}
}

func hostile(t *testing.T, seed uint64, d op.Def, defs []op.Def) {
	r := source{rand.New(rand.NewPCG(seed, 1))}
	n := optest.Node{Domain: d.Domain, Op: d.Name, Version: 1, Attrs: graph.Attrs{}, Outputs: r.between(1, 5)}
	custom := map[string]any{}
	for _, k := range hostileInts {
		if r.coin() {
			v := int64(r.between(-2, 6))
			n.Attrs[k], custom[k] = v, v
		}
	}
	for _, k := range hostileLists {
		if r.coin() {
			v, list := []int64{}, []any{}
			for _, e := range r.list(-2, 4, 4) {
				v, list = append(v, int64(e)), append(list, int64(e))
			}
			n.Attrs[k], custom[k] = v, list
		}
	}
	if d.Domain == graph.TFLiteCustom {
		b, err := flexbuffer.Encode(custom)
		if err != nil {
			t.Fatal(err)
		}
		if r.IntN(10) == 0 {
			for i := range b {
				x, y, z := r.Uint32(), r.Uint32(), r.Uint32()
				b[i] ^= byte(x & y & z)
			}
		}
		n.Attrs["custom_options"] = b
	}
	for range n.Outputs {
		n.OutTypes = append(n.OutTypes, pick(r, hostileTypes))
	}
	in := make([]*tensor.Tensor, r.IntN(7))
	var first tensor.Type
	if len(d.Types) > 0 {
		first = pick(r, d.Types)
	}
	for i := range in {
		in[i] = anyTensor(r, first)
		if first == tensor.Invalid {
			first = in[i].Type
		}
		n.Const = append(n.Const, r.coin())
	}
	var before []*tensor.Tensor
	for _, x := range in {
		before = append(before, x.Clone())
	}
	func() {
		defer func() {
			if e := recover(); e != nil {
				t.Fatalf("seed %d: panic: %v\n%s", seed, e, debug.Stack())
			}
		}()
		// Both errors and results are acceptable here.
		_, _ = optest.Run(defs, n, in...)
	}()
	for i, x := range in {
		if !slices.Equal(x.Data, before[i].Data) || !slices.Equal(x.Strings, before[i].Strings) {
			t.Fatalf("seed %d: input %d was changed", seed, i)
		}
	}
}
