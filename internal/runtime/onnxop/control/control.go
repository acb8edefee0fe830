// Package control implements ONNX's control flow (If, Loop, Scan, SequenceMap) and its
// containers: sequences and optionals. Elements of containers are never written after creation,
// so containers share them.
package control

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	def := func(name string, infer func(*op.Call) error, run op.Run) []op.Def {
		return op.Versions(op.Def{Name: name, Infer: infer, Prepare: op.Simple(run)}, 11)
	}
	return slices.Concat(
		op.Versions(op.Def{Name: "If", Infer: op.Needs(1, inferIf), Prepare: prepareIf}, 1, 11, 13, 16, 19, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "Loop", Infer: inferLoop, Prepare: prepareLoop}, 1, 11, 13, 16, 19, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "Scan", Infer: inferScan, Prepare: scanBy(runScan8)}, 8),
		op.Versions(op.Def{Name: "Scan", Infer: inferScan, Prepare: scanBy(runScan)}, 9, 11, 16, 19, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "SequenceMap", Infer: inferMap, Prepare: prepareMap}, 17),
		def("SequenceEmpty", inferEmpty, runEmpty),
		def("SequenceConstruct", inferConstruct, runConstruct),
		def("SequenceInsert", op.Needs(2, inferInsert), runInsert),
		def("SequenceErase", op.Needs(1, inferErase), runErase),
		def("SequenceAt", op.Needs(2, inferAt), runAt),
		def("SequenceLength", op.Needs(1, inferLength), runLength),
		op.Versions(op.Def{Name: "SplitToSequence", Infer: op.Needs(1, inferSplit), Prepare: op.Simple(runSplit)}, 11, 24),
		op.Versions(op.Def{Name: "ConcatFromSequence", Infer: op.Needs(1, inferConcat), Prepare: op.Simple(runConcat)}, 11),
		op.Versions(op.Def{Name: "Optional", Infer: inferOptional, Prepare: op.Simple(runOptional)}, 15, 28),
		op.Versions(op.Def{Name: "OptionalGetElement", Infer: op.Needs(1, inferGet), Prepare: op.Simple(runGet)}, 15, 18, 28),
		op.Versions(op.Def{Name: "OptionalHasElement", Infer: inferHas, Prepare: op.Simple(runHas)}, 15, 18, 28),
	)
}

// body finds the nested graph of an attribute and its runner.
func body(c *op.Call, attr string) (op.Body, *graph.Graph, error) {
	g, err := nested(c, attr)
	if err != nil {
		return nil, nil, err
	}
	i, _ := c.Node.Attrs.Graph(attr)
	b, err := c.Env.Body(i)
	return b, g, err
}

func nested(c *op.Call, attr string) (*graph.Graph, error) {
	i, ok := c.Node.Attrs.Graph(attr)
	if !ok || i < 0 || i >= len(c.Model.Graphs) {
		return nil, fmt.Errorf("attribute %s is not a graph", attr)
	}
	return c.Model.Graphs[i], nil
}

// truth reads a condition.
func truth(x *tensor.Tensor) (bool, error) {
	if x == nil {
		return false, errors.New("condition was not computed")
	}
	if x.Type != tensor.Bool || x.Len() != 1 || len(x.Data) != 1 {
		return false, fmt.Errorf("condition is %v with %d elements, not one bool", x.Type, x.Len())
	}
	return x.Data[0] != 0, nil
}

// give assigns a result that no one else writes to output i, if it is requested.
func give(c *op.Call, i int, x *tensor.Tensor) error {
	if !c.Wants(i) {
		return nil
	}
	if x == nil {
		return fmt.Errorf("output %d was not computed", i)
	}
	*c.Out[i] = *x
	return nil
}

// own copies a tensor so that it outlives its memory. Containers are copied without their
// elements.
func own(x *tensor.Tensor) *tensor.Tensor {
	if x == nil {
		return nil
	}
	if x.Type.IsContainer() {
		y := *x
		y.Elems = slices.Clone(x.Elems)
		return &y
	}
	return x.Clone()
}

