package layer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func quant(axis, block int, zero []int64, scale ...float32) *tensor.Quant {
	return &tensor.Quant{Scale: scale, Zero: zero, Axis: axis, Block: block}
}

// TestProductOfScales: the reference kernels multiply the scales of uint8 in float32, of other
// types in float64, and a tenth squared differs between the two.
func TestProductOfScales(t *testing.T) {
	t.Parallel()
	tenth := float32(0.1)
	narrow, wide := fixed.FromReal(float64(tenth*tenth)), fixed.FromReal(float64(tenth)*float64(tenth))
	if narrow == wide {
		t.Fatal("the two are equal")
	}
	for typ, want := range map[tensor.Type]fixed.Multiplier{tensor.Uint8: narrow, tensor.Int8: wide, tensor.Int16: wide} {
		of := func(scale float32) *tensor.Tensor { return &tensor.Tensor{Type: typ, Quant: quant(0, 0, nil, scale)} }
		ms, err := ChannelMultipliers(of(tenth), of(tenth), of(1), 4)
		if err != nil || len(ms) != 1 || ms[0] != want {
			t.Errorf("%v: %+v, %v; want %+v", typ, ms, err, want)
		}
	}
}

func says(t *testing.T, what string, err error, text string) {
	t.Helper()
	if text == "" {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	} else if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: error %v, want %q", what, err, text)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for typ, want := range map[tensor.Type][2]int32{
		tensor.Int2: {-2, 1}, tensor.Int4: {-8, 7}, tensor.Int8: {-128, 127}, tensor.Uint8: {0, 255}, tensor.Int16: {-32768, 32767}, tensor.Uint16: {0, 65535},
		tensor.Int32: {math.MinInt32, math.MaxInt32}, tensor.Int64: {math.MinInt32, math.MaxInt32},
	} {
		if lo, hi := Limits(typ); lo != want[0] || hi != want[1] {
			t.Errorf("%v: %d to %d, want %v", typ, lo, hi, want)
		}
	}
}

func TestRound(t *testing.T) {
	t.Parallel()
	for x, want := range map[float32]int32{0: 0, 0.49: 0, 0.5: 1, 1.5: 2, 2.5: 3, -0.5: -1, -1.5: -2, -0.49: 0} {
		if got := Round(x); got != want {
			t.Errorf("%v: %d, want %d", x, got, want)
		}
	}
}

func TestClampOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		act    string
		typ    tensor.Type
		q      *tensor.Quant
		lo, hi int32
		text   string
	}{
		{"", tensor.Int8, nil, -128, 127, ""},
		{"NONE", tensor.Uint8, nil, 0, 255, ""},
		{"RELU", tensor.Int8, quant(0, 0, []int64{-128}, 1), -128, 127, ""},
		{"RELU", tensor.Int8, quant(0, 0, []int64{5}, 1), 5, 127, ""},
		{"RELU6", tensor.Int8, quant(0, 0, []int64{-10}, 0.5), -10, 2, ""},
		// 600 steps: beyond the type
		{"RELU6", tensor.Int8, quant(0, 0, []int64{-128}, 0.01), -128, 127, ""},
		{"RELU6", tensor.Uint8, quant(0, 0, []int64{0}, 4), 0, 2, ""}, // 1.5 steps go up
		{"RELU_N1_TO_1", tensor.Int8, quant(0, 0, []int64{3}, 0.25), -1, 7, ""},
		{"RELU_N1_TO_1", tensor.Uint8, quant(0, 0, []int64{2}, 0.25), 0, 6, ""},
		{"RELU_N1_TO_1", tensor.Int8, quant(0, 0, []int64{126}, 0.25), 122, 127, ""},
		{"RELU", tensor.Int8, nil, 0, 0, "without quantisation"},
		{"TANH", tensor.Int8, quant(0, 0, nil, 1), 0, 0, "fused activation TANH of integers"},
	} {
		n := call(graph.Attrs{"fused_activation_function": c.act})
		n.Out[0].Type, n.Out[0].Quant = c.typ, c.q
		lo, hi, err := ClampOf(n)
		says(t, c.act, err, c.text)
		if lo != c.lo || hi != c.hi {
			t.Errorf("%s of %v: %d to %d, want %d to %d", c.act, c.typ, lo, hi, c.lo, c.hi)
		}
	}
}

