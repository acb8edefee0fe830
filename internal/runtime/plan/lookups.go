package plan

import (
	"errors"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// pointwise are operators whose results depend on the numbers at the same place of their operands only.
var pointwise = map[string]bool{
	"Abs": true, "Add": true, "Celu": true, "Clip": true, "Div": true, "Elu": true, "Erf": true, "Exp": true, "Gelu": true, "HardSigmoid": true,
	"HardSwish": true, "Identity": true, "LeakyRelu": true, "Log": true, "Max": true, "Min": true, "Mish": true, "Mul": true, "Neg": true, "PRelu": true,
	"Pow": true, "Reciprocal": true, "Relu": true, "Selu": true, "Sigmoid": true, "Softplus": true, "Softsign": true, "Sqrt": true, "Sub": true, "Sum": true,
	"Swish": true, "Tanh": true, "ThresholdedRelu": true,
}

// litePointwise are those of TFLite.
var litePointwise = map[string]bool{
	"ABS": true, "ADD": true, "CEIL": true, "COS": true, "DIV": true, "ELU": true, "EXP": true, "FLOOR": true, "GELU": true, "HARD_SWISH": true,
	"LEAKY_RELU": true, "LOG": true, "LOGISTIC": true, "MAXIMUM": true, "MINIMUM": true, "MUL": true, "NEG": true, "POW": true, "RELU": true, "RELU6": true,
	"RELU_0_TO_1": true, "RELU_N1_TO_1": true, "ROUND": true, "RSQRT": true, "SIGN": true, "SIN": true, "SQRT": true, "SQUARE": true,
	"SQUARED_DIFFERENCE": true, "SUB": true, "TANH": true,
}

// tabling finds functions of one 8-bit code that a file writes as operators of real numbers, such as x·sigmoid(x) or GELU, with
// conversions before, behind and perhaps between them: a table of 256 codes is all there is to know of them, or one for each channel.
type tabling struct {
	*lowering
	root []int  // by value id: the codes that it is a function of, one plus their id
	each []bool // by value id: it is another function for each channel
	made map[int]*tensor.Tensor
	of   []int // the shape of the codes in a table that is made
}

// lookUps lets what is a function of one code be looked up. Lenient, it only finds what would be: tables have nothing in them.
func lookUps(g *Graph, lenient bool) {
	known := turns
	if lenient { // integers of TFLite are those of the file
		known = converts
	}
	if !slices.ContainsFunc(g.File.Nodes, func(n *graph.Node) bool { return known(n) > 0 }) || g.opts.Registry == nil && !lenient {
		return
	}
	l := loweringOf(g)
	l.lenient = lenient
	t := &tabling{lowering: l, root: make([]int, len(g.Values)), each: make([]bool, len(g.Values))}
	for i := range g.Tasks {
		t.follow(i)
	}
	// From the end, so that what lies between is gone when its turn comes.
	for i := len(g.Tasks) - 1; i >= 0; i-- {
		t.lookUp(i)
	}
}

// turns is converts for TFLite as well.
func turns(n *graph.Node) int {
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

// bytes are the codes that a conversion reads or makes, where they have 8 bits and one scale.
func (t *tabling) bytes(i int) (id int, ok bool) {
	n := t.g.Tasks[i].Node
	if n.Domain != graph.TFLite {
		q := t.quantisation(i)
		if q == nil {
			return 0, false
		}
		return q.x, small(q.kind) && len(q.s) == 1
	}
	if id = n.Outputs[0]; turns(n) > 0 {
		id = n.Inputs[0]
	}
	if id < 0 {
		return 0, false
	}
	x := t.g.Values[id]
	return id, x != nil && small(x.Type) && x.Quant != nil && len(x.Quant.Scale) == 1
}

// eligible tells whether task i may become part of a table.
func (t *tabling) eligible(i int) bool {
	k := &t.g.Tasks[i]
	return k.State == Runs && !k.asIs && !k.Lowered && len(k.Node.Inputs) > 0 && len(k.Node.Outputs) == 1 && k.Node.Outputs[0] >= 0
}

// follow finds of which codes the result of task i is a function.
func (t *tabling) follow(i int) {
	if !t.eligible(i) {
		return
	}
	n := t.g.Tasks[i].Node
	y := n.Outputs[0]
	switch turns(n) {
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
			t.combine(n)
		case n.Domain == graph.ONNX && n.Op == "BatchNormalization":
			t.normalise(n)
		}
	}
}

// normalise is follow for a batch normalisation.
func (t *tabling) normalise(n *graph.Node) {
	for _, id := range n.Inputs[1:] {
		if _, ok := t.elements(id); !ok {
			return
		}
	}
	if root := t.root[n.Inputs[0]]; root > 0 && t.channels(root-1) > 0 {
		t.root[n.Outputs[0]], t.each[n.Outputs[0]] = root, true
	}
}

// fewPositions of a channel are not worth a table.
const fewPositions = 32

// channels is the number of channels of codes that may have a table each; 0 for those that have not.
func (t *tabling) channels(root int) int {
	x := t.g.Values[root]
	if x == nil || x.Type == tensor.Invalid || len(x.Shape) < 3 || x.Len() < fewPositions*x.Shape[1] {
		return 0
	}
	return x.Shape[1]
}

// ofChannels tells whether a constant has a number for each channel of codes.
func (t *tabling) ofChannels(id, root int) bool {
	n, x, c := t.channels(root), t.g.Values[root], t.g.Values[id]
	if n == 0 || c.Len() != n || len(c.Shape) > len(x.Shape) {
		return false
	}
	at := 1 - (len(x.Shape) - len(c.Shape))
	return at >= 0 && c.Shape[at] == n
}

// combine is follow for an operator on numbers: all operands are functions of the same codes, or constants, single ones or of channels.
func (t *tabling) combine(n *graph.Node) {
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
	// Constants give results no further axes.
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
			if !t.ofChannels(id, root-1) {
				return
			}
			each = true
		}
	}
	t.each[n.Outputs[0]] = each
	t.root[n.Outputs[0]] = root
}

