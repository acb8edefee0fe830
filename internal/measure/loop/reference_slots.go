package loop

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/estimator"
)

// Fraction of a group's time that the reference loop may take after it, and limits of the number
// of its rounds: one interruption must not dominate, and a long inference must not wait for long.
const (
	slotPart  = 0.1
	minRounds = 5
	maxRounds = 300
)

// roundsFor returns the number of rounds of the reference loop for a group with the given length
// in seconds.
func (m *measurer) roundsFor(group float64) int {
	if m.o.Reference == nil {
		return 0
	}
	start := m.clock.Now()
	for range minRounds { // the first rounds also fill the caches
		m.o.Reference()
	}
	each := float64(m.clock.Now()-start) / minRounds / 1e9
	if !(each > 0) {
		return minRounds
	}
	return int(min(max(slotPart*group/each, minRounds), maxRounds))
}

// runReference runs the reference loop and stores how long its rounds took.
func (m *measurer) runReference() {
	if m.rounds == 0 {
		return
	}
	took, work := make([]float64, m.rounds), make([]float64, m.rounds)
	for i := range took {
		start, worked := m.clock.Now(), read(m.o.CPUTime)
		m.o.Reference()
		work[i] = (read(m.o.CPUTime) - worked) / 1e9
		took[i] = float64(m.clock.Now()-start) / 1e9
	}
	m.res.Slots = append(m.res.Slots, Slot{Took: stats.Median(took), CPU: stats.Median(work)})
}

// read reads a clock in nanoseconds, NaN if the clock is nil.
func read(clock func() int64) float64 {
	if clock == nil {
		return math.NaN()
	}
	return float64(clock())
}

// beginGroup reads the clocks before a group, in nanoseconds; endGroup converts them to the
// group's times.
func (m *measurer) beginGroup(instrumented bool, from int) Group {
	return Group{Instrumented: instrumented, From: from, Slot: max(0, len(m.res.Slots)-1), Took: float64(m.clock.Now()), CPU: read(m.o.CPUTime), Processor: read(m.o.ProcessTime)}
}

func (m *measurer) endGroup(g *Group) {
	g.Processor = (read(m.o.ProcessTime) - g.Processor) / 1e9
	g.CPU = (read(m.o.CPUTime) - g.CPU) / 1e9
	g.Took = (float64(m.clock.Now()) - g.Took) / 1e9
	if m.o.Parallel {
		g.CPU = math.NaN()
	} else if g.CPU > 0 {
		g.Processor = g.CPU
	}
}

// runCount returns the number of inferences in a group.
func (r *Result) runCount(g Group) float64 {
	n := float64(g.To - g.From)
	if !g.Instrumented {
		n *= float64(r.Batch)
	}
	return n
}

// Processor returns for each plain group the CPU time of a run, in seconds and in chronological
// order; nil if the system does not provide it.
func (r *Result) Processor() []float64 {
	var out []float64
	for _, g := range r.Groups {
		if n := r.runCount(g); !g.Instrumented && n > 0 && g.Processor > 0 {
			out = append(out, g.Processor/n)
		}
	}
	return out
}

// Speeds returns the machine's speed during each plain group: the time of a round at the reference
// speed, in seconds, divided by that of the rounds before and after the group. Nil without a
// reference loop.
func (r *Result) Speeds(round float64) []float64 {
	var out []float64
	for i, g := range r.Groups {
		if s := r.referenceTime(i); !g.Instrumented && s > 0 {
			out = append(out, round/s)
		}
	}
	return out
}

// AtReference returns for each plain group the normalised time of a run, in seconds and in
// chronological order: its CPU time, or the median of its runs if the system does not provide CPU
// time, times the machine's speed during the group. round is the time of a round at the reference
// speed. Nil without a reference loop.
func (r *Result) AtReference(round float64) []float64 {
	var out []float64
	for i, g := range r.Groups {
		s, n := r.referenceTime(i), r.runCount(g)
		if g.Instrumented || !(s > 0) || n == 0 {
			continue
		}
		each := g.CPU / n
		if !(each > 0) {
			each = stats.Median(r.Plain[g.From:g.To])
		}
		out = append(out, each*round/s)
	}
	return out
}

// referenceTime returns the mean time of a round before and after a group, 0 for none.
func (r *Result) referenceTime(group int) float64 {
	at := r.Groups[group].Slot
	if at+1 >= len(r.Slots) {
		return 0
	}
	a, b := r.Slots[at], r.Slots[at+1]
	if a.CPU > 0 && b.CPU > 0 {
		return (a.CPU + b.CPU) / 2
	}
	return (a.Took + b.Took) / 2
}

// Waited returns the fraction of the plain groups' time in which the thread had no processor, NaN
// if it is not known, also for runs with several threads.
func (r *Result) Waited() float64 {
	var took, work float64
	for _, g := range r.Groups {
		if !g.Instrumented {
			took, work = took+g.Took, work+g.CPU
		}
	}
	if !(took > 0) {
		return math.NaN()
	}
	return max(0, 1-work/took)
}

// Samples returns the plain samples with the machine's speed and disturbances during each. round
// is the time of a round of the reference loop at the reference speed.
func (r *Result) Samples(round float64) []estimator.Sample {
	out := make([]estimator.Sample, len(r.Plain))
	for i, g := range r.Groups {
		if g.Instrumented {
			continue
		}
		speed := 0.0
		if t := r.referenceTime(i); t > 0 {
			speed = round / t
		}
		for k := g.From; k < g.To; k++ {
			out[k] = estimator.Sample{Seconds: r.Plain[k], Work: r.Work[k], Speed: speed, Disturbed: r.Disturbed[k]}
		}
	}
	return out
}
