package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/gcpolicy"
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// Options sets how a session plans and runs.
type Options struct {
	Registry *op.Registry // required
	Threads  int          // workers, the caller included; 0 means 1
	// Pin runs on each worker's thread before it works (worker 0 is the caller's
	// business), to bind it to a processor. May be nil.
	Pin func(worker int)
	// KeepAll gives every value its own memory, so that all of them can be read
	// after a run, and switches fusion off.
	KeepAll bool
	// Exact computes operators between DequantizeLinear and QuantizeLinear in
	// floating point, as the file says, and not in integers, and rounds halves after
	// each operator.
	Exact bool
	// Carry feeds outputs back: after each run, main-graph output Carry[i].Output
	// becomes input Carry[i].Input of the next, as a key-value cache does.
	Carry []Carry
	// MaxBytes bounds the memory that a planned graph may take for its values and
	// the working memory of its operators; 0 means no limit. A model beyond it is
	// refused with an [op.LimitError] before the memory is taken.
	MaxBytes int
	// Watch lists sets of outputs of the main graph that are wanted during runs: Seen is called with the position of a set
	// when the last of its values is there. Their memory is used again after that.
	Watch [][]int
	Seen  func(set int) error
	// MaxLoop bounds the time of a loop whose number of turns nothing bounds, and of
	// others in an inference of very many turns; 0 means no limit. A loop beyond it
	// fails with an [op.LoopError].
	MaxLoop time.Duration
	// Body is told of each run of a nested graph, with what gives its values by id: all that it has with
	// KeepAll, else what stands at its end. They must not be changed, and are valid within the call. May be nil.
	Body func(graph int, value func(id int) *tensor.Tensor)
}

// Carry joins an output of the main graph to an input, by position.
type Carry struct{ Output, Input int }

// carries reports whether a value of the main graph is fed back to an input.
func (s *Session) carries(f *frame, id int) bool {
	if f.p.File != s.Model.Main() {
		return false
	}
	for _, c := range s.opts.Carry {
		if f.g.Outputs[c.Output] == id {
			return true
		}
	}
	return false
}

// Session is a model made ready to run. It is for one goroutine at a time.
type Session struct {
	Model   *graph.Model
	opts    Options
	pool    *workers.Pool
	main    *frame
	state   map[string]any
	frames  []*frame // latest plan by graph index, nil where never planned
	depth   int
	in      []*tensor.Tensor
	carried []carried
	timing  *Timing
	done    <-chan struct{}
	held    int // bytes of plans, of what was made in runs, and of what loops collect
	// collected is what loops without a known end collect, turns how many the
	// inference has taken.
	collected, turns int
	began            time.Time // of the inference
	endless          int       // loops that did not end in time
	fresh            bool      // a small model that has not run yet
	sharing          sharing   // of runs by several threads
	// disabled holds nodes that failed while running and were taken out.
	disabled map[*graph.Node]error
}

// Timing receives what one timed run measured. Make it with [Session.NewTiming].
type Timing struct {
	// Bounds holds the clock at each boundary of the main graph's steps: step i ran
	// from Bounds[i] to Bounds[i+1]. Nanoseconds of a monotonic clock.
	Bounds []int64
	// Bodies holds, by graph index and node, the time and the number of executions
	// within the run; graphs that are not nested bodies have no entries.
	Bodies [][]BodyTime
	// Events receives when each step of a nested graph ran, owners before what they
	// run, up to its capacity. [Session.NewTiming] makes none: give it room to have
	// them. Missed counts those that did not fit.
	Events []BodyEvent
	Missed int64
}

// BodyEvent is one execution of a node of a nested graph, on the clock of
// [Timing.Bounds].
type BodyEvent struct {
	Graph, Node int32
	Start, End  int64
}

// BodyTime is the time that a node of a nested graph took in one run, with
// whatever it runs itself.
type BodyTime struct {
	Nanoseconds int64
	Calls       int64
}

