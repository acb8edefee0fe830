package tensorrt

import (
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// part is a step of an inference in exportTimes. Durations are the record's own: with spin
// waiting its ends less its starts are something else.
type part struct {
	name, start, end, dur string // keys
	kind                  timeline.LaneKind
	lane                  int
}

// times is a document of exportTimes.
type times struct {
	bars    runlog.Lanes
	parts   []part
	latency *stats.Reservoir
	dur     map[string]*stats.Reservoir
	n       int32
	bad     int64
}

func newTimes() *times {
	t := &times{latency: stats.NewReservoir(profile.KeptSamples), dur: map[string]*stats.Reservoir{}}
	t.parts = []part{
		{"enqueue", "startEnqMs", "endEnqMs", "", timeline.Host, 0},
		{"copy to device", "startH2dMs", "endH2dMs", "h2dMs", timeline.Stream, 0},
		{"copy to device", "startInMs", "endInMs", "inMs", timeline.Stream, 0},
		{"compute", "startComputeMs", "endComputeMs", "computeMs", timeline.Stream, 0},
		{"copy to host", "startD2hMs", "endD2hMs", "d2hMs", timeline.Stream, 0},
		{"copy to host", "startOutMs", "endOutMs", "outMs", timeline.Stream, 0},
	}
	for i := range t.parts {
		p := &t.parts[i]
		group := "GPU"
		if p.kind == timeline.Host {
			group = "host"
		}
		p.lane = t.bars.Lane(p.kind, group, p.name, "")
	}
	return t
}

// add takes an inference.
func (t *times) add(v *jsontree.Value) {
	get := func(key string) (float64, bool) {
		f, ok := v.Get(key).Float()
		return f / 1e3, ok && !math.IsInf(f, 0)
	}
	note := func(name string, d float64) {
		r := t.dur[name]
		if r == nil {
			r = stats.NewReservoir(profile.KeptSamples)
			t.dur[name] = r
		}
		r.Add(d)
	}
	for _, p := range t.parts {
		start, ok := get(p.start)
		end, also := get(p.end)
		if !ok {
			continue
		}
		d, has := get(p.dur)
		if !has && also {
			d, has = end-start, true
		}
		if !has || d < 0 {
			t.bad++
			continue
		}
		note(p.name, d)
		if d > 0 {
			t.bars.Add(p.lane, runlog.Bar{Start: start, Duration: d, Layer: -1, Iteration: t.n, Label: -1, Type: -1, Bytes: -1})
		}
	}
	if e, ok := get("endToEndMs"); ok && e >= 0 {
		note("end to end", e)
	}
	if l, ok := get("latencyMs"); ok && l >= 0 {
		t.latency.Add(l)
	} else if c, ok := get("computeMs"); ok && c >= 0 {
		t.latency.Add(c)
	}
	if t.n < math.MaxInt32 {
		t.n++
	}
}

// into puts the times into a run.
func (t *times) into(d *draft.Draft) {
	if t.latency.N() > 0 {
		d.P.Totals.Latency = draft.Metric(profile.FromSummary(profile.Imported, t.latency.Summary(), "from the copy of inputs to that of outputs, without profiling of layers"))
		d.P.Totals.LatencySamples, _ = t.latency.Kept()
	}
	for name, r := range t.dur {
		d.TotalMetric(profile.Quantity{Key: runlog.Key(name) + "_s", Unit: "s", Name: strings.ToUpper(name[:1]) + name[1:], Group: "Time", Better: -1}, draft.Metric(profile.FromSummary(profile.Imported, r.Summary(), "")))
	}
	d.Dropped.Add("times below zero", t.bad)
	tl := t.bars.Timeline("trtexec's own clock", "each inference as trtexec recorded it; enqueueing runs ahead of the device")
	if tl != nil {
		tl.Iterations = new(int64(t.n))
	}
	d.P.Timeline = tl
}

// metadata keeps what the engine explorer puts beside an engine.
func metadata(d *draft.Draft, v *jsontree.Value) {
	for key, e := range v.Members() {
		switch {
		case key == "performance_summary":
			summary(d, e)
		case key == "device_information":
			d.P.Target.Description = draft.Text(e.Get("Selected Device").Str())
			if f, ok := e.Get("Compute Clock Rate").Float(); ok && f > 0 && f < 1e6 {
				d.P.Target.ClockHz = new(f * 1e9)
			}
			pairs(d, e)
		case key == "Name" && v.Has("ComputeCapability"):
			d.P.Target.Description = draft.Text(e.Str())
		case key == "CLOCK_RATE" && v.Has("ComputeCapability"):
			if f, ok := e.Float(); ok && f > 0 && f < 1e12 {
				d.P.Target.ClockHz = new(f * 1e3)
			}
			d.Note(key, e.Brief())
		case key == "model_options":
			if m := e.Get("Model").Str(); m != "" {
				d.P.Model.Path = draft.Text(m)
			}
			pairs(d, e)
		case e != nil && e.Kind == jsontree.Object:
			pairs(d, e)
		default:
			d.Note(key, e.Brief())
		}
	}
}

func pairs(d *draft.Draft, v *jsontree.Value) {
	for key, item := range v.Members() {
		if n, ok := textscan.Whole(item.Str()); ok && n >= 0 {
			switch key {
			case "Batch":
				d.P.Settings.Batch = &n
			case "Iterations":
				d.Total(profile.Quantity{Key: "least_iterations", Name: "Iterations asked for", Whole: true}, float64(n))
			}
		}
		d.Note(key, item.Brief())
	}
}

// order is what the figures of a list in the summary are.
var order = []string{"min", "max", "mean", "median", "percentile"}

// summary reads trtexec's own summary. Times of inferences, where they are there, say more.
func summary(d *draft.Draft, v *jsontree.Value) {
	for key, e := range v.Members() {
		if list := e.List(); list != nil {
			base := "summary_" + runlog.Key(key)
			m := &profile.Metric{Method: "trtexec's summary"}
			to := map[string]**float64{"min": &m.Min, "max": &m.Max, "mean": &m.Mean, "median": &m.Median}
			for k, x := range list {
				f, ok := x.Float()
				if !ok || k >= 20 {
					continue
				}
				name := order[min(k, len(order)-1)]
				if p := to[name]; p != nil {
					*p = new(f / 1e3)
				} else {
					suffix := name
					if k >= len(order) {
						suffix += string(rune('a' + k - len(order)))
					}
					d.Total(profile.Quantity{Key: base + "_" + suffix + "_s", Unit: "s", Name: key + ", " + name, Group: "Time"}, f/1e3)
				}
			}
			if m = draft.Metric(m); key == "Latency" && d.P.Totals.Latency == nil {
				d.P.Totals.Latency = m
			}
			d.TotalMetric(profile.Quantity{Key: base + "_s", Unit: "s", Name: key, Group: "Time"}, m)
			continue
		}
		f, ok := e.Float()
		switch {
		case !ok:
			d.Note(key, e.Brief())
		case key == "Throughput":
			d.Total(profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}, f)
		default: // whole times are in seconds
			d.Total(profile.Quantity{Key: "summary_" + runlog.Key(key) + "_s", Unit: "s", Name: key, Group: "Time"}, f)
		}
	}
}
