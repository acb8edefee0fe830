package loadgen

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
)

// empty returns a result without data.
func empty(o *Options) *Result {
	none := stats.Summarize(nil)
	nan := math.NaN()
	return &Result{Window: nan, PerSecond: nan, Fairness: nan, Busy: nan, Latency: none, Response: none, Waiting: none, Clock: o.Clock}
}

// result combines the results of the streams.
func (d *driver) result(busy float64) *Result {
	r := empty(&d.o)
	open := d.open.Load()
	if open == 0 {
		for _, s := range d.streams {
			r.Streams = append(r.Streams, Stream{WarmupRuns: s.warmups, Latency: stats.Summarize(nil), Stability: stats.Judge(nil), Pinned: s.pinned, PinError: s.pinErr})
		}
		return r
	}
	limit := d.windowEnd(open)
	r.Open, r.Close, r.Busy = open+d.zero, limit+d.zero, busy
	took, response, waiting := make([]*stats.Reservoir, len(d.streams)), make([]*stats.Reservoir, len(d.streams)), make([]*stats.Reservoir, len(d.streams))
	slowest, fastest := math.Inf(1), 0.0
	for i, s := range d.streams {
		took[i], response[i], waiting[i] = s.took, s.response, s.waiting
		samples, _ := s.took.Kept()
		x := Stream{
			Inferences: float64(s.whole) + s.parts, Latency: s.took.Summary(), Samples: samples, Stability: stats.Judge(samples),
			Spans: s.spans, WarmupRuns: s.warmups, Pinned: s.pinned, PinError: s.pinErr,
		}
		for k := range x.Spans {
			x.Spans[k].Start += d.zero
			x.Spans[k].End += d.zero
		}
		slowest, fastest = min(slowest, x.Inferences), max(fastest, x.Inferences)
		r.Inferences += x.Inferences
		r.Streams = append(r.Streams, x)
	}
	r.Latency, r.Samples = combine(took)
	if d.o.Usage != nil && len(d.streams) == 1 {
		_, places := took[0].Kept()
		for _, at := range places {
			r.Disturbed = append(r.Disturbed, d.streams[0].hits[at])
		}
	}
	if d.o.Rate > 0 {
		r.Response, r.ResponseSamples = combine(response)
		r.Waiting, _ = combine(waiting)
		r.Late = d.late
		r.Due = int64(math.Ceil(float64(limit-open) / 1e9 * d.o.Rate * (1 - 1e-12)))
		if d.o.Runs > 0 {
			r.Due = min(r.Due, int64(d.o.Runs))
		}
		r.Due = max(r.Due, d.next)
		r.Unstarted = r.Due - d.next
	} else if len(d.streams) > 1 && fastest > 0 {
		r.Fairness = slowest / fastest
	}
	if limit > open {
		r.Window = float64(limit-open) / 1e9
		r.PerSecond = r.Inferences / r.Window
		r.Rates = d.rates(r)
	}
	return r
}

// windowEnd returns when the window closed. If it was cut short, that is the last moment at which
// every stream still had a later inference to end, or now: unfinished inferences are omitted.
func (d *driver) windowEnd(open int64) int64 {
	planned := d.close.Load()
	if planned != 0 && !d.stop.Load() {
		return planned
	}
	limit := int64(math.MaxInt64)
	for _, s := range d.streams {
		limit = min(limit, max(open, s.last))
	}
	if d.o.Rate > 0 { // streams are idle at times: until the last one was busy
		limit = open
		for _, s := range d.streams {
			limit = max(limit, s.last)
		}
	}
	if planned != 0 {
		limit = min(limit, planned)
	}
	// Of the inferences that ended later only the mean is known.
	for _, s := range d.streams {
		if mean := s.took.Mean() * 1e9; s.last > limit && mean > 0 {
			over := min(float64(s.last-limit)/mean, float64(s.whole)+s.parts)
			s.parts -= over
		}
	}
	return limit
}

// combine summarises the times of all streams. If some were dropped, each stream contributes
// samples in proportion to its share of all, spread over its series.
func combine(rs []*stats.Reservoir) (stats.Summary, []float64) {
	var n int64
	part := 1.0
	for _, r := range rs {
		if r.N() == 0 {
			continue
		}
		values, _ := r.Kept()
		n += r.N()
		part = min(part, float64(len(values))/float64(r.N()))
	}
	var all []float64
	var sum float64
	low, high := math.NaN(), math.NaN()
	for _, r := range rs {
		if r.N() == 0 {
			continue
		}
		values, _ := r.Kept()
		k := len(values)
		if part < 1 {
			k = max(1, min(k, int(math.Round(part*float64(r.N())))))
		}
		for i := range k {
			all = append(all, values[i*len(values)/k])
		}
		sum += r.Sum()
		if !(low <= r.Min()) {
			low = r.Min()
		}
		if !(high >= r.Max()) {
			high = r.Max()
		}
	}
	s := stats.Summarize(all)
	if n > int64(len(all)) {
		s.N, s.Mean, s.Min, s.Max = n, sum/float64(n), low, high
	}
	return s, all
}
