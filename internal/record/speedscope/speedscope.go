// Package speedscope reads evented and sampled profiles of www.speedscope.app. Profiles that
// opmeter wrote keep their layers.
//
// Source of the format: the file-format schema of the speedscope project.
package speedscope

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Format reads profiles of speedscope.
func Format() *record.Format {
	return &record.Format{
		Name:  "speedscope",
		Title: "speedscope profile",
		Files: ".speedscope.json files of py-spy, rbspy, dotnet-trace and others",
		Gives: []string{"latency_s", "with_callees_s", "samples", "timeline"},
		Match: func(f *record.File) record.Sure {
			h := f.JSONHead("{")
			return max(record.Certain.If(h.Has(`www.speedscope.app/file-format-schema.json`)),
				record.Likely.If(h.Has(`"profiles"`, `"startValue"`)))
		},
		Read: record.RunPerFile(read),
	}
}

// maxProfile limits the bytes of one profile of a file.
const maxProfile = 256 << 20

// reader reads a file twice, since names may follow the profiles that use them.
type reader struct {
	set      stacks.Set
	trace    track.Trace
	frames   []int32 // functions
	name     string
	exporter string
	profiles int
	cut      bool
	more     bool // another document follows
}

func read(ctx context.Context, f *record.File) (*runlog.Run, error) {
	b := &reader{}
	found := false
	pass := func(take func(key string, v []byte)) error {
		o := jsonscan.Options{Stream: jsonscan.Keys("profiles"), MaxValue: maxProfile, Single: true}
		res, err := f.ScanJSON(ctx, o, take)
		b.cut = res.Cut
		if res.More && !b.more {
			b.more = true
			b.set.Dropped.Add(record.MoreDocuments, 1)
		}
		b.set.Dropped.Add("values that are not valid JSON, or too large", res.Bad+res.Large)
		return err
	}
	err := pass(func(key string, v []byte) {
		switch key {
		case "shared":
			var frames []byte
			traceevent.Fields(v, "frames", &frames)
			if frames != nil {
				b.shared(frames)
			}
		case "name":
			b.name = track.Clip(traceevent.Text(v))
		case "exporter":
			b.exporter = track.Clip(traceevent.Text(v))
		case "profiles":
			found = true
		}
	})
	if err != nil {
		return nil, err
	}
	if !found || b.frames == nil {
		return nil, errors.New("no profiles with shared frames")
	}
	b.set.Dropped = runlog.Dropped{} // the second pass counts again
	own := track.IsOwn(b.exporter)
	if err := pass(func(key string, v []byte) {
		if key == "profiles" {
			b.profile(v, own)
		}
	}); err != nil {
		return nil, err
	}
	run := track.NewRun(f, "speedscope")
	run.Profile.Model.Name = cmp.Or(b.name, run.Profile.Model.Name)
	if b.cut {
		run.Lose("the file is cut")
	}
	if own {
		b.ownProfile(run)
		return run, nil
	}
	if b.exporter != "" {
		run.Profile.Target.Engine = b.exporter
	}
	stacks.Finish(run, &b.set, &b.trace, "as the profiles of the file lay it out")
	return run, nil
}

// shared reads the functions.
func (b *reader) shared(v []byte) {
	b.frames = []int32{}
	traceevent.Elements(v, func(v []byte) {
		var f stacks.Function
		traceevent.Fields(v, "name", &f.Name, "file", &f.File, "line", &f.Line)
		f.Name = cmp.Or(f.Name, "(anonymous)")
		if len(b.frames) < stacks.MaxNodes {
			b.frames = append(b.frames, b.set.Function(f))
		}
	})
}

// profileData is a profile of the file.
type profileData struct {
	kind, name, unit         string
	start, end               float64
	first                    float64 // start, minus infinity if unknown
	events, samples, weights []byte
}

func (b *reader) profile(v []byte, own bool) {
	p := profileData{first: math.NaN()}
	traceevent.Fields(v, "type", &p.kind, "name", &p.name, "unit", &p.unit, "startValue", &p.first, "endValue", &p.end,
		"events", &p.events, "samples", &p.samples, "weights", &p.weights)
	if p.start = p.first; math.IsNaN(p.first) {
		p.start, p.first = 0, math.Inf(-1)
	}
	b.profiles++
	p.name = cmp.Or(p.name, fmt.Sprintf("profile %d", b.profiles))
	q, scale, ns := unitOf(p.unit)
	if own && p.kind == "evented" {
		// The samples of the file contain the same times.
		q = profile.Quantity{}
	}
	column, count := -1, -1
	if q.Key != "" {
		column, _ = b.set.Count(q, scale)
	}
	switch p.kind {
	case "evented":
		b.evented(&p, column, ns)
	case "sampled":
		if !own {
			count, _ = b.set.Count(stacks.Samples, 1)
		}
		b.sampled(&p, column, count, ns, own)
	default:
		b.set.Dropped.Add("profiles of a kind that is not known", 1)
	}
}

// unitOf returns the quantity of a unit, the factor to apply to its values, and the nanoseconds
// of one unit, 0 if it is not a time.
func unitOf(unit string) (q profile.Quantity, scale, ns float64) {
	switch unit {
	case "nanoseconds":
		return stacks.Time, 1e-9, 1
	case "microseconds":
		return stacks.Time, 1e-6, 1e3
	case "milliseconds":
		return stacks.Time, 1e-3, 1e6
	case "seconds":
		return stacks.Time, 1, 1e9
	case "bytes":
		return profile.Quantity{Key: "recorded_bytes", Name: "Bytes", Unit: "B", Head: "bytes", Group: "Record", Adds: true, Doc: "Bytes that the record gives to the function itself."}, 1, 0
	}
	return profile.Quantity{Key: "weight", Name: "Weight", Head: "weight", Group: "Record", Adds: true, Doc: "What the record gives to the function itself, in a unit that it does not tell."}, 1, 0
}

