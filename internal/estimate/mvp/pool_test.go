package mvp

import (
	"maps"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Pools take an instruction for each element of a window and two for each result, and
// the average loses a cycle before it divides.
func TestPoolCounts(t *testing.T) {
	t.Parallel()
	windows(func(w Window) {
		for _, kernel := range []Kernel{KernelMaxPool, KernelAveragePool} {
			w.Batch = 2
			c, err := pool(w, kernel)
			if err != nil {
				continue
			}
			pairs := int64(w.C)
			if w.C%2 == 0 {
				pairs /= 2
			}
			stores := 2 * pairs * int64(w.OH*w.OW)
			if c.Kernel != kernel || c.Stores != stores || c.pixels != int64(2*w.OH*w.OW) {
				t.Fatalf("%+v: %+v, want %d results", w, *c, stores)
			}
			if got, want := c.Instructions-c.NoOps, 2*pairs*taps(&w)+2*stores; got != want {
				t.Fatalf("%s of %+v: %d instructions beside no-ops, want %d", kernel, w, got, want)
			}
			if want := map[Kernel]int64{KernelAveragePool: stores}[kernel]; c.Stalls != want {
				t.Fatalf("%s of %+v: %d stalls, want %d", kernel, w, c.Stalls, want)
			}
			if c.Programs < 2*pairs || c.Programs > stores {
				t.Fatalf("%+v: %d programs for %d results", w, c.Programs, stores)
			}
			w.Clip = true
			clipped, err := pool(w, kernel)
			if err != nil || clipped.Instructions != c.Instructions+stores || clipped.Stalls != c.Stalls || clipped.NoOps != c.NoOps {
				t.Fatalf("%+v clipped: %+v, %v", w, clipped, err)
			}
			w.Clip = false
		}
	})
}

// Rows that a walk steps over without reading: two are free, one where the loop ends,
// each further one is an instruction that does nothing.
func TestPoolSkippedRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ stride, noOps int }{{1, 0}, {2, 0}, {3, 0}, {4, 1}, {5, 1}, {6, 2}, {7, 3}} {
		w := Window{Batch: 1, H: 22, W: 3, C: 2, FH: 1, FW: 1, OH: 21/tt.stride + 1, OW: 3, OC: 2, StrideX: 1, StrideY: tt.stride, DilationX: 1, DilationY: 1}
		for _, kernel := range []Kernel{KernelMaxPool, KernelAveragePool} {
			c, err := pool(w, kernel)
			if err != nil {
				t.Fatal(err)
			}
			if want := int64(3 * w.OH * tt.noOps); c.NoOps != want {
				t.Errorf("%s, stride %d: %d no-ops, want %d", kernel, tt.stride, c.NoOps, want)
			}
		}
		w.OC, w.C = 1, 1
		c, err := Conv(w, First)
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(3 * w.OH * tt.noOps); c.NoOps != want || c.strideNoOps != 0 {
			t.Errorf("convolution, stride %d: %d no-ops, want %d", tt.stride, c.NoOps, want)
		}
	}
	// Windows that overlap are done in passes; where rows of a pass are too far apart to
	// store in one step, a result takes one step more.
	for c, noOps := range map[int]int64{100: 0, 200: 1} {
		w := Window{Batch: 1, H: 9, W: 10, C: c, FH: 2, FW: 1, OH: 8, OW: 10, OC: c, StrideX: 1, StrideY: 1, DilationX: 1, DilationY: 1}
		for _, kernel := range []Kernel{KernelAveragePool, KernelMaxPool} {
			got, err := pool(w, kernel)
			if err != nil || got.NoOps != noOps*int64(c/2)*80 {
				t.Errorf("%s of %d channels: %+v, %v", kernel, c, got, err)
			}
		}
	}
}