func call(attrs graph.Attrs, in ...*tensor.Tensor) *op.Call {
	return &op.Call{Node: &graph.Node{Op: "X", Attrs: attrs}, In: in, Out: []*tensor.Tensor{{}}}
}

func TestActivation(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		own   string
		fused activation.Clamp
		want  activation.Clamp
		text  string
	}{
		{"NONE", activation.Clamp{}, activation.Clamp{Min: -inf, Max: inf}, ""},
		{"", activation.Clamp{}, activation.Clamp{Min: -inf, Max: inf}, ""},
		{"RELU", activation.Clamp{}, activation.Clamp{On: true, Min: 0, Max: inf}, ""},
		{"RELU6", activation.Clamp{}, activation.Clamp{On: true, Min: 0, Max: 6}, ""},
		{"RELU_N1_TO_1", activation.Clamp{}, activation.Clamp{On: true, Min: -1, Max: 1}, ""},
		{"NONE", activation.Clamp{On: true, Min: 1, Max: 2}, activation.Clamp{On: true, Min: 1, Max: 2}, ""},
		{"RELU6", activation.Clamp{On: true, Min: -5, Max: 5}, activation.Clamp{On: true, Min: 0, Max: 5}, ""},
		{"RELU6", activation.Clamp{On: true, Min: 2, Max: 9}, activation.Clamp{On: true, Min: 2, Max: 6}, ""},
		// Disjoint ranges: the last clamp wins.
		{"RELU6", activation.Clamp{On: true, Min: 8, Max: 9}, activation.Clamp{On: true, Min: 8, Max: 8}, ""},
		{"RELU6", activation.Clamp{On: true, Min: -9, Max: -8}, activation.Clamp{On: true, Min: -8, Max: -8}, ""},
		{"SIGN_BIT", activation.Clamp{}, activation.Clamp{Min: -inf, Max: inf}, "fused activation SIGN_BIT"},
	} {
		k := call(graph.Attrs{"fused_activation_function": c.own})
		k.Activation = c.fused
		got, err := Activation(k)
		says(t, c.own, err, c.text)
		if got != c.want {
			t.Errorf("%s then %+v: %+v, want %+v", c.own, c.fused, got, c.want)
		}
	}
	if got, err := Activation(call(nil)); err != nil || got.On {
		t.Errorf("no attribute: %+v, %v", got, err)
	}
}

// TestSlide checks sizes and padding against the windows themselves. With VALID all taps are
// inside. With SAME each stride begins one window and the missing elements are divided, the
// smaller half before.
func TestSlide(t *testing.T) {
	t.Parallel()
	for in := range 12 {
		for k := 1; k <= 4; k++ {
			for stride := 1; stride <= 4; stride++ {
				for dil := 1; dil <= 3; dil++ {
					reach := (k - 1) * dil // from the first tap to the last
					n := 0
					for at := 0; at+reach < in; at += stride {
						n++
					}
					if w := Slide(in, k, stride, dil, false); w.Out != n || w.Pad != 0 {
						t.Fatalf("valid %d by %d, stride %d, dilation %d: %+v, want %d", in, k, stride, dil, w, n)
					}
					n = 0
					for at := 0; at < in; at += stride {
						n++
					}
					missing := max(0, (n-1)*stride+reach+1-in)
					if w := Slide(in, k, stride, dil, true); w.Out != n || w.Pad != missing/2 {
						t.Fatalf("same %d by %d, stride %d, dilation %d: %+v, want %d with %d before", in, k, stride, dil, w, n, missing/2)
					}
				}
			}
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		attrs graph.Attrs
		h, w  int
		text  string
	}{
		{nil, 1, 1, ""},
		{graph.Attrs{"stride_h": int64(2), "stride_w": int64(3)}, 2, 3, ""},
		{graph.Attrs{"stride_h": int64(0)}, 0, 0, "stride 1x0 is not positive"},
		{graph.Attrs{"stride_w": int64(-1)}, 0, 0, "stride -1x1 is not positive"},
	} {
		h, w, err := Strides(call(c.attrs))
		says(t, "strides", err, c.text)
		if h != c.h || w != c.w {
			t.Errorf("strides %d, %d of %v", h, w, c.attrs)
		}
	}
	for _, c := range []struct{ h, w, wantH, wantW int }{{0, 0, 1, 1}, {1, 2, 1, 2}, {3, 1, 3, 1}, {-1, -5, 1, 1}} {
		if h, w := Dilations(call(graph.Attrs{"dilation_h_factor": int64(c.h), "dilation_w_factor": int64(c.w)})); h != c.wantH || w != c.wantW {
			t.Errorf("dilations %d, %d of %+v", h, w, c)
		}
	}
	if h, w := Dilations(call(nil)); h != 1 || w != 1 {
		t.Errorf("dilations %d, %d of nothing", h, w)
	}
	for padding, want := range map[string]bool{"SAME": true, "VALID": false} {
		if IsSame(call(graph.Attrs{"padding": padding})) != want {
			t.Errorf("padding %s", padding)
		}
	}
	if !IsSame(call(nil)) {
		t.Error("the format's default padding is SAME")
	}
	x := tensor.New(tensor.Float32, 2, 3)
	says(t, "rank", NeedRank(call(nil, x), 0, 2), "")
	says(t, "rank", NeedRank(call(nil, x), 0, 3), "input 0 has rank 2, 3 was expected")
	says(t, "rank", NeedRank(call(nil, x), 1, 2), "input 1 is missing")
	k := call(nil, x)
	if OutType(k, tensor.Int8) != tensor.Int8 {
		t.Error("the output has no type of its own")
	}
	if k.Out[0].Type = tensor.Int16; OutType(k, tensor.Int8) != tensor.Int16 {
		t.Error("the declared type counts")
	}
	if k.Out = nil; OutType(k, tensor.Int8) != tensor.Int8 {
		t.Error("there is no output")
	}
}

func TestLastAxis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ shape, want []int }{
		{[]int{}, []int{1, 1}},
		{[]int{5}, []int{1, 5}},
		{[]int{2, 3, 4}, []int{6, 4}},
		{[]int{2, 0}, []int{0, 0}},
		{[]int{0, 4}, []int{0, 4}},
		{[]int{7, 1}, []int{7, 1}},
	} {
		if rows, depth := LastAxis(tensor.New(tensor.Int8, c.shape...)); rows != c.want[0] || depth != c.want[1] {
			t.Errorf("%v: %d rows of %d, want %v", c.shape, rows, depth, c.want)
		}
	}
}