// maxDepth bounds nested control flow; real models stay below five.
const maxDepth = 64

var epoch = time.Now()

// now is one read of the monotonic clock, in nanoseconds.
func now() int64 { return int64(time.Since(epoch)) }

// Now reads the clock of [Timing.Bounds].
func Now() int64 { return now() }

// New makes a session. Like all of a session's methods that plan or run, it is called
// under [mapped.Guard] where the model's constants lie in a mapped file.
// The inputs give the shapes to plan for and must follow
// the main graph's inputs; they can be exchanged later with [Session.SetInput].
// Operators that cannot run do not fail: see [Session.Steps].
func New(m *graph.Model, inputs []*tensor.Tensor, o Options) (*Session, error) {
	if o.Registry == nil {
		return nil, errors.New("engine: no operator registry")
	}
	if n := len(m.Main().Inputs); len(inputs) != n {
		return nil, fmt.Errorf("model has %d inputs, %d given", n, len(inputs))
	}
	for _, c := range o.Carry {
		if c.Output < 0 || c.Output >= len(m.Main().Outputs) || c.Input < 0 || c.Input >= len(inputs) {
			return nil, fmt.Errorf("cannot carry output %d to input %d: model has %d outputs and %d inputs", c.Output, c.Input, len(m.Main().Outputs), len(inputs))
		}
	}
	s := &Session{Model: m, opts: o, pool: workers.New(o.Threads, o.Pin), state: map[string]any{}, frames: make([]*frame, len(m.Graphs)), in: slices.Clone(inputs), disabled: map[*graph.Node]error{}}
	for _, c := range o.Carry {
		s.carried = append(s.carried, carried{Carry: c})
	}
	hugepages.EnlargeHeap()
	if s.fresh = small(m); s.fresh {
		defer gcpolicy.At(plenty)()
	}
	if err := s.replan(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// plenty is by how many percent the heap may grow until a small model has its first results: a collection would take as long as all else. With it none
// begins until the heap has 16 MiB. Large models, whose memory it would be, have the usual setting.
const plenty = 400

// small tells whether a model's constants take so little that what making it ready leaves behind does not matter.
func small(m *graph.Model) bool {
	const most = 16 << 20
	n := 0
	for _, g := range m.Graphs {
		for _, v := range g.Values {
			if v.Const != nil {
				n += len(v.Const.Data)
			}
		}
	}
	return n <= most
}

// Close ends the workers.
func (s *Session) Close() { s.pool.Close() }

// Threads is the number of workers, the caller included.
func (s *Session) Threads() int { return s.pool.Threads() }

// Pool returns the workers, for work of the caller between runs.
func (s *Session) Pool() *workers.Pool { return s.pool }

// SetInput exchanges an input. A new shape or type makes the next Run plan again.
// An output that the last run would have carried there is dropped.
func (s *Session) SetInput(i int, t *tensor.Tensor) {
	s.in[i] = t
	for k := range s.carried {
		if s.carried[k].Input == i {
			s.carried[k].pending = false
		}
	}
}

// Disable takes a node that failed in a run out of the plan, so that the others
// can still be run. It reports false when that has been done before.
func (s *Session) Disable(e *NodeError) bool {
	n := s.Model.Graphs[e.Graph].Nodes[e.Node.Index]
	if s.disabled[n] != nil {
		return false
	}
	s.carry()
	s.disabled[n] = e.Err
	// A new plan gives the node's outputs their stand-ins and lets everything that
	// hangs on them follow.
	return s.replan() == nil
}

// replan plans the main graph for the inputs that are set. The old plan stays when that
// fails.
func (s *Session) replan() error {
	before := s.held
	s.held = 0
	f, err := s.plan(s.Model.Main(), s.in, nil)
	if err != nil {
		s.held = before
		return err
	}
	s.main = f
	return nil
}

// Reset forgets all state: variables, resources, random generators.
func (s *Session) Reset() error {
	s.carry()
	s.state = map[string]any{}
	return s.replan()
}

// NewTiming makes room for the times of one run, to be used again for each.
func (s *Session) NewTiming() *Timing {
	t := &Timing{Bounds: make([]int64, len(s.main.steps)+1), Bodies: make([][]BodyTime, len(s.Model.Graphs))}
	for i, g := range s.Model.Graphs[1:] {
		t.Bodies[i+1] = make([]BodyTime, len(g.Nodes))
	}
	return t
}

// Run computes one inference. It returns early, between two operators, when ctx
// ends.
func (s *Session) Run(ctx context.Context) error { return s.RunTimed(ctx, nil) }

// RunTimed is Run and, with t not nil, times every step. The Timing must have
// been made for the current plan; SetInput with a new shape makes a new plan.
func (s *Session) RunTimed(ctx context.Context, t *Timing) error {
	if s.fresh {
		s.fresh = false
		defer gcpolicy.At(plenty)()
	}
	s.carry()
	if !s.main.fits(s.in) {
		if err := s.replan(); err != nil {
			return err
		}
		s.sharing = sharing{}
	}
	if t != nil {
		if len(t.Bounds) != len(s.main.steps)+1 {
			return errors.New("engine: timing was made for another plan")
		}
		for _, b := range t.Bodies {
			clear(b)
		}
		t.Events, t.Missed = t.Events[:0], 0
	}
	s.timing, s.done = t, ctx.Done()
	s.turns, s.collected, s.began = 0, 0, time.Now()
	s.pool.Begin(s.done, s.sharing.alone)
	defer s.pool.End() // work of others between runs does not end with this one
	s.main.bind(s.in)
	var err error
	if t == nil {
		err = s.main.run()
	} else {
		err = s.main.runTimed(t.Bounds)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	if s.sharing.alone || s.pool.Shared() {
		now := time.Now()
		s.sharing.ran(now.Sub(s.began), now)
	}
	for i := range s.carried {
		s.carried[i].pending = true
	}
	return nil
}

// Prepared returns for each step of the main graph the time that preparing it took when the
// plan was made, in nanoseconds: choosing and making its kernel. 0 for those that are prepared in
// runs, and for those that do not run.
func (s *Session) Prepared() []int64 {
	out := make([]int64, len(s.main.steps))
	for i := range s.main.steps {
		if st := &s.main.steps[i]; st.State == plan.Runs {
			out[i] = st.prepared
		}
	}
	return out
}

// Output returns main-graph output i after a run, nil when it could not be
// computed. The next run overwrites it.
func (s *Session) Output(i int) *tensor.Tensor {
	id := s.Model.Main().Outputs[i]
	if id < 0 {
		return nil
	}
	return s.main.vals[id]
}

// Value returns any value of the main graph after a run. Without
// Options.KeepAll its memory may have been used again.
func (s *Session) Value(id int) *tensor.Tensor { return s.main.vals[id] }

// Memory is the size of the block that holds the main graph's intermediate
// values, in bytes, and the sum that they would need without sharing.
func (s *Session) Memory() (arena, unshared int) { return s.main.arenaBytes, s.main.valueBytes }

// Working is the size of the working memory of operators, in bytes: what the steps of a graph share, of all graphs that have been planned.
func (s *Session) Working() int {
	n := 0
	for _, f := range s.frames {
		if f != nil {
			n += f.rooms.Bytes()
		}
	}
	return n
}

// Plan lists where the planned values of the main graph lie, in order of steps.
func (s *Session) Plan() []Placed { return s.main.placed }

// Placed is a value's place in the arena.
type Placed struct {
	Name        string // of the file's value, or of that for which a value of the plan stands
	Value       int    // id in the frame's graph, which may have more values than the file's
	Offset      int    // bytes from the arena's start
	Bytes       int
	First, Last int // steps between which the value lives, inclusive
}
