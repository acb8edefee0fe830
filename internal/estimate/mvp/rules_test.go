package mvp

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Every coefficient is paid for what its name says: each is given a figure of its
// own, and each count another, so that no two terms are equal in the sum.
func TestDeviceTerms(t *testing.T) {
	t.Parallel()
	counts := func(k Kernel) *Counts {
		return &Counts{
			Kernel: k, Programs: 3, Instructions: 1000, Stalls: 500, DoubleIterations: 7, SingleIterations: 11, Stores: 13, NoOps: 17,
			doubleStores: 19, singleStores: 23, strideNoOps: 29, pairs: 31, pixels: 37, segments: 41,
		}
	}
	each := counts(KernelDense)
	each.byOutput = true
	for _, tt := range []struct {
		c    *Counts
		pays map[string]float64 // what each coefficient is multiplied with
	}{
		{counts(KernelConv), map[string]float64{"conv.double": 7, "conv.single": 11, "conv.double_store": 19, "conv.single_store": 23, "conv.stride_noop": 29, "conv.program": 3}},
		{counts(KernelDense), map[string]float64{"dense.output": 13, "dense.program": 3}},
		{each, map[string]float64{"dense_each.output": 13}},
		{counts(KernelDepthwisePixel), map[string]float64{"depthwise_pixel.pair": 13, "depthwise_pixel.program": 3}},
		{counts(KernelDepthwise), map[string]float64{"depthwise.output": 13, "depthwise.noop": 17}},
		{counts(KernelAdd), map[string]float64{"add.pair": 31, "add.program": 3}},
		{counts(KernelMul), map[string]float64{"mul.pair": 31, "mul.program": 3}},
		{counts(KernelMaxPool), map[string]float64{"max_pool.program": 3}},
		{counts(KernelAveragePool), map[string]float64{"average_pool.program": 3}},
		{counts(KernelAveragePoolPixel), map[string]float64{"average_pool_pixel.program": 3}},
		{counts(KernelTransposeConv), map[string]float64{"transpose_conv.program": 3}},
	} {
		all := map[string]float64{}
		want := 1500.0 // simulated: instructions and stalls
		for name, n := range tt.pays {
			all[name] = 0.25
			want += 0.25 * n
			one := &fitted{c: map[string]float64{name: 2}}
			if got := one.device(tt.c); got != 1500+2*n {
				t.Errorf("%s: %s gives %v, want %v", tt.c.Kernel, name, got, 1500+2*n)
			}
		}
		all["of.another"] = 99
		if got := (&fitted{c: all}).device(tt.c); got != want {
			t.Errorf("%s: %v, want %v", tt.c.Kernel, got, want)
		}
	}
}

// The processor's part, and which of it the accelerator's time hides.
func TestProcessorTerms(t *testing.T) {
	t.Parallel()
	const acc = 1000.0
	for _, tt := range []struct {
		name         string
		c            Counts
		coefficients map[string]float64
		cpu, elapsed float64
	}{
		{"dense waits", Counts{Kernel: KernelDense, Programs: 4, Stores: 8}, map[string]float64{"cpu.dense.fixed": 100, "cpu.dense.program": 9, "overlap.program": 50}, 100, 1100},
		{"dense by output", Counts{Kernel: KernelDense, byOutput: true, Stores: 8}, map[string]float64{"cpu.dense.fixed": 7, "cpu.dense_each.fixed": 100, "cpu.dense_each.output": 5}, 140, 1140},
		{"add waits", Counts{Kernel: KernelAdd, Programs: 4}, map[string]float64{"cpu.add.fixed": 100, "cpu.add.program": 5}, 120, 1120},
		{"mul waits", Counts{Kernel: KernelMul, Programs: 4}, map[string]float64{"cpu.mul.fixed": 100, "cpu.mul.program": 5, "cpu.add.fixed": 1}, 120, 1120},
		{"depthwise overlaps in part", Counts{Kernel: KernelDepthwise, Programs: 4, segments: 3}, map[string]float64{"cpu.depthwise.fixed": 100, "cpu.depthwise.program": 5, "cpu.depthwise.segment": 20, "overlap.depthwise.cpu": 0.5}, 180, 1090},
		{"average pool checks first", Counts{Kernel: KernelAveragePool, Programs: 4, pixels: 10}, map[string]float64{"cpu.average_pool.pixel": 3, "cpu.average_pool.program": 7, "overlap.program": 25}, 58, 30 + 1100},
		{"average pool of the processor", Counts{Kernel: KernelAveragePool, Programs: 4, pixels: 10}, map[string]float64{"cpu.average_pool.pixel": 3, "cpu.average_pool.program": 700}, 2830, 30 + 2800},
		{"transposed, accelerator longer", Counts{Kernel: KernelTransposeConv, Programs: 4}, map[string]float64{"cpu.transpose_conv.program": 7, "overlap.program": 25}, 28, 1100},
		{"transposed, processor longer", Counts{Kernel: KernelTransposeConv, Programs: 4}, map[string]float64{"cpu.transpose_conv.program": 700, "overlap.program": 25}, 2800, 2800},
		{"conv, accelerator longer", Counts{Kernel: KernelConv, Programs: 4}, map[string]float64{"cpu.conv.fixed": 100, "cpu.conv.program": 7, "overlap.program": 25}, 128, 1100},
		{"conv, processor longer", Counts{Kernel: KernelConv, Programs: 4}, map[string]float64{"cpu.conv.fixed": 100, "cpu.conv.program": 700, "overlap.program": 25}, 2900, 2900},
		{"pixels take a least time", Counts{Kernel: KernelDepthwisePixel, Programs: 4}, map[string]float64{"cpu.depthwise_pixel.fixed": 100, "overlap.depthwise_pixel.least": 600}, 100, 2400},
		{"pixels longer than it", Counts{Kernel: KernelDepthwisePixel, Programs: 4}, map[string]float64{"cpu.depthwise_pixel.fixed": 100, "overlap.depthwise_pixel.least": 6}, 100, 1000},
		{"others have no least time", Counts{Kernel: KernelConv, Programs: 4}, map[string]float64{"cpu.conv.fixed": 100, "overlap.depthwise_pixel.least": 600}, 100, 1000},
	} {
		cpu, elapsed := (&fitted{c: tt.coefficients}).cpu(&tt.c, acc)
		if cpu != tt.cpu || elapsed != tt.elapsed {
			t.Errorf("%s: %v and %v, want %v and %v", tt.name, cpu, elapsed, tt.cpu, tt.elapsed)
		}
	}
}