// inferIf checks the branches; their results are known only after a run.
func inferIf(c *op.Call) error {
	if c.In[0].Type != tensor.Bool || c.In[0].Len() != 1 {
		return fmt.Errorf("condition is %v with %d elements, not one bool", c.In[0].Type, c.In[0].Len())
	}
	for _, name := range []string{"then_branch", "else_branch"} {
		g, err := nested(c, name)
		if err != nil {
			return err
		}
		if len(g.Inputs) != 0 || len(g.Outputs) < len(c.Out) {
			return fmt.Errorf("%s has %d inputs and %d outputs for %d outputs", name, len(g.Inputs), len(g.Outputs), len(c.Out))
		}
	}
	return op.ErrDynamic
}

func prepareIf(c *op.Call) (op.Run, error) {
	then, _, err := body(c, "then_branch")
	if err != nil {
		return nil, err
	}
	other, _, err := body(c, "else_branch")
	if err != nil {
		return nil, err
	}
	kept := make([][]byte, len(c.Out)) // memory of the results, as long as they fit
	return func(c *op.Call) error {
		yes, err := truth(c.In[0])
		if err != nil {
			return err
		}
		branch := other
		if yes {
			branch = then
		}
		out, err := branch.Run(nil)
		if err != nil {
			return err
		}
		for i := range c.Out {
			x := out[i]
			if x == nil || x.Type.IsContainer() || x.Type == tensor.String {
				x = own(x)
			} else {
				y := *x
				y.Shape = slices.Clone(x.Shape)
				if cap(kept[i]) < len(x.Data) {
					y.Alloc()
					kept[i] = y.Data
				}
				y.Data = kept[i][:len(x.Data)]
				copy(y.Data, x.Data)
				x = &y
			}
			if err := give(c, i, x); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// states returns the number of loop-carried values of a Loop.
func states(c *op.Call) int { return max(0, len(c.In)-2) }

func inferLoop(c *op.Call) error {
	g, err := nested(c, "body")
	if err != nil {
		return err
	}
	n := states(c)
	if len(g.Inputs) != n+2 || len(g.Outputs) < n+1 || len(c.Out) > len(g.Outputs)-1 {
		return fmt.Errorf("body has %d inputs and %d outputs for %d states and %d outputs", len(g.Inputs), len(g.Outputs), n, len(c.Out))
	}
	if c.Has(0) && (c.In[0].Len() != 1 || !c.In[0].Type.IsInteger()) {
		return fmt.Errorf("trip count is %v with %d elements", c.In[0].Type, c.In[0].Len())
	}
	return op.ErrDynamic
}

// loopScalar returns a body's counter or condition. Some exporters declare them with the shape
// [1] and rely on that shape.
func loopScalar(g *graph.Graph, input int, t tensor.Type) *tensor.Tensor {
	v := g.Values[g.Inputs[input]]
	if v.HasShape && len(v.Shape) == 1 {
		return tensor.New(t, 1)
	}
	return tensor.New(t)
}

// knownTrips is the largest trip count that is considered one: exporters write the largest
// integer if there is no limit.
const knownTrips = 1_000_000

func prepareLoop(c *op.Call) (op.Run, error) {
	b, g, err := body(c, "body")
	if err != nil {
		return nil, err
	}
	n := states(c)
	return func(c *op.Call) error {
		trips := math.MaxInt
		if c.Has(0) {
			v, err := op.Ints(c.In[0])
			if err != nil {
				return err
			}
			trips = v[0]
		}
		more := true
		if c.Has(1) {
			if more, err = truth(c.In[1]); err != nil {
				return err
			}
		}
		in := make([]*tensor.Tensor, n+2)
		copy(in[2:], c.In[min(2, len(c.In)):])
		scans := make([]stack, len(g.Outputs)-1-n)
		t := begin(c.Env, trips <= knownTrips)
		defer t.end()
		i := 0
		for ; i < trips && more; i++ {
			if err := t.next(); err != nil {
				return err
			}
			in[0], in[1] = loopScalar(g, 0, tensor.Int64), loopScalar(g, 1, tensor.Bool)
			tensor.Of[int64](in[0])[0] = int64(i)
			in[1].Data[0] = 1
			out, err := b.Run(in)
			if err != nil {
				return err
			}
			// Without a condition input the body's own condition is ignored.
			if c.Has(1) {
				if more, err = truth(out[0]); err != nil {
					return err
				}
			}
			if err := t.carry(in[2:], out[1:1+n]); err != nil {
				return err
			}
			copy(in[2:], out[1:1+n])
			for k := range scans {
				if c.Wants(n + k) {
					if err := t.collect(&scans[k], out[1+n+k]); err != nil {
						return err
					}
				}
			}
		}
		for k := range n {
			if err := give(c, k, own(in[2+k])); err != nil {
				return err
			}
		}
		for k := range scans {
			if err := scans[k].give(c, n+k, 0, false, g.Values[max(0, g.Outputs[1+n+k])]); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func inferMap(c *op.Call) error {
	if err := c.NeedInputs(len(c.In)); err != nil {
		return err
	}
	g, err := nested(c, "body")
	if err != nil {
		return err
	}
	if len(c.In) == 0 || len(g.Inputs) != len(c.In) || len(g.Outputs) < len(c.Out) {
		return fmt.Errorf("body has %d inputs and %d outputs for %d and %d", len(g.Inputs), len(g.Outputs), len(c.In), len(c.Out))
	}
	if c.In[0].Type != tensor.Sequence {
		return errors.New("input 0 is not a sequence")
	}
	return op.ErrDynamic
}

func prepareMap(c *op.Call) (op.Run, error) {
	b, g, err := body(c, "body")
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		n := len(c.In[0].Elems)
		lists := make([]stack, len(c.Out))
		in := make([]*tensor.Tensor, len(c.In))
		t := begin(c.Env, true)
		defer t.end()
		for i := range n {
			if err := t.next(); err != nil {
				return err
			}
			for k, x := range c.In {
				in[k] = x
				if x.Type == tensor.Sequence {
					if len(x.Elems) != n {
						return fmt.Errorf("input %d has %d elements and input 0 has %d", k, len(x.Elems), n)
					}
					in[k] = x.Elems[i]
				}
			}
			out, err := b.Run(in)
			if err != nil {
				return err
			}
			for k := range lists {
				if out[k] == nil {
					return fmt.Errorf("output %d was not computed", k)
				}
				if err := t.collect(&lists[k], out[k]); err != nil {
					return err
				}
			}
		}
		for k, l := range lists {
			t := g.Values[max(0, g.Outputs[k])].Type
			if n > 0 {
				t = l.items[0].Type
			}
			if err := give(c, k, sequence(t, l.items)); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// turns tracks a loop: its running time and the memory that it collects. Call end when the loop
// is over.
type turns struct {
	env     op.Env
	began   time.Time
	bounded bool // the number of turns is known
	held    int
	states  []int // what each state holds that is a container
}

func begin(env op.Env, bounded bool) *turns {
	return &turns{env: env, began: time.Now(), bounded: bounded}
}

// next is called before each iteration.
func (t *turns) next() error { return t.env.Turn(t.began, t.bounded) }

func (t *turns) hold(n int) error {
	t.held += n
	return t.env.Hold(n, t.bounded)
}

func (t *turns) end() { _ = t.hold(-t.held) } // a release cannot fail

// collect keeps a copy of a value of an iteration.
func (t *turns) collect(s *stack, x *tensor.Tensor) error {
	s.push(own(x))
	return t.hold(x.Held() + perItem)
}

// perItem is the approximate size of a value beside its elements.
const perItem = 192

// carry accounts for changes of container states in an iteration: the elements that they have in
// common are shared.
func (t *turns) carry(before, after []*tensor.Tensor) error {
	for i, x := range after {
		if x == nil || !x.Type.IsContainer() {
			continue
		}
		if t.states == nil {
			t.states = make([]int, len(after))
		}
		was := before[i]
		n := t.states[i] + 8*len(x.Elems) + x.Beyond(was)
		if was != nil && was.Type.IsContainer() {
			n -= 8*len(was.Elems) + was.Beyond(x)
		}
		n = max(n, 0)
		if err := t.hold(n - t.states[i]); err != nil {
			return err
		}
		t.states[i] = n
	}
	return nil
}
