package loop

import "github.com/opmeter/opmeter/internal/base/stats"

// Overhead estimates the profiling overhead per run: for every round of plain, instrumented,
// instrumented, plain groups the difference of the means, and over these the median with its
// interval, in seconds. The summary has no samples if there is no complete round.
func (r *Result) Overhead() stats.Summary {
	var diffs []float64
	for i := 0; i+4 <= len(r.Groups); i += 4 {
		g := r.Groups[i : i+4]
		if g[0].Instrumented || !g[1].Instrumented || !g[2].Instrumented || g[3].Instrumented {
			return stats.Summarize(nil)
		}
		plain, ok1 := groupMean(r.Plain, g[0], g[3])
		profiled, ok2 := groupMean(r.Profiled, g[1], g[2])
		if ok1 && ok2 {
			diffs = append(diffs, profiled-plain)
		}
	}
	return stats.Summarize(diffs)
}

// groupMean returns the mean of the medians of two groups: the median within a group is robust
// against an interruption, the mean of both removes a linear drift.
func groupMean(s []float64, a, b Group) (float64, bool) {
	if a.To <= a.From || b.To <= b.From {
		return 0, false
	}
	return (stats.Median(s[a.From:a.To]) + stats.Median(s[b.From:b.To])) / 2, true
}

// Latency summarises the plain pass, in seconds. If Batch is above 1, the samples are means of as
// many runs.
func (r *Result) Latency() stats.Summary { return stats.Summarize(r.Plain) }
