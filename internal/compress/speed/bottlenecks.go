package speed

import (
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/machine/peaks"
	"github.com/opmeter/opmeter/internal/measure/roofline"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// bottlenecks returns the bottleneck of each layer, given the times of their steps in seconds.
// Layers with an unknown bottleneck have no entry.
func (r *run) bottlenecks(seconds map[int]float64) map[int]string {
	out := map[int]string{}
	p, err := plan.Make(r.m, r.o.Inputs, plan.Options{Registry: r.o.Engine.Registry, MaxBytes: r.o.Engine.MaxBytes})
	if err != nil {
		return out
	}
	d, err := describe.Model(p, p.Slots(), nil)
	if err != nil {
		return out
	}
	watch := machine.NewWatch()
	watch.Begin()
	host := watch.End()
	pool := r.dense.s.Pool()
	rates, earlier, err := peaks.Of(r.ctx, peaks.Options{Pool: pool, L1: host.CacheL1DBytes, L2: host.CacheL2Bytes, L3: host.CacheL3Bytes, Types: roofline.Types(d.Layers), Leased: true})
	if err != nil {
		return out
	}
	var t profile.Target
	roofline.Put(&t, &rates, &roofline.Way{Threads: pool.Threads(), Earlier: earlier}, host)
	all := allLayers(d, r.m)
	for i := range r.parts {
		p := &r.parts[i]
		// parts without weights have no step
		if p.step < 0 || p.step >= len(all) || all[p.step] == nil {
			continue
		}
		for _, l := range p.layers {
			x := *all[p.step]
			x.Latency = profile.Value(profile.Measured, seconds[l], "")
			if place := t.RoofOf(&x); place != nil {
				out[l] = bottleneck(place)
			}
		}
	}
	return out
}
