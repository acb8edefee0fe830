// Package pytorch reads traces of PyTorch's profiler, which its library Kineto writes: nested
// operators, the kernels that they launch, steps and memory.
//
// Source of the format: output_json.cpp of Kineto, in two generations of categories, and traces
// of users.
package pytorch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
)

// Format reads Kineto's traces.
func Format() *record.Format {
	return &record.Format{
		Name:  "pytorch",
		Title: "PyTorch profiler (Kineto)",
		Files: ".pt.trace.json and other traces of torch.profiler, also compressed; the ranks of one run become one profile",
		Gives: []string{"latency_s", "total_s", "calls", "device_s", "timeline", "memory", "shapes", "options", "samples", "machine"},
		Match: Match,
		Read:  read,
	}
}

// Match recognises Kineto's traces by keys that only Kineto writes.
func Match(f *record.File) record.Sure {
	h := f.JSONHead("{")
	return record.Certain.If(h.Has(`"schemaVersion"`) && h.HasAny(`"deviceProperties"`, `"distributedInfo"`) ||
		h.Has(`"traceEvents"`) && h.HasAny(`"baseTimeNanoseconds"`, `"cpu_op"`, `"cuda_runtime"`, `"Ev Idx"`))
}

// Limits of what is kept of a file.
const (
	maxEvent = 64 << 20 // bytes of an event, and of another member of the file
	maxSteps = 100_000
)

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	var errs []error
	var all []*part
	for _, f := range in.Files {
		all = append(all, peek(f))
	}
	var runs []*runlog.Run
	for _, group := range ranks(all) {
		r := &run{several: len(group) > 1, at: map[layerKey]int32{}, ops: ops{at: map[string]int32{}}}
		var good []*part
		for _, p := range group {
			if err := r.read(ctx, p); err != nil {
				errs = append(errs, &record.FileError{Path: p.file.Path, Err: err})
				continue
			}
			good = append(good, p)
		}
		if ctx.Err() != nil {
			return runs, ctx.Err()
		}
		if len(good) > 0 {
			runs = append(runs, r.done(good))
		}
	}
	return runs, errors.Join(errs...)
}

// peek reads the rank from the beginning of a file.
func peek(f *record.File) *part {
	p := &part{
		file: f, rows: map[string]*row{}, names: map[string]string{}, libraries: map[string]string{},
		counters: map[string]*track.Counter{}, sums: map[string]float64{},
	}
	o := jsonscan.Options{Stream: jsonscan.Keys("traceEvents")}
	_, _ = jsonscan.Each(bytes.NewReader(f.Head), o, func(key string, v []byte) error {
		if key == "distributedInfo" {
			p.distributed(v)
		}
		return nil
	})
	return p
}

// ranks groups the files of one run: ranks of one world whose file names differ only in digits. A
// rank with several files took part in several runs, whose files are in the same order.
func ranks(all []*part) (groups [][]*part) {
	at := map[string][]int{}
	for _, p := range all {
		key := fmt.Sprintf("%s\x00%d\x00%s\x00%s", p.file.Dir, p.world, p.backend, strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, p.file.Name))
		lacking := slices.IndexFunc(at[key], func(i int) bool {
			return !slices.ContainsFunc(groups[i], func(o *part) bool { return o.rank == p.rank })
		})
		if lacking < 0 || p.world < 2 {
			at[key] = append(at[key], len(groups))
			groups = append(groups, []*part{p})
			continue
		}
		i := at[key][lacking]
		groups[i] = append(groups[i], p)
	}
	for _, g := range groups {
		sorting.Stable(g, func(a, b *part) int { return cmp.Compare(a.rank, b.rank) })
	}
	return groups
}

// read reads the file of one rank.
func (r *run) read(ctx context.Context, p *part) error {
	p.run = r
	var err error
	o := jsonscan.Options{Stream: jsonscan.Keys("traceEvents"), MaxValue: maxEvent, Single: true}
	p.res, err = traceevent.Read(ctx, p.file, o, func(_ string, e *traceevent.Event) { p.event(e) }, p.member)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if p.events == 0 {
		return cmp.Or(err, errors.New("no trace events: want an object with traceEvents"))
	}
	p.cut = p.res.Cut || err != nil
	r.trace.Dropped.Add("values that are not valid JSON", p.res.Bad)
	r.trace.Dropped.Add("values that are too large", p.res.Large)
	if p.res.More {
		r.trace.Dropped.Add(record.MoreDocuments, 1)
	}
	p.nameTracks()
	return nil
}

// done returns the run.
func (r *run) done(parts []*part) *runlog.Run {
	first := parts[0]
	out := track.NewRun(first.file, "pytorch")
	p := out.Profile
	p.Target.Engine, p.Settings.Engine = "PyTorch", "PyTorch"
	first.machine(p)
	if len(parts) > 1 {
		p.Model.Name = ranksName(parts)
	}
	r.parts = parts
	r.fill(out)
	absent(out, parts)
	for _, x := range parts {
		if x.cut {
			text := "the file is cut"
			if len(parts) > 1 {
				text = fmt.Sprintf("the file of rank %d is cut", x.rank)
			}
			out.Lose(text)
		}
	}
	r.trace.Dropped.To(out)
	return out
}
