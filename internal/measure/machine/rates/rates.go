// Package rates describes the peak rates of a computer, measured or by its instruction sets. It has
// no kernels of its own: the process of an external engine measures that engine with it.
package rates

import (
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// If the median of the rounds is more than BusySpread below the fastest one, the machine was
// busy: the measurement is repeated, up to MostPasses times in total.
const (
	BusySpread = 0.1
	MostPasses = 4
)

// Sizes of the buffer for the memory measurement. A pass over the largest takes some 10 ms, its
// allocation several times that.
const (
	memoryUsual = 64 << 20
	memoryMost  = 128 << 20
)

// Rate is the result of many short rounds of one kind of work, per second. Other load only ever
// slows a round down, so the best one counts.
type Rate struct {
	Best, Median float64
}

// Spread returns how far the median is below the best round, as a fraction of it.
func (r Rate) Spread() float64 {
	if !(r.Best > 0) {
		return 0
	}
	return max(0, 1-r.Median/r.Best)
}

// Level is a level of the memory hierarchy.
type Level struct {
	Name string
	// Bytes is its capacity for all threads together, 0 for main memory.
	Bytes int64
	// Rate is bytes read and written per second by a copy.
	Rate
	// Read is bytes per second of reading only, 0 if not measured.
	Read Rate
}

// Rates holds the peak rates of this computer as the engine can use it.
type Rates struct {
	// Float and Integer are multiply-accumulates per second of float32 and of 8-bit integers, all
	// 0 if not measured.
	Float, Integer Rate
	// Levels are the levels of the memory hierarchy, fastest first.
	Levels []Level
	// Clock is the highest measured frequency of a thread, 0 if unknown.
	Clock float64
	// Buffer is the size of the buffer for the memory measurement and Cache the size of the
	// last-level cache, in bytes; 0 for none and for unknown.
	Buffer, Cache int64
	// Passes is the maximum number of measurements of a rate: above 1 the machine was busy.
	Passes int
	// Took is the duration of the measurement, Interleaved the number of slices between
	// inferences.
	Took        time.Duration
	Interleaved int
}

// Types lists the element types that have a kernel to measure.
var Types = []string{"float32", "int8"}

// Of returns the rate of an element type.
func (r *Rates) Of(dtype string) *Rate {
	if dtype == "int8" {
		return &r.Integer
	}
	return &r.Float
}

// Only returns the rates without those of other types.
func (r Rates) Only(types []string) Rates {
	for _, t := range Types {
		if !slices.Contains(types, t) {
			*r.Of(t) = Rate{}
		}
	}
	return r
}

// Again computes a rate from rounds. It repeats the measurement until the rounds agree or the
// maximum is reached; passes is the number of measurements.
func Again(measured func() []float64) (out Rate, passes int) {
	var all []float64
	for passes < MostPasses {
		passes++
		all = append(all, measured()...)
		if len(all) == 0 {
			continue
		}
		out = Rate{slices.Max(all), stats.Median(all)}
		if out.Spread() <= BusySpread {
			break
		}
	}
	return out, passes
}

// Buffer returns the size of the buffer, in bytes, that measures the memory for a last-level
// cache of the given size, 0 if unknown.
func Buffer(cache int64) int64 {
	if cache <= 0 {
		return memoryUsual
	}
	return min(max(4*cache, memoryUsual), memoryMost)
}

// Rounds repeats f for a time, and at least a number of times, and returns for each round the
// amount of work divided by its time in seconds.
func Rounds(now func() time.Time, d time.Duration, least int, amount float64, f func()) []float64 {
	var out []float64
	start := now()
	for k := 0; k < least || now().Sub(start) < d; k++ {
		t := now()
		f()
		if took := now().Sub(t); took > 0 {
			out = append(out, amount/took.Seconds())
		}
	}
	return out
}
