package plan

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// fuseFunctions finds functions of one variable that the file writes as several operators and
// lets the last of them compute the function in one pass over memory: x·sigmoid(x),
// x·sigmoid(αx), x·hardsigmoid(x), and GELU by erf or by tanh.
func fuseFunctions(g *Graph) {
	if !g.model.ONNX() {
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	for i := range g.Tasks {
		if !m.is(i, "Mul", 2) && !m.is(i, "Div", 2) {
			continue
		}
		n, attrs := m.function(i)
		if n == nil {
			continue
		}
		g.replace(i, &graph.Node{
			Index: g.Tasks[i].Node.Index, Name: g.Tasks[i].Node.Name, Function: g.Tasks[i].Node.Function,
			Op: n.name, Version: n.since, Inputs: []int{m.x}, Outputs: g.Tasks[i].Node.Outputs, Attrs: attrs,
		}, m.taken...)
		g.Tasks[i].Lowered = true
	}
	g.InferAll()
}

// function is an ONNX operator and the version that introduced it.
type function struct {
	name  string
	since int
}

// matcher matches the tasks that compute a value against patterns.
type matcher struct {
	g      *Graph
	uses   []int
	domain string // domain of the operators
	wide   bool
	taken  []int // tasks that are part of the match
	x      int   // the input value
}

func (m *matcher) begin(i int) { m.wide, m.taken, m.x = m.g.Tasks[i].wide, nil, -1 }

// is reports whether task i runs an operator of the domain with n inputs and one output.
func (m *matcher) is(i int, name string, n int) bool {
	t := &m.g.Tasks[i]
	return t.State == Runs && !t.final && !t.act.On && (!t.Lowered || t.wide) && t.Node.Domain == m.domain && t.Node.Op == name &&
		len(t.Node.Inputs) == n && len(t.Node.Outputs) == 1 && !slices.Contains(t.Node.Inputs, -1)
}

// producer returns the node that computes a value, if it has the given name and only the match
// reads the value; its task is then part of the match.
func (m *matcher) producer(id int, name string, inputs int) *graph.Node {
	i := m.g.maker[id] - 1
	if i < 0 || m.uses[id] != 1 || !m.is(i, name, inputs) || m.g.Tasks[i].wide != m.wide {
		return nil
	}
	m.taken = append(m.taken, i)
	return m.g.Tasks[i].Node
}

// number returns a constant of one element that adds no axes to results.
func (m *matcher) number(id int) (float64, bool) {
	g := m.g
	if !g.Fixed[id] || g.compute(id, g.opts.FoldBytes, 0) != nil {
		return 0, false
	}
	t := g.Values[id]
	if t.Len() != 1 || t.Type != tensor.Float32 && t.Type != tensor.Float64 && !t.Type.IsHalf() {
		return 0, false
	}
	if x := g.Values[m.x]; t.Rank() > 1 && (x == nil || x.Type == tensor.Invalid || x.Rank() < t.Rank()) {
		return 0, false
	}
	return tensor.At(t, 0), true
}

// constantNear compares a constant with an expected value; files store such constants with three
// digits or more.
func (m *matcher) constantNear(id int, want float64) bool {
	v, ok := m.number(id)
	return ok && near(v, want)
}

func near(v, want float64) bool { return math.Abs(v-want) <= 1e-3*want }

// function returns the function that task i ends; m.x is its argument, m.taken the fused tasks.
func (m *matcher) function(i int) (*function, graph.Attrs) {
	if m.hardSwish(i) {
		return &function{"HardSwish", 14}, nil
	}
	if m.g.Tasks[i].Node.Op != "Mul" {
		return nil, nil
	}
	in := m.g.Tasks[i].Node.Inputs
	for k := range 2 {
		m.begin(i)
		m.x = in[k]
		if n := m.producer(in[1-k], "Sigmoid", 1); n != nil && n.Inputs[0] == m.x {
			return &function{"Swish", 24}, nil
		} else if n != nil {
			if alpha, ok := m.multipleOfX(n.Inputs[0]); ok {
				return &function{"Swish", 24}, graph.Attrs{"alpha": float32(alpha)}
			}
		}
		if n := m.producer(in[1-k], "HardSigmoid", 1); n != nil && n.Inputs[0] == m.x &&
			math.Abs(float64(n.Attrs.Float("alpha", 0.2))-1./6) < 1e-6 && n.Attrs.Float("beta", 0.5) == 0.5 {
			return &function{"HardSwish", 14}, nil
		}
	}
	return m.gelu(i)
}

// hardSwish matches x·clip(x+3, 0, 6)/6, with the division or multiplication at any place.
func (m *matcher) hardSwish(i int) bool {
	n := m.g.Tasks[i].Node
	in := n.Inputs
	product := func(id int) bool {
		taken := m.taken
		p := m.producer(id, "Mul", 2)
		for k := range 2 {
			if p == nil {
				return false
			}
			m.taken = append(slices.Clone(taken), m.g.maker[id]-1)
			if m.x = p.Inputs[k]; m.hardSwishClip(p.Inputs[1-k]) {
				return true
			}
		}
		return false
	}
	if n.Op == "Div" {
		m.begin(i)
		return product(in[0]) && m.constantNear(in[1], 6)
	}
	for k := range 2 {
		if m.begin(i); product(in[k]) && m.constantNear(in[1-k], 1./6) {
			return true
		}
		m.begin(i)
		m.x = in[k]
		if d := m.producer(in[1-k], "Div", 2); d != nil {
			if m.constantNear(d.Inputs[1], 6) && m.hardSwishClip(d.Inputs[0]) {
				return true
			}
			continue
		}
		m.begin(i)
		m.x = in[k]
		if c := m.otherOperand(m.producer(in[1-k], "Mul", 2), 1./6); c >= 0 && m.hardSwishClip(c) {
			return true
		}
	}
	return false
}

// hardSwishClip reports whether a value is clip(x+3, 0, 6).
func (m *matcher) hardSwishClip(id int) bool {
	n := m.producer(id, "Clip", 3)
	if n == nil {
		n = m.producer(id, "Clip", 1)
	}
	if n == nil {
		return false
	}
	c, ok := m.g.clampOf(n)
	return ok && c.Min == 0 && c.Max == 6 && m.otherOperand(m.producer(n.Inputs[0], "Add", 2), 3) == m.x
}

// gelu matches the product of x, 0.5, and 1 plus erf or tanh of x.
func (m *matcher) gelu(i int) (*function, graph.Attrs) {
	in := m.g.Tasks[i].Node.Inputs
	for k := range 2 {
		m.begin(i)
		n := m.producer(in[k], "Mul", 2)
		if n == nil {
			continue
		}
		inner := m.taken
		factors := []int{in[1-k], n.Inputs[0], n.Inputs[1]}
		for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			x, half, bell := factors[order[0]], factors[order[1]], factors[order[2]]
			m.taken, m.x = slices.Clone(inner), x
			if !m.constantNear(half, 0.5) || m.g.Fixed[x] {
				continue
			}
			kind := m.geluInner(bell)
			if kind == "" {
				continue
			}
			if kind == "tanh" {
				return &function{"Gelu", 20}, graph.Attrs{"approximate": "tanh"}
			}
			return &function{"Gelu", 20}, nil
		}
	}
	return nil, nil
}

