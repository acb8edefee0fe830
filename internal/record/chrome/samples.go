package chrome

import (
	"cmp"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	v8 "github.com/opmeter/opmeter/internal/record/v8"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// sampler collects the samples of a trace. They become a separate run, since they cover the same
// time as the slices.
type sampler struct {
	set    stacks.Set
	list   []sample
	byID   map[string]frame
	v8     map[string]*v8Part
	order  []*v8Part
	places map[string]int32
}

type sample struct {
	ts     int64
	thread *thread
	frame  string
	weight float64
}

type frame struct {
	f      stacks.Function
	parent string
}

type v8Part struct {
	v8.Builder
	thread *thread
}

// sample reads an element of the list of samples.
func (b *reader) sample() {
	e := b.e
	if !e.HasTS || e.Frame == nil {
		b.trace.Dropped.Add("samples without a time or stack", 1)
		return
	}
	b.keep(e)
}

func (b *reader) keep(e *traceevent.Event) {
	t := b.thread()
	if t == nil || len(b.samples.list) >= maxSamples {
		b.trace.Dropped.Add("samples beyond the first 2,000,000", 1)
		return
	}
	w := 1.0
	if f, ok := jsonscan.Number(e.Weight); ok && f >= 0 && f < 1e12 {
		w = f
	}
	b.samples.list = append(b.samples.list, sample{e.TS, t, string(traceevent.Bare(e.Frame)), w})
}

// frames reads the functions that samples refer to.
func (s *sampler) frames(v []byte) {
	traceevent.Members(v, func(id, v []byte) {
		var f frame
		traceevent.Fields(v, "name", &f.f.Name, "category", &f.f.Category, "file", &f.f.File, "funcVirtAddr", &f.f.File,
			"line", &f.f.Line, "parent", &f.parent)
		if len(s.byID) < stacks.MaxNodes {
			s.byID[string(id)] = f
		}
	})
}

// event reads a sample, or a part of a profile of V8.
func (s *sampler) event(b *reader, e *traceevent.Event) {
	if e.Frame != nil {
		b.keep(e)
		return
	}
	t := b.thread()
	if t == nil {
		return
	}
	key := t.p.pid + "\x00" + string(e.ID)
	p := s.v8[key]
	if p == nil {
		if len(s.v8) >= maxThreads {
			return
		}
		p = &v8Part{Builder: v8.Builder{Set: &s.set}, thread: t}
		s.v8[key] = p
		s.order = append(s.order, p)
	}
	if string(traceevent.Bare(e.Name)) == "Profile" {
		p.thread = t // another thread may write later parts
	}
	var data, cpu []byte
	e.Fields("data", &data)
	traceevent.Fields(data, "cpuProfile", &cpu)
	traceevent.Members(data, p.Member)
	traceevent.Members(cpu, p.Member)
}

// place returns the stack that ends with a frame.
func (s *sampler) place(id string) int32 {
	return stacks.Chain(&s.set, s.places, id, func(id string) (stacks.Function, string, bool) {
		f, ok := s.byID[id]
		return f.f, f.parent, ok && id != ""
	})
}

// sampleRun returns the run of the samples, nil without any.
func (b *reader) sampleRun(f *record.File) *runlog.Run {
	s := &b.samples
	count := len(s.list)
	for _, p := range s.order {
		count += p.Len()
	}
	if count == 0 {
		return nil
	}
	run := &runlog.Run{Profile: &profile.Profile{Model: profile.Model{Name: track.Stem(f.Name) + " (samples)", Path: f.Path, Format: "chrome"}}}
	time, _ := s.set.Count(stacks.Time, 1e-9)
	hits, _ := s.set.Count(stacks.Samples, 1)
	var t track.Trace
	names := map[string]int{}
	for _, p := range b.processes {
		names[p.name]++
	}
	lane := func(h *thread) int32 {
		return t.Track(timeline.Thread, b.group(h.p, names), cmp.Or(h.name, "thread "+h.tid))
	}
	by := map[*thread][]stacks.Weighted{}
	var order []*thread
	for _, x := range s.list {
		if by[x.thread] == nil {
			order = append(order, x.thread)
		}
		place := s.place(x.frame)
		by[x.thread] = append(by[x.thread], stacks.Weighted{At: x.ts, Place: place})
		s.set.Add(hits, place, x.weight)
	}
	for _, h := range order {
		c := stacks.Chart{Set: &s.set, Trace: &t, Track: lane(h)}
		c.Spread(time, by[h], 0)
	}
	for _, p := range s.order {
		samples, last := p.Done(hits)
		if len(samples) == 0 {
			continue
		}
		c := stacks.Chart{Set: &s.set, Trace: &t, Track: lane(p.thread)}
		c.Spread(time, samples, last)
	}
	stacks.Finish(run, &s.set, &t, stacks.Sampled)
	return run
}
