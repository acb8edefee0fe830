package mvp

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// Model is the cycle model of chips with and without MVP.
type Model struct{}

// operators supported by the accelerator's kernels, with the number of leading inputs that must
// be int8.
var operators = map[string]int{
	"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 0,
	"AVERAGE_POOL_2D": 1, "MAX_POOL_2D": 1, "ADD": 2, "MUL": 2,
}

// errBroadcast is for elementwise operators with broadcasting; the kernels leave them to the
// processor without reporting them as unsupported.
var errBroadcast = errors.New("not an MVP operator where shapes are broadcast")

// Costs implements [chip.CycleModel].
func (Model) Costs(m *graph.Model, g *graph.Graph, t *chip.Target, rt *chip.Runtime, _ chip.Options) (*chip.Costs, error) {
	c, err := newFitted(rt)
	if err != nil {
		return nil, err
	}
	ops := newProcessor(c.c)
	if err := ops.fallBack(m, g, t, rt); err != nil {
		return nil, fmt.Errorf("runtime %s: %w", rt.Name, err)
	}
	costs := &chip.Costs{Layers: make([]chip.LayerCost, len(g.Nodes))}
	costs.Method = "cycle model of " + rt.Name
	if t.Accelerator != nil {
		costs.Method = "counted MVP programs with device corrections (" + string(c.lib) + " kernels)"
	}
	integer, gone := plan.Quantised(g)
	counted := make([]*Counts, len(g.Nodes))
	for i, n := range g.Nodes {
		if gone[n] {
			none := &chip.Figure{}
			costs.Layers[i] = chip.LayerCost{CPU: none, Latency: none, Simulated: -1, Verdict: chip.NotOperator, Reason: "part of the integer operator beside it", Kernel: "none"}
			continue
		}
		costs.Layers[i], counted[i] = c.layer(m, g, i, integer[n], ops, t.Accelerator != nil)
	}
	for i, stalls := range carried(counted) {
		if stalls {
			costs.Layers[i].Simulated++
			costs.Layers[i].Counts["stalls"]++
		}
	}
	return costs, nil
}

// layer estimates node i; integer marks nodes that an ONNX file writes in floating point and
// converters compute in int8. The counts are nil for a layer on the processor.
func (m *fitted) layer(mod *graph.Model, g *graph.Graph, i int, integer bool, ops *processor, accelerator bool) (chip.LayerCost, *Counts) {
	l := chip.LayerCost{Simulated: -1}
	n := g.Nodes[i]
	in, out := count.Declared(g, n.Inputs), count.Declared(g, n.Outputs)
	if !known(in, out) {
		l.Missing = &chip.Missing{Code: chip.MissingShape, Text: n.Key() + ": its shapes are not known before the model runs"}
		return l, nil
	}
	if accelerator {
		ln, lin, lout := n, in, out
		if n.Domain != graph.TFLite {
			ln, lin, lout = lite(n, in, out, integer)
		}
		c, verdict, reason := m.accelerate(ln, lin, lout)
		l.Verdict, l.Reason = verdict, reason
		l.Simulated = 0
		if c != nil && c.Programs > 0 {
			acc := m.device(c)
			cpu, elapsed := m.cpu(c, acc)
			group := string(c.Kernel)
			l.Kernel = "mvp/" + group
			l.Simulated, l.Refused = c.Simulated(), c.Refused
			l.Counts = map[string]int64{"programs": c.Programs, "instructions": c.Instructions, "stalls": c.Stalls, "no_ops": c.NoOps}
			l.Accelerator = m.figure(acc, group)
			if cpu == 0 {
				l.Missing = &chip.Missing{Code: chip.MissingData, Text: fmt.Sprintf("the processor's part of %s on the accelerator was never measured", n.Op)}
				return l, c
			}
			l.CPU = m.figure(cpu, "cpu."+group)
			l.Latency = m.figure(elapsed, "latency."+group)
			return l, c
		}
	}
	cycles, kernel, missing := ops.cycles(mod, g, n, in, out)
	if missing != nil {
		if ops.other == nil {
			l.Missing = missing
			return l, nil
		}
		o := ops.other.Layer(&ops.layers[i], n.Key())
		o.Verdict, o.Reason, o.Simulated, o.Carried = l.Verdict, l.Reason, l.Simulated, true
		if o.Missing == nil {
			o.Kernel = "cpu/" + strings.ToLower(o.Kernel)
		}
		return o, nil
	}
	l.Kernel = kernel
	l.CPU = m.figure(cycles, "op."+n.Op)
	if !l.CPU.HasBand() {
		l.CPU = m.figure(cycles, "op")
	}
	l.Latency = l.CPU
	return l, nil
}