// Which kernel takes an average: single pixels while their number is at most nine
// tenths of the products of one, rounded.
func TestAverageChoice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		w    Window
		want Kernel
	}{
		{window1(6, 2, 6, 1, 2), KernelAveragePoolPixel},
		{window1(7, 2, 2, 1, 2), KernelAveragePool}, // 36 pixels, 7.2 products
		// 9 * 10 / 10 = 9 pixels are at the bound, 10 beyond it.
		{Window{Batch: 1, H: 1, W: 18, C: 1, FH: 1, FW: 10, OH: 1, OW: 9, OC: 1, StrideX: 1, StrideY: 1, DilationX: 1, DilationY: 1}, KernelAveragePoolPixel},
		{Window{Batch: 1, H: 1, W: 19, C: 1, FH: 1, FW: 10, OH: 1, OW: 10, OC: 1, StrideX: 1, StrideY: 1, DilationX: 1, DilationY: 1}, KernelAveragePool},
	} {
		c, err := AveragePool(tt.w)
		if err != nil || c.Kernel != tt.want {
			t.Errorf("%+v: %+v, %v, want %s", tt.w, c, err, tt.want)
		}
	}
	// Windows of 512 elements are summed exactly, larger ones are not.
	for n, ok := range map[int]bool{512: true, 513: false} {
		w := Window{Batch: 1, H: 1, W: 3000, C: 1, FH: 1, FW: n, OH: 1, OW: 4, OC: 1, StrideX: 3, StrideY: 1, DilationX: 1, DilationY: 1}
		w.W = n + 9
		if _, err := pool(w, KernelAveragePool); (err == nil) != ok {
			t.Errorf("%d elements: %v", n, err)
		}
		if _, err := pool(w, KernelMaxPool); err != nil {
			t.Errorf("maximum of %d elements: %v", n, err)
		}
	}
}