// Bands of target files: a 90th percentile where there is one, else two and a half
// medians, never below nothing.
func TestBands(t *testing.T) {
	t.Parallel()
	rt := &chip.Runtime{MVP: &chip.Counted{}, Calibration: &chip.Calibration{Errors: []chip.ErrorRow{{Group: "a", P90Error: 0.2, MedianError: 0.1}, {Group: "b", MedianError: 0.1}, {Group: "c", P90Error: 1.5}}}}
	m, err := newFitted(rt)
	if err != nil {
		t.Fatal(err)
	}
	if m.lib != Second {
		t.Errorf("library %q where the file names none, want %q", m.lib, Second)
	}
	for group, want := range map[string][3]float64{"a": {100, 80, 120}, "b": {100, 75, 125}, "c": {100, 0, 250}, "none": {100, 100, 100}} {
		f := m.figure(100, group)
		for i, got := range []float64{f.Value, f.Low, f.High} {
			if !(math.Abs(got-want[i]) <= 1e-9) { // factors such as 0.8 are not exact in binary
				t.Errorf("%s: %+v, want %v", group, f, want)
			}
		}
	}
	if _, err := newFitted(&chip.Runtime{Name: "x"}); err == nil {
		t.Error("a runtime without figures is taken")
	}
}

// Operators on the processor: each feature counts what its name says.
func TestProcessorFeatures(t *testing.T) {
	t.Parallel()
	// 40 and 60 elements, 240 bytes
	x, y := value(tensor.Int8, 1, 4, 5, 2), value(tensor.Int32, 1, 6, 5, 2)
	pool := graph.Attrs{"filter_height": int64(2), "filter_width": int64(3)}
	for _, tt := range []struct {
		name, op string
		attrs    graph.Attrs
		in, out  []*tensor.Tensor
		feature  string
		want     float64
	}{
		{"fixed", "PAD", nil, []*tensor.Tensor{x}, []*tensor.Tensor{y}, "fixed", 1},
		{"element", "PAD", nil, []*tensor.Tensor{x}, []*tensor.Tensor{y}, "element", 60},
		{"input", "PAD", nil, []*tensor.Tensor{x}, []*tensor.Tensor{y}, "input", 40},
		{"padded", "PAD", nil, []*tensor.Tensor{x}, []*tensor.Tensor{y}, "padded", 20},
		{"nothing padded", "SLICE", nil, []*tensor.Tensor{y}, []*tensor.Tensor{x}, "padded", 0},
		{"byte", "PAD", nil, []*tensor.Tensor{x}, []*tensor.Tensor{y}, "byte", 240},
		{"byte without output", "PAD", nil, []*tensor.Tensor{x}, nil, "byte", 0},
		{"tap", "MAX_POOL_2D", pool, []*tensor.Tensor{x}, []*tensor.Tensor{y}, "tap", 360},
		{"tap without window", "PAD", nil, []*tensor.Tensor{x}, []*tensor.Tensor{y}, "tap", 60},
		{"transposed input is the third", "TRANSPOSE_CONV", nil, []*tensor.Tensor{value(tensor.Int32, 4), value(tensor.Int8, 2, 1, 1, 2), x}, []*tensor.Tensor{y}, "input", 40},
	} {
		for _, typ := range []string{tt.in[len(tt.in)-1].Type.String(), chip.AnyType} {
			p := newProcessor(map[string]float64{"op." + tt.op + "." + typ + "." + tt.feature: 3, "op.OTHER.any.fixed": 1000, "conv.program": 5})
			v, kernel, missing := p.cycles(nil, nil, &graph.Node{Domain: graph.TFLite, Op: tt.op, Attrs: tt.attrs}, tt.in, tt.out)
			if missing != nil || v != 3*tt.want {
				t.Errorf("%s for %s: %v, %+v, want %v", tt.name, typ, v, missing, 3*tt.want)
			}
			if kernel == "" || kernel[:4] != "cpu/" {
				t.Errorf("%s: kernel %q", tt.name, kernel)
			}
		}
	}
	// The figure of the exact type goes before that of any.
	p := newProcessor(map[string]float64{"op.PAD.int8.fixed": 5, "op.PAD.any.fixed": 7})
	if v, _, _ := p.cycles(nil, nil, &graph.Node{Domain: graph.TFLite, Op: "PAD"}, []*tensor.Tensor{x}, []*tensor.Tensor{y}); v != 5 {
		t.Errorf("int8: %v", v)
	}
	if v, _, _ := p.cycles(nil, nil, &graph.Node{Domain: graph.TFLite, Op: "PAD"}, []*tensor.Tensor{y}, []*tensor.Tensor{x}); v != 7 {
		t.Errorf("int32: %v", v)
	}
	if v, _, _ := p.cycles(nil, nil, &graph.Node{Domain: graph.TFLite, Op: "PAD"}, nil, nil); v != 7 {
		t.Errorf("no input: %v", v)
	}
}

// Products of an operator on the processor come from the counting rules.
func TestProcessorProducts(t *testing.T) {
	t.Parallel()
	w := value(tensor.Int8, 3, 8)
	w.Data = make([]byte, 24)
	g := &graph.Graph{}
	p := newProcessor(map[string]float64{"op.FULLY_CONNECTED.int8.mac": 2, "op.FULLY_CONNECTED.int8.fixed": 1})
	in, out := []*tensor.Tensor{value(tensor.Int8, 5, 8), w}, []*tensor.Tensor{value(tensor.Int8, 5, 3)}
	n := &graph.Node{Domain: graph.TFLite, Op: "FULLY_CONNECTED"}
	v, kernel, missing := p.cycles(&graph.Model{}, g, n, in, out)
	if missing != nil || v != 1+2*5*3*8 || kernel != "cpu/fully_connected" {
		t.Errorf("%v, %q, %+v", v, kernel, missing)
	}
}

// window1 is a filter of f on an axis of n, square, VALID.
func window1(n, c, f, stride, oc int) Window {
	o := (n-f)/stride + 1
	return Window{Batch: 1, H: n, W: n, C: c, FH: f, FW: f, OH: o, OW: o, OC: oc, StrideX: stride, StrideY: stride, DilationX: 1, DilationY: 1, DepthMultiplier: 1}
}

