package loop

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/estimator"
)

// MaxCells bounds the memory of a [Recorder]: runs times steps, 8 bytes each.
const MaxCells = 16 << 20

// Recorder keeps the times of every step over many runs in preallocated memory. If there are more
// runs than fit, it keeps a uniform random sample of whole runs (Vitter's reservoir sampling),
// while number, sum and extremes stay exact.
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
	sum         []int64
	min, max    []int64
	wall, gaps  int64
	random      *rand.Rand
	one         []int64 // times of the run being added
}

// NewRecorder makes a recorder for the steps of up to runs runs; more can be added and are then
// sampled.
func NewRecorder(steps, runs int) *Recorder {
	rows := maxRows(steps, runs)
	cells := make([]int64, rows*steps)
	r := &Recorder{
		steps: steps, rows: rows, times: make([][]int64, rows), order: make([]int, rows), walls: make([]int64, rows), disturbed: make([]bool, rows),
		sum: make([]int64, steps), min: make([]int64, steps), max: make([]int64, steps),
		random: rand.New(rand.NewPCG(1, uint64(steps))), one: make([]int64, steps),
	}
	for i := range r.times {
		r.times[i] = cells[i*steps : (i+1)*steps]
	}
	for i := range r.min {
		r.min[i] = math.MaxInt64
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
	zero := int64(0)
	if r.runs == 0 {
		zero = math.MaxInt64
	}
	for len(r.sum) < steps {
		r.sum, r.min, r.max, r.one = append(r.sum, 0), append(r.min, zero), append(r.max, 0), append(r.one, 0)
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
	total := int64(0)
	for i, t := range times {
		r.sum[i] += t
		r.min[i] = min(r.min[i], t)
		r.max[i] = max(r.max[i], t)
		total += t
	}
	r.wall += wall
	r.gaps += wall - total
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

// AddBounds is [Recorder.Add] for the clock's readings at the boundaries of the steps, one more
// than there are steps. The wall time is the last minus the first. Each step's time includes one
// reading of the clock, which is not subtracted.
func (r *Recorder) AddBounds(bounds []int64) {
	if len(bounds) != r.steps+1 {
		panic("measure: a run with another number of steps")
	}
	for i := range r.one {
		r.one[i] = bounds[i+1] - bounds[i]
	}
	r.Add(r.one, bounds[r.steps]-bounds[0], false)
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

// Summary summarises a step, in seconds. Number, mean and extremes are over all runs, the rest
// over those kept.
func (r *Recorder) Summary(step int) stats.Summary {
	s := stats.Summarize(r.Samples(step))
	if r.Sampled() {
		s.N, s.Mean = int64(r.runs), r.Mean(step)
		s.Min, s.Max = float64(r.min[step])/1e9, float64(r.max[step])/1e9
	}
	return s
}

// Inferences returns the kept runs in chronological order.
func (r *Recorder) Inferences() []estimator.Inference {
	out := make([]estimator.Inference, r.used)
	for i, row := range r.inOrder() {
		out[i] = estimator.Inference{Steps: r.times[row], Wall: r.walls[row], Disturbed: r.disturbed[row]}
	}
	return out
}

// Mean returns the mean time of a step in seconds over all runs, NaN for none.
func (r *Recorder) Mean(step int) float64 { return float64(r.sum[step]) / float64(r.runs) / 1e9 }

// Totals returns the mean wall time of a run, the mean sum of its steps and the mean time between
// steps, in seconds; NaN for no runs.
func (r *Recorder) Totals() (wall, steps, gaps float64) {
	n := float64(r.runs) * 1e9
	return float64(r.wall) / n, float64(r.wall-r.gaps) / n, float64(r.gaps) / n
}

func sortBy(rows, key []int) {
	slices.SortFunc(rows, func(a, b int) int { return cmp.Compare(key[a], key[b]) })
}
