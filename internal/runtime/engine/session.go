package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/gcpolicy"
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/mapped"
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
	// Pin runs on each worker's thread before it starts to work, to bind it to a processor. The
	// caller pins worker 0, its own thread, itself. May be nil.
	Pin func(worker int)
	// KeepAll gives every value its own memory, so that all of them can be read after a run, and
	// switches fusion off.
	KeepAll bool
	// Exact computes operators between DequantizeLinear and QuantizeLinear in floating point, as
	// in the file, and not in integers. It rounds float16 values after each operator.
	Exact bool
	// Carry feeds outputs back: after each run, main-graph output Carry[i].Output becomes input
	// Carry[i].Input of the next run, as for a key-value cache.
	Carry []Carry
	// InPlace lets operators write main-graph outputs to the memory of inputs, which a run then
	// changes, as for caches in buffers. An output has memory of its own if the operator or the types
	// and shapes do not allow it, if a later step reads the input, or with KeepAll: see
	// [Session.InPlace]. An output cannot be carried, too.
	InPlace []Carry
	// MaxBytes bounds the memory that a planned graph may use for its values and the scratch
	// memory of its operators; 0 means no limit. A model beyond it is rejected with an
	// [op.LimitError] before the memory is allocated.
	MaxBytes int
	// Held is how many bytes of MaxBytes the caller has used, such as for the inputs.
	Held int
	// Static is for sessions that never run: values are placed but have no memory, and nodes that
	// would keep much memory are not prepared.
	Static bool
	// Watch lists sets of main-graph outputs that are needed during runs: Seen is called with the
	// index of a set when the last of its values is computed. Afterwards their memory is reused.
	Watch [][]int
	Seen  func(set int) error
	// MaxLoop bounds the time of a loop whose number of iterations is unbounded, and of other
	// loops in an inference with very many iterations; 0 means no limit. A loop beyond it fails
	// with an [op.LoopError].
	MaxLoop time.Duration
	// Body is called after each run of a nested graph with a function that returns its values by
	// id: all values with KeepAll, else those that are still valid at its end. They must not be
	// changed, and are valid within the call only. May be nil.
	Body func(graph int, value func(id int) *tensor.Tensor)
}

// Carry connects an output of the main graph to an input, by position.
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

// Session is a model that is ready to run. It must be used by one goroutine at a time.
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
	held    int // bytes of the caller, plans, packed weights, run-time outputs, and what loops collect
	fixed   int // bytes of variables
	// collected is the number of bytes that loops without a known end have collected in this
	// inference, iterations the number of loop iterations.
	collected, iterations int
	began                 time.Time    // start of the inference
	endless               int          // loops that did not end in time
	fresh                 bool         // a small model that has not run yet
	trials                threadTrials // whether runs use several threads
	// disabled holds nodes that failed while running and were removed from the plan.
	disabled map[*graph.Node]error
}

// maxDepth bounds nested control flow; real models stay below five.
const maxDepth = 64