// lookUp lets a table take the place of task i, a conversion to codes, and of all that only it needs.
func (t *tabling) lookUp(i int) {
	g := t.g
	n := g.Tasks[i].Node
	if !t.eligible(i) || turns(n) >= 0 || t.root[n.Outputs[0]] == 0 || t.uses[n.Outputs[0]] == 0 {
		return
	}
	y, root := n.Outputs[0], t.root[n.Outputs[0]]-1
	if t.alone(n.Inputs[0]) {
		return
	}
	t.made = map[int]*tensor.Tensor{}
	shape := []int{codes}
	if t.of = shape; t.each[y] {
		// Operators see channels where they are.
		t.of = make([]int, len(g.Values[root].Shape))
		for i := range t.of {
			t.of[i] = 1
		}
		shape = []int{t.channels(root), codes}
		copy(t.of[1:], shape)
	}
	table := tensor.New(t.kind(y), shape...)
	if !t.lenient {
		table = t.table(y, root)
	}
	if table == nil || table.Len() != tensor.Elements(shape) {
		return
	}
	table.Shape = shape
	at := i
	if j := g.maker[n.Inputs[0]] - 1; turns(g.Tasks[j].Node) == 0 && t.uses[n.Inputs[0]] == 1 {
		at = j // the operator computes, its conversions are part of it
	}
	of := g.Tasks[at].Node
	gone := t.leave(n.Inputs[0], nil)
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

// alone tells whether a number is a single operator's of codes as they are, which has a rule of its own.
func (t *tabling) alone(id int) bool {
	n := t.g.Tasks[t.g.maker[id]-1].Node
	switch n.Op {
	case "Sigmoid", "LeakyRelu", "Relu", "Clip":
		x := t.g.Tasks[t.g.maker[n.Inputs[0]]-1].Node
		return converts(x) > 0 && x.Inputs[0] == t.root[id]-1
	}
	return false
}

// leave takes a reader from a value, and lists the tasks that nobody needs then.
func (t *tabling) leave(id int, gone []int) []int {
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
			gone = t.leave(in, gone)
		}
	}
	return gone
}

// codes is how many 8-bit codes there are.
const codes = 256

// table computes a value for all codes of its root, in the order of their bits; nil where an operator does not do it.
func (t *tabling) table(id, root int) *tensor.Tensor {
	g := t.g
	if x := t.made[id]; x != nil {
		return x
	}
	if id == root {
		x := tensor.New(t.kind(root), t.of...)
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

// quantOf is how a value is quantised, nil where that is not known.
func quantOf(x *tensor.Tensor) *tensor.Quant {
	if x == nil {
		return nil
	}
	return x.Quant
}

// errLength tells that a table has another length than it should have.
var errLength = errors.New("not as many numbers as codes")

// compute runs an operator once on few numbers, for as many results.
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

// kind is the type of codes, which conversions tell where shapes are not known.
func (t *tabling) kind(id int) tensor.Type {
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