func TestScales(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		shape  []int
		q      *tensor.Quant
		scales []float32
		zeros  []int32
	}{
		{"one", []int{2, 2}, quant(0, 0, []int64{3}, 0.5), []float32{0.5, 0.5, 0.5, 0.5}, []int32{3, 3, 3, 3}},
		{"one without zero point", []int{2}, quant(0, 0, nil, 2), []float32{2, 2}, []int32{0, 0}},
		{"rows", []int{2, 3}, quant(0, 0, []int64{5, 6}, 1, 2), []float32{1, 1, 1, 2, 2, 2}, []int32{5, 5, 5, 6, 6, 6}},
		{"columns", []int{2, 3}, quant(1, 0, []int64{5, 6, 7}, 1, 2, 3), []float32{1, 2, 3, 1, 2, 3}, []int32{5, 6, 7, 5, 6, 7}},
		{"middle", []int{2, 2, 2}, quant(1, 0, nil, 1, 2), []float32{1, 1, 2, 2, 1, 1, 2, 2}, make([]int32, 8)},
		{"one zero point for all", []int{2, 2}, quant(0, 0, []int64{4}, 1, 2), []float32{1, 1, 2, 2}, []int32{4, 4, 4, 4}},
		{"axis beyond the rank", []int{2}, quant(1, 0, []int64{4, 5}, 1, 2), []float32{1, 1}, []int32{4, 4}},
		{"axis below", []int{2}, quant(-1, 0, []int64{4, 5}, 1, 2), []float32{1, 1}, []int32{4, 4}},
		{"blocks of two", []int{2, 4}, quant(1, 2, []int64{1, 2, 3, 4}, 1, 2, 3, 4), []float32{1, 1, 2, 2, 3, 3, 4, 4}, []int32{1, 1, 2, 2, 3, 3, 4, 4}},
		{"a last block of one", []int{1, 3}, quant(1, 2, nil, 1, 2), []float32{1, 1, 2}, []int32{0, 0, 0}},
		{"blocks of rows", []int{4, 2}, quant(0, 2, nil, 1, 2, 3, 4), []float32{1, 2, 1, 2, 3, 4, 3, 4}, make([]int32, 8)},
	} {
		x := &tensor.Tensor{Type: tensor.Int8, Shape: c.shape, Quant: c.q}
		of := Scales(x)
		for i := range c.scales {
			if s, z := of(i); s != c.scales[i] || z != c.zeros[i] {
				t.Errorf("%s: element %d has %v and %d, want %v and %d", c.name, i, s, z, c.scales[i], c.zeros[i])
			}
		}
	}
}

func TestScaleOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x     *tensor.Tensor
		scale float32
		zero  int32
		text  string
	}{
		{nil, 0, 0, "without quantisation"},
		{&tensor.Tensor{Type: tensor.Int8}, 0, 0, "a int8 tensor without quantisation"},
		{&tensor.Tensor{Type: tensor.Int8, Quant: quant(0, 0, []int64{1})}, 0, 0, "without quantisation"},
		{&tensor.Tensor{Type: tensor.Int8, Quant: quant(0, 0, nil, 2)}, 2, 0, ""},
		{&tensor.Tensor{Type: tensor.Int8, Quant: quant(0, 0, []int64{-128}, 2)}, 2, -128, ""},
	} {
		s, z, err := ScaleOf(c.x)
		says(t, "scale", err, c.text)
		if s != c.scale || z != c.zero || Quantised(c.x) != (c.text == "") {
			t.Errorf("%+v: %v, %d, quantised %v", c.x, s, z, Quantised(c.x))
		}
	}
	a, b := &tensor.Tensor{Quant: quant(0, 0, []int64{1}, 2)}, &tensor.Tensor{Quant: quant(0, 0, []int64{3}, 4)}
	k := call(nil, a)
	k.Out[0] = b
	if si, so, zi, zo, err := InOut(k); si != 2 || so != 4 || zi != 1 || zo != 3 || err != nil {
		t.Error(si, so, zi, zo, err)
	}
	k.Out[0] = &tensor.Tensor{}
	_, _, _, _, err := InOut(k)
	says(t, "no scale of the output", err, "without quantisation")
}

