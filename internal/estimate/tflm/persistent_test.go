package tflm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

var host64 = abi{pointer: 8, enum: 4}

// TestStructures has the sizes that the runtime's allocation record prints.
func TestStructures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, fields string
		arm, host    int
	}{
		{"empty", "", 0, 0},
		{"aligned", "b i b", 12, 12},
		{"nested", "b (b l b) b", 40, 40},
		{"nested twice", "b ((b p) b) b", 20, 40},
		{"evaluation tensor", evalTensor, 12, 24},
		{"node", nodeRegistration, 32, 64},
		{"tensor", fullTensor, 32, 64},
		{"quantisation", affineQuant, 12, 24},
		{"options of a convolution", convOptions, 28, 28},
		{"options of a fully connected layer", kernels["FULLY_CONNECTED"].options, 5, 16},
		{"LSTM", lstmData, 688, 688},
		{"softmax", kernels["SOFTMAX"].data, 56, 80},
		{"resource variable", resourceVariable, 20, 40},
	} {
		if arm, host := device("").size(c.fields), host64.size(c.fields); arm != c.arm || host != c.host {
			t.Errorf("%s: %d and %d bytes, want %d and %d", c.name, arm, host, c.arm, c.host)
		}
	}
}

// dense makes a chain of fully connected layers with some unused tensors.
func dense(layers, tensors int, q *tensor.Quant) *graph.Model {
	g := &graph.Graph{}
	x := val(tensor.Int8, 1, 4)
	x.Quant = q
	g.Values = append(g.Values, x)
	last := 0
	for range layers {
		y := val(tensor.Int8, 1, 4)
		y.Quant = q
		n := node(g, "FULLY_CONNECTED", nil, nil, []*graph.Value{y})
		n.Inputs = []int{last}
		last = n.Outputs[0]
	}
	for len(g.Values) < tensors {
		g.Values = append(g.Values, &graph.Value{ID: len(g.Values)})
	}
	g.Inputs, g.Outputs = []int{0}, []int{last}
	return model(g)
}