// taps counts the products of one channel under a filter by visiting each.
func taps(w *Window) (n int64) {
	for oy := range w.OH {
		for ox := range w.OW {
			for fy := range w.FH {
				for fx := range w.FW {
					y, x := oy*w.StrideY-w.PadY+fy, ox*w.StrideX-w.PadX+fx
					if y >= 0 && y < w.H && x >= 0 && x < w.W {
						n++
					}
				}
			}
		}
	}
	return n
}

// windows gives geometries of many kinds: sizes, strides, both paddings.
func windows(yield func(Window)) {
	for _, n := range []int{1, 2, 5, 8} {
		for f := 1; f <= 4; f++ {
			for stride := 1; stride <= 3; stride++ {
				for _, c := range []int{1, 2, 3, 6} {
					if n >= f {
						yield(window1(n, c, f, stride, c))
					}
					w := window1(n, c, f, stride, c)
					w.OH, w.OW = ceilDiv(n, stride), ceilDiv(n, stride)
					w.samePadding()
					yield(w)
				}
			}
		}
	}
}

// TFLite's SAME puts the smaller half in front.
func TestSamePadding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ n, filter, stride, dilation, want int }{
		{8, 1, 1, 1, 0}, {8, 2, 1, 1, 0}, {8, 3, 1, 1, 1}, {8, 3, 2, 1, 0}, {7, 3, 2, 1, 1}, {8, 5, 1, 1, 2}, {8, 4, 3, 1, 1}, {8, 3, 1, 2, 2}, {4, 1, 2, 1, 0}, {1, 7, 1, 1, 3}, {5, 2, 5, 1, 0},
	} {
		w := Window{H: tt.n, W: 1, FH: tt.filter, FW: 1, OH: ceilDiv(tt.n, tt.stride), OW: 1, StrideY: tt.stride, StrideX: 1, DilationY: tt.dilation, DilationX: 1}
		w.samePadding()
		if w.PadY != tt.want || w.PadX != 0 || !w.same {
			t.Errorf("%+v: %d and %d", tt, w.PadY, w.PadX)
		}
		w = Window{W: tt.n, H: 1, FW: tt.filter, FH: 1, OW: ceilDiv(tt.n, tt.stride), OH: 1, StrideX: tt.stride, StrideY: 1, DilationX: tt.dilation, DilationY: 1}
		w.samePadding()
		if w.PadX != tt.want || w.PadY != 0 {
			t.Errorf("across, %+v: %d and %d", tt, w.PadX, w.PadY)
		}
	}
}

// Segments cover each output once, and name exactly the filter positions that lie
// inside the input.
func TestSegments(t *testing.T) {
	t.Parallel()
	windows(func(w Window) {
		list, ok := segments(w.H, w.FH, w.StrideY, w.PadY, w.OH)
		if !ok {
			return
		}
		next := 0
		for _, s := range list {
			if s.at != next || s.n < 1 {
				t.Fatalf("%+v: segments %+v", w, list)
			}
			next += s.n
			for o := s.at; o < s.at+s.n; o++ {
				first, n := -1, 0
				for f := range w.FH {
					if i := o*w.StrideY - w.PadY + f; i >= 0 && i < w.H {
						if first < 0 {
							first = f
						}
						n++
					}
				}
				if n != s.t || first != s.start {
					t.Fatalf("%+v: output %d sees %d positions from %d, its segment says %d from %d", w, o, n, first, s.t, s.start)
				}
			}
		}
		if next != w.OH {
			t.Fatalf("%+v: %d outputs, want %d", w, next, w.OH)
		}
	})
	if _, ok := segments(2, 1, 1, 1, 2); ok {
		t.Error("an output that sees nothing of the input is planned")
	}
	for _, tt := range [][3]int{{7, 2, 3}, {-7, 2, -4}, {-6, 2, -3}, {6, 2, 3}, {0, 5, 0}, {-1, 5, -1}} {
		if got := floorDiv(tt[0], tt[1]); got != tt[2] {
			t.Errorf("floor of %d/%d: %d", tt[0], tt[1], got)
		}
	}
}

// Passes share the rows of a segment out: each row once.
func TestPasses(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 7; n++ {
		for filter := 1; filter <= 5; filter++ {
			for stride := 1; stride <= 5; stride++ {
				seen := make([]int, n)
				for _, p := range passes(segment{n: n, t: filter}, stride, 9) {
					for k := range p.rows {
						seen[p.offset+k*p.step]++
					}
					// Whole filter heights and the extra rows lead to the next output of the pass.
					if p.rows > 1 && filter+p.extra != p.step*stride && (filter+p.extra)%stride != 0 {
						t.Errorf("n %d, filter %d, stride %d: %+v", n, filter, stride, p)
					}
					if p.rows > 1 && p.step*stride != filter+p.extra {
						t.Errorf("n %d, filter %d, stride %d: the next output is %d rows on, the walk goes %d", n, filter, stride, p.step*stride, filter+p.extra)
					}
					if p.rows == 1 && p.extra != 0 {
						t.Errorf("n %d, filter %d, stride %d: a single row walks on: %+v", n, filter, stride, p)
					}
				}
				for i, k := range seen {
					if k != 1 {
						t.Errorf("n %d, filter %d, stride %d: row %d is done %d times", n, filter, stride, i, k)
					}
				}
			}
		}
	}
}

// One program for each pixel of a depthwise convolution: two instructions a product of
// a pair of channels (load, multiply-accumulate), two to scale and store, a stall each.
func TestDepthwisePixel(t *testing.T) {
	t.Parallel()
	windows(func(w Window) {
		w.Batch = 2
		pairs := int64(w.C)
		if w.C%2 == 0 {
			pairs /= 2
		}
		n, stores := 2*pairs*taps(&w), 2*pairs*int64(w.OH*w.OW)
		for _, clip := range []bool{false, true} {
			w.Clip = clip
			c := depthwisePixel(w)
			want := Counts{Kernel: KernelDepthwisePixel, Programs: int64(2 * w.OH * w.OW), pixels: int64(2 * w.OH * w.OW), Stores: stores, Instructions: 2*n + 2*stores, Stalls: n + stores}
			if clip {
				want.Instructions += stores
			}
			if *c != want {
				t.Fatalf("%+v:\n%+v, want\n%+v", w, *c, want)
			}
			p := averagePoolPixel(w)
			want = Counts{Kernel: KernelAveragePoolPixel, Programs: want.Programs, pixels: want.pixels, Stores: stores, Instructions: n + 2*stores, Stalls: stores}
			if clip {
				want.Instructions += stores
			}
			if *p != want {
				t.Fatalf("average of %+v:\n%+v, want\n%+v", w, *p, want)
			}
		}
	})
}

