package mvp

import (
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

func value(typ tensor.Type, shape ...int) *tensor.Tensor {
	return &tensor.Tensor{Type: typ, Shape: shape, Quant: &tensor.Quant{Scale: []float32{1}, Zero: []int64{-128}}}
}

// Verdicts and messages for layers that the accelerator does and does not take.
func TestAccelerate(t *testing.T) {
	t.Parallel()
	i8, f32 := tensor.Int8, tensor.Float32
	conv := graph.Attrs{"padding": "VALID", "stride_w": int64(1), "stride_h": int64(1), "fused_activation_function": "NONE"}
	with := func(k string, v any) graph.Attrs {
		a := graph.Attrs{}
		for n, x := range conv {
			a[n] = x
		}
		a[k] = v
		return a
	}
	tests := []struct {
		name    string
		op      string
		attrs   graph.Attrs
		in      []*tensor.Tensor
		out     *tensor.Tensor
		verdict chip.Verdict
		reason  string
	}{
		{"conv", "CONV_2D", conv, []*tensor.Tensor{value(i8, 1, 8, 8, 4), value(i8, 8, 3, 3, 4)}, value(i8, 1, 6, 6, 8), chip.Accelerated, ""},
		{"softmax", "SOFTMAX", nil, []*tensor.Tensor{value(i8, 1, 8)}, value(i8, 1, 8), chip.NotOperator, "not an MVP operator"},
		{"float", "CONV_2D", conv, []*tensor.Tensor{value(f32, 1, 8, 8, 4), value(f32, 8, 3, 3, 4)}, value(f32, 1, 6, 6, 8), chip.WrongType, "wrong type: MVP takes int8, this layer has float32"},
		{"hybrid", "FULLY_CONNECTED", nil, []*tensor.Tensor{value(f32, 1, 8), value(i8, 4, 8)}, value(f32, 1, 4), chip.WrongType, "wrong type: MVP takes int8, this layer has float32"},
		{"dilation", "CONV_2D", with("dilation_w_factor", int64(2)), []*tensor.Tensor{value(i8, 1, 8, 8, 4), value(i8, 8, 3, 3, 4)}, value(i8, 1, 6, 4, 8), chip.Limit, "its filter is dilated, and programs walk filters without gaps"},
		{"wide output", "CONV_2D", conv, []*tensor.Tensor{value(i8, 1, 2, 2, 160), value(i8, 1280, 1, 1, 160)}, value(i8, 1, 2, 2, 1280), chip.Limit, "there are 1280 channels of the output, a dimension of an array takes at most 1024"},
		{"row of outputs", "CONV_2D", conv, []*tensor.Tensor{value(i8, 1, 36, 36, 3), value(i8, 64, 5, 5, 3)}, value(i8, 1, 32, 32, 64), chip.Limit, "neighbouring rows of the output are 2048 elements apart, a stride reaches at most 2047"},
		{"deep and odd", "FULLY_CONNECTED", nil, []*tensor.Tensor{value(i8, 1, 1025), value(i8, 4, 1025)}, value(i8, 1, 4), chip.Limit, "a row of weights has 1025 values, a dimension of an array takes at most 1024"},
		{"deep prime", "FULLY_CONNECTED", nil, []*tensor.Tensor{value(i8, 1, 4*1031), value(i8, 4, 4*1031)}, value(i8, 1, 4), chip.Limit, "a row of weights has 4124 values, a dimension of an array takes at most 2048"},
		{"deep", "FULLY_CONNECTED", nil, []*tensor.Tensor{value(i8, 1, 4000), value(i8, 4, 4000)}, value(i8, 1, 4), chip.Accelerated, ""},
		{"many outputs", "FULLY_CONNECTED", nil, []*tensor.Tensor{value(i8, 1, 16), value(i8, 1025, 16)}, value(i8, 1, 1025), chip.Limit, "there are 1025 outputs, a dimension of an array takes at most 1024"},
		{"broadcast", "ADD", nil, []*tensor.Tensor{value(i8, 1, 8, 4), value(i8, 4)}, value(i8, 1, 8, 4), chip.NotOperator, "not an MVP operator where shapes are broadcast"},
		{"impossible shape", "CONV_2D", conv, []*tensor.Tensor{value(i8, 1, 8, 8, 4), value(i8, 8, 3, 3, 4)}, value(i8, 1, 600, 600, 8), chip.Limit, "its output shape does not follow from the input shape"},
		{"no stride", "CONV_2D", with("stride_w", int64(0)), []*tensor.Tensor{value(i8, 1, 8, 8, 4), value(i8, 8, 3, 3, 4)}, value(i8, 1, 6, 6, 8), chip.Limit, "one of its sizes, strides or dilations is 0; 1 to 32768 can be planned"},
		{"huge", "MAX_POOL_2D", graph.Attrs{"padding": "SAME", "filter_width": int64(2), "filter_height": int64(2)}, []*tensor.Tensor{value(i8, 1, 1<<30, 1<<30, 1)}, value(i8, 1, 1<<30, 1<<30, 1), chip.Limit, "one of its sizes, strides or dilations is 1073741824; 1 to 32768 can be planned"},
		{"large window", "AVERAGE_POOL_2D", with("filter_height", int64(30)), []*tensor.Tensor{value(i8, 1, 30, 1024, 4)}, value(i8, 1, 1, 1024, 4), chip.Limit, "neighbouring rows of the output are 2048 elements apart, a stride reaches at most 2047"},
	}
	m := shipped(t, "tflm-mvp")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, verdict, reason := m.accelerate(&graph.Node{Domain: graph.TFLite, Op: tt.op, Attrs: tt.attrs}, tt.in, []*tensor.Tensor{tt.out})
			if verdict != tt.verdict || reason != tt.reason {
				t.Errorf("%s %q, want %s %q", verdict, reason, tt.verdict, tt.reason)
			}
		})
	}
}

