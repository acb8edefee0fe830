// Package rates times pieces of work beside each other, for the benchmarks of kernels.
package rates

import (
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// turn is how long a piece of work goes on before it is the turn of the next one: short
// against what changes on a machine, long against the clock.
const turn = 2 * time.Millisecond

// Time is what a piece of work took, in seconds: the median of its turns, and the
// quartiles as a share of it.
type Time struct{ Median, Spread float64 }

// Beside times the pieces of work alternately, each for about d in all.
func Beside(d time.Duration, works ...func()) []Time {
	repeat := make([]int, len(works))
	for i, f := range works {
		f() // what is made in a first run
		start, n := time.Now(), 0
		for n == 0 || time.Since(start) < turn {
			f()
			n++
		}
		repeat[i] = n
	}
	all := make([][]float64, len(works))
	for range max(5, int(d/turn)) {
		for i, f := range works {
			start := time.Now()
			for range repeat[i] {
				f()
			}
			all[i] = append(all[i], time.Since(start).Seconds()/float64(repeat[i]))
		}
	}
	out := make([]Time, len(works))
	for i, v := range all {
		slices.Sort(v)
		m := stats.Median(v)
		out[i] = Time{m, (v[len(v)*3/4] - v[len(v)/4]) / m}
	}
	return out
}

// peakRounds are some hundred microseconds.
const peakRounds = 2000

// Products says what is multiplied and added.
type Products uint8

// Products of float32 that round once with their sums, and apart from them as those of TFLite do,
// and of 8-bit integers.
const (
	Fused Products = iota
	Exact
	Ints
)

// Peak returns what multiplies and adds without anything else in one thread, and how
// many operations that is. ok is false where the set of kernels has no such loop.
func Peak(of Products) (work func(), ops float64, ok bool) {
	p := simd.PeakLoops()
	if p == nil {
		return nil, 0, false
	}
	loop, n := p.Floats, p.FloatOps
	switch of {
	case Exact:
		loop = p.Exact
	case Ints:
		loop, n = p.Ints, p.IntOps
	}
	return func() { loop(peakRounds) }, float64(peakRounds * n), true
}

// Table prints lines whose columns are parted by tabs.
type Table struct{ w *tabwriter.Writer }

// NewTable begins a table with its heading.
func NewTable(heading string) *Table {
	t := &Table{tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)}
	t.Line("%s", heading)
	return t
}

// Line adds a line.
func (t *Table) Line(format string, args ...any) { fmt.Fprintf(t.w, format+"\t\n", args...) }

// End writes what is still to be written.
func (t *Table) End() { _ = t.w.Flush() }
