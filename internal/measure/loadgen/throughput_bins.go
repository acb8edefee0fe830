package loadgen

import "math"

// bins is the number of parts of the window in which a stream counts its inferences.
const bins = 1024

// throughputBins counts inferences over time. Each is spread evenly over its duration, so that
// one at an edge counts by the fraction within. When the window outgrows the bins, pairs of bins
// are merged: memory is constant for any length of the window, and at least half of the bins are
// in use from then on.
type throughputBins struct {
	width int64 // width of a bin in nanoseconds, 0 before the first inference
	count [bins]float64
}

// firstWidth is the initial width of a bin, in nanoseconds.
const firstWidth = 1 << 14

// add counts an inference, in nanoseconds since the window opened; the part before that is
// omitted.
func (t *throughputBins) add(from, to int64) {
	if t.width == 0 {
		t.width = firstWidth
	}
	if to <= from {
		to = from + 1 // shorter than the clock's resolution
	}
	for to > t.width*bins {
		for i := range bins / 2 {
			t.count[i] = t.count[2*i] + t.count[2*i+1]
		}
		clear(t.count[bins/2:])
		t.width *= 2
	}
	took := float64(to - from)
	for from = max(from, 0); from < to; {
		i := from / t.width
		edge := min(to, (i+1)*t.width)
		t.count[i] += float64(edge-from) / took
		from = edge
	}
}

// until returns the number of inferences before a moment, in nanoseconds since the window opened.
// Within a bin they count as spread evenly.
func (t *throughputBins) until(moment float64) (n float64) {
	if t.width == 0 {
		return 0
	}
	at := min(moment/float64(t.width), bins)
	whole := int(at)
	for _, c := range t.count[:whole] {
		n += c
	}
	if whole < bins {
		n += t.count[whole] * (at - float64(whole))
	}
	return n
}

// Parts of the window for the variation of throughput.
const (
	maxParts = 20 // as many as stats.Repeated uses for other series
	// minPerPart is the minimum number of inferences per part, of all streams and at the speed of
	// the slowest. In parts not much longer than an inference, which is spread over its duration,
	// throughput would look steadier than it is.
	minPerPart = 4
)

// rates returns the inferences per second of all streams in equal parts of the window, in
// chronological order; nil if even three parts would have too few.
func (d *driver) rates(r *Result) []float64 {
	longest := 0.0
	for i := range r.Streams {
		if v := r.Streams[i].Latency.Mean; v > longest { // not for NaN
			longest = v
		}
	}
	if !(longest > 0) || !(r.Window > 0) {
		return nil
	}
	n := int(min(maxParts, math.Floor(r.Window/(minPerPart*longest)), math.Floor(r.Inferences/minPerPart)))
	if n < 3 {
		return nil
	}
	out := make([]float64, n)
	part := r.Window / float64(n)
	for _, s := range d.streams {
		before := 0.0
		for i := range out {
			now := s.tally.until(float64(i+1) * part * 1e9)
			out[i] += (now - before) / part
			before = now
		}
	}
	return out
}
