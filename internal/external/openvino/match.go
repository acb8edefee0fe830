package openvino

import (
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/model/graph"
)

// op is an operator of the model file with the names of its input and output tensors, without
// constants.
type op struct {
	name      string // "" where others have it, too
	kind      string
	in, out   []string
	from      []int // operators that produce its inputs
	constants int
}

// opsOf lists the operators of a model's main graph.
func opsOf(g *graph.Graph) []op {
	ops := make([]op, len(g.Nodes))
	made := map[int]int{}
	called := map[string]int{}
	for _, n := range g.Nodes {
		called[n.Name]++
	}
	for i, n := range g.Nodes {
		o := &ops[i]
		o.kind = kindOf(n.Op)
		if called[n.Name] == 1 {
			o.name = n.Name
		}
		for _, v := range n.Inputs {
			if v < 0 {
				continue
			}
			if g.Values[v].Const != nil {
				o.constants++
				continue
			}
			o.in = append(o.in, g.Values[v].Name)
			if from, ok := made[v]; ok {
				o.from = append(o.from, from)
			}
		}
		for _, v := range n.Outputs {
			if v >= 0 {
				o.out = append(o.out, g.Values[v].Name)
				made[v] = i
			}
		}
	}
	return ops
}

// kinds maps operator names of TFLite, ONNX, OpenVINO and its executed graphs to common kinds.
var kinds = func() map[string]string {
	out := map[string]string{}
	for kind, names := range map[string]string{
		"conv":    "conv conv2d depthwiseconv2d convolution groupconvolution convinteger qlinearconv",
		"deconv":  "transposeconv convtranspose convolutionbackpropdata groupconvolutionbackpropdata deconvolution",
		"matmul":  "fullyconnected fullyconnectedquantizedlegacy batchmatmul matmul gemm matmulinteger qlinearmatmul",
		"avgpool": "averagepool2d avgpool pooling averagepool globalaveragepool",
		"maxpool": "maxpool2d maxpool globalmaxpool",
		"softmax": "softmax logsoftmax",
		"concat":  "concatenation concat pack",
		"resize":  "resizebilinear resizenearestneighbor resize interpolate upsample",
		"sigmoid": "logistic sigmoid",
		"mean":    "mean reducemean",
		"sum":     "sum reducesum",
		"add":     "add",
		"sub":     "sub subtract",
		"mul":     "mul multiply",
		"div":     "div divide",
		"split":   "split splitv variadicsplit",
		"slice":   "stridedslice slice",
		"prelu":   "prelu",
		"swish":   "hardswish hswish",
		"lstm":    "lstm lstmsequence lstmcell unidirectionalsequencelstm rnnseq rnncell",
		"gru":     "gru grusequence grucell",
		"pad":     "pad padv2 mirrorpad",
		"gather":  "gather gathernd embeddinglookup",
	} {
		for n := range strings.FieldsSeq(names) {
			out[n] = kind
		}
	}
	return out
}()

// kindOf returns the kind of an operator.
func kindOf(name string) string {
	s := strings.ToLower(strings.ReplaceAll(name, "_", ""))
	if k, ok := kinds[s]; ok {
		return k
	}
	return s
}

// skeleton are kinds that a graph as read preserves, so that they can be matched with the model's
// operators in order. Additions and multiplications count only without a constant operand: others
// are biases and scales.
var skeleton = map[string]bool{
	"conv": true, "deconv": true, "matmul": true, "avgpool": true, "maxpool": true, "softmax": true, "concat": true, "resize": true,
	"sigmoid": true, "mean": true, "add": true, "mul": true, "prelu": true, "swish": true, "lstm": true, "gru": true, "pad": true, "tanh": true,
}

// maxAround bounds the nearest operators of an operator: with more, nothing is concluded.
const maxAround = 32

// owners returns the model operator that each layer of a graph as read belongs to, -1 if unknown.
//
// A layer that produces a tensor of the model belongs to the tensor's operator. OpenVINO drops
// the names of tensors between layers through which it moves transpositions, as it does in most
// TFLite models. There, layers of a kind are matched with the operators of that kind in order.
// Their counts must be equal, and the data must come from the same operators in both graphs.
func owners(g *irGraph, ops []op) []int {
	makes := map[string]int{}
	for i := range ops {
		for _, t := range ops[i].out {
			if _, ok := makes[t]; !ok && t != "" {
				makes[t] = i
			}
		}
	}
	varies := g.varies()
	fixed := make([]int, len(g.layers))
	for i := range g.layers {
		fixed[i] = -1
		for _, o := range g.layers[i].outs {
			for _, name := range o.names {
				if at, ok := makes[name]; ok && varies[i] {
					fixed[i] = at
				}
			}
		}
	}
	best, most := fixed, -1
	for _, numbered := range []bool{true, false} {
		own := slices.Clone(fixed)
		g.propose(own, ops, varies, numbered)
		n := g.verify(own, fixed, ops, varies)
		if n > most {
			best, most = own, n
		}
	}
	return best
}

// varies reports which layers depend on an input of the model.
func (g *irGraph) varies() []bool {
	out := make([]bool, len(g.layers))
	for i := range g.layers {
		l := &g.layers[i]
		out[i] = len(l.from) == 0 && !l.constant
		for _, f := range l.from {
			if f.layer >= 0 && f.layer < i && out[f.layer] {
				out[i] = true
			}
		}
	}
	return out
}

