package chrome

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// runs makes the profiles of a trace: that of its slices, and that of its samples.
func (b *reader) runs(f *record.File, res jsonscan.Result, err error) []*runlog.Run {
	var out []*runlog.Run
	samples := b.sampled(f)
	if samples == nil || b.phases['X']+b.phases['B']+b.phases['b']+b.phases['S'] > 0 {
		out = append(out, b.sliced(f))
	}
	if samples != nil {
		out = append(out, samples)
	}
	for _, r := range out {
		// A list of events may lack its end.
		if res.Cut && !(res.Unclosed && f.Head[begin(f.Head)] == '[') || err != nil {
			r.Lose("the file is cut")
		}
	}
	return out
}

// sliced makes the profile of the slices.
func (b *reader) sliced(f *record.File) *runlog.Run {
	p := &profile.Profile{Model: profile.Model{Name: track.Stem(f.Name), Path: f.Path, Format: "chrome"}}
	run := &runlog.Run{Profile: p}
	b.pair()
	b.places()
	if b.own != nil {
		b.ownRun(run)
	} else {
		b.foreignRun(run)
	}
	if n := b.trace.Opened(); n > 0 {
		run.Found("import.open", profile.Warning, "%d slices have a beginning and no end: they are shown until the end of their thread, and count in no figure.", n)
	}
	if n := b.phases['N'] + b.phases['O'] + b.phases['D']; n > 0 {
		run.Found("import.objects", profile.Info, "The trace tells of objects in %d events, which are not read.", n)
	}
	b.trace.Dropped.To(run)
	return run
}

func (b *reader) foreignRun(run *runlog.Run) {
	p := run.Profile
	for i := range b.layers.List {
		if i < len(b.constant) {
			b.layers.List[i].Options = b.constant[i].options
		}
	}
	b.trace.Fill(p, &b.layers, &b.flows)
	if p.Host == nil && b.head["os-name"] != "" {
		p.Host = &profile.Host{OS: b.head["os-name"], Arch: b.head["os-arch"], CPUModel: b.head["cpu-brand"]}
	}
}

func (b *reader) ownRun(run *runlog.Run) {
	p, h := run.Profile, b.head
	p.Model.Name = cmp.Or(h["model"], p.Model.Name)
	if b, err := hex.DecodeString(h["model_sha256"]); err == nil && len(b) == 32 {
		p.Model.SHA256 = hex.EncodeToString(b)
	}
	p.Target.ID = h["target"]
	if _, err := time.Parse(time.RFC3339, h["created"]); err == nil {
		p.Created = h["created"]
	}
	b.own.Fill(p, &b.trace, &b.flows, h["origin"], h["times"])
	if t := p.Timeline; t != nil {
		t.Iterations, t.Dropped = count(h["iterations_run"]), count(h["records_dropped"])
	}
	if b.own.latency > 0 {
		p.Totals.Latency = profile.Value(profile.Imported, b.own.latency, "")
	}
	if s := h["incomplete"]; s != "" {
		run.Missing = append(run.Missing, profile.Missing{Cause: profile.ByRecord, Text: s})
	}
}

// begin is where the first value of a text begins.
func begin(head []byte) int {
	return max(0, bytes.IndexAny(head, "[{"))
}
