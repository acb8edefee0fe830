package firmware

import (
	"errors"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// generator lowers the prepared operators of a session to kernel calls.
type generator struct {
	m         *graph.Model
	g         *graph.Graph
	s         *engine.Session
	layers    []plan.Slot
	values    map[int]*value // what has a place in memory, by value id
	order     []*value       // in order of their making
	constants map[int]*datum // constants that operators read as they are, by value id
	steps     []*step
	problems  []Problem
	inputs    []*datum // embedded, in the order of the model's inputs
	data      []*datum // in order of their making
	known     map[string]*datum
	needs     map[string]bool // kernel files
	structs   []structure
	arena     int
}

// value is a tensor in the arena.
type value struct {
	id          int // -1 for scratch memory
	t           *tensor.Tensor
	bytes       int
	first, last int
	inPlace     *value // memory that it would like to take over
	offset      int
	// initial is what a variable holds at first.
	initial *datum
}

// step is an operator of the program.
type step struct {
	task  *plan.Task
	layer int
	calls []call
}

// call is a statement, formatted once all offsets are known.
type call func() string

// refusal is the reason why an operator cannot be generated.
type refusal string

func (r refusal) Error() string { return string(r) }

func unsupported(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// largest bounds tensors of programs: offsets are int32.
const largest = 1 << 30

// lower creates the steps of all tasks that run, and records the problems.
func (g *generator) lower(tasks []*plan.Task, inputs []*tensor.Tensor) {
	for k, id := range g.g.Inputs {
		v := g.add(id, g.s.Value(id), -1)
		g.inputs = append(g.inputs, g.datum("input", k, width(inputs[k].Type), inputs[k].Data, ""))
		v.last = -1
	}
	for _, t := range tasks {
		n := t.Node
		layer := g.layers[n.Index].Parent
		var err error
		switch {
		case t.State == plan.Unsupported || t.State == plan.Failed:
			err = t.Err
		case t.State == plan.Skipped && errors.Is(t.Err, plan.ErrMissing), t.State == plan.Folded, t.State == plan.Fused:
			continue
		case t.State == plan.Skipped:
			err = t.Err
		case t.Dynamic:
			err = unsupported("its shapes are known only while it runs")
		default:
			st := &step{task: t, layer: layer}
			if err = g.step(st); err == nil {
				g.steps = append(g.steps, st)
			}
		}
		if err != nil {
			g.problems = append(g.problems, Problem{Layer: layer, Op: n.Key(), Text: err.Error()})
		}
	}
	for _, id := range g.g.Outputs {
		if v := g.values[id]; v != nil {
			v.last = len(g.steps)
		} else if t := g.s.Value(max(id, 0)); id >= 0 && t.Known() && g.constants[id] == nil {
			g.constants[id] = g.datum("out", id, width(t.Type), t.Data, "an output that is constant")
		}
	}
}

// add allocates a value that is produced in step at.
func (g *generator) add(id int, t *tensor.Tensor, at int) *value {
	v := &value{id: id, t: t, bytes: t.Bytes(), first: at, last: at}
	g.values[id] = v
	g.order = append(g.order, v)
	return v
}

// step lowers one task.
func (g *generator) step(st *step) error {
	c := &st.task.Call
	if len(plan.Bodies(st.task.Node)) > 0 {
		return unsupported("it runs other graphs")
	}
	for _, t := range append(append([]*tensor.Tensor{}, c.In...), c.Out...) {
		if t != nil && t.Bytes() > largest {
			return unsupported("a tensor of %d bytes, at most %d are possible", t.Bytes(), largest)
		}
	}
	for k, id := range st.task.Node.Inputs {
		if id < 0 || c.In[k] == nil {
			continue
		}
		// Values beyond the file's are temporaries of the plan.
		if id < len(g.g.Values) && g.g.Values[id].Variable && g.values[id] == nil {
			g.variable(id, c.In[k])
		}
		if v := g.values[id]; v != nil {
			v.last = len(g.steps)
		}
	}
	for k, id := range st.task.Node.Outputs {
		if id < 0 || c.Out[k] == nil || g.values[id] != nil {
			continue
		}
		g.add(id, c.Out[k], len(g.steps))
	}
	return g.choose(st)
}

// choose selects the kernels of an operator: by its recipe, as a table, or as data movement.
func (g *generator) choose(st *step) error {
	c := &st.task.Call
	switch r := c.Recipe.(type) {
	case recipe.Conv:
		return g.conv(st, r)
	case recipe.Dense:
		return g.dense(st, r)
	case recipe.Pool:
		return g.pool(st, r)
	case recipe.Softmax:
		return g.softmax(st, r)
	case recipe.WideSoftmax:
		return g.wideSoftmax(st, r)
	case recipe.Sum:
		return g.sum(st, r)
	case recipe.Product:
		return g.product(st, r)
	case recipe.PRelu:
		return g.prelu(st, r)
	case recipe.Plain:
		return g.plain(st, r)
	case recipe.Total:
		return g.total(st, r)
	case recipe.Extreme:
		return g.extreme(st, r)
	case recipe.Rescale:
		return g.rescale(st, r)
	case recipe.Quantise:
		return g.quantise(st, r)
	case recipe.Dequantise:
		return g.dequantise(st, r)
	case recipe.Arg:
		return g.arg(st, r)
	case recipe.Leaky:
		return g.leaky(st, r)
	case recipe.Curve16:
		return g.curve(st, r)
	case recipe.Bilinear:
		return g.bilinear(st, r)
	case recipe.TransposeConv:
		return g.transposeConv(st, r)
	case recipe.MatMul:
		return g.matmul(st, r)
	case recipe.SVDF:
		return g.svdf(st, r)
	case recipe.LSTM:
		return g.lstm(st, r)
	case recipe.Join:
		return g.concat(st, r)
	}
	if ok, err := g.table(st); ok || err != nil {
		return err
	}
	if ok, err := g.pieces(st); ok || err != nil {
		return err
	}
	if ok, err := g.moved(st); ok || err != nil {
		return err
	}
	return unsupported("no kernel for %s", types(c))
}

// types formats the element types of an operator for messages.
func types(c *op.Call) string {
	list := func(ts []*tensor.Tensor) string {
		s := ""
		for i, t := range ts {
			if i > 0 {
				s += ", "
			}
			if t == nil {
				s += "nothing"
				continue
			}
			s += t.Type.String()
		}
		return s
	}
	return list(c.In) + " to " + list(c.Out)
}

// variable allocates a TFLite variable, which lives through the whole run and between runs, with
// its initial contents.
func (g *generator) variable(id int, t *tensor.Tensor) {
	v := g.add(id, t, -1)
	v.last = math.MaxInt32
	v.initial = g.datum("state", id, width(t.Type), t.Data, "")
}

// in returns the C expression of input k: an arena offset or a constant.
func (g *generator) in(st *step, k int, ctype string) func() string {
	id := st.task.Node.Inputs[k]
	if v := g.values[id]; v != nil {
		return func() string { return fmt.Sprintf("(const %s *)(arena + %d)", ctype, v.offset) }
	}
	d := g.constant(st, k)
	return func() string { return fmt.Sprintf("(const %s *)%s", ctype, d.name) }
}

// constant adds constant input k to the program unchanged.
func (g *generator) constant(st *step, k int) *datum {
	id, t := st.task.Node.Inputs[k], st.task.Call.In[k]
	if d := g.constants[id]; d != nil {
		return d
	}
	d := g.datum("c", st.layer, width(t.Type), t.Data, tensor.FormatShape(t.Shape))
	g.constants[id] = d
	return d
}

// out returns the C expression of output k.
func (g *generator) out(st *step, k int, ctype string) func() string {
	v := g.values[st.task.Node.Outputs[k]]
	return func() string { return fmt.Sprintf("(%s *)(arena + %d)", ctype, v.offset) }
}

// emit adds a kernel call: its name and its arguments in order.
func (g *generator) emit(st *step, file, function string, args ...func() string) {
	g.needs[file] = true
	st.calls = append(st.calls, func() string {
		s := function + "("
		for i, a := range args {
			if i > 0 {
				s += ", "
			}
			s += a()
		}
		return s + ");"
	})
}

func text(format string, args ...any) func() string {
	s := fmt.Sprintf(format, args...)
	return func() string { return s }
}

// ending returns the kernel suffix for an activation type, and the type in C.
func ending(t tensor.Type) (suffix, ctype string, ok bool) {
	switch t {
	case tensor.Int8:
		return "s8", "int8_t", true
	case tensor.Uint8:
		return "u8", "uint8_t", true
	case tensor.Int16:
		return "s16", "int16_t", true
	}
	return "", "", false
}

// width returns the size in bytes in which a type's elements are written in C.
func width(t tensor.Type) int { return max(t.Bits(), 8) / 8 }
