package device

import (
	"maps"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/quality"
	"github.com/opmeter/opmeter/profile"
)

// end sends the final figures and findings when the session is over, for whatever reason.
func (r *Recorder) end(missing []profile.Missing) error {
	if r.p == nil {
		return nil
	}
	for _, k := range r.lossOrder {
		l := &profile.Loss{Cause: profile.Cause{Code: k.code, Text: k.text}}
		if k.layer >= 0 && k.layer < len(r.p.Layers) {
			l.Layer = new(int64(k.layer))
		}
		if n := r.losses[k]; n > 0 {
			l.Records = &n
		}
		if err := r.to.Send(profile.Event{Lost: l}); err != nil {
			return err
		}
	}
	if r.partial > 0 {
		r.Found("device.partial", profile.Warning, "Parts of %d of %d inferences were lost on the way: what came of their layers counts, their totals do not.", r.partial, r.seen)
	}
	for _, k := range slices.Sorted(maps.Keys(r.bad)) {
		r.Found("device.impossible", profile.Warning, "%d figures of %s were negative, not finite or of layers that are absent, and were left out.", r.bad[k], k)
	}
	r.remarks()
	return r.to.Send(profile.Event{Done: &profile.Done{Incomplete: missing}})
}

// remarks reports the warm-up, the measurement quality and what is missing for times.
func (r *Recorder) remarks() {
	n := &profile.Noted{}
	if r.warm > 0 {
		n.Phases = &profile.Phases{Warmup: &profile.Warmup{Count: new(int64(r.warm))}}
		if v, ok := r.first["latency_s"]; ok {
			n.Phases.FirstRunS = &v
		}
	}
	if len(r.times) > 0 {
		st := stats.Judge(r.times)
		if n.Phases != nil {
			n.Phases.Warmup.Steady, n.Phases.Warmup.Reason = st.Steady, st.Reason
		}
		var m *profile.Metric
		n.Trust, m = r.trust(&st)
		if m != nil {
			_ = r.to.Send(profile.Event{Counted: &profile.Figure{Quantity: "latency_s", Metric: m}})
		}
	}
	if n.Phases != nil || n.Trust != nil {
		_ = r.to.Send(profile.Event{Noted: n})
	}
	if r.kept+r.partial == 0 || len(r.times) > 0 || r.bounded {
		return
	}
	switch r.key {
	case "instructions":
		r.Found("device.instructions", profile.Info, "The figures are instructions that an emulator counted. They compare layers and versions of a model; they are neither cycles nor time of a chip.")
	case "cpu_cycles", "ticks":
		r.Found("device.no_clock", profile.Warning, "The device counts %s and does not tell their frequency: name it, such as --clock 64MHz, for times.", unitOf(r.key))
	}
}

// trust judges the quality of the device's times. If the inferences had several speeds, it returns
// the latency at the one to state, too.
func (r *Recorder) trust(st *stats.Stability) (*profile.Trust, *profile.Metric) {
	var d quality.Doubts
	m := profile.FromSummary(profile.Measured, stats.Summarize(r.times), "")
	d.Series(m, len(r.times), st)
	if r.partial > 0 {
		v := profile.Fair
		if r.partial > r.kept {
			v = profile.Unreliable
		}
		d.Add(profile.DoubtLost, v, float64(r.partial)/float64(r.seen), 0)
	}
	stated, modes := figures.RecordedModes(r.times, r.methods["latency_s"], &d)
	if stated != nil {
		m = stated
	}
	tolerance := quality.HalfWidth(m)
	if st.Steady != nil && !*st.Steady {
		tolerance = quality.Tolerance(tolerance, max(math.Abs(st.Change), math.Abs(st.Drift)))
	}
	t := d.Trust(tolerance, d.Shares(r.p, r.kept))
	t.Modes = modes
	t.Interval = profile.OfThisRun
	if t.Verdict != profile.Unreliable {
		t.Quote = "latency_s"
	}
	return t, stated
}