// Which kernel takes a depthwise convolution: single pixels while there are at most
// four times as many of them as products of one.
func TestDepthwiseChoice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		w    Window
		want Kernel
	}{
		{"at the bound", window1(12, 4, 3, 1, 4), KernelDepthwisePixel},
		{"beyond it", window1(13, 4, 3, 1, 4), KernelDepthwise},
		{"multiplier", func() Window { w := window1(12, 4, 3, 1, 8); w.DepthMultiplier = 2; return w }(), KernelDepthwise},
	} {
		c, err := Depthwise(tt.w)
		if err != nil || c.Kernel != tt.want {
			t.Errorf("%s: %+v, %v, want %s", tt.name, c, err, tt.want)
		}
	}
	// 144 pixels at the bound of 4*3*3*4 = 144; one more column or filter column moves it.
	two := window1(12, 4, 3, 1, 4)
	two.Batch = 2
	if c, err := Depthwise(two); err != nil || c.Kernel != KernelDepthwisePixel {
		t.Errorf("two images: %+v, %v", c, err)
	}
	two = window1(40, 4, 3, 1, 4)
	two.Batch = 2
	if c, err := Depthwise(two); err != nil || c.Kernel != KernelDepthwisePixel {
		t.Errorf("two images, where runs take one only: %+v, %v", c, err)
	}
}

// Runs of outputs store each once and make each product inside the input once.
func TestDepthwiseRuns(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, n := range []int{20, 33} {
		for f := 2; f <= 5; f++ {
			for stride := 1; stride <= 3; stride++ {
				for _, same := range []bool{false, true} {
					w := window1(n, 4, f, stride, 4)
					if same {
						w.OH, w.OW = ceilDiv(n, stride), ceilDiv(n, stride)
						w.samePadding()
					}
					c, err := depthwise(w)
					if err != nil {
						continue
					}
					tried++
					outputs := int64(w.OH * w.OW * w.C)
					if c.Stores != outputs || c.pixels != int64(w.OH*w.OW) {
						t.Errorf("%+v: %d results of %d pixels, want %d of %d", w, c.Stores, c.pixels, outputs, w.OH*w.OW)
					}
					// Two instructions and a stall a product, beside those of an output.
					if products := 4 * taps(&w); c.Instructions < 2*products || c.Instructions > 2*products+8*outputs || c.Stalls < products-outputs || c.Stalls > products+2*outputs {
						t.Errorf("%+v: %d instructions and %d stalls for %d products", w, c.Instructions, c.Stalls, products)
					}
					if c.segments < 1 || w.PadX > 0 && c.segments < 4 {
						t.Errorf("%+v: %d parts", w, c.segments)
					}
					w.Clip = true
					clipped, err := depthwise(w)
					if err != nil || (clipped.ClampIterations == 0) != (outputs <= 160) {
						t.Errorf("%+v clipped: %+v, %v", w, clipped, err)
					}
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d geometries were planned", tried)
	}
}

// Programs with fewer products than their start is worth are refused.
func TestDepthwiseTooLittle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		w  Window
		ok bool
	}{
		{window1(8, 2, 2, 1, 2), true},
		{window1(4, 1, 2, 1, 1), false}, // 9 outputs of 4 products
		{window1(11, 1, 1, 1, 1), true}, // 121
		// 120
		{Window{Batch: 1, H: 10, W: 12, C: 1, FH: 1, FW: 1, OH: 10, OW: 12, OC: 1, StrideX: 1, StrideY: 1, DilationX: 1, DilationY: 1, DepthMultiplier: 1}, true},
		// 119
		{Window{Batch: 1, H: 7, W: 17, C: 1, FH: 1, FW: 1, OH: 7, OW: 17, OC: 1, StrideX: 1, StrideY: 1, DilationX: 1, DilationY: 1, DepthMultiplier: 1}, false},
	} {
		if _, err := depthwise(tt.w); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.w, err)
		}
	}
}

// A transposed convolution clears its sums, adds each product where it lands inside
// the output, and scales pairs; each counted by visiting them.
func TestTransposeConv(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 5; n++ {
		for f := 1; f <= 4; f++ {
			for stride := 1; stride <= 3; stride++ {
				for pad := 0; pad < f; pad++ {
					for _, oc := range []int{1, 2, 3} {
						w := Window{Batch: 1, H: n, W: n + 1, C: 3, FH: f, FW: f, OC: oc, StrideY: stride, StrideX: stride, DilationX: 1, DilationY: 1, PadY: pad, PadX: pad}
						w.OH, w.OW = max((n-1)*stride+f-2*pad, 1), max(n*stride+f-2*pad, 1)
						var products int64
						for y := range w.H {
							for x := range w.W {
								for fy := range f {
									for fx := range f {
										if oy, ox := y*stride-pad+fy, x*stride-pad+fx; oy >= 0 && oy < w.OH && ox >= 0 && ox < w.OW {
											products++
										}
									}
								}
							}
						}
						c, err := TransposeConv(w)
						if err != nil {
							t.Fatal(err)
						}
						pixels, elements, starts := int64(w.OH*w.OW), int64(w.OH*w.OW*oc), int64(w.H*w.W*oc*3)
						pairs := elements
						if oc%2 == 0 {
							pairs /= 2
						}
						want := Counts{
							Kernel: KernelTransposeConv, Stores: pairs, Programs: 2 + int64(w.H*w.W*oc),
							Instructions: (elements+1)/2 + starts + products*int64(oc)*3 + 2*pairs + pixels, Stalls: starts + pairs,
							reads: true,
						}
						if *c != want {
							t.Fatalf("%+v:\n%+v, want\n%+v", w, *c, want)
						}
						w.Clip, w.Batch = true, 3
						if c, err = TransposeConv(w); err != nil {
							t.Fatal(err)
						}
						want.Instructions += pairs
						if c.Instructions != 3*want.Instructions || c.Programs != 3*want.Programs || c.Stalls != 3*want.Stalls || c.Stores != 3*want.Stores {
							t.Fatalf("%+v: %+v, want three times %+v", w, *c, want)
						}
					}
				}
			}
		}
	}
	w := window1(4, 2, 2, 1, 2)
	for i, d := range [][2]int{{2, 1}, {1, 2}} {
		w.DilationX, w.DilationY = d[0], d[1]
		if _, err := TransposeConv(w); err == nil {
			t.Errorf("dilated, %d: planned", i)
		}
	}
}