// open is a function that has begun.
type open struct {
	frame int32
	since float64
	place int32
}

// evented reads a profile of begin and end events. An end closes the innermost function; if it
// names another function, the events are out of order and it is dropped. A function without an
// end lasts until the end of the profile.
func (b *reader) evented(p *profileData, column int, ns float64) {
	n := int32(-1)
	if ns > 0 {
		n = b.trace.Track(timeline.Thread, "", p.name)
	}
	var way []open
	last := p.first
	spend := func(v float64) {
		if len(way) > 0 && column >= 0 && v > last {
			b.set.Add(column, way[len(way)-1].place, v-last)
		}
		last = max(last, v)
	}
	close := func(v float64) {
		o := way[len(way)-1]
		way = way[:len(way)-1]
		from, ok := track.Nanos(o.since, ns)
		to, ok2 := track.Nanos(v, ns)
		if n >= 0 && ok && ok2 && o.frame >= 0 {
			b.trace.Add(n, track.Slice{Start: from, Dur: to - from, Bytes: -1, Layer: o.frame, Iteration: -1, Label: -1, Type: -1})
		}
	}
	traceevent.Elements(p.events, func(v []byte) {
		var kind []byte
		frame, when := int64(-1), math.NaN()
		traceevent.Fields(v, "type", &kind, "frame", &frame, "at", &when)
		opens := string(kind) == `"O"`
		switch {
		case frame < 0 || frame >= int64(len(b.frames)) || math.IsNaN(when) || !opens && string(kind) != `"C"`:
			b.set.Dropped.Add("events without a frame, time or kind", 1)
		case when < last:
			b.set.Dropped.Add("events that go back in time", 1)
		case opens:
			spend(when)
			place := stacks.Root
			if len(way) > 0 {
				place = way[len(way)-1].place
			}
			f := b.frames[frame]
			way = append(way, open{f, when, b.set.Call(place, f)})
		case len(way) == 0 || way[len(way)-1].frame != b.frames[frame]:
			b.set.Dropped.Add("closings of functions that are not the innermost", 1)
		default:
			spend(when)
			close(when)
		}
	})
	if len(way) > 0 {
		b.set.Dropped.Add("closings that are missing", int64(len(way)))
		end := max(p.end, last)
		spend(end)
		for len(way) > 0 {
			close(end)
		}
	}
}

// sampled reads a profile of stacks, the outermost function first.
func (b *reader) sampled(p *profileData, column, count int, ns float64, own bool) {
	var weights []float64
	traceevent.Elements(p.weights, func(v []byte) {
		f, ok := jsonscan.Number(v)
		if !ok || f < 0 {
			f = 0
			b.set.Dropped.Add("weights that are not numbers", 1)
		}
		weights = append(weights, f)
	})
	var c *stacks.Chart
	if ns > 0 && !own {
		c = &stacks.Chart{Set: &b.set, Trace: &b.trace, Track: b.trace.Track(timeline.Thread, "", p.name)}
	}
	when, i := p.start, -1
	traceevent.Elements(p.samples, func(v []byte) {
		if i++; i >= len(weights) {
			b.set.Dropped.Add("samples without a weight", 1)
			return
		}
		place := stacks.Root
		bad := false
		traceevent.Elements(v, func(v []byte) {
			n, ok := jsonscan.Int(v)
			if !ok || n < 0 || n >= int64(len(b.frames)) {
				bad = true
				return
			}
			place = b.set.Call(place, b.frames[n])
		})
		if bad {
			b.set.Dropped.Add("frames of samples that are absent", 1)
		}
		if place >= 0 && column >= 0 {
			b.set.Add(column, place, weights[i])
		}
		if place >= 0 && count >= 0 {
			b.set.Add(count, place, 1)
		}
		if ts, ok := track.Nanos(when, ns); ok && c != nil {
			c.Sample(ts, place)
		}
		when += weights[i]
	})
	if ts, ok := track.Nanos(when, ns); ok && c != nil {
		c.End(ts)
	}
}

// ownProfile makes the layers of a file that opmeter wrote. Its samples are layers within their
// scopes; other functions do not become layers.
func (b *reader) ownProfile(run *runlog.Run) {
	p := run.Profile
	track.NameOwn(p, p.Model.Name)
	number := map[int32]int32{}
	b.set.Each(func(path []int32, values []float64) {
		if len(path) < 2 || len(values) == 0 {
			return
		}
		f := path[len(path)-1]
		l := profile.Layer{Name: b.set.Name(f), Op: "operator"}
		if len(path) > 2 {
			l.Scope = b.set.Name(path[len(path)-2])
		}
		l.Latency = profile.Value(profile.Imported, values[0], "")
		if _, ok := number[f]; !ok {
			number[f] = int32(len(p.Layers))
		}
		p.Layers = append(p.Layers, l)
	})
	for _, s := range b.trace.All() {
		n, ok := number[s.Layer]
		if !ok {
			s.Label, n = b.trace.Name([]byte(b.set.Name(s.Layer))), -1
		}
		s.Layer = n
	}
	b.trace.Nest()
	p.Timeline = b.trace.Timeline("start of the run that is shown", "one run, as the file lays it out")
	b.set.Dropped.To(run)
}
