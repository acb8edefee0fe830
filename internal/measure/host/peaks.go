package host

import (
	"context"

	"github.com/opmeter/opmeter/internal/measure/machine/peaks"
	"github.com/opmeter/opmeter/internal/measure/roofline"
	"github.com/opmeter/opmeter/profile"
)

// peaks adds to the target what the roofline of this computer needs, measured after the timed
// runs and with their threads.
func (p *pass) peaks(ctx context.Context, host *profile.Host) (profile.Target, bool) {
	t := p.p.Target
	if ctx.Err() != nil {
		return t, false
	}
	p.progress("peaks of this computer", 0)
	pool := p.s.Pool()
	r, earlier, err := peaks.Of(ctx, peaks.Options{Pool: pool, CPUs: p.p.Settings.PinnedCPUs, L1: host.CacheL1DBytes, L2: host.CacheL2Bytes, L3: host.CacheL3Bytes, Leased: true})
	if err != nil {
		return t, false // the context ended: the results so far are kept
	}
	if !earlier {
		p.phases.PeaksS = new(r.Took.Seconds())
	}
	roofline.Put(&t, &r, &roofline.Way{
		Kernel: "go", Threads: pool.Threads(), Earlier: earlier,
		Operations: "operations from the fastest of many short rounds of this engine's matrix kernel for each type on data in the caches",
		Bytes:      "bytes from copying half of a buffer to the other, read and written, in half of each cache and",
	}, host)
	return t, true
}