func known(lists ...[]*tensor.Tensor) bool {
	for _, list := range lists {
		for _, t := range list {
			if t == nil {
				continue
			}
			if _, err := tensor.CheckShape(tensor.Int8, t.Shape); err != nil {
				return false
			}
		}
	}
	return true
}

// Accelerated reports whether a generation of kernels runs a TFLite node on the accelerator.
func Accelerated(n *graph.Node, in, out []*tensor.Tensor, lib Library) bool {
	if !known(in, out) {
		return false
	}
	c, _, _ := (&fitted{lib: lib}).accelerate(n, in, out)
	return c != nil
}

// accelerate counts the programs of a node, or says why it is not accelerated.
func (m *fitted) accelerate(n *graph.Node, in, out []*tensor.Tensor) (*Counts, chip.Verdict, string) {
	typed, ok := operators[n.Op]
	if !ok || n.Domain != graph.TFLite {
		return nil, chip.NotOperator, "not an MVP operator"
	}
	if len(out) == 0 || out[0] == nil {
		return nil, chip.Limit, "no output"
	}
	if len(in) < typed || n.Op == "TRANSPOSE_CONV" && len(in) < 3 {
		return nil, chip.Limit, "an input is missing"
	}
	check := slices.Clone(in[:typed])
	if n.Op == "TRANSPOSE_CONV" && len(in) > 2 {
		check = append(check, in[1], in[2])
	}
	for _, t := range append(check, out[0]) {
		if t == nil || t.Type != tensor.Int8 {
			got := "absent"
			if t != nil {
				got = t.Type.String()
			}
			return nil, chip.WrongType, fmt.Sprintf("wrong type: MVP takes int8, this layer has %s", got)
		}
	}
	c, err := m.count(n, in, out)
	if errors.Is(err, errBroadcast) {
		return nil, chip.NotOperator, err.Error()
	}
	if err != nil {
		return nil, chip.Limit, err.Error()
	}
	return c, chip.Accelerated, ""
}

func (m *fitted) count(n *graph.Node, in, out []*tensor.Tensor) (*Counts, error) {
	clip := clips(n.Attrs.Str("fused_activation_function", "NONE"), out[0].Quant)
	switch n.Op {
	case "FULLY_CONNECTED":
		if len(in) < 2 || in[1].Rank() != 2 || in[1].Shape[1] < 1 || in[1].Shape[0] < 1 {
			return nil, errGeometry("weights")
		}
		depth := in[1].Shape[1]
		if in[0].Len()%depth != 0 {
			return nil, errGeometry("input")
		}
		rows, outputs := in[0].Len()/depth, in[1].Shape[0]
		if out[0].Rank() > 2 {
			// The kernel reads the number of outputs from the second dimension.
			rows, outputs = out[0].Shape[0], out[0].Shape[1]
		}
		return FullyConnected(rows, depth, outputs, clip)
	case "ADD", "MUL":
		if len(in) < 2 || !slices.Equal(in[0].Shape, in[1].Shape) {
			return nil, errBroadcast
		}
		if n.Op == "ADD" {
			return Add(int64(out[0].Len())), nil
		}
		return Mul(int64(out[0].Len())), nil
	}
	w, err := window(n, in, out[0])
	if err != nil {
		return nil, err
	}
	w.Clip = clip
	switch n.Op {
	case "CONV_2D":
		if in[1].Shape[3] != w.C {
			return nil, limit("its channels are convolved in groups, and programs read all channels of the input")
		}
		return Conv(w, m.lib)
	case "DEPTHWISE_CONV_2D":
		return Depthwise(w)
	case "AVERAGE_POOL_2D":
		return AveragePool(w)
	case "MAX_POOL_2D":
		return MaxPool(w)
	}
	return TransposeConv(w)
}

