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

// part is a step of an inference in exportTimes. Durations are read from the record: with active
// waiting they are not the difference of end and start.
type part struct {
	name, start, end, dur string // keys
	kind                  timeline.LaneKind
	group                 string
}

var parts = []part{
	{"enqueue", "startEnqMs", "endEnqMs", "", timeline.Host, "host"},
	{"copy to device", "startH2dMs", "endH2dMs", "h2dMs", timeline.Stream, "GPU"},
	{"copy to device", "startInMs", "endInMs", "inMs", timeline.Stream, "GPU"},
	{"compute", "startComputeMs", "endComputeMs", "computeMs", timeline.Stream, "GPU"},
	{"copy to host", "startD2hMs", "endD2hMs", "d2hMs", timeline.Stream, "GPU"},
	{"copy to host", "startOutMs", "endOutMs", "outMs", timeline.Stream, "GPU"},
}

// times is a document of exportTimes.
type times struct {
	bars    runlog.Lanes
	latency *stats.Reservoir
	dur     map[string]*stats.Reservoir
	n       int32
	bad     int64
	// Start of the first and of the last inference, longest time of one, seconds.
	first, last, longest float64
}

// begin is the start of an inference in seconds.
func begin(v *jsontree.Value) (float64, bool) {
	for _, key := range []string{"startEnqMs", "startH2dMs", "startInMs", "startComputeMs"} {
		if f, ok := v.Get(key).Float(); ok && !math.IsInf(f, 0) {
			return f / 1e3, true
		}
	}
	return 0, false
}

// restarts reports whether an inference is the first of another run: the clock is set back by more
// than inferences of several streams overlap, to the first half of the run.
func (t *times) restarts(v *jsontree.Value) bool {
	start, ok := begin(v)
	return ok && t.n > 1 && t.last-start > t.longest && start-t.first < (t.last-t.first)/2
}

func newTimes() *times {
	t := &times{latency: stats.NewReservoir(profile.KeptSamples), dur: map[string]*stats.Reservoir{}}
	for _, p := range parts {
		t.bars.Lane(p.kind, p.group, p.name, "") // in the order of the steps
	}
	return t
}

func (t *times) note(name string, d float64) {
	r := t.dur[name]
	if r == nil {
		r = stats.NewReservoir(profile.KeptSamples)
		t.dur[name] = r
	}
	r.Add(d)
}

// add adds an inference.
func (t *times) add(v *jsontree.Value) {
	get := func(key string) (float64, bool) {
		f, ok := v.Get(key).Float()
		return f / 1e3, ok && !math.IsInf(f, 0)
	}
	for _, p := range parts {
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
		t.note(p.name, d)
		if d > 0 {
			t.bars.Add(t.bars.Lane(p.kind, p.group, p.name, ""), runlog.Bar{Start: start, Duration: d, Layer: -1, Iteration: t.n, Label: -1, Type: -1, Bytes: -1})
		}
	}
	if start, ok := begin(v); ok {
		if t.n == 0 {
			t.first = start
		}
		t.last = max(t.last, start)
	}
	for _, key := range []string{"latencyMs", "endToEndMs", "computeMs"} {
		if d, ok := get(key); ok {
			t.longest = max(t.longest, d)
		}
	}
	if e, ok := get("endToEndMs"); ok && e >= 0 {
		t.note("end to end", e)
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

// metadata reads the files that the engine explorer writes beside an engine.
func metadata(d *draft.Draft, v *jsontree.Value) {
	device := v.Has("ComputeCapability")
	for key, e := range v.Members() {
		f, _ := e.Float()
		switch {
		case key == "performance_summary":
			summary(d, e)
			continue
		case key == "Name" && device:
			d.P.Target.Description = draft.Text(e.Str())
			continue
		case key == "device_information":
			d.P.Target.Description = draft.Text(e.Get("Selected Device").Str())
			if f, ok := e.Get("Compute Clock Rate").Float(); ok && f > 0 && f < 1e6 {
				d.P.Target.ClockHz = new(f * 1e9)
			}
		case key == "CLOCK_RATE" && device && f > 0 && f < 1e12:
			d.P.Target.ClockHz = new(f * 1e3)
		case key == "model_options":
			if m := e.Get("Model").Str(); m != "" {
				d.P.Model.Path = draft.Text(m)
			}
		}
		if key == "device_information" || key == "model_options" || e != nil && e.Kind == jsontree.Object && !(key == "CLOCK_RATE" && device) {
			pairs(d, e)
		} else {
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

// summary reads trtexec's own summary. The times of single inferences, if present, take
// precedence.
func summary(d *draft.Draft, v *jsontree.Value) {
	for key, e := range v.Members() {
		base := "summary_" + runlog.Key(key)
		seconds := profile.Quantity{Key: base + "_s", Unit: "s", Name: key, Group: "Time"}
		if list := e.List(); list != nil {
			// The list has minimum, maximum, mean, median, then percentiles.
			m := &profile.Metric{Method: "trtexec's summary"}
			to := []**float64{&m.Min, &m.Max, &m.Mean, &m.Median}
			for k, x := range list[:min(len(list), 20)] {
				f, ok := x.Float()
				if ok && k < len(to) {
					*to[k] = new(f / 1e3)
				} else if ok {
					suffix := "percentile"
					if k > len(to) {
						suffix += string(rune('a' + k - len(to) - 1))
					}
					d.Total(profile.Quantity{Key: base + "_" + suffix + "_s", Unit: "s", Name: key + ", percentile", Group: "Time"}, f/1e3)
				}
			}
			if m = draft.Metric(m); key == "Latency" && d.P.Totals.Latency == nil {
				d.P.Totals.Latency = m
			}
			d.TotalMetric(seconds, m)
			continue
		}
		f, ok := e.Float()
		switch {
		case !ok:
			d.Note(key, e.Brief())
		case key == "Throughput":
			d.Total(profile.Quantity{Key: "inferences_per_s", Unit: "/s", Name: "Inferences per second", Group: "Rates", Better: 1}, f)
		default: // times of the whole run are in seconds
			d.Total(seconds, f)
		}
	}
}
