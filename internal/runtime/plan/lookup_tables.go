package plan

import (
	"errors"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// pointwise lists element-wise ONNX operators: each result depends only on the operands' elements
// at the same position.
var pointwise = map[string]bool{
	"Abs": true, "Add": true, "Celu": true, "Clip": true, "Div": true, "Elu": true, "Erf": true, "Exp": true, "Gelu": true, "HardSigmoid": true,
	"HardSwish": true, "Identity": true, "LeakyRelu": true, "Log": true, "Max": true, "Min": true, "Mish": true, "Mul": true, "Neg": true, "PRelu": true,
	"Pow": true, "Reciprocal": true, "Relu": true, "Selu": true, "Sigmoid": true, "Softplus": true, "Softsign": true, "Sqrt": true, "Sub": true, "Sum": true,
	"Swish": true, "Tanh": true, "ThresholdedRelu": true,
}

// litePointwise lists the element-wise operators of TFLite.
var litePointwise = map[string]bool{
	"ABS": true, "ADD": true, "CEIL": true, "COS": true, "DIV": true, "ELU": true, "EXP": true, "FLOOR": true, "GELU": true, "HARD_SWISH": true,
	"LEAKY_RELU": true, "LOG": true, "LOGISTIC": true, "MAXIMUM": true, "MINIMUM": true, "MUL": true, "NEG": true, "POW": true, "RELU": true, "RELU6": true,
	"RELU_0_TO_1": true, "RELU_N1_TO_1": true, "ROUND": true, "RSQRT": true, "SIGN": true, "SIN": true, "SQRT": true, "SQUARE": true,
	"SQUARED_DIFFERENCE": true, "SUB": true, "TANH": true,
}

// tabulation finds functions of one 8-bit quantised value that the file writes as floating-point
// operators, such as x·sigmoid(x) or GELU, with conversions before, after and perhaps between
// them. A table of 256 entries describes such a function completely, or one table per channel.
type tabulation struct {
	*lowering
	root []int  // by value id: one plus the quantised value it is a function of
	each []bool // by value id: the function differs per channel
	made map[int]*tensor.Tensor
	of   []int // shape of the table entries being computed
}

// tabulate replaces functions of one quantised value by table lookups. With lenient it only finds
// them: the tables are empty.
func tabulate(g *Graph, lenient bool) {
	known := convertsAny
	if lenient { // TFLite integer operators are already in the file
		known = converts
	}
	if !slices.ContainsFunc(g.File.Nodes, func(n *graph.Node) bool { return known(n) > 0 }) || g.opts.Registry == nil && !lenient {
		return
	}
	l := loweringOf(g)
	l.lenient = lenient
	t := &tabulation{lowering: l, root: make([]int, len(g.Values)), each: make([]bool, len(g.Values))}
	for i := range g.Tasks {
		t.trackRoot(i)
	}
	// Go backwards so that inner functions are already part of an outer one when their turn
	// comes.
	for i := len(g.Tasks) - 1; i >= 0; i-- {
		t.lookUp(i)
	}
}

// convertsAny is converts that also knows the conversions of TFLite.
func convertsAny(n *graph.Node) int {
	switch {
	case n.Domain != graph.TFLite:
		return converts(n)
	case n.Op == "QUANTIZE":
		return -1
	case n.Op == "DEQUANTIZE":
		return 1
	}
	return 0
}

// bytes returns the quantised value that a conversion reads or writes, if it has 8 bits and one
// scale.
func (t *tabulation) bytes(i int) (id int, ok bool) {
	n := t.g.Tasks[i].Node
	if n.Domain != graph.TFLite {
		q := t.quantisation(i)
		if q == nil {
			return 0, false
		}
		return q.x, is8Bit(q.kind) && len(q.s) == 1
	}
	if id = n.Outputs[0]; convertsAny(n) > 0 {
		id = n.Inputs[0]
	}
	if id < 0 {
		return 0, false
	}
	x := t.g.Values[id]
	return id, x != nil && is8Bit(x.Type) && x.Quant != nil && len(x.Quant.Scale) == 1
}

// eligible reports whether task i may become part of a table.
func (t *tabulation) eligible(i int) bool {
	k := &t.g.Tasks[i]
	return k.State == Runs && !k.final && !k.Lowered && len(k.Node.Inputs) > 0 && len(k.Node.Outputs) == 1 && k.Node.Outputs[0] >= 0
}

// trackRoot finds the quantised value that the result of task i is a function of.
func (t *tabulation) trackRoot(i int) {
	if !t.eligible(i) {
		return
	}
	n := t.g.Tasks[i].Node
	y := n.Outputs[0]
	switch convertsAny(n) {
	case 1:
		if x, ok := t.bytes(i); ok && !t.g.Fixed[x] {
			if t.root[y], t.each[y] = t.root[x], t.each[x]; t.root[y] == 0 {
				t.root[y] = x + 1
			}
		}
	case -1:
		if _, ok := t.bytes(i); ok {
			t.root[y], t.each[y] = t.root[n.Inputs[0]], t.each[n.Inputs[0]]
		}
	default:
		switch {
		case n.Domain == graph.ONNX && pointwise[n.Op], n.Domain == graph.TFLite && litePointwise[n.Op]:
			t.trackElementwise(n)
		case n.Domain == graph.ONNX && n.Op == "BatchNormalization":
			t.trackBatchNorm(n)
		}
	}
}

// trackBatchNorm is trackRoot for a batch normalisation.
func (t *tabulation) trackBatchNorm(n *graph.Node) {
	for _, id := range n.Inputs[1:] {
		if _, ok := t.elements(id); !ok {
			return
		}
	}
	if root := t.root[n.Inputs[0]]; root > 0 && t.channels(root-1) > 0 {
		t.root[n.Outputs[0]], t.each[n.Outputs[0]] = root, true
	}
}

// fewPositions is the number of positions per channel below which per-channel tables do not pay
// off.
const fewPositions = 32

// channels returns the number of channels of a quantised value that may have one table each; 0 if
// it may not.
func (t *tabulation) channels(root int) int {
	x := t.g.Values[root]
	if x == nil || x.Type == tensor.Invalid || len(x.Shape) < 3 || x.Len() < fewPositions*x.Shape[1] {
		return 0
	}
	return x.Shape[1]
}

// perChannel reports whether a constant has one number per channel of a quantised value.
func (t *tabulation) perChannel(id, root int) bool {
	n, x, c := t.channels(root), t.g.Values[root], t.g.Values[id]
	if n == 0 || c.Len() != n || len(c.Shape) > len(x.Shape) {
		return false
	}
	at := 1 - (len(x.Shape) - len(c.Shape))
	return at >= 0 && c.Shape[at] == n
}

// trackElementwise is trackRoot for an element-wise operator: all operands must be functions of
// the same quantised value, or constants that are scalar or per channel.
func (t *tabulation) trackElementwise(n *graph.Node) {
	root, each := 0, false
	for _, id := range n.Inputs {
		switch {
		case id < 0 || t.g.Fixed[id]:
		case t.root[id] == 0 || root != 0 && root != t.root[id]:
			return
		default:
			root, each = t.root[id], each || t.each[id]
		}
	}
	if root == 0 {
		return
	}
	// Constants must not add axes to the result.
	rank, x := 0, t.g.Values[root-1]
	if x != nil && x.Type != tensor.Invalid {
		rank = len(x.Shape)
	}
	for _, id := range n.Inputs {
		if id < 0 || !t.g.Fixed[id] {
			continue
		}
		if _, ok := t.elements(id); !ok || t.g.Values[id].Rank() > rank {
			return
		}
		if t.g.Values[id].Len() != 1 {
			if !t.perChannel(id, root-1) {
				return
			}
			each = true
		}
	}
	t.each[n.Outputs[0]] = each
	t.root[n.Outputs[0]] = root
}

// lookUp replaces task i, a quantisation, and all tasks that only it needs by a table lookup.
func (t *tabulation) lookUp(i int) {
	g := t.g
	n := g.Tasks[i].Node
	if !t.eligible(i) || convertsAny(n) >= 0 || t.root[n.Outputs[0]] == 0 || t.uses[n.Outputs[0]] == 0 {
		return
	}
	y, root := n.Outputs[0], t.root[n.Outputs[0]]-1
	if t.hasOwnRule(n.Inputs[0]) {
		return
	}
	t.made = map[int]*tensor.Tensor{}
	shape := []int{codes}
	if t.of = shape; t.each[y] {
		// The operators find the channels at their usual axis.
		t.of = make([]int, len(g.Values[root].Shape))
		for i := range t.of {
			t.of[i] = 1
		}
		shape = []int{t.channels(root), codes}
		copy(t.of[1:], shape)
	}
	table := tensor.New(t.quantisedType(y), shape...)
	if !t.lenient {
		table = t.table(y, root)
	}
	if table == nil || table.Len() != tensor.Elements(shape) {
		return
	}
	table.Shape = shape
	at := i
	if j := g.maker[n.Inputs[0]] - 1; convertsAny(g.Tasks[j].Node) == 0 && t.uses[n.Inputs[0]] == 1 {
		at = j // the operator stays; its conversions are fused into it
	}
	of := g.Tasks[at].Node
	gone := t.removeReader(n.Inputs[0], nil)
	if at != i {
		gone = append(slices.DeleteFunc(gone, func(k int) bool { return k == at }), i)
	}
	g.replace(at, &graph.Node{
		Domain: graph.Own, Op: "LookUp", Version: 1, Index: of.Index, Name: of.Name, Function: of.Function,
		Inputs: []int{root, t.constant(table)}, Outputs: []int{y},
	}, gone...)
	g.Tasks[at].Lowered = true
	t.uses[root]++
}

// hasOwnRule reports whether a value is computed by a single operator on dequantised values that
// has its own lowering rule.
func (t *tabulation) hasOwnRule(id int) bool {
	n := t.g.Tasks[t.g.maker[id]-1].Node
	switch n.Op {
	case "Sigmoid", "LeakyRelu", "Relu", "Clip":
		x := t.g.Tasks[t.g.maker[n.Inputs[0]]-1].Node
		return converts(x) > 0 && x.Inputs[0] == t.root[id]-1
	}
	return false
}

// removeReader removes a reader from a value and appends the tasks that are no longer needed to
// gone.
func (t *tabulation) removeReader(id int, gone []int) []int {
	if t.uses[id]--; t.uses[id] > 0 || t.root[id] == 0 || t.g.maker[id] == 0 {
		return gone
	}
	i := t.g.maker[id] - 1
	if !t.eligible(i) {
		return gone
	}
	gone = append(gone, i)
	for _, in := range t.g.Tasks[i].Node.Inputs {
		if in >= 0 {
			gone = t.removeReader(in, gone)
		}
	}
	return gone
}

// codes is the number of 8-bit values.
const codes = 256

// table computes a value for all 256 quantised values of its root, in the order of their bit
// patterns; nil if an operator cannot.
func (t *tabulation) table(id, root int) *tensor.Tensor {
	g := t.g
	if x := t.made[id]; x != nil {
		return x
	}
	if id == root {
		x := tensor.New(t.quantisedType(root), t.of...)
		x.Quant = quantOf(g.Values[root])
		for i := range x.Data {
			x.Data[i] = byte(i)
		}
		t.made[id] = x
		return x
	}
	if g.Fixed[id] {
		return g.Values[id]
	}
	n := g.Tasks[g.maker[id]-1].Node
	def := g.opts.Registry.Find(n.Domain, n.Op, n.Version)
	if def == nil {
		return nil
	}
	c := &op.Call{Model: g.model, Graph: g.Graph, Node: n, Limit: g.opts.MaxBytes, Out: []*tensor.Tensor{{}}}
	if n.Domain == graph.TFLite {
		c.Out[0].Type, c.Out[0].Quant = g.Values[id].Type, quantOf(g.Values[id])
	}
	for _, in := range n.Inputs {
		var x *tensor.Tensor
		if in >= 0 {
			if x = t.table(in, root); x == nil {
				return nil
			}
		}
		c.In, c.Fixed = append(c.In, x), append(c.Fixed, in < 0 || g.Fixed[in])
	}
	g.Bind(c)
	if Guard(func() error { return compute(def, c, tensor.Elements(t.of)) }) != nil {
		return nil
	}
	t.made[id] = c.Out[0]
	return c.Out[0]
}

// quantOf returns the quantisation of a value, nil if it is unknown.
func quantOf(x *tensor.Tensor) *tensor.Quant {
	if x == nil {
		return nil
	}
	return x.Quant
}

// errLength reports a table of the wrong length.
var errLength = errors.New("not as many numbers as codes")

// compute runs an operator once on a few numbers; it must have the given number of results.
func compute(def *op.Def, c *op.Call, results int) error {
	if err := def.Infer(c); err != nil {
		return err
	}
	if c.Out[0].Len() != results {
		return errLength
	}
	run, err := def.Prepare(c)
	if err != nil {
		return err
	}
	c.Out[0].Alloc()
	return run(c)
}

// quantisedType returns the type of a quantised value. Where shapes are unknown, it follows from
// the conversions.
func (t *tabulation) quantisedType(id int) tensor.Type {
	if x := t.g.Values[id]; x != nil && x.Type != tensor.Invalid {
		return x.Type
	}
	for _, i := range t.readers[id] {
		if q := t.quantisation(i); converts(t.g.Tasks[i].Node) > 0 && q != nil {
			return q.kind
		}
	}
	return tensor.Uint8
}
