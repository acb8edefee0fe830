package plan

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// curves finds functions of one number that files write as several operators, and lets the last of these
// compute them in one pass over memory: x·sigmoid(x), that of a multiple of x, x·hardsigmoid(x), and GELU by erf or by tanh.
func curves(g *Graph) {
	if g.model.Format != "onnx" {
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	for i := range g.Tasks {
		if !m.is(i, "Mul", 2) && !m.is(i, "Div", 2) {
			continue
		}
		n, attrs := m.curve(i)
		if n == nil {
			continue
		}
		g.replace(i, &graph.Node{
			Index: g.Tasks[i].Node.Index, Name: g.Tasks[i].Node.Name, Function: g.Tasks[i].Node.Function,
			Op: n.name, Version: n.since, Inputs: []int{m.x}, Outputs: g.Tasks[i].Node.Outputs, Attrs: attrs,
		}, m.taken...)
		g.Tasks[i].Lowered = true
	}
	g.Settle()
}

// function is an operator of ONNX and the version that has brought it.
type function struct {
	name  string
	since int
}

// matcher compares the tasks behind a value with patterns.
type matcher struct {
	g      *Graph
	uses   []int
	domain string // of the operators
	wide   bool
	taken  []int // tasks that the match computes, too
	x      int   // the value that goes in
}

func (m *matcher) begin(i int) { m.wide, m.taken, m.x = m.g.Tasks[i].wide, nil, -1 }

// is tells whether task i runs an operator of the domain with n inputs and one output.
func (m *matcher) is(i int, name string, n int) bool {
	t := &m.g.Tasks[i]
	return t.State == Runs && !t.asIs && !t.act.On && (!t.Lowered || t.wide) && t.Node.Domain == m.domain && t.Node.Op == name &&
		len(t.Node.Inputs) == n && len(t.Node.Outputs) == 1 && !slices.Contains(t.Node.Inputs, -1)
}

// made is the node that makes a value for nobody but the match, if it is one of the name; its task is taken.
func (m *matcher) made(id int, name string, inputs int) *graph.Node {
	i := m.g.maker[id] - 1
	if i < 0 || m.uses[id] != 1 || !m.is(i, name, inputs) || m.g.Tasks[i].wide != m.wide {
		return nil
	}
	m.taken = append(m.taken, i)
	return m.g.Tasks[i].Node
}

// number is a constant of one element that gives results no further axes.
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

// about compares a constant with what it should be; files have it in three digits or more.
func (m *matcher) about(id int, want float64) bool {
	v, ok := m.number(id)
	return ok && isAbout(v, want)
}

func isAbout(v, want float64) bool { return math.Abs(v-want) <= 1e-3*want }

// curve is the function that task i ends; m.x and m.taken tell of what.
func (m *matcher) curve(i int) (*function, graph.Attrs) {
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
		if n := m.made(in[1-k], "Sigmoid", 1); n != nil && n.Inputs[0] == m.x {
			return &function{"Swish", 24}, nil
		} else if n != nil {
			if alpha, ok := m.times(n.Inputs[0]); ok {
				return &function{"Swish", 24}, graph.Attrs{"alpha": float32(alpha)}
			}
		}
		if n := m.made(in[1-k], "HardSigmoid", 1); n != nil && n.Inputs[0] == m.x &&
			math.Abs(float64(n.Attrs.Float("alpha", 0.2))-1./6) < 1e-6 && n.Attrs.Float("beta", 0.5) == 0.5 {
			return &function{"HardSwish", 14}, nil
		}
	}
	return m.gelu(i)
}

// hardSwish matches x·clip(x+3, 0, 6)/6, divided or multiplied anywhere.
func (m *matcher) hardSwish(i int) bool {
	n := m.g.Tasks[i].Node
	in := n.Inputs
	product := func(id int) bool {
		taken := m.taken
		p := m.made(id, "Mul", 2)
		for k := range 2 {
			if p == nil {
				return false
			}
			m.taken = append(slices.Clone(taken), m.g.maker[id]-1)
			if m.x = p.Inputs[k]; m.ramp(p.Inputs[1-k]) {
				return true
			}
		}
		return false
	}
	if n.Op == "Div" {
		m.begin(i)
		return product(in[0]) && m.about(in[1], 6)
	}
	for k := range 2 {
		if m.begin(i); product(in[k]) && m.about(in[1-k], 1./6) {
			return true
		}
		m.begin(i)
		m.x = in[k]
		if d := m.made(in[1-k], "Div", 2); d != nil {
			if m.about(d.Inputs[1], 6) && m.ramp(d.Inputs[0]) {
				return true
			}
			continue
		}
		m.begin(i)
		m.x = in[k]
		if c := m.with(m.made(in[1-k], "Mul", 2), 1./6); c >= 0 && m.ramp(c) {
			return true
		}
	}
	return false
}

