package sample

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Random is a valid profile with hostile names and whatever else r decides.
func Random(r *rand.Rand) *profile.Profile {
	m := maker{r}
	p := &profile.Profile{
		Schema: profile.SchemaV1,
		Model:  profile.Model{Name: m.name(), Path: m.maybeName(), Format: m.maybeName()},
		Target: profile.Target{ID: m.name(), Kind: profile.TargetImport, Description: m.maybeName()},
	}
	if r.IntN(2) == 0 {
		p.Host = &profile.Host{OS: "linux", Arch: "amd64", CPUModel: m.maybeName()}
		p.Settings.Threads = new(int64(1 + r.IntN(8)))
	}
	for range r.IntN(12) {
		p.Layers = append(p.Layers, m.layer(p.Layers))
	}
	if p.Layers == nil {
		p.Layers = []profile.Layer{}
	}
	p.Totals.Latency = m.metric()
	p.Quantities = Quantities
	for range r.IntN(3) {
		x := profile.Missing{Cause: causes[r.IntN(len(causes))], Text: m.maybeName(), Got: m.maybe(100), Want: m.maybe(100)}
		if n := len(p.Layers); n > 0 {
			x.Layers = []int64{r.Int64N(int64(n))}
		}
		p.Incomplete = append(p.Incomplete, x)
	}
	for range r.IntN(3) {
		p.Findings = append(p.Findings, profile.Finding{ID: "x", Severity: profile.Info, Text: m.name()})
	}
	if r.IntN(3) > 0 {
		p.Timeline = m.timeline(len(p.Layers))
	}
	return p
}

type maker struct{ *rand.Rand }

func (m maker) name() string {
	if m.IntN(3) == 0 {
		return fmt.Sprintf("name_%d", m.IntN(5))
	}
	return Hostile[m.IntN(len(Hostile))]
}

func (m maker) maybeName() string {
	if m.IntN(3) == 0 {
		return ""
	}
	return m.name()
}

func (m maker) maybe(n int64) *int64 {
	if m.IntN(2) == 0 {
		return nil
	}
	return new(m.Int64N(n))
}

func (m maker) metric() *profile.Metric {
	switch m.IntN(4) {
	case 0:
		return nil
	case 1:
		return &profile.Metric{Kind: profile.Estimated, Mean: new(m.Float64()), Band: &[2]float64{0, 2}}
	}
	return &profile.Metric{Kind: profile.Measured, N: m.maybe(1000), Median: new(m.ExpFloat64() * 1e-5)}
}

func (m maker) tensors() []profile.Tensor {
	var out []profile.Tensor
	for range m.IntN(4) {
		t := profile.Tensor{Name: m.maybeName(), DType: m.maybeName(), Absent: m.IntN(5) == 0, Constant: m.IntN(3) == 0}
		if m.IntN(4) > 0 {
			t.Shape = []int64{}
			for range m.IntN(4) {
				t.Shape = append(t.Shape, m.Int64N(100)-1)
			}
		}
		out = append(out, t)
	}
	return out
}

func (m maker) layer(before []profile.Layer) profile.Layer {
	l := profile.Layer{
		Index: int64(len(before)), Name: m.maybeName(), Op: m.name(), Scope: m.maybeName(), Options: m.options(), Kernel: m.maybeName(),
		Inputs: m.tensors(), Outputs: m.tensors(), Ops: m.maybe(1e12), MACs: m.maybe(1e12), Params: m.maybe(1e9), BytesRead: m.maybe(1e9), BytesWritten: m.maybe(1e9),
		Latency: m.metric(), Energy: m.metric(), CPUCycles: m.metric(), AcceleratorCycles: m.metric(), State: profile.Ran,
	}
	if len(before) > 0 && m.IntN(3) == 0 {
		l.Parent, l.Graph = new(m.Int64N(int64(len(before)))), m.name()
	}
	if m.IntN(4) > 0 {
		l.Provenance = &profile.Provenance{Confidence: profile.ByOrder}
		for range m.IntN(3) {
			l.Provenance.SourceNodes = append(l.Provenance.SourceNodes, profile.SourceNode{Graph: m.Int64N(3), Node: m.Int64N(20), Name: m.maybeName()})
		}
	}
	if m.IntN(3) == 0 {
		l.Calls = new(float64(1+m.IntN(4)) / 2)
	}
	m.state(&l)
	if m.IntN(3) == 0 {
		l.Placement = &profile.Placement{On: profile.CPU, Cause: causes[m.IntN(len(causes))], Text: m.maybeName()}
		if m.IntN(2) == 0 {
			l.Placement.On = m.name()
		}
	}
	for _, q := range Quantities {
		if m.IntN(4) == 0 && q.Key != "temperature_c" {
			l.Figures = map[string]*profile.Metric{q.Key: profile.Value(profile.Imported, float64(m.IntN(1000)), m.maybeName())}
		}
	}
	for range m.IntN(60) * m.IntN(2) {
		l.Samples = append(l.Samples, float64(m.IntN(1e6))/1e9)
	}
	return l
}

var states = []profile.State{
	profile.Folded, profile.Fused, profile.Unsupported, profile.Skipped, profile.Failed, profile.NotReached, profile.Lost, profile.NoEstimate,
}