func TestFloats(t *testing.T) {
	t.Parallel()
	of := func(typ tensor.Type, q *tensor.Quant, v ...float64) *tensor.Tensor {
		x := tensor.New(typ, len(v))
		x.Quant = q
		tensor.Fill(x, func(i int) float64 { return v[i] })
		return x
	}
	for _, c := range []struct {
		x    *tensor.Tensor
		want []float32
		text string
	}{
		{nil, nil, ""},
		{of(tensor.Float32, nil, 1, -2), []float32{1, -2}, ""},
		{of(tensor.Float16, nil, 0.5, -2), []float32{0.5, -2}, ""},
		{of(tensor.BFloat16, nil, 0.5, -2), []float32{0.5, -2}, ""},
		{of(tensor.Int8, quant(0, 0, []int64{1}, 0.5), -127, 1, 127), []float32{-64, 0, 63}, ""},
		{of(tensor.Int4, quant(0, 0, nil, 2), -8, 7), []float32{-16, 14}, ""},
		{of(tensor.Int32, quant(0, 0, nil, 0.25), 4, -8), []float32{1, -2}, ""},
		{of(tensor.Int8, nil, 1), nil, "without quantisation"},
		{of(tensor.Int64, quant(0, 0, nil, 1), 1), nil, "int64 values"},
		{of(tensor.Uint32, quant(0, 0, nil, 1), 1), nil, "uint32 values"},
		{of(tensor.Float64, nil, 1), nil, "float64 values"},
	} {
		got, err := Floats(c.x)
		says(t, "floats", err, c.text)
		if err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
	w, err := Weights(of(tensor.Uint8, quant(0, 0, []int64{255}, 1), 0, 255, 254))
	if err != nil || !slices.Equal(w, []int16{-255, 0, -1}) {
		t.Errorf("weights %v, %v", w, err)
	}
	_, err = Weights(of(tensor.Int64, quant(0, 0, nil, 1), 1))
	says(t, "weights", err, "int64 values")
	h, err := HybridWeights(of(tensor.Uint8, quant(0, 0, []int64{9}, 1), 0, 127, 128, 255))
	if err != nil || !slices.Equal(h, []int8{0, 127, -128, -1}) {
		t.Errorf("old hybrid weights %v, %v", h, err)
	}
	h, err = HybridWeights(of(tensor.Int4, nil, -8, 7))
	if err != nil || !slices.Equal(h, []int8{-8, 7}) {
		t.Errorf("hybrid weights of 4 bits %v, %v", h, err)
	}
	for typ, want := range map[tensor.Type]bool{tensor.Int8: true, tensor.Uint8: true, tensor.Int4: true, tensor.Int16: false, tensor.Float16: false, tensor.Float32: false} {
		if IsHybrid(typ) != want {
			t.Errorf("%v is hybrid: %v", typ, !want)
		}
	}
}

func TestChannelMultipliers(t *testing.T) {
	t.Parallel()
	of := func(typ tensor.Type, scale ...float32) *tensor.Tensor {
		x := &tensor.Tensor{Type: typ}
		if scale != nil {
			x.Quant = quant(0, 0, nil, scale...)
		}
		return x
	}
	for _, c := range []struct {
		in, w, out *tensor.Tensor
		want       []float64
		text       string
	}{
		{of(tensor.Int8, 0.5), of(tensor.Int8, 0.25), of(tensor.Int8, 2), []float64{0.0625}, ""},
		{of(tensor.Int8, 0.5), of(tensor.Int8, 0.25, 1, 4), of(tensor.Int8, 2), []float64{0.0625, 0.25, 1}, ""},
		{of(tensor.Uint8, 0.5), of(tensor.Uint8, 0.25), of(tensor.Uint8, 2), []float64{0.0625}, ""},
		{of(tensor.Int8), of(tensor.Int8, 1), of(tensor.Int8, 1), nil, "without quantisation"},
		{of(tensor.Int8, 1), of(tensor.Int8), of(tensor.Int8, 1), nil, "without quantisation"},
		{of(tensor.Int8, 1), of(tensor.Int8, 1), of(tensor.Int8), nil, "without quantisation"},
		{of(tensor.Int8, 1), of(tensor.Int8, 1, 2), of(tensor.Int8, 1), nil, "2 scales for 3 channels"},
	} {
		ms, err := ChannelMultipliers(c.in, c.w, c.out, 3)
		says(t, "multipliers", err, c.text)
		if len(ms) != len(c.want) {
			t.Errorf("%d multipliers, want %v", len(ms), c.want)
			continue
		}
		for i, m := range ms {
			if got := m.Apply(1 << 20); float64(got) != c.want[i]*(1<<20) {
				t.Errorf("multiplier %d makes %d of 2^20, want %v of it", i, got, c.want[i])
			}
		}
	}
}

// TestQuantiseRow: rows of floats become integers: symmetric over 127 steps on each side,
// asymmetric over 255 with zero among them.
func TestQuantiseRow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		asym  bool
		x, q  []float32
		scale float32
		zero  int32
	}{
		{"symmetric", false, []float32{127, -127, 0.4, 0.5, -0.5, 63.5}, []float32{127, -127, 0, 1, -1, 64}, 1, 0},
		{"negative", false, []float32{-254, 2, 100}, []float32{-127, 1, 50}, 2, 0},
		{"zeros", false, []float32{0, 0}, []float32{0, 0}, 1, 0},
		{"nothing", false, nil, nil, 1, 0},
		{"positive", true, []float32{0, 255, 100, 1.4}, []float32{0, 255, 100, 1}, 1, -128},
		// 25.5 goes away from zero
		{"positive without zero", true, []float32{51, 510}, []float32{26, 255}, 2, -128},
		{"ties", true, []float32{-100, 155, 0.5, 1.5, -0.5, -1.5, 99.5}, []float32{-100, 155, 1, 2, -1, -2, 100}, 1, -28},
		// Zero is half-way between two integers if the range is symmetric: the error of the
		// float64 division by the scale decides.
		{"symmetric range up", true, []float32{-4.5350704, 4.5350704}, []float32{-128, 127}, 0.03556918, 0},
		{"symmetric range down", true, []float32{-5.1050577, 5.1050577}, []float32{-127, 128}, 0.04003967, -1},
		{"negative only", true, []float32{-255, -1, -100}, []float32{-255, -1, -100}, 1, 127},
		{"both", true, []float32{-100, 155, 27}, []float32{-100, 155, 27}, 1, -28},
		{"zeros, asymmetric", true, []float32{0, 0, 0}, []float32{0, 0, 0}, 1, 0},
	} {
		q := make([]float32, len(c.x))
		for i := range q {
			q[i] = 99
		}
		scale, zero := QuantiseRow(q, c.x, c.asym)
		if scale != c.scale || zero != c.zero || !slices.Equal(q, c.q) {
			t.Errorf("%s: %v, scale %v, zero %d; want %v, %v, %d", c.name, q, scale, zero, c.q, c.scale, c.zero)
		}
	}
}

