package rewrite

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// jointOperators lists operators that accept 8-bit weights only if all their weights have them,
// with one scale each: the weight inputs, the inputs that must be absent, and the version. The
// fields from whole on describe the integer form: its version, further inputs that must be
// absent, states (which must not be shared), and the activation function.
var jointOperators = map[string]struct {
	weights, absent []int
	version         int
	whole           int   // version of the integer form
	bare            []int // inputs that must be absent
	states          []int
	activation      string
}{
	"SVDF":                         {[]int{1, 2}, nil, 2, 3, nil, []int{4}, "RELU"},
	"UNIDIRECTIONAL_SEQUENCE_LSTM": {[]int{1, 2, 3, 4, 5, 6, 7, 8, 16}, []int{9, 10, 11}, 2, 1, []int{9, 10, 11, 16, 17, 20, 21, 22, 23}, []int{18, 19}, "TANH"},
}

// storeJointPart quantises one weight tensor of a joint operator for its integer form. It fails
// where the operator has no integer form, or ranges are unknown.
func (f *liteFormats) storeJointPart(l *weights.Layer, mat []float32) study.Cause {
	for _, at := range l.Nodes {
		n := f.g.Nodes[at]
		t, ok := jointOperators[n.Op]
		if !ok || n.Domain != graph.TFLite || len(n.Outputs) != 1 || f.g.Values[n.Inputs[0]].Type != tensor.Float32 ||
			n.Attrs.Str("fused_activation_function", "NONE") != t.activation || n.Attrs.Float("proj_clip", 0) != 0 ||
			slices.ContainsFunc(t.bare, func(k int) bool { return operandAt(n.Inputs, k) >= 0 }) ||
			n.Op != "SVDF" && operandAt(n.Inputs, 1) < 0 { // coupled gates
			return study.NoFormat
		}
		for _, k := range t.states {
			if id := operandAt(n.Inputs, k); id < 0 || !f.g.Values[id].Variable || len(f.readers(id)) != 1 {
				return study.NoFormat
			}
		}
		if !f.rangesKnown(n.Inputs[0], n.Outputs[0]) {
			return study.NotRun
		}
		if n.Op != "SVDF" {
			// TFLite and TFLite Micro use different signs for the zero point of an LSTM's output,
			// so it has to be 0.
			if c, ok := f.activations[n.Outputs[0]]; ok && c.zero != 0 {
				return study.NoFormat
			}
			f.symmetric[n.Outputs[0]] = true
		}
	}
	q := quantiseSymmetric(l, mat, tensor.Int8, false, nil)
	q.c.Quant = q.quant()
	f.storeBehindDequantize(l, q.c, 5)
	f.parts[q.c] = jointPart{l, mat}
	return ""
}

// jointPart is a weight tensor of an operator that becomes an integer operator.
type jointPart struct {
	l   *weights.Layer
	mat []float32
}

// finishJoint gives joint operators their quantised weights where all weights are quantised.
func (f *liteFormats) finishJoint() {
	for at, n := range f.g.Nodes {
		t, ok := jointOperators[n.Op]
		if !ok || n.Domain != graph.TFLite || slices.ContainsFunc(t.absent, func(k int) bool { return operandAt(n.Inputs, k) >= 0 }) {
			continue
		}
		codes, whole := map[int]int{}, true
		for _, k := range t.weights {
			id := operandAt(n.Inputs, k)
			if id < 0 {
				continue
			}
			if d := f.made[id]; d != nil && d.Op == "DEQUANTIZE" {
				if c := f.g.Values[d.Inputs[0]].Const; c != nil && c.Type == tensor.Int8 && c.Quant != nil && len(c.Quant.Scale) == 1 && c.Quant.Zero[0] == 0 {
					codes[k] = d.Inputs[0]
					_, all := f.parts[c]
					whole = whole && all
					continue
				}
			}
			codes = nil
			break
		}
		if len(codes) == 0 {
			continue
		}
		if whole && f.makeInteger(at, codes) {
			continue
		}
		c := f.mutableNode(at)
		for k, id := range codes {
			c.Inputs[k] = id
		}
		c.Version = t.version
	}
}