// Inputs and geometries that make a layer's shapes impossible, and the sizes that follow
// from each padding.
func TestGeometry(t *testing.T) {
	t.Parallel()
	i8 := tensor.Int8
	list := func(ts ...*tensor.Tensor) []*tensor.Tensor { return ts }
	attrs := func(kv ...any) graph.Attrs {
		a := graph.Attrs{}
		for i := 0; i < len(kv); i += 2 {
			a[kv[i].(string)] = kv[i+1]
		}
		return a
	}
	valid2 := attrs("padding", "VALID", "stride_w", int64(2), "stride_h", int64(2))
	const accelerated = "(accelerated)"
	for _, tt := range []struct {
		name, op string
		attrs    graph.Attrs
		in       []*tensor.Tensor
		out      *tensor.Tensor
		reason   string
	}{
		{"valid, stride 2", "CONV_2D", valid2, list(value(i8, 1, 9, 9, 4), value(i8, 8, 3, 3, 4)), value(i8, 1, 4, 4, 8), accelerated},
		{"valid, one more", "CONV_2D", valid2, list(value(i8, 1, 9, 9, 4), value(i8, 8, 3, 3, 4)), value(i8, 1, 5, 4, 8), "its output shape"},
		{"same, stride 2", "CONV_2D", attrs("stride_w", int64(2), "stride_h", int64(2)), list(value(i8, 1, 9, 9, 4), value(i8, 8, 3, 3, 4)), value(i8, 1, 5, 5, 8), accelerated},
		{"same, one fewer", "CONV_2D", attrs("stride_w", int64(2), "stride_h", int64(2)), list(value(i8, 1, 9, 9, 4), value(i8, 8, 3, 3, 4)), value(i8, 1, 5, 4, 8), "its output shape"},
		{"dilated depthwise", "DEPTHWISE_CONV_2D", attrs("padding", "VALID", "dilation_w_factor", int64(2), "dilation_h_factor", int64(2)), list(value(i8, 1, 20, 20, 4), value(i8, 1, 3, 3, 4)), value(i8, 1, 16, 16, 4), accelerated},
		{"dilated depthwise, same", "DEPTHWISE_CONV_2D", attrs("dilation_w_factor", int64(2), "dilation_h_factor", int64(2)), list(value(i8, 1, 20, 20, 4), value(i8, 1, 3, 3, 4)), value(i8, 1, 20, 20, 4), "its filter is dilated beyond"},
		{"groups", "CONV_2D", attrs("padding", "VALID"), list(value(i8, 1, 8, 8, 4), value(i8, 8, 3, 3, 2)), value(i8, 1, 6, 6, 8), "its channels are convolved in groups"},
		{"odd multiplier", "DEPTHWISE_CONV_2D", attrs("padding", "VALID"), list(value(i8, 1, 8, 8, 4), value(i8, 1, 3, 3, 6)), value(i8, 1, 6, 6, 6), "its channels cannot"},
		{"filter of three", "CONV_2D", nil, list(value(i8, 1, 8, 8, 4), value(i8, 8, 3, 4)), value(i8, 1, 8, 8, 8), "its filter cannot"},
		{"input of three", "CONV_2D", nil, list(value(i8, 8, 8, 4), value(i8, 8, 3, 3, 4)), value(i8, 1, 8, 8, 8), "its input and output cannot"},
		{"output of three", "MAX_POOL_2D", nil, list(value(i8, 1, 8, 8, 4)), value(i8, 8, 8, 4), "its input and output cannot"},
		{"one input", "CONV_2D", nil, list(value(i8, 1, 8, 8, 4)), value(i8, 1, 8, 8, 8), "an input is missing"},
		{"absent input", "CONV_2D", nil, list(value(i8, 1, 8, 8, 4), nil), value(i8, 1, 8, 8, 8), "wrong type: MVP takes int8, this layer has absent"},
		{"no output", "ADD", nil, list(value(i8, 4), value(i8, 4)), nil, "no output"},
		{"two inputs of three", "TRANSPOSE_CONV", nil, list(value(i8, 4), value(i8, 2, 2, 2, 2)), value(i8, 1, 8, 8, 2), "an input is missing"},
		{"transposed", "TRANSPOSE_CONV", attrs("stride_w", int64(2), "stride_h", int64(2)), list(value(tensor.Int32, 4), value(i8, 2, 2, 2, 2), value(i8, 1, 4, 4, 2)), value(i8, 1, 8, 8, 2), accelerated},
		{"transposed float", "TRANSPOSE_CONV", nil, list(value(tensor.Int32, 4), value(i8, 2, 2, 2, 2), value(tensor.Float32, 1, 4, 4, 2)), value(i8, 1, 8, 8, 2), "wrong type: MVP takes int8, this layer has float32"},
		{"output of 32 bits", "MUL", nil, list(value(i8, 4), value(i8, 4)), value(tensor.Int32, 4), "wrong type: MVP takes int8, this layer has int32"},
		{"product", "MUL", nil, list(value(i8, 4), value(i8, 4)), value(i8, 4), accelerated},
		{"weights of three", "FULLY_CONNECTED", nil, list(value(i8, 2, 4), value(i8, 1, 3, 4)), value(i8, 2, 3), "its weights cannot"},
		{"empty weights", "FULLY_CONNECTED", nil, list(value(i8, 2, 4), value(i8, 3, 0)), value(i8, 2, 3), "its weights cannot"},
		{"no outputs", "FULLY_CONNECTED", nil, list(value(i8, 2, 4), value(i8, 0, 4)), value(i8, 2, 0), "its weights cannot"},
		{"depth of 1", "FULLY_CONNECTED", nil, list(value(i8, 2, 1), value(i8, 1, 1)), value(i8, 2, 1), accelerated},
		{"half a row", "FULLY_CONNECTED", nil, list(value(i8, 2, 3), value(i8, 3, 4)), value(i8, 2, 3), "its input cannot"},
	} {
		_, verdict, reason := shipped(t, "tflm-mvp").accelerate(&graph.Node{Domain: graph.TFLite, Op: tt.op, Attrs: tt.attrs}, tt.in, list(tt.out))
		if verdict == chip.Accelerated {
			reason = accelerated
		}
		if !strings.HasPrefix(reason, tt.reason) {
			t.Errorf("%s: %q, want %q", tt.name, reason, tt.reason)
		}
	}
}

// Padding of a transposed convolution is what the output lacks of the full one.
func TestTransposedPadding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		padding      string
		n, f, stride int
		out, pad     int
	}{{"SAME", 4, 3, 2, 8, 0}, {"SAME", 4, 5, 2, 8, 1}, {"SAME", 4, 5, 1, 4, 2}, {"SAME", 4, 2, 3, 12, 0}, {"VALID", 4, 5, 2, 11, 0}} {
		a := graph.Attrs{"padding": tt.padding, "stride_h": int64(tt.stride), "stride_w": int64(tt.stride)}
		in := []*tensor.Tensor{value(tensor.Int32, 4), value(tensor.Int8, 2, tt.f, tt.f, 3), value(tensor.Int8, 1, tt.n, tt.n, 3)}
		w, err := window(&graph.Node{Op: "TRANSPOSE_CONV", Attrs: a}, in, value(tensor.Int8, 1, tt.out, tt.out, 2))
		want := Window{Batch: 1, H: tt.n, W: tt.n, C: 3, OH: tt.out, OW: tt.out, OC: 2, FH: tt.f, FW: tt.f, StrideX: tt.stride, StrideY: tt.stride, DilationX: 1, DilationY: 1, PadX: tt.pad, PadY: tt.pad}
		if err != nil || w != want {
			t.Errorf("%+v: %+v, %v", tt, w, err)
		}
	}
}