// TestHybrid: dot products are integers, in one chunk and in several.
func TestHybrid(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	for _, k := range []int{1, 7, 512, 513, 1024, 1025, 2500} {
		for _, asym := range []bool{false, true} {
			w := tensor.New(tensor.Int8, 3, k)
			w.Quant = quant(0, 0, nil, 0.5, 1, 2)
			x := make([]float32, k)
			var want [3]float64
			for i := range x {
				x[i] = float32((i*37)%128 - 1)
				if x[i] < 0 {
					x[i] = 0
				}
				for n := range 3 {
					v := (i*(n+3))%256 - 128
					tensor.Of[int8](w)[n*k+i] = int8(v)
				}
			}
			x[0] = 127
			if asym {
				x[0] = 255
			}
			for i := range x {
				for n := range 3 {
					want[n] += float64(x[i]) * float64(tensor.Of[int8](w)[n*k+i])
				}
			}
			h, err := NewHybrid(w, 3, k, false, asym)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				sums, scale := h.Row(pool, x)
				if scale != 1 {
					t.Fatalf("scale %v", scale)
				}
				for n, v := range sums {
					if float64(v) != float64(float32(want[n])) {
						t.Errorf("%d products, asymmetric %v: sum %d is %v, want %v", k, asym, n, v, want[n])
					}
				}
			}
			if !slices.Equal(h.Scales(), []float32{0.5, 1, 2}) {
				t.Errorf("scales %v", h.Scales())
			}
		}
	}
	w := tensor.New(tensor.Int8, 3, 2)
	_, err := NewHybrid(w, 3, 2, false, false)
	says(t, "no scale", err, "int8 weights without quantisation")
	w.Quant = quant(0, 0, nil, 1, 2)
	_, err = NewHybrid(w, 3, 2, false, false)
	says(t, "scales", err, "2 scales for 3 rows")
	f := tensor.New(tensor.Int64, 1, 1)
	f.Quant = quant(0, 0, nil, 1)
	_, err = NewHybrid(f, 1, 1, false, false)
	says(t, "type", err, "int64 values")
}

func TestScaleBack(t *testing.T) {
	t.Parallel()
	clamp := activation.Clamp{On: true, Min: 0, Max: 6}
	for _, c := range []struct {
		weights, bias []float32
		act           activation.Clamp
		want          []float32
	}{
		{[]float32{2}, nil, activation.Clamp{}, []float32{1, -2, 10}},
		{[]float32{2, 4, 8}, nil, activation.Clamp{}, []float32{1, -4, 40}},
		{[]float32{2}, []float32{10, 20, 30}, activation.Clamp{}, []float32{11, 18, 40}},
		{[]float32{2}, []float32{1, 1, 1}, clamp, []float32{2, 0, 6}},
	} {
		y := []float32{1, -2, 10}
		if ScaleBack(y, 0.5, c.weights, c.bias, c.act); !slices.Equal(y, c.want) {
			t.Errorf("%v, %v: %v, want %v", c.weights, c.bias, y, c.want)
		}
	}
}

func TestInferSame(t *testing.T) {
	t.Parallel()
	says(t, "nothing", InferSame(call(nil)), "input 0 is missing")
	k := call(nil, tensor.New(tensor.Int8, 2, 3))
	says(t, "one", InferSame(k), "")
	if k.Out[0].Type != tensor.Int8 || !slices.Equal(k.Out[0].Shape, []int{2, 3}) {
		t.Errorf("output %+v", k.Out[0])
	}
	defs := InTFLite([]op.Def{{Name: "A"}, {Name: "B", Domain: graph.TFLiteCustom}})
	if defs[0].Domain != graph.TFLite || defs[1].Domain != graph.TFLiteCustom {
		t.Errorf("domains %q, %q", defs[0].Domain, defs[1].Domain)
	}
}

func TestMap(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	n := 3*Grain + 1
	k := call(nil, tensor.New(tensor.Int16, n))
	k.Pool, k.Out[0] = pool, tensor.New(tensor.Float32, n)
	for i := range n {
		tensor.Of[int16](k.In[0])[i] = int16(i)
	}
	if err := Map(func(v int16) float32 { return float32(v) + 0.5 })(k); err != nil {
		t.Fatal(err)
	}
	for i, v := range tensor.Of[float32](k.Out[0]) {
		if v != float32(int16(i))+0.5 {
			t.Fatalf("element %d is %v", i, v)
		}
	}
}