// otherOperand returns the operand of a binary node whose other operand is a constant near want;
// -1 if absent.
func (m *matcher) otherOperand(n *graph.Node, want float64) int {
	for k := range 2 {
		if n != nil && m.constantNear(n.Inputs[k], want) {
			return n.Inputs[1-k]
		}
	}
	return -1
}

// geluInner returns the function f of a value 1 + f(x): "erf" for erf(x/√2), "tanh" for
// tanh(√(2/π)(x + 0.044715x³)), or "".
func (m *matcher) geluInner(id int) string {
	before := m.otherOperand(m.producer(id, "Add", 2), 1)
	if before < 0 {
		return ""
	}
	if e := m.producer(before, "Erf", 1); e != nil {
		from := e.Inputs[0]
		if n := m.producer(from, "Div", 2); n != nil {
			if n.Inputs[0] == m.x && m.constantNear(n.Inputs[1], math.Sqrt2) {
				return "erf"
			}
			return ""
		}
		if m.otherOperand(m.producer(from, "Mul", 2), math.Sqrt2/2) == m.x {
			return "erf"
		}
		return ""
	}
	t := m.producer(before, "Tanh", 1)
	if t == nil {
		return ""
	}
	// Either as written above, or with x factored out of the brackets.
	outer, ok := m.term(t.Inputs[0])
	if !ok || outer.rest < 0 || outer.power > 1 || !near(outer.factor, math.Sqrt(2/math.Pi)) {
		return ""
	}
	n := m.producer(outer.rest, "Add", 2)
	for k := range 2 {
		if n == nil || outer.power == 0 && n.Inputs[k] != m.x || outer.power == 1 && !m.constantNear(n.Inputs[k], 1) {
			continue
		}
		if c, ok := m.term(n.Inputs[1-k]); ok && c.rest < 0 && c.power == 3-outer.power && near(c.factor, 0.044715) {
			return "tanh"
		}
		return ""
	}
	return ""
}

// product is a factor times a power of x times another value, -1 if absent.
type product struct {
	factor, power float64
	rest          int
}

// term decomposes a value into a product of known factors, powers of x and at most one other
// value, in any order.
func (m *matcher) term(id int) (p product, ok bool) {
	if id == m.x {
		return product{1, 1, -1}, true
	}
	if v, ok := m.number(id); ok {
		return product{v, 0, -1}, true
	}
	if n := m.producer(id, "Pow", 2); n != nil {
		v, ok := m.number(n.Inputs[1])
		return product{1, v, -1}, ok && n.Inputs[0] == m.x
	}
	n := m.producer(id, "Mul", 2)
	if n == nil {
		return product{1, 0, id}, true
	}
	a, oka := m.term(n.Inputs[0])
	b, okb := m.term(n.Inputs[1])
	return product{a.factor * b.factor, a.power + b.power, max(a.rest, b.rest)}, oka && okb && (a.rest < 0 || b.rest < 0)
}

// multipleOfX returns the factor of a value that is a multiple of x.
func (m *matcher) multipleOfX(id int) (factor float64, ok bool) {
	n := m.producer(id, "Mul", 2)
	for k := range 2 {
		if n != nil && n.Inputs[k] == m.x {
			return m.number(n.Inputs[1-k])
		}
	}
	return 0, false
}