// Rows of weights: pairs where the depth is even, up to the size of a dimension, then
// a program for each output while two loops reach.
func TestDense(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rows, depth, outputs int
		want                 Counts
	}{
		{1, 8, 4, Counts{Programs: 1, Instructions: 4 * 11, Stalls: 4 * 5, Stores: 4}},
		{3, 8, 4, Counts{Programs: 3, Instructions: 12 * 11, Stalls: 12 * 5, Stores: 12}},
		{1, 7, 4, Counts{Programs: 1, Instructions: 4 * 16, Stalls: 4 * 8, Stores: 4}},
		{2, 2048, 1024, Counts{Programs: 2, Instructions: 2048 * 2051, Stalls: 2048 * 1025, Stores: 2048}},
		{1, 1023, 1, Counts{Programs: 1, Instructions: 2048, Stalls: 1024, Stores: 1}},
		{2, 2050, 3, Counts{Programs: 6, Instructions: 6 * 2052, Stalls: 6 * 1026, Stores: 6, byOutput: true}},
		{1, 2050, 2000, Counts{Programs: 2000, Instructions: 2000 * 2052, Stalls: 2000 * 1026, Stores: 2000, byOutput: true}},
	} {
		c, err := FullyConnected(tt.rows, tt.depth, tt.outputs, false)
		if err != nil {
			t.Errorf("%d x %d x %d: %v", tt.rows, tt.depth, tt.outputs, err)
			continue
		}
		if (c.Refused != "") != tt.want.byOutput {
			t.Errorf("%d x %d x %d: refused %q", tt.rows, tt.depth, tt.outputs, c.Refused)
		}
		c.Refused, tt.want.Kernel = "", KernelDense
		if *c != tt.want {
			t.Errorf("%d x %d x %d: %+v, want %+v", tt.rows, tt.depth, tt.outputs, *c, tt.want)
		}
	}
	for _, tt := range [][2]int{{1025, 1}, {8, 1025}, {2 * 1031, 1}, {2047, 3}} {
		if c, err := FullyConnected(1, tt[0], tt[1], false); err == nil {
			t.Errorf("%v: %+v", tt, c)
		}
	}
	for n, want := range map[int]bool{1: true, 1024: true, 1031: false, 1025: true, 2048: true, 1024 * 1024: true, 2 * 1024 * 1024: false, 37 * 1024: true, 31 * 1024: true, 1009 * 2: true, 1021 * 31: true, 1009 * 1009: false} {
		if got := twoLoops(n); got != want {
			t.Errorf("two loops of %d: %v", n, got)
		}
	}
}

// Results are brought into an activation's range by programs of 2,048, four at a time;
// 160 and fewer are done by the processor.
func TestClamp(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]Counts{
		0: {}, 1: {}, 160: {}, 161: {Programs: 1, ClampIterations: 41, Instructions: 83},
		2048: {Programs: 1, ClampIterations: 512, Instructions: 1025}, 2049: {Programs: 2, ClampIterations: 513, Instructions: 1028}, 4096: {Programs: 2, ClampIterations: 1024, Instructions: 2050},
	} {
		c := Counts{}
		if c.clamp(n); c != want {
			t.Errorf("%d: %+v, want %+v", n, c, want)
		}
	}
	with, _ := FullyConnected(1, 8, 161, true)
	without, _ := FullyConnected(1, 8, 161, false)
	if with.Programs != without.Programs+1 || with.Instructions != without.Instructions+83 {
		t.Errorf("dense: %+v and %+v", with, without)
	}
}

// Element-wise operators take pairs, 2,048 elements a program.
func TestElementwise(t *testing.T) {
	t.Parallel()
	for n, programs := range map[int64]int64{0: 0, 1: 0, 2: 1, 3: 1, 2048: 1, 2049: 1, 2050: 2, 4097: 2, 4098: 3} {
		pairs := n / 2
		if c := Add(n); *c != (Counts{Kernel: KernelAdd, Programs: programs, Instructions: 4 * pairs, Stalls: pairs, pairs: pairs}) {
			t.Errorf("ADD of %d: %+v", n, *c)
		}
		if c := Mul(n); *c != (Counts{Kernel: KernelMul, Programs: programs, Instructions: 4 * pairs, Stalls: 2 * pairs, pairs: pairs}) {
			t.Errorf("MUL of %d: %+v", n, *c)
		}
	}
}

// Convolutions make each product once, two at a time where everything is even, and the
// two generations differ in how they scale the input.
func TestConvProducts(t *testing.T) {
	t.Parallel()
	windows(func(w Window) {
		w.OC = 5
		if w.PadX >= w.FW || (w.OW-1)*w.StrideX-w.PadX >= w.W {
			return
		}
		first, err := Conv(w, First)
		if err != nil {
			return
		}
		products, outputs := taps(&w)*int64(w.C)*5, int64(w.OH*w.OW)*5
		if got := 2*first.DoubleIterations + first.SingleIterations; got != products {
			t.Fatalf("%+v: %d products, want %d", w, got, products)
		}
		if first.Stores != outputs || first.doubleStores+first.singleStores != outputs {
			t.Fatalf("%+v: %d, %d and %d results, want %d", w, first.Stores, first.doubleStores, first.singleStores, outputs)
		}
		if w.C%2 != 0 && w.C != 1 && w.FW == 1 && first.DoubleIterations != 0 {
			t.Fatalf("%+v: odd channels in pairs", w)
		}
		second, err := Conv(w, Second)
		if err != nil {
			t.Fatal(err)
		}
		scaled := int64(w.H * w.W * w.C)
		if w.C%2 == 0 {
			scaled /= 2
		}
		inner := first.DoubleIterations + first.SingleIterations
		if second.Programs != first.Programs+1 || second.Instructions != first.Instructions-inner+scaled || second.Stalls != first.Stalls-inner {
			t.Fatalf("%+v: first %+v, second %+v", w, *first, *second)
		}
		w.Batch = 2
		two, err := Conv(w, First)
		if err != nil || two.Programs != 2*first.Programs || two.Instructions != 2*first.Instructions || two.Stores != 2*first.Stores {
			t.Fatalf("two images of %+v: %+v, %v", w, two, err)
		}
	})
}