// New makes a session. If the model's constants are in a mapped file, call it, and all other
// methods of a session that plan or run, under [mapped.Guard]. The inputs determine the shapes to
// plan for and must follow the main graph's inputs; [Session.SetInput] replaces them later.
// Operators that cannot run do not cause an error: see [Session.Steps].
func New(m *graph.Model, inputs []*tensor.Tensor, o Options) (*Session, error) {
	if o.Registry == nil {
		return nil, errors.New("engine: no operator registry")
	}
	if n := len(m.Main().Inputs); len(inputs) != n {
		return nil, fmt.Errorf("model has %d inputs, %d given", n, len(inputs))
	}
	for _, c := range slices.Concat(o.Carry, o.InPlace) {
		if c.Output < 0 || c.Output >= len(m.Main().Outputs) || c.Input < 0 || c.Input >= len(inputs) {
			return nil, fmt.Errorf("cannot connect output %d to input %d: model has %d outputs and %d inputs", c.Output, c.Input, len(m.Main().Outputs), len(inputs))
		}
	}
	s := &Session{Model: m, opts: o, pool: workers.New(o.Threads, o.Pin), state: map[string]any{}, frames: make([]*frame, len(m.Graphs)), in: slices.Clone(inputs), disabled: map[*graph.Node]error{}}
	for _, c := range o.Carry {
		s.carried = append(s.carried, carried{Carry: c})
	}
	hugepages.EnlargeHeap()
	if s.fresh = isSmall(m); s.fresh {
		defer gcpolicy.At(startupGCPercent)()
	}
	if err := s.replan(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// startupGCPercent is the GC percentage until a small model has its first results: a collection
// would take as long as everything else. With it, no collection starts until the heap has 16 MiB.
// Large models, which would hold that memory, use the usual setting.
const startupGCPercent = 400

// isSmall reports whether a model's constants and nodes are so few that the garbage of preparing it
// does not matter.
func isSmall(m *graph.Model) bool {
	const most, node = 16 << 20, 4 << 10 // bytes, about, that planning and describing a node take
	n := 0
	for _, g := range m.Graphs {
		n += node * len(g.Nodes)
		for _, v := range g.Values {
			if v.Const != nil {
				n += len(v.Const.Data)
			}
		}
	}
	return n <= most
}

// Close stops the workers.
func (s *Session) Close() { s.pool.Close() }

// Threads returns the number of workers, the caller included.
func (s *Session) Threads() int { return s.pool.Threads() }

// Pool returns the thread pool, for the caller's own work between runs.
func (s *Session) Pool() *workers.Pool { return s.pool }

// SetInput replaces an input. After a new shape or type the next Run plans again. An output of
// the last run that would have been fed back to this input is dropped.
func (s *Session) SetInput(i int, t *tensor.Tensor) {
	s.in[i] = t
	for k := range s.carried {
		if s.carried[k].Input == i {
			s.carried[k].pending = false
		}
	}
}

// Disable removes a node that failed in a run from the plan, so that the others can still be run.
// It reports false if the node was already disabled.
func (s *Session) Disable(e *NodeError) bool {
	n := s.Model.Graphs[e.Graph].Nodes[e.Node.Index]
	if s.disabled[n] != nil {
		return false
	}
	s.feedBack()
	s.disabled[n] = e.Err
	// A new plan replaces the node's outputs by zeros and updates all nodes that depend on them.
	return s.replan() == nil
}

// replan plans the main graph for the current inputs. On failure the old plan stays.
func (s *Session) replan() error {
	before := s.held
	s.held = s.opts.Held + s.fixed
	f, err := s.plan(s.Model.Main(), s.in, nil)
	if err != nil {
		s.held = before
		return err
	}
	s.main = f
	return nil
}

// Reset discards all state: variables, resources, random generators.
func (s *Session) Reset() error {
	s.feedBack()
	s.state, s.fixed = map[string]any{}, 0
	return s.replan()
}

// Run computes one inference. It returns early, between two operators, when ctx ends.
func (s *Session) Run(ctx context.Context) error { return s.RunTimed(ctx, nil) }

// RunTimed is Run that times every step if t is not nil. The Timing must have been made for the
// current plan; SetInput with a new shape makes a new plan.
func (s *Session) RunTimed(ctx context.Context, t *Timing) error {
	if s.fresh {
		s.fresh = false
		defer gcpolicy.At(startupGCPercent)()
	}
	s.feedBack()
	if !s.main.fits(s.in) {
		if err := s.replan(); err != nil {
			return err
		}
		s.trials = threadTrials{}
	}
	if t != nil {
		if len(t.Bounds) != len(s.main.steps)+1 {
			return errors.New("engine: timing was made for another plan")
		}
		for _, b := range t.Bodies {
			clear(b)
		}
		t.Events, t.Missed = t.Events[:0], 0
		clear(t.Waits)
	}
	s.timing, s.done = t, ctx.Done()
	s.iterations, s.collected, s.began = 0, 0, time.Now()
	s.pool.Begin(s.done, s.trials.alone)
	defer s.pool.End() // other work on the pool does not end with this run
	s.main.bind(s.in)
	var err error
	if t == nil {
		err = s.main.run()
	} else {
		err = s.main.runTimed(t)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	if s.trials.alone || s.pool.Shared() {
		now := time.Now()
		s.trials.record(now.Sub(s.began), now)
	}
	for i := range s.carried {
		s.carried[i].pending = true
	}
	return nil
}

// Prepared returns for each step of the main graph the time in nanoseconds that Prepare took when
// the plan was made. It is 0 for steps that are prepared in runs, and for steps that do not run.
func (s *Session) Prepared() []int64 {
	out := make([]int64, len(s.main.steps))
	for i := range s.main.steps {
		if st := &s.main.steps[i]; st.State == plan.Runs {
			out[i] = st.prepared
		}
	}
	return out
}

// Output returns main-graph output i after a run, nil when it could not be computed. The next run
// overwrites it.
func (s *Session) Output(i int) *tensor.Tensor {
	id := s.Model.Main().Outputs[i]
	if id < 0 {
		return nil
	}
	return s.main.vals[id]
}

// InPlace lists the pairs of Options.InPlace whose output the last run wrote to the memory of the
// input.
func (s *Session) InPlace() (all []Carry) {
	for _, c := range s.opts.InPlace {
		if x, y := s.main.vals[s.main.g.Inputs[c.Input]], s.Output(c.Output); x != nil && y != nil && op.SameMemory(x.Data, y.Data) {
			all = append(all, c)
		}
	}
	return all
}

// Value returns any value of the main graph after a run. Without Options.KeepAll its memory may
// have been reused.
func (s *Session) Value(id int) *tensor.Tensor { return s.main.vals[id] }

// Memory returns the size of the block that holds the main graph's intermediate values, in bytes,
// and the sum of their sizes without sharing.
func (s *Session) Memory() (arena, unshared int) { return s.main.arenaBytes, s.main.valueBytes }

// InputBytes returns the bytes of inputs, for [Options.Held].
func InputBytes(ins []*tensor.Tensor) (n int) {
	for _, t := range ins {
		n += len(t.Data)
	}
	return n
}

// WeightBytes returns the memory of the main graph's weights: what steps have packed, and constants
// that are in memory beside that. Of mapped files these are the ones that runs read, without the
// tables of operators in rows, of which a run reads some rows.
func (s *Session) WeightBytes(rows map[string]bool) int {
	f := s.main
	n := f.kept + max(0, f.spent-f.arenaBytes-f.workspace.Bytes())
	seen := map[int]bool{}
	count := func(id int, read bool) {
		if id < 0 || id >= len(s.Model.Main().Values) || seen[id] {
			return
		}
		if c := s.Model.Main().Values[id].Const; c != nil && (read || !mapped.Holds(c.Data)) {
			seen[id] = true
			n += len(c.Data)
		}
	}
	for i := range f.steps {
		st := &f.steps[i]
		for k, id := range st.Node.Inputs {
			count(id, false)
			if st.State == plan.Runs && k < len(st.Call.Node.Inputs) {
				count(st.Call.Node.Inputs[k], !st.Call.IsPacked(k) && !rows[st.Call.Node.Op])
			}
		}
	}
	return n
}

// Held returns the bytes of the session that count against Options.MaxBytes.
func (s *Session) Held() int { return s.held }

// Working returns the size of the operators' scratch memory in bytes: the workspace that the
// steps of a graph share, for all graphs that have been planned.
func (s *Session) Working() int {
	n := 0
	for _, f := range s.frames {
		if f != nil {
			n += f.workspace.Bytes()
		}
	}
	return n
}

// Plan lists the offsets of the main graph's planned values, in order of steps.
func (s *Session) Plan() []Placed { return s.main.placed }

// Placed is the position of a value in the arena.
type Placed struct {
	Name        string // of the file's value, or of the one that a plan's value replaces
	Value       int    // id in the frame's graph, which may have more values than the file's
	Offset      int    // bytes from the start of the arena
	Bytes       int
	First, Last int // first and last step of its lifetime, inclusive
}
