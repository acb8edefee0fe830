// Package v8 reads processor profiles of V8, as Node.js and Chrome's developer tools save
// them (.cpuprofile), and the same profiles in parts, as traces hold them.
//
// Source of the format: the Profiler domain of the Chrome DevTools Protocol.
package v8

import (
	"bytes"
	"context"
	"errors"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Format reads .cpuprofile files.
func Format() *record.Format {
	return &record.Format{
		Name:  "cpuprofile",
		Title: "V8 processor profile",
		Files: ".cpuprofile files of node --cpu-prof and of Chrome's developer tools",
		Gives: []string{"latency_s", "with_callees_s", "samples", "timeline"},
		Match: func(f *record.File) record.Sure {
			head := bytes.TrimSpace(f.Head)
			has := func(s string) bool { return bytes.Contains(head, []byte(s)) }
			switch {
			case len(head) == 0 || head[0] != '{' || has(`"traceEvents"`):
				return record.No
			case has(`"callFrame"`) && has(`"nodes"`), has(`"functionName"`) && has(`"head"`) && has(`"hitCount"`):
				return record.Certain
			}
			return record.No
		},
		Read: read,
	}
}

// maxValue bounds one member of the file.
const maxValue = 256 << 20

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachRun(ctx, in, func(f *record.File) (*runlog.Run, error) { return readFile(ctx, f) })
}

func readFile(ctx context.Context, f *record.File) (*runlog.Run, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	set := &stacks.Set{}
	b := &Builder{Set: set}
	res, err := jsonscan.Each(r, jsonscan.Options{MaxValue: maxValue}, func(key string, v []byte) error {
		switch key {
		case "nodes":
			b.Nodes(v)
		case "head":
			b.Head(v)
		case "samples":
			b.Samples(v)
		case "timeDeltas":
			b.Deltas(v)
		case "timestamps":
			b.Times(v)
		case "startTime":
			b.Start, _ = traceevent.Nanos(v)
		case "endTime":
			b.End, _ = traceevent.Nanos(v)
		}
		return ctx.Err()
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(b.order) == 0 {
		if err == nil {
			err = errors.New("no nodes: want an object with nodes and samples")
		}
		return nil, err
	}
	run := &runlog.Run{Profile: &profile.Profile{Model: profile.Model{Name: track.Stem(f.Name), Path: f.Path, Format: "cpuprofile"}}}
	Fill(run, []*Part{{Builder: b, Group: "", Name: "samples"}}, "V8")
	if res.Cut || err != nil {
		run.Lost = append(run.Lost, profile.Loss{Cause: profile.Cause{Code: profile.ByRecord, Text: "the file is cut"}})
	}
	return run, nil
}

// Part is the profile of one thread.
type Part struct {
	*Builder
	Group, Name string
}

// Fill makes layers and lanes of the profiles of several threads, which share one set.
func Fill(run *runlog.Run, parts []*Part, engine string) {
	var t track.Trace
	run.Profile.Target.Engine = engine
	for _, p := range parts {
		column, _ := p.Set.Count(stacks.Time, 1e-9)
		count, _ := p.Set.Count(stacks.Samples, 1)
		samples, last := p.Done(count)
		c := stacks.Chart{Set: p.Set, Trace: &t, Track: t.Track(timeline.Thread, p.Group, p.Name)}
		c.Spread(column, samples, last)
	}
	if len(parts) > 0 {
		stacks.Finish(run, parts[0].Set, &t, "samples of the stack: a function lasts from the first sample that has it to the next one that has not")
	}
}