// A line too wide for strides: every column with a whole window is done in chunks, and
// those that need padding are left to the processor.
func TestConvLineColumns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ w, c, f, stride, oc int }{
		{4000, 2, 3, 1, 2}, {4000, 2, 3, 2, 2}, {4001, 1, 4, 1, 3}, {3000, 3, 7, 3, 1}, {2100, 2, 2, 1, 2}, {2100, 1, 5, 1, 4},
	} {
		w := Window{Batch: 1, H: 1, W: tt.w, C: tt.c, FH: 1, FW: tt.f, OH: 1, OW: (tt.w-tt.f)/tt.stride + 1, OC: tt.oc, StrideX: tt.stride, StrideY: 1, DilationX: 1, DilationY: 1}
		for _, same := range []bool{false, true} {
			whole := w.OW
			if same {
				w.OW = ceilDiv(w.W, w.StrideX)
				w.samePadding()
				whole = 0
				for o := range w.OW {
					if at := o*w.StrideX - w.PadX; at >= 0 && at+w.FW <= w.W {
						whole++
					}
				}
			}
			c, err := Conv(w, First)
			if err != nil {
				t.Errorf("%+v: %v", w, err)
				continue
			}
			if c.Stores != int64(whole*w.OC) || 2*c.DoubleIterations+c.SingleIterations != int64(whole*w.OC*w.FW*w.C) {
				t.Errorf("%+v: %d results, want %d", w, c.Stores, whole*w.OC)
			}
			w.Clip = true
			clipped, err := Conv(w, First)
			if err != nil || clipped.ClampIterations < int64(w.OW*w.OC)/4 {
				t.Errorf("%+v clipped: %+v, %v", w, clipped, err)
			}
			w.Clip = false
		}
	}
	far := Window{Batch: 1, H: 1, W: 4000, C: 2048, FH: 1, FW: 1, OH: 1, OW: 4000, OC: 1, StrideX: 1, StrideY: 1, DilationX: 1, DilationY: 1}
	if _, err := Conv(far, First); err == nil {
		t.Error("a pixel beyond the stride is planned")
	}
}

// Counts of parts add up field by field.
func TestAddCounts(t *testing.T) {
	t.Parallel()
	part := Counts{Programs: 1, Instructions: 2, Stalls: 3, DoubleIterations: 4, SingleIterations: 5, Stores: 6, NoOps: 7, ClampIterations: 8, doubleStores: 9, singleStores: 10, strideNoOps: 11, pairs: 12, pixels: 13}
	sum := part
	sum.add(&part)
	want := Counts{Programs: 2, Instructions: 4, Stalls: 6, DoubleIterations: 8, SingleIterations: 10, Stores: 12, NoOps: 14, ClampIterations: 16, doubleStores: 18, singleStores: 20, strideNoOps: 22, pairs: 24, pixels: 26}
	if sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	if part.Simulated() != 5 {
		t.Errorf("simulated %d", part.Simulated())
	}
}

