package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/machine/peaks"
	"github.com/opmeter/opmeter/profile"
)

// peaks measures what the roofline of this computer needs, after the timed runs
// and with their threads.
func (b *builder) peaks(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	b.progress("peaks", 0)
	o := peaks.Options{Pool: b.s.Pool(), CPUs: b.p.Settings.PinnedCPUs, Leased: true}
	if b.p.Host != nil {
		o.CacheBytes = b.p.Host.CacheL3Bytes
	}
	r, earlier, err := peaks.Of(ctx, o)
	if err != nil {
		return // the context ended: the profile says so elsewhere
	}
	if !earlier {
		b.phases().PeaksS = new(r.Took.Seconds())
	}
	describePeaks(&b.p.Target, r, o.Pool.Threads(), earlier)
}

// describePeaks puts the rates into a target.
func describePeaks(t *profile.Target, r peaks.Rates, threads int, earlier bool) {
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
