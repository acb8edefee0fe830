package loadfigures

import (
	"context"
	"fmt"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loadgen"
	"github.com/opmeter/opmeter/profile"
)

// Round is the result of running streams once, for a sweep.
type Round struct {
	// N is the number of inferences that began in the window, Samples the times of some of them
	// in seconds; Mean, Min and Max are over all.
	N       int64     `json:"n"`
	Samples []float64 `json:"samples"`
	Mean    float64   `json:"mean"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	// PerSecond is the number of inferences per second, 0 if unknown.
	PerSecond float64 `json:"per_second,omitzero"`
	// RAMBytes is the memory of all streams without the model, by the engine's plan; nil if the
	// engine has none.
	RAMBytes *int64 `json:"ram_bytes,omitzero"`
}

// Round runs the streams of a fleet once. The result is nil if nothing was measured, also with an
// error.
func (o *Options) Round(ctx context.Context, f *Fleet) (*Round, error) {
	r, err := loadgen.Run(ctx, o.fleetOptions(f), f.Runs)
	return roundOf(r), err
}

// roundOf converts a result, nil if nothing was measured.
func roundOf(r *loadgen.Result) *Round {
	if r.Latency.N == 0 {
		return nil
	}
	out := &Round{N: r.Latency.N, Samples: r.Samples, Mean: r.Latency.Mean, Min: r.Latency.Min, Max: r.Latency.Max}
	if r.PerSecond > 0 {
		out.PerSecond = r.PerSecond
	}
	return out
}

// Rounds computes the figures of the rounds of one point: the time of an inference over all of
// them, and items per second with rounds as samples. Figures without data are nil.
func Rounds(rs []*Round, batch int) (latency, items *profile.Metric, ram *int64) {
	var samples, rates []float64
	var n int64
	var sum float64
	var low, high float64
	for _, r := range rs {
		samples = append(samples, r.Samples...)
		if n == 0 || r.Min < low {
			low = r.Min
		}
		if n == 0 || r.Max > high {
			high = r.Max
		}
		n += r.N
		sum += r.Mean * float64(r.N)
		if r.PerSecond > 0 {
			rates = append(rates, r.PerSecond*float64(batch))
		}
		ram = r.RAMBytes
	}
	s := stats.Summarize(samples)
	if n > s.N {
		s.N, s.Mean, s.Min, s.Max = n, sum/float64(n), low, high
	}
	latency = profile.FromSummary(profile.Measured, s, fmt.Sprintf("inferences under load of %d rounds", len(rs)))
	if latency != nil {
		latency.CI95 = nil // streams and rounds are not a time series
	}
	items = profile.Summarize(profile.Measured, rates, "a sample each round")
	return latency, items, ram
}
