package engine

import "time"

// Timing receives the times of one timed run. Create it with [Session.NewTiming].
type Timing struct {
	// Bounds holds the clock at each boundary between the main graph's steps: step i ran from
	// Bounds[i] to Bounds[i+1], in nanoseconds of a monotonic clock.
	Bounds []int64
	// Bodies holds, by graph index and node, the time and the number of executions within the
	// run. Graphs that are not nested bodies have no entries.
	Bodies [][]BodyTime
	// Events receives the start and end of each step of a nested graph, owners before their
	// nested steps, up to its capacity. [Session.NewTiming] reserves none: set the capacity to
	// get events. Missed counts those that did not fit.
	Events []BodyEvent
	Missed int64
	// CPU reads the CPU time in nanoseconds of the thread that runs, which computes everything; nil
	// if it is unknown. Waits then holds the time that each step of the main graph waited for a
	// processor, such as while it was preempted, as far as the clocks show it. Times of Bodies
	// are without it.
	CPU   func() int64
	Waits []int64
	// waited is the sum of waits so far; wall and cpu are the clocks when the CPU time was read.
	waited, wall, cpu int64
}

const (
	// lookEvery is the least time in nanoseconds between two readings of the CPU time, which cost
	// about 300: a step that waited took longer.
	lookEvery = 200_000
	// leastWait is the least difference between clock and CPU time that counts as waiting.
	leastWait = 20_000
)

// begin starts the clocks of a run.
func (t *Timing) begin() {
	t.waited = 0
	if t.CPU != nil {
		t.cpu, t.wall = t.CPU(), now()
	}
}

// look adds what the thread waited since the CPU time was last read, at the end of a step from one
// reading of the clock to another.
func (t *Timing) look(from, to int64) {
	if t.CPU == nil || to-t.wall < lookEvery {
		return
	}
	cpu := t.CPU()
	if lost := to - t.wall - (cpu - t.cpu); lost > leastWait {
		t.waited += min(lost, to-from)
	}
	t.wall, t.cpu = to, cpu
}

// Wall returns the duration of the run without what it waited, in nanoseconds.
func (t *Timing) Wall() int64 { return t.Bounds[len(t.Bounds)-1] - t.Bounds[0] - t.waited }

// BodyEvent is one execution of a node of a nested graph, on the clock of [Timing.Bounds].
type BodyEvent struct {
	Graph, Node int32
	Start, End  int64
}

// BodyTime is the time that a node of a nested graph took in one run, including what it runs
// itself.
type BodyTime struct {
	Nanoseconds int64
	Calls       int64
}

var epoch = time.Now()

// now reads the monotonic clock, in nanoseconds.
func now() int64 { return int64(time.Since(epoch)) }

// Now reads the clock of [Timing.Bounds].
func Now() int64 { return now() }

// NewTiming allocates the times of one run; reuse it for further runs.
func (s *Session) NewTiming() *Timing {
	t := &Timing{Bounds: make([]int64, len(s.main.steps)+1), Waits: make([]int64, len(s.main.steps)), Bodies: make([][]BodyTime, len(s.Model.Graphs))}
	for i, g := range s.Model.Graphs[1:] {
		t.Bodies[i+1] = make([]BodyTime, len(g.Nodes))
	}
	return t
}