// A fused activation needs programs of its own only when it narrows int8.
func TestClips(t *testing.T) {
	t.Parallel()
	q := func(scale float32, zero int64) *tensor.Quant {
		return &tensor.Quant{Scale: []float32{scale}, Zero: []int64{zero}}
	}
	tests := []struct {
		name string
		act  string
		q    *tensor.Quant
		want bool
	}{
		{"none", "NONE", q(0.1, 3), false},
		{"relu at the end of the range", "RELU", q(0.1, -128), false},
		{"relu inside", "RELU", q(0.1, -100), true},
		{"relu6 over the whole range", "RELU6", q(6.0/255, -128), false},
		{"relu6 inside", "RELU6", q(0.1, -128), true},
		{"not quantised", "RELU", nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := clips(tt.act, tt.q); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// A kernel that refuses a layer is told although another one takes it.
func TestRefused(t *testing.T) {
	t.Parallel()
	c, err := FullyConnected(1, 4000, 4, false)
	if err != nil || c.Refused != "a row of weights has 4000 values, a dimension of an array takes at most 2048" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := FullyConnected(1, 1000, 4, false); err != nil || c.Refused != "" {
		t.Errorf("%+v, %v", c, err)
	}
}

// Wide one-dimensional convolutions are done in chunks.
func TestConvLine(t *testing.T) {
	t.Parallel()
	w := Window{Batch: 1, H: 1, W: 4000, C: 2, FH: 1, FW: 3, OH: 1, OW: 3998, OC: 2, StrideX: 1, StrideY: 1, DilationX: 1, DilationY: 1}
	c, err := Conv(w, First)
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(3998 * 2); c.Stores != want || c.Programs < 4 {
		t.Errorf("%d results in %d programs, want %d in at least 4", c.Stores, c.Programs, want)
	}
}

// What an estimate lacks is told apart by code.
func TestMissing(t *testing.T) {
	t.Parallel()
	p := newProcessor(map[string]float64{"op.LOGISTIC.int8.element": 686})
	for _, tt := range []struct {
		name, op string
		domain   string
		typ      tensor.Type
		want     chip.MissingCode
	}{
		{"another type", "LOGISTIC", graph.TFLite, tensor.Float32, chip.MissingType},
		{"not measured", "TANH", graph.TFLite, tensor.Int8, chip.MissingData},
		{"custom", "Foo", graph.TFLiteCustom, tensor.Int8, chip.MissingOperator},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &graph.Node{Domain: tt.domain, Op: tt.op}
			x := []*tensor.Tensor{value(tt.typ, 1, 8)}
			if _, _, m := p.cycles(nil, nil, n, x, x); m == nil || m.Code != tt.want || m.Text == "" {
				t.Errorf("%+v, want %s", m, tt.want)
			}
		})
	}
}
