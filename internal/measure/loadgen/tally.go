package loadgen

import "math"

// bins is how many parts of the window a stream counts its inferences in.
const bins = 1024

// tally counts inferences over time. Each is spread evenly over the time that it took, so that
// of one at an edge counts what lies within. When the window outgrows the bins, each two of them
// become one: the memory is the same however long the window, and at least half of the bins are
// used from then on.
type tally struct {
	width int64 // of a bin in nanoseconds, 0 before the first inference
	count [bins]float64
}

// firstWidth is the width of a bin at the beginning, in nanoseconds.
const firstWidth = 1 << 14

// add counts an inference, in nanoseconds since the window opened; what lies before that is left out.
func (t *tally) add(from, to int64) {
	if t.width == 0 {
		t.width = firstWidth
	}
	if to <= from {
		to = from + 1 // shorter than the clock can tell
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

// until is the number of inferences before a moment, in nanoseconds since the window opened; within a bin
// they count as if they were spread evenly over it.
func (t *tally) until(moment float64) (n float64) {
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

// Parts of the window that throughput is judged by.
const (
	mostParts = 20 // as many as stats.Repeated takes of others
	// fullPart is how many inferences lie in a part at least, of all streams and as the slowest of
	// them computes: in parts not much longer than an inference, which is spread over the time
	// that it took, throughput would look steadier than it is.
	fullPart = 4
)

// rates are inferences a second of all streams in equal parts of the window, in order of time; nil where
// too few lie in each of three.
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
	n := int(min(mostParts, math.Floor(r.Window/(fullPart*longest)), math.Floor(r.Inferences/fullPart)))
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
