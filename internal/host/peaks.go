package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/machine/peaks"
	"github.com/opmeter/opmeter/profile"
)

// peaks completes the target with what the roofline of this computer needs,
// measured after the timed runs and with their threads.
func (p *pass) peaks(ctx context.Context, host *profile.Host) (profile.Target, bool) {
	t := p.p.Target
	if ctx.Err() != nil {
		return t, false
	}
	p.progress("peaks of this computer", 0)
	pool := p.s.Pool()
	r, earlier, err := peaks.Of(ctx, peaks.Options{Pool: pool, CPUs: p.p.Settings.PinnedCPUs, L1: host.CacheL1DBytes, L2: host.CacheL2Bytes, L3: host.CacheL3Bytes, Leased: true})
	if err != nil {
		return t, false // the context ended: what was measured is there
	}
	if !earlier {
		p.phases.PeaksS = new(r.Took.Seconds())
	}
	limits(&t, r, pool.Threads(), earlier, host)
	return t, true
}

// limits puts the rates into a target. host has the features of the processor.
func limits(t *profile.Target, r peaks.Rates, threads int, earlier bool, host *profile.Host) {
	var said []string
	for _, x := range []struct {
		dtype string
		rate  peaks.Rate
	}{{"float32", r.Float}, {"int8", r.Integer}} {
		if !(x.rate.Best > 0) {
			continue
		}
		// Two operations to a multiply-accumulate, as everywhere: docs/counting.md.
		k := profile.Peak{DType: x.dtype, Kernel: "go", OpsPerSecond: 2 * x.rate.Best, Spread: new(x.rate.Spread())}
		if th, ok := peaks.TheoryOf(x.dtype, host.Features); ok {
			hz := r.Clock
			if hz == 0 && host.MaxHz != nil {
				hz = *host.MaxHz
			}
			if hz > 0 {
				k.ProcessorOpsPerSecond, k.ProcessorSet = new(th.OpsPerCycle*hz*float64(threads)), th.Set
			}
		}
		t.Peaks = append(t.Peaks, k)
		if t.PeakOpsPerSecond == nil || k.OpsPerSecond > *t.PeakOpsPerSecond {
			t.PeakOpsPerSecond = new(k.OpsPerSecond)
		}
	}
	if len(t.Peaks) > 0 {
		said = append(said, "operations from the quickest of many short rounds of this engine's matrix kernel of each type on data in the caches, a multiply-accumulate being two")
	}
	for _, l := range r.Levels {
		if !(l.Best > 0) {
			continue
		}
		v := profile.Level{Name: l.Name, BytesPerSecond: l.Best, Spread: new(l.Spread())}
		if l.Bytes > 0 {
			v.Bytes = new(l.Bytes)
		}
		t.Levels = append(t.Levels, v)
	}
	if n := len(t.Levels); n > 0 && t.Levels[n-1].Bytes == nil {
		t.PeakBytesPerSecond = new(t.Levels[n-1].BytesPerSecond)
		s := fmt.Sprintf("bytes from copying half of a buffer onto the other, read and written, in half of each cache and in %d MiB", r.Buffer>>20)
		if r.Cache > 0 {
			s += fmt.Sprintf(" (last-level cache %d MiB)", r.Cache>>20)
		}
		said = append(said, s)
	}
	if len(said) == 0 {
		return
	}
	when := "measured here after the runs"
	if earlier {
		when = "measured here earlier in the same process"
	}
	if r.Passes > 1 {
		when += fmt.Sprintf(" (in %d passes, since the machine was busy)", r.Passes)
	}
	n := "1 thread"
	if threads != 1 {
		n = fmt.Sprintf("%d threads", threads)
	}
	t.PeakMethod = fmt.Sprintf("%s, %s: %s", when, n, strings.Join(said, "; "))
}
