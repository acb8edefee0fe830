// Package firefox reads profiles of the Firefox Profiler: those of Firefox itself, and processed
// profiles up to version 70, which samply and other programs write too. Profiles that opmeter
// wrote keep their layers.
//
// Source of the format: docs-developer and src/types of the Firefox Profiler.
package firefox

import (
	"cmp"
	"context"
	"errors"
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

// Format reads profiles of the Firefox Profiler.
func Format() *record.Format {
	return &record.Format{
		Name:  "firefox",
		Title: "Firefox Profiler",
		Files: "JSON of profiler.firefox.com, of Firefox and of samply, also compressed",
		Gives: []string{"latency_s", "with_callees_s", "samples", "timeline"},
		Match: Match,
		Read:  record.RunPerFile(read),
	}
}

// Match recognises profiles by their version, or by the tables of a thread.
func Match(f *record.File) record.Sure {
	h := f.JSONHead("{")
	if h.HasAny(`"preprocessedProfileVersion"`, `"Recorded Performance Data"`) ||
		h.Has(`"stackTable"`) && h.HasAny(`"frameTable"`, `"threads"`) ||
		h.Has(`"meta"`) && h.HasAny(`"stackwalk"`, `"gcpoison"`) && h.HasAny(`"libs"`, `"threads"`) {
		return record.Certain
	}
	// In files of the developer tools' own panel, other lists precede the profile.
	return record.Likely.If(h.Has(`"breakpadId"`, `"libs"`) || h.Has(`"isOffMainThread"`, `"processType"`) ||
		h.Has(`"allocations"`, `"ticks"`, `"frames"`))
}

// maxThread limits the bytes of one thread, and of the tables that threads share.
const maxThread = 512 << 20

// reader reads a file twice, since tables that threads share may follow them.
type reader struct {
	set        stacks.Set
	trace      track.Trace
	own        *track.Own
	categories []string
	interval   float64 // milliseconds
	start      float64 // milliseconds since the epoch
	product    string
	imported   string
	host       profile.Host
	shared     *tables
	threads    int
	order      int64
}

func read(ctx context.Context, f *record.File) (*runlog.Run, error) {
	b := &reader{interval: 1}
	var cut bool
	pass := func(first bool, take func(key string, v []byte)) error {
		o := jsonscan.Options{Stream: jsonscan.Keys("threads", "processes", "counters"), MaxValue: maxThread, Single: true}
		res, err := f.ScanJSON(ctx, o, take)
		if cut = res.Cut; first {
			b.set.Dropped.Add("values that are not valid JSON, or too large", res.Bad+res.Large)
			if res.More {
				b.set.Dropped.Add(record.MoreDocuments, 1)
			}
		}
		return err
	}
	if err := pass(true, func(key string, v []byte) {
		switch key {
		case "meta":
			b.meta(v)
		case "shared":
			b.shared = readTables(v)
		case "profile": // a file that the developer tools saved
			var meta []byte
			traceevent.Fields(v, "meta", &meta)
			b.meta(meta)
		}
	}); err != nil {
		return nil, err
	}
	if track.IsOwn(b.imported) {
		b.own = &track.Own{}
	}
	if err := pass(false, func(key string, v []byte) { b.part(key, v, 0, 0) }); err != nil {
		return nil, err
	}
	if b.threads == 0 {
		return nil, errors.New("no threads: want a profile of the Firefox Profiler")
	}
	run := track.NewRun(f, "firefox")
	if cut {
		run.Lose("the file is cut")
	}
	if b.own != nil {
		b.ownProfile(run)
		return run, nil
	}
	run.Profile.Target.Engine = cmp.Or(b.imported, b.product)
	if b.host.OS != "" || b.host.CPUModel != "" {
		run.Profile.Host = &b.host
	}
	stacks.Finish(run, &b.set, &b.trace, stacks.Sampled)
	return run, nil
}

// part reads a member of a profile. Profiles of other processes are nested.
func (b *reader) part(key string, v []byte, shift float64, depth int) {
	if depth > 20 {
		return
	}
	if len(v) > 0 && v[0] == '[' {
		traceevent.Elements(v, func(v []byte) { b.part(key, v, shift, depth+1) })
		return
	}
	switch key {
	case "threads":
		b.thread(v, shift)
	case "counters":
		b.counter(v, shift)
	case "profile", "processes":
		if key == "processes" {
			var meta []byte
			start := math.NaN()
			traceevent.Fields(v, "meta", &meta)
			traceevent.Fields(meta, "startTime", &start)
			if !math.IsNaN(start) {
				shift = start - b.start // times count from the start of the process
			}
		}
		traceevent.Members(v, func(k, v []byte) {
			switch string(k) {
			case "threads", "processes", "counters":
				b.part(string(k), v, shift, depth+1)
			}
		})
	}
}

// meta reads properties of all threads.
func (b *reader) meta(v []byte) {
	var interval float64
	var categories []byte
	traceevent.Fields(v, "interval", &interval, "startTime", &b.start, "product", &b.product, "importedFrom", &b.imported,
		"oscpu", &b.host.OS, "CPUName", &b.host.CPUModel, "categories", &categories)
	if interval > 0 && interval < 1e6 {
		b.interval = interval
	}
	if categories != nil {
		b.categories = nil
	}
	traceevent.Elements(categories, func(v []byte) {
		name := ""
		if traceevent.Fields(v, "name", &name); len(b.categories) < 10_000 {
			b.categories = append(b.categories, name)
		}
	})
}

// ownThread reads a thread of a profile that opmeter wrote: its markers are the bars.
func (b *reader) ownThread(t *tables, group, name string, markers []byte) {
	m := readTable(markers, "data")
	n := b.trace.Track("", group, name)
	b.trace.Tracks[n].Rank = b.order
	data := m.raw["data"]
	for i := range m.n {
		start, ok := nanos(m.at("startTime", i))
		end, ok2 := nanos(m.at("endTime", i))
		if !ok || !ok2 || end < start || i >= len(data) || string(data[i]) == "null" {
			continue // a wait, which its bar has, too
		}
		x := track.NewOwnBar()
		var kind []byte
		traceevent.Members(data[i], func(k, v []byte) {
			f, ok := jsonscan.Number(v)
			switch {
			case string(k) == "op":
				kind = traceevent.Text(v)
			case !ok:
			case string(k) == "bytes":
				x.Number("moved_bytes", f)
			case string(k) == "stall":
				x.Number("stall_us", f*1e3)
			case string(k) == "layer", string(k) == "iteration", string(k) == "latency_s":
				x.Number(string(k), f)
			}
		})
		s := track.Slice{Start: start, Dur: end - start, Layer: -1, Label: -1, Type: -1}
		b.own.Apply(&b.trace, n, &s, x, []byte(t.text(m.index("name", i))), kind)
		b.trace.Add(n, s)
	}
}

// ownProfile makes the profile. The track with most layers gives the times of layers.
func (b *reader) ownProfile(run *runlog.Run) {
	p := run.Profile
	track.NameOwn(p, b.product)
	p.Layers = b.own.Done(&b.trace)
	b.trace.Nest()
	var best *track.Track
	most := 0
	var walls []int64
	for _, k := range b.trace.Tracks {
		seen := map[int32]bool{}
		for i := range k.Slices {
			if s := &k.Slices[i]; s.Layer >= 0 {
				seen[s.Layer] = true
			} else if n := int(s.Iteration); k.Kind == timeline.Iteration && n >= 0 && n < 100_000 {
				for len(walls) <= n {
					walls = append(walls, track.NoWall)
				}
				walls[n] = max(walls[n], s.Dur)
			}
		}
		if len(seen) > most {
			best, most = k, len(seen)
		}
	}
	for _, k := range b.trace.Tracks {
		k.Aside = k != best
	}
	if best != nil {
		best.Kind = timeline.Layer
		told := make([]*profile.Metric, len(p.Layers))
		for i := range p.Layers {
			told[i] = p.Layers[i].Latency
		}
		var tally runlog.Tally
		b.trace.Tally(&tally, walls, -1)
		tally.Fill(p)
		for i, m := range told { // the profile's own figure is that of all its inferences
			v, ok := m.Best()
			if !ok {
				continue
			}
			if have := p.Layers[i].Latency; have != nil {
				c := *have
				if c.Median = &v; c.Validate() == nil {
					m = &c
				}
			}
			p.Layers[i].Latency = m
		}
	}
	p.Timeline = b.trace.Timeline("", "as the profile of an earlier run shows it")
	b.set.Dropped.To(run)
	b.trace.Dropped.To(run)
}
