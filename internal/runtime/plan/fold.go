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

// foldLimit bounds the memory of one folded node's outputs, in bytes: larger results are cheaper
// to recompute than to keep.
const foldLimit = 384 << 20

// foldWork bounds the operations that are folded in a graph, counted as in package count. Work
// beyond it runs in every inference. It takes about one to a few seconds.
const foldWork = 4e9

// maxFoldWork is the maximum number of operations of a constant. A model that computes a constant
// for minutes, instead of storing it, is not realistic.
const maxFoldWork = 100e9

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

// errTooLarge reports that a constant takes more memory than planning may use.
var errTooLarge = errors.New("constant is too large to compute while planning")

// Materialise computes the elements of a folded value, and everything that they depend on, if
// they are not known yet. On failure it returns the task whose outputs cannot be computed, -1
// when it cannot be attributed. A task that takes too much memory runs in every inference from
// now on.
func (g *Graph) Materialise(id int) (failed int, err error) {
	for {
		err := g.compute(id, foldLimit, 0)
		if err == nil {
			return -1, nil
		}
		at := g.firstFailed(id, 0)
		if at < 0 {
			return -1, err
		}
		var limit *op.LimitError
		if !errors.As(err, &limit) && !errors.Is(err, errTooLarge) {
			return at, g.Tasks[at].failed
		}
		t := &g.Tasks[at]
		t.noFold, t.settled = true, false
		g.InferAll()
		if !g.Fixed[id] {
			return -1, nil
		}
	}
}

// firstFailed returns the first failed task among the producers of a value, -1 if all are fine.
func (g *Graph) firstFailed(id, depth int) int {
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
			if b := g.firstFailed(in, depth+1); b >= 0 {
				return b
			}
		}
	}
	return -1
}

// compute computes the elements of a folded value.
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
		// Inputs count too: planning must not read all of a large model.
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
	if t.failed = g.Reserve(outBytes(c)); t.failed != nil {
		return t.failed
	}
	g.worked += t.work
	if t.failed = g.computeTask(t); t.failed == nil {
		for _, x := range c.In {
			if x != nil && op.Reusable(x) {
				mapped.Release(x.Data)
			}
		}
	}
	return t.failed
}

// workOf estimates the number of operations of a task: by the operator's rule, else one for each
// element that it reads or writes.
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

// computeTask computes a folded task.
func (g *Graph) computeTask(t *Task) error {
	c := &t.Call
	g.Bind(c)
	return Guard(func() error {
		run, err := t.Def.Prepare(c)
		if err != nil {
			return err
		}
		if err := g.Reserve(c.ScratchBytes()); err != nil {
			return err
		}
		done := false
		defer func() {
			if done {
				return
			}
			// After a failure or a panic, partial results must not count as known.
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

// Discard releases the elements of a folded value that its only reader has copied. If they are
// needed after all, [Graph.Materialise] computes them again.
func (g *Graph) Discard(id int) {
	x := g.Values[id]
	if at := g.maker[id] - 1; at < 0 || g.Tasks[at].State != Folded || !op.Reusable(x) || g.readers()[id] > 1 {
		return
	}
	g.spare.Free(x)
}

// Uniform returns the element that a folded value has at every position, if the value is not
// materialised; nil for others.
func (g *Graph) Uniform(id int) *tensor.Tensor {
	at := g.maker[id] - 1
	if at < 0 || g.Tasks[at].State != Folded || g.Tasks[at].Def.Uniform == nil || g.Values[id].Known() {
		return nil
	}
	return g.Tasks[at].Def.Uniform(&g.Tasks[at].Call)
}

// FreeSpare releases memory that only planning needed.
func (g *Graph) FreeSpare() { g.spare.Close() }

// Bind completes a call before it is prepared.
func (g *Graph) Bind(c *op.Call) {
	c.Env, c.Kernel, c.Computes, c.Recycler = noEnv{}, "", tensor.Invalid, &g.spare
	if g.host.Bind != nil {
		g.host.Bind(c)
	}
}

// computeOuter computes a value that a body has captured.
func (g *Graph) computeOuter(id, most, depth int) error {
	for _, c := range g.File.Captures {
		if c.Inner == id && g.Outer != nil && g.Outer.Values[c.Outer] == g.Values[id] && depth < foldDepth {
			return g.Outer.compute(c.Outer, most, depth+1)
		}
	}
	return fmt.Errorf("%w: %q", ErrMissing, g.Graph.Values[id].Name)
}

// noEnv is the environment of nodes that are computed while planning: it has no bodies and no
// state.
type noEnv struct{}

// Body implements op.Env.
func (noEnv) Body(g int) (op.Body, error) {
	return nil, op.Unsupported("graph %d cannot run while planning", g)
}

// State implements op.Env.
func (noEnv) State(string) any { return nil }

// SetState implements op.Env.
func (noEnv) SetState(string, any) {}

// Turn implements op.Env.
func (noEnv) Turn(time.Time, bool) error { return nil }

// Hold implements op.Env.
func (noEnv) Hold(int, bool) error { return nil }