// The terms of a layer are what its estimate is made of: with the target's own
// coefficients they give the estimate's cycles, and the coefficients of the terms, each
// as often as they say, add up to them where nothing overlaps.
func TestTermsGiveCosts(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	i8 := func(shape ...int) *graph.Value {
		return &graph.Value{Type: tensor.Int8, Shape: shape, HasShape: true, Quant: &tensor.Quant{Scale: []float32{1}, Zero: []int64{0}}}
	}
	weights := func(shape ...int) *graph.Value {
		v := i8(shape...)
		v.Const = &tensor.Tensor{Type: tensor.Int8, Shape: shape, Data: make([]byte, tensor.Elements(shape)), Quant: v.Quant}
		return v
	}
	g := &graph.Graph{
		Inputs: []int{0}, Outputs: []int{7},
		Values: []*graph.Value{i8(1, 12, 12, 4), weights(8, 3, 3, 4), i8(1, 10, 10, 8), i8(1, 5, 5, 8), i8(1, 200), weights(10, 200), i8(1, 10), i8(1, 10)},
		Nodes: []*graph.Node{
			{Op: "CONV_2D", Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: graph.Attrs{"padding": "VALID"}},
			{Op: "MAX_POOL_2D", Inputs: []int{2}, Outputs: []int{3}, Attrs: graph.Attrs{"padding": "VALID", "filter_height": int64(2), "filter_width": int64(2), "stride_h": int64(2), "stride_w": int64(2)}},
			{Op: "RESHAPE", Inputs: []int{3}, Outputs: []int{4}},
			{Op: "FULLY_CONNECTED", Inputs: []int{4, 5}, Outputs: []int{6}},
			{Op: "SOFTMAX", Inputs: []int{6}, Outputs: []int{7}},
		},
	}
	for i, n := range g.Nodes {
		n.Index, n.Domain = i, graph.TFLite
	}
	m := &graph.Model{Graphs: []*graph.Graph{g}}
	target, err := set.Find("efr32xg24-mvp")
	if err != nil {
		t.Fatal(err)
	}
	rt := target.Runtime("")
	costs, err := Model{}.Costs(m, g, target, rt, chip.Options{})
	if err != nil {
		t.Fatal(err)
	}
	terms, err := Layers(m, rt)
	if err != nil {
		t.Fatal(err)
	}
	accelerated := 0
	for i, n := range g.Nodes {
		l := &costs.Layers[i]
		if terms[i] == nil {
			t.Errorf("%s has no terms", n.Op)
			continue
		}
		acc, cpu, elapsed := terms[i].Cycles(Coefficients(rt))
		if cpu != l.CPU.Value || elapsed != l.Latency.Value {
			t.Errorf("%s: terms give %v and %v, the estimate %v and %v", n.Op, cpu, elapsed, l.CPU.Value, l.Latency.Value)
		}
		onAccelerator := l.Accelerator != nil
		carry := int64(0) // from the layer before, which the terms of one layer do not know
		if n.Op == "CONV_2D" {
			carry = 1
		}
		if onAccelerator {
			accelerated++
			if acc != l.Accelerator.Value || terms[i].Simulated != float64(l.Simulated-carry) || terms[i].Simulated <= 0 {
				t.Errorf("%s: terms give %v of %v simulated, the estimate %v of %v", n.Op, acc, terms[i].Simulated, l.Accelerator.Value, l.Simulated)
			}
		}
		if want := strings.HasPrefix(terms[i].Group, "op."); want == onAccelerator {
			t.Errorf("%s: group %q", n.Op, terms[i].Group)
		}
		sum := terms[i].Simulated
		for name, k := range terms[i].Accelerator {
			sum += k * Coefficients(rt)[name]
		}
		// Both sums have the same terms, in other orders.
		if diff := sum - acc; !(diff <= 1e-9*acc && diff >= -1e-9*acc) {
			t.Errorf("%s: terms of the accelerator add up to %v, not %v: %v", n.Op, sum, acc, maps.Collect(maps.All(terms[i].Accelerator)))
		}
	}
	if accelerated != 3 {
		t.Errorf("%d layers on the accelerator, want 3", accelerated)
	}
}
