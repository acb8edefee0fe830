package plan

import (
	"errors"
	"fmt"
	"time"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// foldLimit bounds the memory that one folded node may make, in bytes: larger
// results are cheaper to compute again than to keep.
const foldLimit = 384 << 20

// foldWork bounds the operations that are folded of a graph, by the rules of package
// count: what is beyond runs in every inference. It is a second or a few.
const foldWork = 4e9

// mostWork is how many operations a constant may take at all. Nobody ships a model that
// computes for minutes what it could have stored.
const mostWork = 100e9

// foldDepth bounds chains of folded nodes that are computed for one value.
const foldDepth = 10000

func outBytes(c *op.Call) int {
	n := 0
	for _, x := range c.Out {
		if x != nil {
			n += x.Bytes()
		}
	}
	return n
}

// errTooLarge tells that a constant takes more memory than planning may have.
var errTooLarge = errors.New("constant is too large to compute while planning")

// Force computes a folded value whose elements are not known yet, with all that it
// takes for that. The task that fails is the one whose outputs cannot be computed;
// -1 when there is none to blame. A task that takes too much memory runs in every
// inference from now on.
func (g *Graph) Force(id int) (failed int, err error) {
	for {
		err := g.compute(id, foldLimit, 0)
		if err == nil {
			return -1, nil
		}
		at := g.blame(id, 0)
		if at < 0 {
			return -1, err
		}
		var limit *op.LimitError
		if !errors.As(err, &limit) && !errors.Is(err, errTooLarge) {
			return at, g.Tasks[at].failed
		}
		t := &g.Tasks[at]
		t.unfold, t.settled = true, false
		g.Settle()
		if !g.Fixed[id] {
			return -1, nil
		}
	}
}

// blame is the first task that failed on the way to a value, -1 for none.
func (g *Graph) blame(id, depth int) int {
	at := g.maker[id] - 1
	if at < 0 || depth > foldDepth {
		return -1
	}
	t := &g.Tasks[at]
	if t.failed != nil {
		return at
	}
	for _, in := range t.Node.Inputs {
		if in >= 0 && g.Fixed[in] && !g.Values[in].Known() {
			if b := g.blame(in, depth+1); b >= 0 {
				return b
			}
		}
	}
	return -1
}

// compute makes the elements of a folded value.
func (g *Graph) compute(id, most, depth int) error {
	x := g.Values[id]
	if x.Known() {
		return nil
	}
	at := g.maker[id] - 1
	if at < 0 {
		return g.computeOuter(id, most, depth)
	}
	t := &g.Tasks[at]
	switch {
	case t.failed != nil && (!errors.Is(t.failed, errTooLarge) || most <= g.opts.FoldBytes):
		return t.failed
	case t.State != Folded:
		return fmt.Errorf("%w: %q", ErrMissing, g.Graph.Values[id].Name)
	case depth > foldDepth:
		return errTooLarge
	}
	c := &t.Call
	n := outBytes(c)
	for k, in := range t.Node.Inputs {
		if in < 0 || t.Def.ShapeOnly {
			continue
		}
		// What is read counts too: planning a large model must not pass over it all.
		if most < foldLimit {
			n += c.In[k].Bytes()
		}
	}
	if n > most || g.worked+t.work > foldWork {
		t.failed = errTooLarge
		return t.failed
	}
	for _, in := range t.Node.Inputs {
		if in >= 0 && !t.Def.ShapeOnly {
			if err := g.compute(in, most, depth+1); err != nil {
				return err
			}
		}
	}
	if t.failed = g.Spend(outBytes(c)); t.failed != nil {
		return t.failed
	}
	g.worked += t.work
	if t.failed = g.once(t); t.failed == nil {
		for _, x := range c.In {
			if x != nil && op.Reusable(x) {
				mapped.Release(x.Data)
			}
		}
	}
	return t.failed
}

// workOf is about how many operations a task takes: by the operator's rule, or one for
// each element that it reads or makes.
func (g *Graph) workOf(t *Task) int64 {
	c := &t.Call
	if w := count.Count(g.model, g.Graph, t.Node, c.In, c.Out); w.Ops != nil && *w.Ops > 0 {
		return *w.Ops
	}
	n := int64(0)
	for _, x := range c.In {
		if x != nil {
			n += int64(x.Len())
		}
	}
	for _, x := range c.Out {
		if x != nil {
			n += int64(x.Len())
		}
	}
	return n
}

// once computes a folded task.
func (g *Graph) once(t *Task) error {
	c := &t.Call
	g.Bind(c)
	return Guard(func() error {
		run, err := t.Def.Prepare(c)
		if err != nil {
			return err
		}
		if err := g.Spend(c.ScratchBytes()); err != nil {
			return err
		}
		done := false
		defer func() {
			if done {
				return
			}
			// Nobody may take for known what a failure or a panic has left.
			for _, x := range c.Out {
				if x != nil {
					x.Data = nil
				}
			}
		}()
		for _, x := range c.Out {
			if x != nil {
				g.spare.Alloc(x)
			}
		}
		if err := run(c); err != nil {
			return err
		}
		done = true
		return nil
	})
}

// Drop forgets the elements of a folded value that the one task which reads it has copied. Should they be wanted after
// all, [Graph.Force] computes them once more.
func (g *Graph) Drop(id int) {
	x := g.Values[id]
	if at := g.maker[id] - 1; at < 0 || g.Tasks[at].State != Folded || !op.Reusable(x) || g.readers()[id] > 1 {
		return
	}
	g.spare.Free(x)
}

// Same is the one element that a folded value has everywhere, if it is not written out; nil for others.
func (g *Graph) Same(id int) *tensor.Tensor {
	at := g.maker[id] - 1
	if at < 0 || g.Tasks[at].State != Folded || g.Tasks[at].Def.Uniform == nil || g.Values[id].Known() {
		return nil
	}
	return g.Tasks[at].Def.Uniform(&g.Tasks[at].Call)
}

// Tidy lets go of memory that planning needed.
func (g *Graph) Tidy() { g.spare.Close() }

// Bind completes a call before it is prepared.
func (g *Graph) Bind(c *op.Call) {
	c.Env, c.Kernel, c.Recycler = none{}, "", &g.spare
	if g.host.Bind != nil {
		g.host.Bind(c)
	}
}

// computeOuter makes a value that a body has captured.
func (g *Graph) computeOuter(id, most, depth int) error {
	for _, c := range g.File.Captures {
		if c.Inner == id && g.Outer != nil && g.Outer.Values[c.Outer] == g.Values[id] && depth < foldDepth {
			return g.Outer.compute(c.Outer, most, depth+1)
		}
	}
	return fmt.Errorf("%w: %q", ErrMissing, g.Graph.Values[id].Name)
}

// none is the environment of nodes that are computed while planning: it has no
// bodies and no state.
type none struct{}

// Body implements op.Env.
func (none) Body(g int) (op.Body, error) {
	return nil, op.Unsupported("graph %d cannot run while planning", g)
}

// State implements op.Env.
func (none) State(string) any { return nil }

// SetState implements op.Env.
func (none) SetState(string, any) {}

// Turn implements op.Env.
func (none) Turn(time.Time, bool) error { return nil }

// Hold implements op.Env.
func (none) Hold(int, bool) error { return nil }
