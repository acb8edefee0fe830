package loop

import (
	"cmp"
	"math/rand/v2"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/estimator"
)

// MaxCells bounds the memory of a [Recorder]: runs times steps, 8 bytes each.
const MaxCells = 16 << 20

// Recorder keeps the times of every step over many runs in preallocated memory. If there are more
// runs than fit, it keeps a uniform random sample of whole runs (Vitter's reservoir sampling).
type Recorder struct {
	// Corrected says that the times are without what a run waited for a processor: then a disturbed
	// run has valid times, too.
	Corrected   bool
	steps, rows int
	times       [][]int64 // by row and step, in nanoseconds; 0 for steps added later
	order       []int     // run number of each row
	walls       []int64   // wall time of each row, in nanoseconds
	disturbed   []bool    // whether the system reported a disturbance, of each row
	runs        int
	used        int
	random      *rand.Rand
}

// NewRecorder makes a recorder for the steps of up to runs runs; more can be added and are then
// sampled.
func NewRecorder(steps, runs int) *Recorder {
	rows := maxRows(steps, runs)
	cells := make([]int64, rows*steps)
	r := &Recorder{
		steps: steps, rows: rows, times: make([][]int64, rows), order: make([]int, rows), walls: make([]int64, rows), disturbed: make([]bool, rows),
		random: rand.New(rand.NewPCG(1, uint64(steps))),
	}
	for i := range r.times {
		r.times[i] = cells[i*steps : (i+1)*steps]
	}
	return r
}

// maxRows returns how many rows of so many steps fit.
func maxRows(steps, runs int) int {
	rows := max(1, runs)
	if steps > 0 {
		rows = min(rows, max(1, MaxCells/steps))
	}
	return rows
}

// Grow adds steps, which took no time in earlier runs. If memory is bounded, kept runs are
// dropped for it.
func (r *Recorder) Grow(steps int) {
	if steps <= r.steps {
		return
	}
	r.steps = steps
	for rows := maxRows(steps, r.rows); r.rows > rows; r.rows-- {
		last := r.rows - 1
		if last < r.used {
			// Dropping random rows keeps the sample uniform.
			at := r.random.IntN(r.used)
			r.times[at], r.order[at], r.walls[at], r.disturbed[at] = r.times[last], r.order[last], r.walls[last], r.disturbed[last]
			r.used--
		}
		r.times[last] = nil
	}
}

// Add adds the step times of one run, in nanoseconds, its wall time, and whether the system
// reported a disturbance during it. The slice is copied. It panics if the number of times differs
// from the number of steps.
func (r *Recorder) Add(times []int64, wall int64, disturbed bool) {
	if len(times) != r.steps {
		panic("measure: a run with another number of steps")
	}
	row := r.runs
	r.runs++
	if row >= r.rows {
		if row = r.random.IntN(r.runs); row >= r.rows {
			return
		}
	}
	if len(r.times[row]) < r.steps {
		r.times[row] = make([]int64, r.steps)
	}
	copy(r.times[row], times)
	r.order[row], r.walls[row], r.disturbed[row] = r.runs-1, wall, disturbed
	r.used = max(r.used, row+1)
}

// Runs returns the number of runs added.
func (r *Recorder) Runs() int { return r.runs }

// Sampled reports whether runs were left out of the samples to save memory.
func (r *Recorder) Sampled() bool { return r.runs > r.rows }

// Samples returns the kept times of a step, in seconds and in chronological order.
func (r *Recorder) Samples(step int) []float64 {
	out := make([]float64, r.used)
	for i, row := range r.inOrder() {
		if t := r.times[row]; step < len(t) {
			out[i] = float64(t[step]) / 1e9
		}
	}
	return out
}

// Walls returns the kept wall times, in seconds and in chronological order.
func (r *Recorder) Walls() []float64 {
	out := make([]float64, r.used)
	for i, row := range r.inOrder() {
		out[i] = float64(r.walls[row]) / 1e9
	}
	return out
}

// inOrder lists the rows by the number of their run.
func (r *Recorder) inOrder() []int {
	rows := make([]int, r.used)
	for i := range rows {
		rows[i] = i
	}
	if r.Sampled() {
		sortBy(rows, r.order)
	}
	return rows
}

// Inferences returns the kept runs in chronological order.
func (r *Recorder) Inferences() []estimator.Inference {
	out := make([]estimator.Inference, r.used)
	for i, row := range r.inOrder() {
		out[i] = estimator.Inference{Steps: r.times[row], Wall: r.walls[row], Disturbed: r.disturbed[row]}
	}
	return out
}

func sortBy(rows, key []int) {
	sorting.Func(rows, func(a, b int) int { return cmp.Compare(key[a], key[b]) })
}