// makeInteger converts an operator to integer arithmetic. It is false where a bias does not fit.
func (f *liteFormats) makeInteger(at int, codes map[int]int) bool {
	n := f.g.Nodes[at]
	x := f.scale(n.Inputs[0])
	biases := map[int]*tensor.Tensor{}
	add := func(k int, scale float32) bool {
		if operandAt(n.Inputs, k) < 0 {
			return true
		}
		s := weights.SourceOf(f.g, f.made, n.Inputs[k])
		if s == nil || !f.g.Values[s.Value].Const.Type.IsFloat() {
			return false
		}
		b := make([]float32, f.g.Values[s.Value].Const.Len())
		tensor.Read(b, f.g.Values[s.Value].Const, 0)
		if biases[k] = quantiseBias(b, func(int) float64 { return float64(scale) }); biases[k] != nil {
			biases[k].Quant = &tensor.Quant{Scale: []float32{scale}, Zero: []int64{0}}
		}
		// The products need the other half of the 32-bit range.
		return biases[k] != nil && !slices.ContainsFunc(tensor.Of[int32](biases[k]), func(c int32) bool { return max(c, -c) > 1<<30 })
	}
	state := map[int]*tensor.Quant{}
	var time *tensor.Tensor
	if n.Op == "SVDF" {
		features, times := f.parts[f.g.Values[codes[1]].Const], f.parts[f.g.Values[codes[2]].Const]
		memory := f.memoryScale(n.Inputs[0], features)
		time = quantiseTimeWeights(times, max(n.Attrs.Int("rank", 1), 1))
		state[4] = &tensor.Quant{Scale: []float32{memory}, Zero: []int64{0}}
		if !add(3, memory*time.Quant.Scale[0]) {
			return false
		}
	} else {
		// Cell states beyond 16 are rare, and their tanh is 1 in 16-bit precision.
		state[19] = &tensor.Quant{Scale: []float32{16.0 / (1 << 15)}, Zero: []int64{0}}
		for k := range 4 {
			if !add(12+k, x*f.g.Values[codes[1+k]].Const.Quant.Scale[0]) {
				return false
			}
		}
	}
	n = f.mutableNode(at)
	name := func(k int) string { return f.freshName(f.g.Values[n.Inputs[k]].Name, "_quantized") }
	for k, b := range biases {
		n.Inputs[k] = f.addConst(name(k), b)
	}
	n.Inputs[0] = f.quantiseInput(n.Inputs[0]).id
	f.quantiseOutput(n)
	made := f.g.Values[n.Outputs[0]].Quant
	for k, q := range state {
		v := f.mutableValue(n.Inputs[k])
		v.Type, v.Quant = tensor.Int16, q
	}
	for k, id := range codes {
		n.Inputs[k] = id
	}
	n.Version = jointOperators[n.Op].whole
	if n.Op == "SVDF" {
		n.Inputs[2] = f.addConst(name(2), time)
		return true
	}
	hidden := f.mutableValue(n.Inputs[18])
	hidden.Type, hidden.Quant = tensor.Int8, made
	// The intermediate tensors hold scales of layer normalisation; here they are empty. The fifth
	// one has the quantisation before the projection, which is that of the output.
	var between []int64
	for k := range 5 {
		v := f.addValue(f.freshName(f.g.Values[n.Outputs[0]].Name, "_between"), tensor.Float32, []int{0})
		if k == 4 {
			v.Type, v.Quant = tensor.Int8, made
		}
		between = append(between, int64(v.ID))
	}
	setAttr(n, "intermediates", between)
	return true
}

// memoryScale returns the scale of the state of an SVDF, which holds weighted sums of features,
// from the range of its input.
func (f *liteFormats) memoryScale(x int, p jointPart) float32 {
	c := f.activations[x]
	lo, hi := c.scale*float32(-128-c.zero), c.scale*float32(127-c.zero)
	if _, ok := f.activations[x]; !ok {
		r, _ := f.ranges.rangeOf(x)
		lo, hi = min(r.Lo, 0), max(r.Hi, 0)
	}
	most := 0.0
	for r := range p.l.Rows {
		up, down := 0.0, 0.0
		for _, w := range p.mat[r*p.l.Cols:][:p.l.Cols] {
			up += float64(max(w*lo, w*hi))
			down += float64(min(w*lo, w*hi))
		}
		most = max(most, up, -down)
	}
	return float32(max(most/math.MaxInt16, math.SmallestNonzeroFloat32*(1<<24)))
}

// quantiseTimeWeights quantises the time weights to 16 bits, small enough that the sum over a
// unit's filters fits into 32 bits.
func quantiseTimeWeights(p jointPart, rank int) *tensor.Tensor {
	most := 0.0
	for u := range p.l.Rows / rank {
		sum := 0.0
		for _, w := range p.mat[u*rank*p.l.Cols:][:rank*p.l.Cols] {
			sum += abs(w)
			most = max(most, abs(w)/math.MaxInt16)
		}
		most = max(most, sum/(1<<15)) // leaves half of 2^31 for the bias
	}
	scale := float32(max(most, math.SmallestNonzeroFloat32*(1<<24)))
	out := tensor.New(tensor.Int16, p.l.Const.Shape...)
	for r := range p.l.Rows {
		for c, x := range p.mat[r*p.l.Cols:][:p.l.Cols] {
			tensor.Of[int16](out)[p.l.Row[r]+p.l.Col[c]] = int16(math.RoundToEven(float64(x) / float64(scale)))
		}
	}
	out.Quant = &tensor.Quant{Scale: []float32{scale}, Zero: []int64{0}}
	return out
}