// ONNX nodes as a converter writes them: channels last, int8, padding by name where it
// is one of TensorFlow's kinds, else in front of the operator.
func TestLite(t *testing.T) {
	t.Parallel()
	f := func(shape ...int) *tensor.Tensor { return value(tensor.Float32, shape...) }
	ints := func(v ...int64) []int64 { return v }
	constant := func(shape ...int) *tensor.Tensor {
		w := f(shape...)
		w.Data = make([]byte, 4*tensor.Elements(shape))
		return w
	}
	for _, tt := range []struct {
		name          string
		op            string
		attrs         graph.Attrs
		in            []*tensor.Tensor
		out           *tensor.Tensor
		want, padding string
		shapes        string
	}{
		{"convolution", "Conv", nil, []*tensor.Tensor{f(1, 3, 8, 10), constant(4, 3, 3, 5)}, f(1, 4, 6, 6), "CONV_2D", "VALID", "[1 8 10 3] [4 3 5 3] [1 6 6 4]"},
		{"same", "Conv", graph.Attrs{"pads": ints(1, 1, 1, 1)}, []*tensor.Tensor{f(1, 3, 8, 10), constant(4, 3, 3, 3)}, f(1, 4, 8, 10), "CONV_2D", "SAME", "[1 8 10 3] [4 3 3 3] [1 8 10 4]"},
		{"padding of its own", "Conv", graph.Attrs{"pads": ints(2, 3, 4, 5)}, []*tensor.Tensor{f(1, 3, 8, 10), constant(4, 3, 3, 3)}, f(1, 4, 12, 16), "CONV_2D", "VALID", "[1 14 18 3] [4 3 3 3] [1 12 16 4]"},
		{"by name", "Conv", graph.Attrs{"auto_pad": "SAME_LOWER"}, []*tensor.Tensor{f(1, 3, 8, 8), constant(4, 3, 2, 2)}, f(1, 4, 8, 8), "CONV_2D", "SAME", "[1 8 8 3] [4 2 2 3] [1 8 8 4]"},
		{"by the other name", "Conv", graph.Attrs{"auto_pad": "SAME_UPPER"}, []*tensor.Tensor{f(1, 3, 8, 8), constant(4, 3, 2, 2)}, f(1, 4, 8, 8), "CONV_2D", "SAME", "[1 8 8 3] [4 2 2 3] [1 8 8 4]"},
		{"depthwise", "Conv", graph.Attrs{"group": int64(6)}, []*tensor.Tensor{f(1, 6, 8, 8), constant(6, 1, 3, 3)}, f(1, 6, 6, 6), "DEPTHWISE_CONV_2D", "VALID", "[1 8 8 6] [1 3 3 6] [1 6 6 6]"},
		{"groups", "Conv", graph.Attrs{"group": int64(3)}, []*tensor.Tensor{f(1, 6, 8, 8), constant(6, 2, 3, 3)}, f(1, 6, 6, 6), "CONV_2D", "VALID", "[1 8 8 6] [6 3 3 2] [1 6 6 6]"},
		{"one channel", "Conv", graph.Attrs{"group": int64(1)}, []*tensor.Tensor{f(1, 1, 8, 8), constant(6, 1, 3, 3)}, f(1, 6, 6, 6), "CONV_2D", "VALID", "[1 8 8 1] [6 3 3 1] [1 6 6 6]"},
		{"quantised", "QLinearConv", nil, []*tensor.Tensor{f(1, 3, 8, 8), f(), f(), constant(4, 3, 3, 3)}, f(1, 4, 6, 6), "CONV_2D", "VALID", "[1 8 8 3] [4 3 3 3] [1 6 6 4]"},
		{"no weights", "QLinearConv", nil, []*tensor.Tensor{f(1, 3, 8, 8), f(), f()}, f(1, 4, 6, 6), "QLinearConv", "", ""},
		{"a line", "Conv", nil, []*tensor.Tensor{f(1, 3, 8), constant(4, 3, 3)}, f(1, 4, 6), "Conv", "", ""},
		{"maximum", "MaxPool", graph.Attrs{"kernel_shape": ints(2, 3), "strides": ints(2, 3)}, []*tensor.Tensor{f(1, 3, 8, 9)}, f(1, 3, 4, 3), "MAX_POOL_2D", "VALID", "[1 8 9 3] [1 4 3 3]"},
		{"average", "AveragePool", graph.Attrs{"kernel_shape": ints(2, 2)}, []*tensor.Tensor{f(1, 3, 8, 8)}, f(1, 3, 7, 7), "AVERAGE_POOL_2D", "VALID", "[1 8 8 3] [1 7 7 3]"},
		{"global", "GlobalAveragePool", nil, []*tensor.Tensor{f(1, 3, 8, 9)}, f(1, 3, 1, 1), "AVERAGE_POOL_2D", "VALID", "[1 8 9 3] [1 1 1 3]"},
		{"global maximum", "GlobalMaxPool", nil, []*tensor.Tensor{f(1, 3, 8, 9)}, f(1, 3, 1, 1), "MAX_POOL_2D", "VALID", "[1 8 9 3] [1 1 1 3]"},
		{"pool of a line", "MaxPool", nil, []*tensor.Tensor{f(1, 3, 8)}, f(1, 3, 8), "MaxPool", "", ""},
		{"dense", "Gemm", graph.Attrs{"transB": int64(1)}, []*tensor.Tensor{f(2, 8), constant(4, 8)}, f(2, 4), "FULLY_CONNECTED", "", "[2 8] [4 8] [2 4]"},
		{"dense, turned", "MatMul", nil, []*tensor.Tensor{f(2, 8), constant(8, 4)}, f(2, 4), "FULLY_CONNECTED", "", "[2 8] [4 8] [2 4]"},
		{"quantised dense", "QLinearMatMul", nil, []*tensor.Tensor{f(2, 8), f(), f(), constant(8, 4)}, f(2, 4), "FULLY_CONNECTED", "", "[2 8] [4 8] [2 4]"},
		{"batches", "MatMul", nil, []*tensor.Tensor{f(2, 2, 8), constant(2, 8, 4)}, f(2, 2, 4), "MatMul", "", ""},
		{"sum", "Add", nil, []*tensor.Tensor{f(2, 8), f(2, 8)}, f(2, 8), "ADD", "", "[2 8] [2 8] [2 8]"},
		{"product", "QLinearMul", nil, []*tensor.Tensor{f(2, 8), f(), f(), f(8)}, f(2, 8), "MUL", "", "[2 8] [8] [2 8]"},
		{"quantised sum", "QLinearAdd", nil, []*tensor.Tensor{f(2, 8), f(), f(), f(4, 8)}, f(2, 8), "ADD", "", "[2 8] [4 8] [2 8]"},
		{"product of floats", "Mul", nil, []*tensor.Tensor{f(2, 8), f(8)}, f(2, 8), "MUL", "", "[2 8] [8] [2 8]"},
		{"half a sum", "Add", nil, []*tensor.Tensor{f(2, 8)}, f(2, 8), "Add", "", ""},
		{"another", "Relu", nil, []*tensor.Tensor{f(2, 8)}, f(2, 8), "Relu", "", ""},
		{"without input", "Conv", nil, nil, f(2, 8), "Conv", "", ""},
	} {
		n := &graph.Node{Op: tt.op, Attrs: tt.attrs, Domain: graph.ONNX, Index: 7}
		got, in, out := lite(n, tt.in, []*tensor.Tensor{tt.out}, true)
		if got.Op != tt.want || got.Index != 7 {
			t.Errorf("%s: %s #%d, want %s", tt.name, got.Op, got.Index, tt.want)
			continue
		}
		if tt.shapes == "" {
			if got != n || len(in) != len(tt.in) {
				t.Errorf("%s: changed", tt.name)
			}
			continue
		}
		var s string
		for i, v := range slices.Concat(in, out) {
			if v.Type != tensor.Int8 || got.Domain != graph.TFLite {
				t.Errorf("%s: %d is %s of %q", tt.name, i, v.Type, got.Domain)
			}
			s += fmt.Sprint(v.Shape) + " "
		}
		if s != tt.shapes+" " {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.shapes)
		}
		if p := got.Attrs.Str("padding", ""); p != tt.padding {
			t.Errorf("%s: padding %q, want %q", tt.name, p, tt.padding)
		}
	}
	// Where the file computes in floating point, types stay; uint8 counts as int8.
	_, in, _ := lite(&graph.Node{Op: "Add", Domain: graph.ONNX}, []*tensor.Tensor{f(2), value(tensor.Uint8, 2)}, []*tensor.Tensor{f(2)}, false)
	if in[0].Type != tensor.Float32 || in[1].Type != tensor.Int8 {
		t.Errorf("types %s and %s", in[0].Type, in[1].Type)
	}
	// Weights that are only known at run time are not dense layer.
	if n, _, _ := lite(&graph.Node{Op: "MatMul", Domain: graph.ONNX}, []*tensor.Tensor{f(2, 8), f(8, 4)}, []*tensor.Tensor{f(2, 4)}, false); n.Op != "MatMul" {
		t.Errorf("a product of two activations is %s", n.Op)
	}
	for _, tt := range []struct {
		attr string
		want [2]string
	}{{"strides", [2]string{"stride_h", "stride_w"}}, {"dilations", [2]string{"dilation_h_factor", "dilation_w_factor"}}} {
		n, _, _ := lite(&graph.Node{Op: "Conv", Domain: graph.ONNX, Attrs: graph.Attrs{tt.attr: ints(2, 3)}}, []*tensor.Tensor{f(1, 3, 20, 20), constant(4, 3, 3, 3)}, []*tensor.Tensor{f(1, 4, 6, 6)}, true)
		if n.Attrs.Int(tt.want[0], 0) != 2 || n.Attrs.Int(tt.want[1], 0) != 3 {
			t.Errorf("%s: %v", tt.attr, n.Attrs)
		}
	}
}

