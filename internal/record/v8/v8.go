// Package v8 reads processor profiles of V8, as Node.js and Chrome's developer tools save
// them (.cpuprofile), and the same profiles in parts, as traces hold them.
//
// Source of the format: the Profiler domain of the Chrome DevTools Protocol.
package v8

import (
	"context"
	"errors"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/track"
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
			h := f.JSONHead("{")
			return record.Certain.If(!h.Has(`"traceEvents"`) &&
				(h.Has(`"callFrame"`, `"nodes"`) || h.Has(`"functionName"`, `"head"`, `"hitCount"`)))
		},
		Read: record.RunPerFile(read),
	}
}

// maxValue bounds one member of the file.
const maxValue = 256 << 20

func read(ctx context.Context, f *record.File) (*runlog.Run, error) {
	set := &stacks.Set{}
	b := &Builder{Set: set}
	res, err := f.ScanJSON(ctx, jsonscan.Options{MaxValue: maxValue}, func(key string, v []byte) { b.Member([]byte(key), v) })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(b.order) == 0 {
		if err == nil {
			err = errors.New("no nodes: want an object with nodes and samples")
		}
		return nil, err
	}
	run := track.NewRun(f, "cpuprofile")
	run.Profile.Target.Engine = "V8"
	var t track.Trace
	time, _ := set.Count(stacks.Time, 1e-9)
	count, _ := set.Count(stacks.Samples, 1)
	samples, last := b.Done(count)
	c := stacks.Chart{Set: set, Trace: &t, Track: t.Track(timeline.Thread, "", "samples")}
	c.Spread(time, samples, last)
	stacks.Finish(run, set, &t, stacks.Sampled)
	if res.Cut || err != nil {
		run.Lose("the file is cut")
	}
	return run, nil
}
