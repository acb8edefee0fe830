package memplan

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// ReferenceScratch lists the scratch buffers that the reference kernels of TensorFlow Lite Micro
// request, in the order of the requests. unknown names the operators whose requests are not
// known: custom ones, which the runtime does not define. Optimised vendor kernels need more.
func ReferenceScratch(m *graph.Model) (list []Scratch, unknown []string) {
	seen := map[string]bool{}
	for gi, g := range m.Graphs {
		for i, n := range g.Nodes {
			if n.Domain == graph.TFLiteCustom && !knownCustom[n.Op] && !seen[n.Op] {
				seen[n.Op] = true
				unknown = append(unknown, n.Key())
			}
			for _, b := range nodeScratch(g, n) {
				list = append(list, Scratch{Graph: gi, Node: i, Bytes: b})
			}
		}
	}
	return list, unknown
}

// knownCustom lists the custom operators of the runtime's signal library whose requests are
// known.
var knownCustom = map[string]bool{
	"SignalWindow": true, "SignalFftAutoScale": true, "SignalRfft": true, "SignalEnergy": true, "SignalFilterBank": true,
	"SignalFilterBankSquareRoot": true, "SignalFilterBankSpectralSubtraction": true, "SignalPCAN": true, "SignalFilterBankLog": true,
}

func nodeScratch(g *graph.Graph, n *graph.Node) []int {
	val := func(ids []int, k int) *graph.Value {
		if k >= len(ids) || ids[k] < 0 {
			return &graph.Value{}
		}
		return g.Values[ids[k]]
	}
	in := func(k int) *graph.Value { return val(n.Inputs, k) }
	out := val(n.Outputs, 0)
	elems := func(v *graph.Value) int {
		shape, err := staticShape(v)
		if err != nil {
			return 0
		}
		return tensor.Elements(shape)
	}
	dim := func(v *graph.Value, k int) int {
		if shape, err := staticShape(v); err == nil && k < len(shape) {
			return shape[k]
		}
		return 0
	}
	switch n.Op {
	case "SVDF":
		batch, filters := dim(in(0), 0), dim(in(1), 0)
		need := []int{4 * batch * filters}
		if in(0).Type == tensor.Int8 {
			need = append(need, 4*batch*filters/max(n.Attrs.Int("rank", 1), 1))
		}
		return need
	case "TRANSPOSE_CONV":
		switch in(2).Type {
		case tensor.Int8:
			return []int{4 * elems(out)}
		case tensor.Int16:
			return []int{8 * elems(out)}
		}
	case "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN":
		need := []int{4 * len(in(0).Shape), 4 * elems(in(1))}
		if t := in(0).Type; (n.Op == "MEAN" || n.Op == "SUM") && (t == tensor.Int8 || t == tensor.Int16) {
			need = append([]int{4 * elems(out)}, need...)
		}
		return need
	case "MIRROR_PAD":
		return []int{4 * len(in(0).Shape), 4 * len(in(0).Shape)}
	case "ADD_N":
		return []int{4 * len(n.Inputs)} // pointers of a 32-bit device
	case "SignalRfft":
		// The input of the FFT, padded to its length: n real values give n/2+1 complex ones.
		if bins := dim(out, len(out.Shape)-1) / 2; bins > 1 {
			return []int{out.Type.Bytes(2 * (bins - 1))}
		}
	case "UNIDIRECTIONAL_SEQUENCE_LSTM":
		// Gates and work space, one cell state each.
		cell := in(19)
		b := cell.Type.Bytes(elems(cell))
		return []int{b, b, b, b}
	case "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED":
		if in(1).Type == tensor.Int4 {
			return []int{elems(in(1))}
		}
	}
	return nil
}