// serial returns the number at the end of a generated name, -1 for none: it grows with each node
// that is created.
func serial(name string) int {
	i := strings.LastIndexByte(name, '_')
	if i < 0 {
		return -1
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil {
		return -1
	}
	return n
}

// propose assigns layers of a kind to the operators of that kind, in order.
func (g *irGraph) propose(own []int, ops []op, varies []bool, numbered bool) {
	byKind := map[string][]int{}
	for i := range ops {
		if k := ops[i].kind; skeleton[k] && !(k == "add" || k == "mul") || len(ops[i].in) > 1 && skeleton[k] {
			byKind[k] = append(byKind[k], i)
		}
	}
	layers := map[string][]int{}
	for i := range g.layers {
		k := kindOf(g.layers[i].op)
		if !varies[i] || !skeleton[k] {
			continue
		}
		data := 0
		for _, f := range g.layers[i].from {
			if f.layer >= 0 && varies[f.layer] {
				data++
			}
		}
		if (k == "add" || k == "mul") && data < 2 {
			continue
		}
		layers[k] = append(layers[k], i)
	}
	for k, list := range layers {
		if len(list) != len(byKind[k]) {
			continue
		}
		if numbered {
			sorting.Stable(list, func(a, b int) int { return serial(g.layers[a].name) - serial(g.layers[b].name) })
		}
		for n, i := range list {
			if own[i] < 0 {
				own[i] = byKind[k][n]
			}
		}
	}
}

// odd is the share of mismatched layers from which a kind is skipped: its count equals the
// operators' only by chance.
const odd = 0.2

// verify removes assignments that do not fit: an operator whose data comes from other operators
// in the model than in the graph. Kinds that fit badly are removed first, as a whole: comparisons
// with wrong neighbours would fail as well. It returns the number of remaining layers.
func (g *irGraph) verify(own, fixed []int, ops []op, varies []bool) int {
	for {
		wrong := g.misfits(own, fixed, ops, varies)
		bad, all := map[string]int{}, map[string]int{}
		for i := range own {
			if own[i] >= 0 && fixed[i] < 0 {
				all[ops[own[i]].kind]++
				if wrong[i] {
					bad[ops[own[i]].kind]++
				}
			}
		}
		worst, most := "", odd
		for k, n := range bad {
			if part := float64(n) / float64(all[k]); part > most || part == most && k < worst {
				worst, most = k, part
			}
		}
		for i := range own {
			if own[i] >= 0 && fixed[i] < 0 && (ops[own[i]].kind == worst || worst == "" && wrong[i]) {
				own[i] = -1
			}
		}
		if worst == "" {
			break
		}
	}
	n := 0
	for i := range own {
		if own[i] >= 0 {
			n++
		}
	}
	return n
}

// misfits marks layers whose data comes from other operators than expected.
func (g *irGraph) misfits(own, fixed []int, ops []op, varies []bool) []bool {
	taken := make([]bool, len(ops))
	for i := range own {
		if own[i] >= 0 {
			taken[own[i]] = true
		}
	}
	above := nearestOps(ops, taken)
	sets := make([][]int, len(g.layers))
	wrong := make([]bool, len(g.layers))
	for i := range g.layers {
		if !varies[i] {
			continue
		}
		for _, f := range g.layers[i].from {
			switch {
			case f.layer < 0 || f.layer >= i || !varies[f.layer]:
			case own[f.layer] >= 0 && own[f.layer] != own[i]:
				sets[i] = with(sets[i], own[f.layer])
			default:
				for _, o := range sets[f.layer] {
					if o != own[i] {
						sets[i] = with(sets[i], o)
					}
				}
			}
		}
		wrong[i] = own[i] >= 0 && fixed[i] < 0 && (len(sets[i]) >= maxAround || !slices.Equal(sets[i], above[own[i]]))
	}
	return wrong
}

// with adds a number to a sorted set.
func with(set []int, n int) []int {
	at, there := slices.BinarySearch(set, n)
	if there || len(set) >= maxAround {
		return set
	}
	return slices.Insert(slices.Clone(set), at, n)
}

// nearestOps lists, for each operator, the nearest taken operators that its data comes from.
func nearestOps(ops []op, taken []bool) [][]int {
	out := make([][]int, len(ops))
	for i := range ops {
		for _, f := range ops[i].from {
			switch {
			case f >= i:
			case taken[f]:
				out[i] = with(out[i], f)
			default:
				for _, o := range out[f] {
					out[i] = with(out[i], o)
				}
			}
		}
	}
	return out
}

// beneath lists, for each operator, the nearest taken operators that its data goes to.
func beneath(ops []op, taken []bool) [][]int {
	out := make([][]int, len(ops))
	for i := len(ops) - 1; i >= 0; i-- {
		for _, f := range ops[i].from {
			if f >= i {
				continue
			}
			if taken[i] {
				out[f] = with(out[f], i)
				continue
			}
			for _, o := range out[i] {
				out[f] = with(out[f], o)
			}
		}
	}
	return out
}
