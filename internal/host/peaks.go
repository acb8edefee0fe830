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
	r, earlier, err := peaks.Of(ctx, peaks.Options{Pool: pool, CPUs: p.p.Settings.PinnedCPUs, CacheBytes: host.CacheL3Bytes, Leased: true})
	if err != nil {
		return t, false // the context ended: what was measured is there
	}
	if !earlier {
		p.phases.PeaksS = new(r.Took.Seconds())
	}
	limits(&t, r, pool.Threads(), earlier)
	return t, true
}

// limits puts the rates into a target.
func limits(t *profile.Target, r peaks.Rates, threads int, earlier bool) {
	var said []string
	if best := max(r.Float, r.Integer); best > 0 {
		// Two operations to a multiply-accumulate, as everywhere: docs/counting.md.
		t.PeakOpsPerSecond = new(2 * best)
		name, other, rate := "float32", "8-bit", r.Integer
		if r.Integer > r.Float {
			name, other, rate = "8-bit", "float32", r.Float
		}
		said = append(said, fmt.Sprintf("operations from the quickest of many short rounds of this engine's %s matrix kernel (%s: %.3g GMAC/s) on data in the caches, a multiply-accumulate being two",
			name, other, rate/1e9))
	}
	if r.Memory > 0 {
		t.PeakBytesPerSecond = new(r.Memory)
		s := fmt.Sprintf("bytes from copying half of a buffer of %d MiB onto the other, read and written", r.Buffer>>20)
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
	n := "1 thread"
	if threads != 1 {
		n = fmt.Sprintf("%d threads", threads)
	}
	t.PeakMethod = fmt.Sprintf("%s, %s: %s", when, n, strings.Join(said, "; "))
}
