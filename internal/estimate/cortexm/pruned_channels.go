package cortexm

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// share is the part of a layer's work in channels with nonzero weights.
type share struct{ out, both float64 }

// channels returns the live share of a node: of its output channels, and of the pairs of live
// output and live input channels.
func channels(n *graph.Node, wi int, dead map[int][]bool) share {
	s := share{1, 1}
	if len(n.Outputs) == 0 || n.Outputs[0] < 0 || n.Domain != graph.TFLite {
		return s
	}
	if d := dead[n.Outputs[0]]; d != nil {
		s.out = liveShare(d)
	}
	s.both = s.out
	if len(n.Inputs) > 0 {
		if d := dead[n.Inputs[0]]; d != nil && n.Op == "CONV_2D" {
			s.both *= liveShare(d)
		}
	}
	return s
}

func liveShare(dead []bool) float64 {
	n := 0
	for _, d := range dead {
		if !d {
			n++
		}
	}
	return float64(n) / float64(max(1, len(dead)))
}

// deadChannels finds output channels of convolutions whose weights are all zero, by value id:
// pruning tools remove them.
func deadChannels(g *graph.Graph) map[int][]bool {
	dead := map[int][]bool{}
	for _, n := range g.Nodes {
		if n.Domain != graph.TFLite || len(n.Outputs) == 0 || n.Outputs[0] < 0 {
			continue
		}
		switch n.Op {
		case "CONV_2D", "DEPTHWISE_CONV_2D":
			if len(n.Inputs) < 2 || n.Inputs[1] < 0 {
				continue
			}
			d := zeroChannels(g.Values[n.Inputs[1]].Const, n.Op == "CONV_2D")
			if in := dead[n.Inputs[0]]; n.Op == "DEPTHWISE_CONV_2D" && d != nil && len(in) == len(d) {
				for i := range d {
					d[i] = d[i] || in[i]
				}
			}
			dead[n.Outputs[0]] = d
		}
	}
	return dead
}

// zeroChannels reports which channels of 8-bit weights are zero: of the first axis, or of the
// last.
func zeroChannels(w *tensor.Tensor, first bool) []bool {
	if !w.Known() || w.Type != tensor.Int8 || len(w.Shape) != 4 {
		return nil
	}
	v := tensor.Of[int8](w)
	c := w.Shape[3]
	if first {
		c = w.Shape[0]
	}
	if c == 0 || len(v) == 0 {
		return nil
	}
	out := make([]bool, c)
	per := len(v) / c
	for i := range out {
		out[i] = true
		for k := range per {
			at := k*c + i
			if first {
				at = i*per + k
			}
			if v[at] != 0 {
				out[i] = false
				break
			}
		}
	}
	return out
}