// TestCarried has the cycle that a convolution loses to the layer before it. In the vendor's
// simulator it follows convolutions, maxima, dense and depthwise layers, but not sums, averages,
// single pixels, clamping programs and programs that end with a step of an array.
func TestCarried(t *testing.T) {
	t.Parallel()
	conv := &Counts{Kernel: KernelConv, reads: true}
	of := func(k Kernel) *Counts { return &Counts{Kernel: k} }
	for _, c := range []struct {
		name string
		list []*Counts
		want []bool
	}{
		{"none", nil, []bool{}},
		{"processor alone", []*Counts{nil, nil}, []bool{false, false}},
		{"after itself", []*Counts{conv}, []bool{true}},
		{"after the inference before", []*Counts{conv, of(KernelDense)}, []bool{true, false}},
		{"an inference that ends with a sum", []*Counts{conv, of(KernelAdd)}, []bool{false, false}},
		{"processor between", []*Counts{of(KernelMaxPool), nil, conv}, []bool{false, false, true}},
		{"depthwise", []*Counts{of(KernelDepthwise), conv}, []bool{false, true}},
		{"depthwise, single pixels", []*Counts{of(KernelDepthwisePixel), conv}, []bool{false, false}},
		{"depthwise with gaps", []*Counts{{Kernel: KernelDepthwise, idle: true}, conv}, []bool{false, false}},
		{"averages", []*Counts{of(KernelAveragePool), conv}, []bool{false, false}},
		{"averages, single pixels", []*Counts{of(KernelAveragePoolPixel), conv}, []bool{false, false}},
		{"products", []*Counts{of(KernelMul), conv}, []bool{false, false}},
		{"clamped", []*Counts{{Kernel: KernelConv, ClampIterations: 5}, conv}, []bool{false, false}},
		{"transposed", []*Counts{conv, {Kernel: KernelTransposeConv, reads: true}, conv}, []bool{true, true, false}},
		{"first generation", []*Counts{of(KernelConv), of(KernelConv)}, []bool{false, false}},
	} {
		if got := carried(c.list); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestSimulated has layers as the simulator of MLTK 0.19 counts them.
func TestSimulated(t *testing.T) {
	t.Parallel()
	i8 := tensor.Int8
	m := shipped(t, "tflm-mvp")
	same, valid := graph.Attrs{"padding": "SAME"}, graph.Attrs{"padding": "VALID"}
	window := func(a graph.Attrs, filter, stride int) graph.Attrs {
		out := graph.Attrs{"filter_height": int64(filter), "filter_width": int64(filter), "stride_h": int64(stride), "stride_w": int64(stride)}
		maps.Copy(out, a)
		return out
	}
	for _, c := range []struct {
		name, op string
		attrs    graph.Attrs
		in       []*tensor.Tensor
		out      *tensor.Tensor
		want     int64 // 0: refused
	}{
		{"dense, three dimensions", "FULLY_CONNECTED", nil, []*tensor.Tensor{value(i8, 1, 1, 64), value(i8, 20, 64)}, value(i8, 1, 1, 20), 100},
		{"dense, five rows", "FULLY_CONNECTED", nil, []*tensor.Tensor{value(i8, 1, 5, 64), value(i8, 20, 64)}, value(i8, 1, 5, 20), 500},
		{"dense, four dimensions", "FULLY_CONNECTED", nil, []*tensor.Tensor{value(i8, 1, 4, 5, 64), value(i8, 20, 64)}, value(i8, 1, 4, 5, 20), 400},
		{"maximum, VALID", "MAX_POOL_2D", window(valid, 3, 2), []*tensor.Tensor{value(i8, 1, 112, 112, 24)}, value(i8, 1, 55, 55, 24), 435600},
		{"maximum, SAME", "MAX_POOL_2D", window(same, 3, 2), []*tensor.Tensor{value(i8, 1, 112, 112, 24)}, value(i8, 1, 56, 56, 24), 0},
		{"maximum, 40 channels", "MAX_POOL_2D", window(same, 3, 1), []*tensor.Tensor{value(i8, 1, 64, 64, 40)}, value(i8, 1, 64, 64, 40), 1039600},
		{"maximum, 32 channels", "MAX_POOL_2D", window(same, 3, 1), []*tensor.Tensor{value(i8, 1, 64, 64, 32)}, value(i8, 1, 64, 64, 32), 831680},
		{"maximum, 5x5", "MAX_POOL_2D", window(same, 5, 2), []*tensor.Tensor{value(i8, 1, 64, 64, 30)}, value(i8, 1, 32, 32, 30), 427455},
		{"average, SAME", "AVERAGE_POOL_2D", window(same, 3, 2), []*tensor.Tensor{value(i8, 1, 112, 112, 24)}, value(i8, 1, 56, 56, 24), 484524},
		{"average, 40 channels", "AVERAGE_POOL_2D", window(same, 3, 1), []*tensor.Tensor{value(i8, 1, 60, 60, 40)}, value(i8, 1, 60, 60, 40), 988880},
		{"depthwise", "DEPTHWISE_CONV_2D", window(valid, 3, 2), []*tensor.Tensor{value(i8, 1, 57, 57, 24), value(i8, 1, 3, 3, 24)}, value(i8, 1, 28, 28, 24), 565848},
		{"depthwise, too wide", "DEPTHWISE_CONV_2D", window(valid, 3, 2), []*tensor.Tensor{value(i8, 1, 97, 97, 24), value(i8, 1, 3, 3, 24)}, value(i8, 1, 48, 48, 24), 0},
	} {
		got, _, reason := m.accelerate(&graph.Node{Domain: graph.TFLite, Op: c.op, Attrs: c.attrs}, c.in, []*tensor.Tensor{c.out})
		switch {
		case got == nil && c.want != 0:
			t.Errorf("%s: refused: %s", c.name, reason)
		case got != nil && got.Simulated() != c.want:
			t.Errorf("%s: %d cycles, want %d", c.name, got.Simulated(), c.want)
		}
	}
}