var causes = []profile.CauseCode{
	profile.ByOperator, profile.ByType, profile.ByLimit, profile.ByUse, profile.ByInput, profile.ByShape, profile.ByData, profile.ByMemory, profile.ByBodies,
	profile.ByError, profile.ByCancel, profile.ByDeadline, profile.ByEnd, profile.ByRecord, profile.ByNoFigures, profile.ByLoop, profile.ByWork,
}

// state lets some layers not run. Their figures stay, which reports have to get
// over.
func (m maker) state(l *profile.Layer) {
	if m.IntN(3) > 0 {
		return
	}
	l.State = states[m.IntN(len(states))]
	switch {
	case l.State == profile.Fused && l.Index > 0:
		l.FusedInto = new(m.Int64N(l.Index))
	case l.State == profile.Fused:
		l.State = profile.Folded
	case l.State == profile.NotReached:
		l.Calls = new(0.0)
	}
	if l.State.Blank() && m.IntN(2) == 0 {
		l.Cause = &profile.Cause{Code: causes[m.IntN(len(causes))], Text: m.maybeName()}
	}
}

func (m maker) options() []profile.Option {
	var out []profile.Option
	for range m.IntN(3) {
		out = append(out, profile.Option{Key: m.name(), Value: m.maybeName()})
	}
	return out
}

// column is an optional column of indices below limit, or -1.
func (m maker) column(n, limit int) []int32 {
	if m.IntN(2) == 0 {
		return nil
	}
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(m.IntN(limit+1) - 1)
	}
	return out
}

func (m maker) timeline(layers int) *timeline.Timeline {
	t := &timeline.Timeline{Origin: m.maybeName(), Method: m.maybeName(), Iterations: m.maybe(100), Dropped: m.maybe(10)}
	for range m.IntN(4) {
		t.Names = append(t.Names, m.maybeName())
	}
	for range m.IntN(3) {
		t.Subnets = append(t.Subnets, m.name())
	}
	if m.IntN(2) == 0 {
		t.Clocks = []timeline.Clock{{Name: "known", OffsetS: new(m.Float64()), Rate: new(1 + m.Float64()/1000)}, {Name: "apart", Method: m.maybeName()}}
	}
	kinds := []timeline.LaneKind{timeline.Iteration, timeline.Layer, timeline.Engine, timeline.Thread, timeline.Host}
	for range m.IntN(5) {
		l := timeline.Lane{Name: m.name(), Kind: kinds[m.IntN(len(kinds))], Group: m.maybeName(), Starts: []float64{}, Durations: []float64{}}
		m.bars(&l, 0, 1_000_000+m.Int64N(1e10), 3)
		n := len(l.Starts)
		l.Layers, l.Labels, l.Types = m.column(n, layers), m.column(n, len(t.Names)), m.column(n, len(t.Names))
		l.Iterations, l.Subnets, l.Directions = m.column(n, 3), m.column(n, len(t.Subnets)), m.column(n, len(t.Names))
		if m.IntN(2) == 0 {
			for range n {
				l.Stalls = append(l.Stalls, float64(m.IntN(1000)*m.IntN(2))/1e9)
				l.Bytes = append(l.Bytes, m.Int64N(1e6)-1)
				l.Utilisation = append(l.Utilisation, m.Float64())
			}
			l.Figures = map[string][]float64{"bank_conflicts": make([]float64, n)}
		}
		if len(t.Clocks) > 0 && m.IntN(3) == 0 {
			l.Clock = t.Clocks[m.IntN(len(t.Clocks))].Name
		}
		t.Lanes = append(t.Lanes, l)
	}
	for range m.IntN(3) {
		c := timeline.Counter{Name: m.name(), Unit: m.maybeName(), Group: m.maybeName(), Times: []float64{}, Values: []float64{}}
		for range m.IntN(10) {
			c.Times = append(c.Times, m.Float64())
			c.Values = append(c.Values, m.NormFloat64()*1e9)
		}
		slices.Sort(c.Times)
		t.Counters = append(t.Counters, c)
	}
	var full []int
	for i := range t.Lanes {
		if len(t.Lanes[i].Starts) > 0 {
			full = append(full, i)
		}
	}
	for range m.IntN(6) * min(1, len(full)) {
		a, b := full[m.IntN(len(full))], full[m.IntN(len(full))]
		t.Links = append(t.Links, timeline.Link{
			FromLane: int32(a), FromBar: int32(m.IntN(len(t.Lanes[a].Starts))), ToLane: int32(b), ToBar: int32(m.IntN(len(t.Lanes[b].Starts))),
		})
	}
	return t
}

// bars fills a stretch of time, in nanoseconds, with bars that nest.
func (m maker) bars(l *timeline.Lane, from, to int64, depth int) {
	at := from
	for range m.IntN(5) {
		if at >= to {
			return
		}
		start := at + m.Int64N(to-at)/2*m.Int64N(2)
		end := start + m.Int64N(to-start+1)
		l.Starts = append(l.Starts, float64(start)/1e9)
		l.Durations = append(l.Durations, float64(end-start)/1e9)
		if depth > 0 {
			m.bars(l, start, end, depth-1)
		}
		at = end
	}
}