// TestRecorded has what the runtime itself counted on a 64-bit computer for two published
// networks of fully connected layers: hello_world with 10 tensors, ad01 with 31.
func TestRecorded(t *testing.T) {
	t.Parallel()
	q := &tensor.Quant{Scale: []float32{0.5}, Zero: []int64{-1}}
	for _, c := range []struct {
		name            string
		layers, tensors int
		q               *tensor.Quant
		want            int
	}{
		{"hello_world float", 3, 10, nil, 3872},
		{"hello_world int8", 3, 10, q, 3936},
		{"ad01 float", 10, 31, nil, 5392},
		{"ad01 int8", 10, 31, q, 5456},
	} {
		if got := persistent(dense(c.layers, c.tensors, c.q), nil, recorded); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}

// TestRequests has the buffers that operators request when they start, each rounded up to 16
// bytes, on a 32-bit device.
func TestRequests(t *testing.T) {
	t.Parallel()
	const f32, i8, i16 = tensor.Float32, tensor.Int8, tensor.Int16
	bmm := func(x, y bool) graph.Attrs { return graph.Attrs{"adj_x": x, "adj_y": y} }
	perAxis := val(i8, 7, 4)
	perAxis.Quant = &tensor.Quant{Scale: make([]float32, 7), Zero: make([]int64, 7)}
	vals := func(v ...*graph.Value) []*graph.Value { return v }
	const copied = 16 + 16 // a tensor of 12 bytes and a shape of 3 dimensions in 16
	for _, c := range []struct {
		name, op string
		attrs    graph.Attrs
		in       []*graph.Value
		out      *graph.Value
		want     int
	}{
		{"convolution", "CONV_2D", nil, vals(val(i8, 1, 4, 4, 3), val(i8, 7, 3, 3, 3)), val(i8, 1, 4, 4, 7), 64 + 2*32},
		{"depthwise", "DEPTHWISE_CONV_2D", nil, vals(val(f32, 1, 4, 4, 9), val(f32, 1, 3, 3, 9)), val(f32, 1, 4, 4, 9), 64 + 2*48},
		{"transposed convolution", "TRANSPOSE_CONV", nil, vals(val(tensor.Int32, 4), val(i8, 5, 3, 3, 3)), val(i8, 1, 8, 8, 5), 80 + 2*32},
		{"convolution without weights", "CONV_2D", nil, nil, val(i8, 1, 4, 4, 7), 64},
		{"dense", "FULLY_CONNECTED", nil, vals(val(i8, 1, 4), val(i8, 7, 4)), val(i8, 1, 7), 48},
		{"dense per channel", "FULLY_CONNECTED", nil, vals(val(i8, 1, 4), perAxis), val(i8, 1, 7), 48 + 2*32},
		{"product", "BATCH_MATMUL", bmm(false, false), vals(val(f32, 2, 5, 4), val(f32, 2, 4, 6)), val(f32, 2, 5, 6), 16 + copied + 2*4*6*4 + 16},
		{"product, right as stored", "BATCH_MATMUL", bmm(false, true), vals(val(f32, 2, 5, 4), val(f32, 2, 6, 4)), val(f32, 2, 5, 6), 16 + 16},
		{"product, left transposed", "BATCH_MATMUL", bmm(true, true), vals(val(f32, 2, 4, 5), val(f32, 2, 6, 4)), val(f32, 2, 5, 6), 16 + copied + 2*4*5*4 + 16},
		{"product, int8", "BATCH_MATMUL", bmm(false, false), vals(val(i8, 2, 5, 4), val(i8, 2, 4, 6)), val(i8, 2, 5, 6), 16 + 32 + copied + 48 + 16},
		{"LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", nil, nil, val(i8, 1, 4), 688},
		{"SVDF", "SVDF", nil, nil, val(i8, 1, 4), 48},
		{"softmax", "SOFTMAX", nil, vals(val(i8, 1, 4)), val(i8, 1, 4), 64},
		{"softmax, int16", "SOFTMAX", nil, vals(val(i16, 1, 4)), val(i16, 1, 4), 64 + 2*1040},
		{"log softmax, int8", "LOG_SOFTMAX", nil, vals(val(i8, 1, 4)), val(i8, 1, 4), 32},
		{"log softmax", "LOG_SOFTMAX", nil, vals(val(f32, 1, 4)), val(f32, 1, 4), 0},
		{"cumulative sum", "CUMSUM", nil, vals(val(f32, 1, 4)), val(f32, 1, 4), 0},
		{"cumulative sum, int8", "CUMSUM", nil, vals(val(i8, 1, 4)), val(i8, 1, 4), 48},
		{"sum of three", "ADD_N", nil, vals(val(f32, 1, 4), val(f32, 1, 4), val(f32, 1, 4)), val(f32, 1, 4), 0},
		{"ELU", "ELU", nil, vals(val(i8, 1, 4)), val(i8, 1, 4), 256},
		{"gather", "GATHER", nil, vals(val(i8, 4, 4), val(tensor.Int32, 2)), val(i8, 2, 4), 16},
		{"transform", "SignalRfft", nil, vals(val(i16, 512)), val(i16, 514), 32 + 2832 + 4},
		{"an operator that keeps nothing", "MAXIMUM", nil, vals(val(i8, 1, 4)), val(i8, 1, 4), 0},
		{"open channels", "CONV_2D", nil, vals(val(i8, 1, 4, 4, 3), val(i8, -1, 3, 3, 3)), val(i8, 1, 4, 4, -1), 64},
	} {
		g := &graph.Graph{}
		node(g, c.op, c.attrs, c.in, vals(c.out))
		b := device("")
		one := &tail{abi: b.abi}
		one.each(model(g), func(o *operands, k kernel) {
			if k.data != "" {
				one.buffer(one.size(k.data))
			}
			if k.init != nil {
				k.init(o)
			}
			if k.prepare != nil {
				k.prepare(o)
			}
		})
		if want := align(c.want, 16); one.used != want {
			t.Errorf("%s: %d bytes, want %d", c.name, one.used, want)
		}
	}
}

// TestHandles counts one handle for each scratch buffer of all graphs, once.
func TestHandles(t *testing.T) {
	t.Parallel()
	m := model(&graph.Graph{}, &graph.Graph{})
	none := persistent(m, nil, recorded)
	if got := persistent(m, make([]memplan.Scratch, 4), recorded) - none; got != 32 {
		t.Errorf("4 scratch buffers take %d bytes, want 32", got)
	}
}

// TestVendors adds what CMSIS-NN keeps beside the reference kernels, and approximates the kernels
// for the accelerator: 189.5 bytes a fully connected layer with 1.9 an output and so on.
func TestVendors(t *testing.T) {
	t.Parallel()
	const i8 = tensor.Int8
	of := func(ops ...string) *graph.Model {
		g := &graph.Graph{}
		for _, op := range ops {
			node(g, op, nil, []*graph.Value{val(i8, 1, 4, 4, 3)}, []*graph.Value{val(i8, 1, 7)})
		}
		return model(g)
	}
	for op, want := range map[string]int{"CONV_2D": 60, "FULLY_CONNECTED": 48 + 28, "AVERAGE_POOL_2D": 36, "ADD": 60} {
		b := device(CMSISNN)
		if got := b.size("(" + kernels[op].data + ")" + b.more[op]); got != want {
			t.Errorf("%s: CMSIS-NN keeps %d bytes, want %d", op, got, want)
		}
	}
	variable := of("RELU")
	variable.Graphs[0].Values[0].Variable = true // of 48 bytes
	batch := of("RELU")
	g := batch.Graphs[0]
	node(g, "BATCH_MATMUL", nil, []*graph.Value{val(i8, 5, 4), val(i8, 4, 6)}, []*graph.Value{val(i8, 5, 6)})
	for _, c := range []struct {
		name string
		m    *graph.Model
		want int
	}{
		{"dense", of("FULLY_CONNECTED"), 644},      // 441.2 + 189.5 + 7 * 1.9
		{"convolution", of("CONV_2D"), 662},        // 441.2 + 191.1 + 7 * 4.3
		{"another", of("RELU"), 619},               // 441.2 + 177.4
		{"a variable", variable, 619 + 48},         // beside what was fitted
		{"a product", batch, 796 + 32 + 16*3 + 32}, // 441.2 + 2 * 177.4, and 4 buffers
	} {
		if got := fits[MVP].bytes(c.m); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}

// TestVariables keeps one buffer for each name that is assigned, in the order of the first
// assignment.
func TestVariables(t *testing.T) {
	t.Parallel()
	handle := func(g *graph.Graph, container, shared string) int {
		attrs := graph.Attrs{"container": container, "shared_name": shared}
		return node(g, "VAR_HANDLE", attrs, nil, []*graph.Value{val(tensor.Resource)}).Outputs[0]
	}
	assign := func(g *graph.Graph, h int, n int) {
		x := node(g, "ASSIGN_VARIABLE", nil, []*graph.Value{val(tensor.Int16, n)}, nil)
		x.Inputs = append([]int{h}, x.Inputs...)
	}
	for _, c := range []struct {
		name  string
		build func(a, b *graph.Graph)
		names int
		sizes []int
	}{
		{"none", func(_, _ *graph.Graph) {}, 0, nil},
		{"never used", func(a, _ *graph.Graph) { handle(a, "", "x") }, 1, nil},
		{"assigned", func(a, _ *graph.Graph) { assign(a, handle(a, "", "x"), 9) }, 1, []int{18}},
		{"assigned twice", func(a, _ *graph.Graph) { h := handle(a, "", "x"); assign(a, h, 9); assign(a, h, 9) }, 1, []int{18}},
		{"one name in two graphs", func(a, b *graph.Graph) { assign(a, handle(a, "", "x"), 8); assign(b, handle(b, "", "x"), 8) }, 1, []int{16}},
		{"two names", func(a, _ *graph.Graph) { assign(a, handle(a, "", "x"), 8); assign(a, handle(a, "", "y"), 4) }, 2, []int{16, 8}},
		{"two containers", func(a, _ *graph.Graph) { assign(a, handle(a, "c", "x"), 8); assign(a, handle(a, "", "x"), 8) }, 2, []int{16, 16}},
		{"of an unknown handle", func(a, _ *graph.Graph) { assign(a, 0, 16) }, 0, nil},
		{"without operands", func(a, _ *graph.Graph) { handle(a, "", "x"); node(a, "ASSIGN_VARIABLE", nil, nil, nil) }, 1, nil},
	} {
		a, b := &graph.Graph{}, &graph.Graph{}
		c.build(a, b)
		names, sizes := variables(model(a, b))
		if d := cmp.Diff(c.sizes, sizes); names != c.names || d != "" {
			t.Errorf("%s: %d names, want %d; sizes (-want +got):\n%s", c.name, names, c.names, d)
		}
	}
}