// ramp tells whether a value is clip(x+3, 0, 6).
func (m *matcher) ramp(id int) bool {
	n := m.made(id, "Clip", 3)
	if n == nil {
		n = m.made(id, "Clip", 1)
	}
	if n == nil {
		return false
	}
	c, ok := m.g.activation(n)
	return ok && c.Min == 0 && c.Max == 6 && m.with(m.made(n.Inputs[0], "Add", 2), 3) == m.x
}

// gelu matches the product of x, a half, and one more than erf or tanh of x.
func (m *matcher) gelu(i int) (*function, graph.Attrs) {
	in := m.g.Tasks[i].Node.Inputs
	for k := range 2 {
		m.begin(i)
		n := m.made(in[k], "Mul", 2)
		if n == nil {
			continue
		}
		inner := m.taken
		factors := []int{in[1-k], n.Inputs[0], n.Inputs[1]}
		for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			x, half, bell := factors[order[0]], factors[order[1]], factors[order[2]]
			m.taken, m.x = slices.Clone(inner), x
			if !m.about(half, 0.5) || m.g.Fixed[x] {
				continue
			}
			kind := m.bell(bell)
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

// with is the operand of a node of two that is not the constant, about as large as want; -1 where there is none.
func (m *matcher) with(n *graph.Node, want float64) int {
	for k := range 2 {
		if n != nil && m.about(n.Inputs[k], want) {
			return n.Inputs[1-k]
		}
	}
	return -1
}

// bell tells which function of x a value is one more than: "erf" of x/√2, "tanh" of √(2/π)(x + 0.044715x³), or none.
func (m *matcher) bell(id int) string {
	before := m.with(m.made(id, "Add", 2), 1)
	if before < 0 {
		return ""
	}
	if e := m.made(before, "Erf", 1); e != nil {
		from := e.Inputs[0]
		if n := m.made(from, "Div", 2); n != nil {
			if n.Inputs[0] == m.x && m.about(n.Inputs[1], math.Sqrt2) {
				return "erf"
			}
			return ""
		}
		if m.with(m.made(from, "Mul", 2), math.Sqrt2/2) == m.x {
			return "erf"
		}
		return ""
	}
	t := m.made(before, "Tanh", 1)
	if t == nil {
		return ""
	}
	// As it stands, or with x before the brackets.
	outer, ok := m.term(t.Inputs[0])
	if !ok || outer.rest < 0 || outer.power > 1 || !isAbout(outer.factor, math.Sqrt(2/math.Pi)) {
		return ""
	}
	n := m.made(outer.rest, "Add", 2)
	for k := range 2 {
		if n == nil || outer.power == 0 && n.Inputs[k] != m.x || outer.power == 1 && !m.about(n.Inputs[k], 1) {
			continue
		}
		if c, ok := m.term(n.Inputs[1-k]); ok && c.rest < 0 && c.power == 3-outer.power && isAbout(c.factor, 0.044715) {
			return "tanh"
		}
		return ""
	}
	return ""
}

// product is a factor times a power of x times another value, -1 for none.
type product struct {
	factor, power float64
	rest          int
}

// term is a value as a product of at most one other value and what the match knows, in any order.
func (m *matcher) term(id int) (p product, ok bool) {
	if id == m.x {
		return product{1, 1, -1}, true
	}
	if v, ok := m.number(id); ok {
		return product{v, 0, -1}, true
	}
	if n := m.made(id, "Pow", 2); n != nil {
		v, ok := m.number(n.Inputs[1])
		return product{1, v, -1}, ok && n.Inputs[0] == m.x
	}
	n := m.made(id, "Mul", 2)
	if n == nil {
		return product{1, 0, id}, true
	}
	a, oka := m.term(n.Inputs[0])
	b, okb := m.term(n.Inputs[1])
	return product{a.factor * b.factor, a.power + b.power, max(a.rest, b.rest)}, oka && okb && (a.rest < 0 || b.rest < 0)
}

// times is the factor that a value is x times.
func (m *matcher) times(id int) (factor float64, ok bool) {
	n := m.made(id, "Mul", 2)
	for k := range 2 {
		if n != nil && n.Inputs[k] == m.x {
			return m.number(n.Inputs[1-k])
		}
	}
	return 0, false
}