// window reads the geometry of a convolution or pooling node.
func window(n *graph.Node, in []*tensor.Tensor, out *tensor.Tensor) (Window, error) {
	x := in[0]
	if n.Op == "TRANSPOSE_CONV" {
		x = in[2]
	}
	if x == nil || x.Rank() != 4 || out.Rank() != 4 {
		return Window{}, errGeometry("input and output")
	}
	w := Window{
		Batch: x.Shape[0], H: x.Shape[1], W: x.Shape[2], C: x.Shape[3],
		OH: out.Shape[1], OW: out.Shape[2], OC: out.Shape[3],
		StrideY: n.Attrs.Int("stride_h", 1), StrideX: n.Attrs.Int("stride_w", 1),
		DilationY: max(n.Attrs.Int("dilation_h_factor", 1), 1), DilationX: max(n.Attrs.Int("dilation_w_factor", 1), 1),
		FH: n.Attrs.Int("filter_height", 1), FW: n.Attrs.Int("filter_width", 1),
	}
	if n.Op == "CONV_2D" || n.Op == "DEPTHWISE_CONV_2D" || n.Op == "TRANSPOSE_CONV" {
		if len(in) < 2 || in[1] == nil || in[1].Rank() != 4 {
			return Window{}, errGeometry("filter")
		}
		w.FH, w.FW = in[1].Shape[1], in[1].Shape[2]
	}
	// Far beyond every limit of the hardware; below it no multiplication overflows.
	const most = 1 << 15
	for _, v := range []int{w.Batch, w.H, w.W, w.C, w.OH, w.OW, w.OC, w.FH, w.FW, w.StrideX, w.StrideY, w.DilationX, w.DilationY} {
		if v < 1 || v > most {
			return Window{}, limit("one of its sizes, strides or dilations is %d; 1 to %d can be planned", v, most)
		}
	}
	if n.Op == "DEPTHWISE_CONV_2D" {
		if w.OC%w.C != 0 {
			return Window{}, errGeometry("channels")
		}
		w.DepthMultiplier = w.OC / w.C
	}
	if n.Attrs.Str("padding", "SAME") == "SAME" {
		if n.Op == "TRANSPOSE_CONV" {
			w.PadY = max((w.H-1)*w.StrideY+w.FH-w.OH, 0) / 2
			w.PadX = max((w.W-1)*w.StrideX+w.FW-w.OW, 0) / 2
		} else {
			w.samePadding()
		}
	}
	if n.Op != "TRANSPOSE_CONV" && !w.consistent() {
		return Window{}, limit("its output shape does not follow from the input shape")
	}
	return w, nil
}

// consistent reports whether the output's height and width follow the operator's padding rule.
func (w *Window) consistent() bool {
	size := func(in, filter, stride, dilation int) int {
		if w.same {
			return ceilDiv(in, stride)
		}
		return (in-(filter-1)*dilation-1)/stride + 1
	}
	return w.OH == size(w.H, w.FH, w.StrideY, w.DilationY) && w.OW == size(w.W, w.FW, w.StrideX, w.DilationX)
}

// clips reports whether a fused activation narrows the range of int8 results.
func clips(activation string, q *tensor.Quant) bool {
	if q == nil || len(q.Scale) == 0 || len(q.Zero) == 0 || q.Scale[0] <= 0 {
		return activation != "NONE" && activation != ""
	}
	at := func(v float64) float64 { return float64(q.Zero[0]) + math.Round(v/float64(q.Scale[0])) }
	lo, hi := math.Inf(-1), math.Inf(1)
	switch strings.ToUpper(activation) {
	case "RELU":
		lo = at(0)
	case "RELU6":
		lo, hi = at(0), at(6)
	case "RELU_N1_TO_1":
		lo, hi = at(-1), at(1)
	}
	return lo > -128 || hi < 127
}
