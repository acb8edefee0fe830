package tflm

import (
	"github.com/opmeter/opmeter/internal/estimate/mvp"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

// Kernels is a family of kernels; families differ in scratch memory.
type Kernels string

// Families of kernels, as named under arena in target files.
const (
	Reference Kernels = "reference"
	CMSISNN   Kernels = "cmsis-nn"     // C and DSP tiers
	CMSISMVE  Kernels = "cmsis-nn-mve" // Helium tier
	MVP       Kernels = "mvp"          // speed-optimised, release 0.8.0 of MLTK and later
	MVPFirst  Kernels = "mvp-first"    // before
)

// scratch lists the scratch buffers that the operators of the main graph request. Operators
// without an optimised kernel request the reference kernel's.
func scratch(m *graph.Model, k Kernels) (list []memplan.Scratch, unknown []string) {
	ref, unknown := memplan.ReferenceScratch(m)
	if k == Reference || k == "" {
		return ref, unknown
	}
	byNode := map[[2]int][]memplan.Scratch{}
	for _, s := range ref {
		byNode[[2]int{s.Graph, s.Node}] = append(byNode[[2]int{s.Graph, s.Node}], s)
	}
	for _, g := range m.Graphs {
		for _, n := range g.Nodes {
			if b, ok := own(k, g, n); ok {
				if b > 0 {
					list = append(list, memplan.Scratch{Graph: g.Index, Node: n.Index, Bytes: b})
				}
				continue
			}
			list = append(list, byNode[[2]int{g.Index, n.Index}]...)
		}
	}
	return list, unknown
}

// library is the generation of the accelerator's kernels.
var library = map[Kernels]mvp.Library{MVP: mvp.Second, MVPFirst: mvp.First}

// own returns the scratch size of a vendor's kernel; ok is false if there is no such kernel.
func own(k Kernels, g *graph.Graph, n *graph.Node) (bytes int, ok bool) {
	if n.Domain != graph.TFLite {
		return 0, false
	}
	in, out := count.Declared(g, n.Inputs), count.Declared(g, n.Outputs)
	if len(in) == 0 || in[0] == nil || len(out) == 0 || out[0] == nil || in[0].Type != tensor.Int8 {
		return 0, false
	}
	switch n.Op {
	case "CONV_2D", "DEPTHWISE_CONV_2D":
		if len(in) < 2 || in[1] == nil || in[0].Rank() != 4 || in[1].Rank() != 4 {
			return 0, false
		}
	}
	switch k {
	case MVP, MVPFirst:
		switch n.Op {
		case "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED":
		default:
			return 0, false
		}
		switch {
		case !mvp.Accelerated(n, in, out, library[k]):
			return cmsis(false, n, in, out[0])
		case k == MVP && n.Op == "CONV_2D":
			return 2 * in[0].Len(), true // the scaled input as half floats
		}
		return 0, true
	case CMSISNN, CMSISMVE:
		return cmsis(k == CMSISMVE, n, in, out[0])
	}
	return 0, false
}

// cmsis returns the scratch size of CMSIS-NN's int8 kernels.
func cmsis(mve bool, n *graph.Node, in []*tensor.Tensor, out *tensor.Tensor) (int, bool) {
	align := func(v, to int) int { return (v + to - 1) / to * to }
	switch n.Op {
	case "CONV_2D":
		kh, kw, c := in[1].Shape[1], in[1].Shape[2], in[0].Shape[3]
		if kh == 1 && kw == 1 && n.Attrs.Int("stride_h", 1) == 1 && n.Attrs.Int("stride_w", 1) == 1 {
			return 0, true
		}
		if mve {
			return 4 * align(kh*kw*c, 16), true
		}
		return 4 * align(kh*kw*c, 4), true
	case "DEPTHWISE_CONV_2D":
		kh, kw, c := in[1].Shape[1], in[1].Shape[2], in[0].Shape[3]
		if out.Rank() != 4 || out.Shape[3] != c || n.Attrs.Int("dilation_h_factor", 1) != 1 || n.Attrs.Int("dilation_w_factor", 1) != 1 {
			return 0, true
		}
		if mve {
			const block = 124 // channels at a time
			return 4 * min(align(c, 4), block) * kh * kw, true
		}
		if kh == 3 && kw == 3 {
			return 0, true
		}
		return 2 * c * kh * kw, true
	case "FULLY_CONNECTED":
		if mve && len(in) > 1 && in[1] != nil && in[1].Rank() == 2 {
			return 4 * in[1].Shape[0], true
		}
		return 0, true
	case "AVERAGE_POOL_2D":
		if !mve && in[0].Rank() == 4 {
			return 4 * in[0].Shape[3], true
		}
		return 0, true
	}
	return 0, false
}
