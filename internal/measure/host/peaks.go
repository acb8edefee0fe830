package host

import (
	"context"

	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/machine/peaks"
	"github.com/opmeter/opmeter/internal/measure/roofline"
	"github.com/opmeter/opmeter/profile"
)

// beginPeaks prepares the measurement of the peaks that the roofline needs: of this computer, with
// the threads of the inferences, for the types that the model computes in.
func (p *pass) beginPeaks() {
	watch := machine.NewWatch()
	watch.Begin()
	h := watch.End()
	usage := machine.ThreadUsage()
	if p.o.Threads > 1 {
		usage = machine.ProcessUsage()
	}
	p.probe = peaks.Begin(peaks.Options{
		Pool: p.s.Pool(), CPUs: p.p.Settings.PinnedCPUs, L1: h.CacheL1DBytes, L2: h.CacheL2Bytes, L3: h.CacheL3Bytes,
		Types: roofline.Types(p.p.Layers), Usage: usage, Leased: true,
	})
}

// peaks adds the peaks to the target after the timed runs.
func (p *pass) peaks(ctx context.Context, host *profile.Host) (profile.Target, bool) {
	t := p.p.Target
	if ctx.Err() != nil {
		return t, false
	}
	p.progress("peaks of this computer", 0)
	r, earlier, err := p.probe.End(ctx)
	if err != nil {
		return t, false // the context ended: the results so far are kept
	}
	if !earlier {
		p.phases.PeaksS = new(r.Took.Seconds())
	}
	roofline.Put(&t, &r, &roofline.Way{
		Kernel: "go", Threads: p.s.Pool().Threads(), Earlier: earlier,
		Operations: "operations from the fastest of many short rounds of this engine's matrix kernel for each type on data in the caches",
		Bytes:      "bytes from copying half of a buffer to the other, read and written, in half of each cache and",
	}, host)
	return t, true
}
