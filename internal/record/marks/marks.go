// Package marks reads files in which applications mark their stages (docs/reference/marks.md).
// Package internal/source/stages defines the format.
package marks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/source/stages"
	"github.com/opmeter/opmeter/profile"
)

// Format reads marks of applications.
func Format() *record.Format {
	return &record.Format{
		Name:  "marks",
		Title: "stages that an application marks",
		Files: "what opmeter trace --keep writes, or an application with OPMETER_MARKS=FILE",
		Gives: []string{"latency_s", "unmarked_s", "frames_per_s", "samples", "timeline"},
		Match: func(f *record.File) record.Sure {
			n := stages.Sure(f.Head)
			return max(record.Certain.If(n > 90), record.Likely.If(n > 0))
		},
		Read: record.RunsPerFile(read),
	}
}

const (
	maxAccounts = 1000                // figures of stages
	kept        = profile.KeptSamples // values of each
	maxBars     = runlog.MaxBars
	maxReadings = 100_000 // of levels, for the timeline
)

// reader collects the content of a file.
type reader struct {
	c        stages.Collector
	d        stages.Decoder
	cut      int
	pipes    map[int]*pipeline
	accounts int
	bars     []stages.Bar
	readings []stages.Level
	dropped  runlog.Dropped
	noBars   int64
}

// pipeline holds the frames and figures of a pipeline.
type pipeline struct {
	frames   int64
	parallel int64
	own      int64 // frames in which marks were written
	ownNS    int64
	tally    runlog.Tally
	number   map[int]int // row in the tally, by node
	unmarked *stats.Reservoir
	figures  map[figureKey]*stats.Reservoir
	order    []figureKey
	spans    map[int]*[2]int64 // start of the first and end of the last frame, by process
}

type figureKey struct {
	node  int
	name  string
	level bool
}

func read(ctx context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) {
	r := &reader{pipes: map[int]*pipeline{}}
	r.c.Frame, r.c.Bar, r.c.Level = r.frame, r.bar, r.level
	buf := make([]byte, 64<<10)
	stop := f.With(func(in io.Reader) error {
		for ctx.Err() == nil {
			n, err := in.Read(buf)
			r.d.Feed(buf[:n], r.c.Block)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.cut = r.d.End(r.c.Block)
	r.c.End()
	runs := r.runs(f, stop)
	if len(runs) == 0 {
		return nil, r.reason(f, stop)
	}
	return runs, nil
}

// reason returns the reason why a file has no profile.
func (r *reader) reason(f *record.File, stop error) error {
	switch {
	case stop != nil && !errors.Is(stop, io.EOF):
		return record.Fault(f, stop)
	case r.d.Newer > 0:
		return record.Fault(f, errors.New("was written by a later version of the marks: take an opmeter that is as new"))
	case r.c.Problems[stages.FrameUnfinished] > 0:
		return record.Fault(f, fmt.Errorf("holds no frame that has ended, and %d that began: end frames with opmeter_frame_end, and let the application say its last word", r.c.Problems[stages.FrameUnfinished]))
	}
	return record.Fault(f, errors.New("holds no frame and no stage: put marks around them (opmeter help trace)"))
}

func (r *reader) pipe(i int) *pipeline {
	p := r.pipes[i]
	if p == nil {
		p = &pipeline{
			number: map[int]int{}, unmarked: stats.NewReservoir(kept),
			figures: map[figureKey]*stats.Reservoir{}, spans: map[int]*[2]int64{},
		}
		r.pipes[i] = p
	}
	return p
}

// row returns the number of a node in the tally.
func (p *pipeline) row(node int) int {
	n, ok := p.number[node]
	if !ok {
		n = len(p.number)
		p.number[node] = n
	}
	return n
}

func (r *reader) frame(f *stages.Frame) {
	p := r.pipe(f.Pipeline)
	for _, s := range f.Shares {
		row := p.row(s.Node)
		p.tally.Call(row, s.Self)
		for range s.Calls - 1 {
			p.tally.Call(row, 0)
		}
	}
	wall := f.End - f.Begin
	if f.Work > wall+wall/50 {
		p.parallel++
	}
	if f.Own > 0 {
		p.own++
		p.ownNS += f.Own
	}
	p.tally.End(max(0, wall-f.Own))
	p.frames++
	p.unmarked.Add(float64(f.Unmarked) / 1e9)
	for _, x := range f.Figures {
		r.account(p, figureKey{x.Node, x.Name, false}, x.Value)
	}
	if s := p.spans[f.Process.Index]; s == nil {
		p.spans[f.Process.Index] = &[2]int64{f.Begin, f.End}
	} else {
		s[0], s[1] = min(s[0], f.Begin), max(s[1], f.End)
	}
}

// account adds a value of a figure.
func (r *reader) account(p *pipeline, k figureKey, v float64) {
	m := p.figures[k]
	if m == nil {
		if r.accounts >= maxAccounts {
			r.dropped.Add("figures of too many kinds", 1)
			return
		}
		r.accounts++
		m = stats.NewReservoir(kept)
		p.figures[k] = m
		p.order = append(p.order, k)
	}
	m.Add(v)
}

func (r *reader) bar(b stages.Bar) {
	if len(r.bars) >= maxBars {
		r.noBars++
		return
	}
	r.bars = append(r.bars, b)
}

func (r *reader) level(l stages.Level) {
	if l.Node >= 0 {
		r.account(r.pipe(r.c.Nodes[l.Node].Pipeline), figureKey{l.Node, l.Name, true}, l.Value)
	}
	if len(r.readings) >= maxReadings {
		r.dropped.Add("readings of levels in the timeline", 1)
		return
	}
	r.readings = append(r.readings, l)
}

// runs returns one run per pipeline.
func (r *reader) runs(f *record.File, stop error) (out []*runlog.Run) {
	for i := range r.c.Pipelines {
		p := r.pipes[i]
		if p == nil || p.frames == 0 || r.c.Explicit && r.c.Pipelines[i].Implied {
			continue
		}
		run := r.run(i, p)
		run.Profile.Model.Path = f.Path
		if stop != nil && !errors.Is(stop, io.EOF) {
			run.Missing = append(run.Missing, profile.Missing{Cause: profile.ByError, Text: fmt.Sprintf("the file could be read in part: %v", stop)})
		}
		out = append(out, run)
	}
	return out
}

// run returns the run of a pipeline.
func (r *reader) run(i int, p *pipeline) *runlog.Run {
	name := r.c.Pipelines[i].Name
	if name == "" {
		name = "frame"
	}
	d := draft.New("marks", name, "")
	d.P.Target.ID, d.P.Target.Description = "application", "an application with marks"
	l := r.c.Layout(i)
	order := make([]int, len(l.Nodes))
	for k, node := range l.Nodes {
		d.Add(l.Layers[k], runlog.Hint{})
		order[k] = p.row(node)
	}
	p.tally.Reorder(order)
	p.tally.Fill(d.P)
	if p.parallel > 0 {
		d.P.Reconcile = nil // times of parallel stages exceed the frame
		d.Found("marks.parallel", profile.Info, "In %d of %d frames stages ran at the same time on several threads: their times add up to more than the frame's.", p.parallel, p.frames)
	}
	if m := profile.FromSummary(profile.Imported, p.unmarked.Summary(), ""); m != nil {
		d.TotalMetric(stages.Unmarked, m)
	}
	if v, ok := r.rate(p); ok {
		d.Total(stages.Rate, v)
		d.Found("marks.rate", profile.Info, "%d frames came at %.4g a second; in %.3g ms of the middle one none of its stages ran.", p.frames, v, 1e3*p.unmarked.Summary().Median)
	}
	r.figures(d, p, l)
	r.remarks(d, p)
	for _, x := range r.c.Processes {
		if t := time.Unix(0, x.Unix).UTC(); x.Unix > 0 && t.Year() >= 2000 && t.Year() < 2200 {
			d.P.Created = t.Format(time.RFC3339)
			break
		}
	}
	run := d.Run()
	r.dropped.To(run)
	run.Profile.Timeline = r.timeline(i, l)
	run.Attach = l.Attach
	return run
}

// figures sets the counters and levels of stages.
func (r *reader) figures(d *draft.Draft, p *pipeline, l *stages.Layout) {
	for _, k := range p.order {
		q, ok := stages.Quantity(k.name, !k.level)
		m := profile.FromSummary(profile.Imported, p.figures[k].Summary(), "")
		v, has := m.Best()
		if !ok || !has {
			continue
		}
		at, found := l.At[k.node]
		switch {
		case k.node < 0:
			d.TotalMetric(q, m)
		case found:
			d.Set(at, q, v)
			_ = d.Layer(at).Set(q.Key, m) // with the spread
		}
	}
}

// rate returns the frames per second over the time in which any process worked.
func (r *reader) rate(p *pipeline) (float64, bool) {
	var list []interval
	alone := 0.0
	for i, s := range p.spans {
		x := r.c.Processes[i]
		if x.Unix <= 0 || x.Unix > math.MaxInt64/2 {
			alone += float64(s[1]-s[0]) / 1e9
			continue
		}
		list = append(list, interval{x.Unix + s[0], x.Unix + s[1]})
	}
	t := alone + covered(list)
	return float64(p.frames) / t, t > 0 && p.frames > 1
}

// remarks reports problems as findings and losses.
func (r *reader) remarks(d *draft.Draft, p *pipeline) {
	n := &r.c.Problems
	d.Dropped.Add("marks that the application left out: its reader was too slow, or the disk full", n[stages.DroppedMarks])
	d.Dropped.Add("blocks that did not arrive", n[stages.LostBlocks])
	d.Dropped.Add("marks beyond what is held, or without sense", n[stages.TooMany]+n[stages.Malformed])
	if n[stages.LostFrames] > 0 {
		d.Found("marks.lost", profile.Warning, "%d frames lack something that was lost, and do not count.", n[stages.LostFrames])
	}
	if n[stages.EndWithoutBegin]+n[stages.LeftOpen]+n[stages.FrameWithoutBegin]+n[stages.TooDeep] > 0 {
		d.Found("marks.nesting", profile.Warning, "Marks that do not fit: %d stages ended that had not begun in their thread, %d were ended by an outer one or by their frame, %d frames ended that had not begun, %d stages stood too deep in others.",
			n[stages.EndWithoutBegin], n[stages.LeftOpen], n[stages.FrameWithoutBegin], n[stages.TooDeep])
	}
	if v := n[stages.FrameUnfinished]; v > 0 {
		d.Found("marks.unfinished", profile.Info, "%d frames had not ended when the record did, and do not count.", v)
	}
	if v := n[stages.FrameLate]; v > 0 {
		d.Found("marks.late", profile.Warning, "%d stages ended long after the frame that they belong to, and are not in its time.", v)
	}
	if r.d.Foreign > 0 {
		d.Found("marks.foreign", profile.Info, "%d bytes of the record are not marks and were skipped.", r.d.Foreign)
	}
	if p.own > 0 {
		d.Found("marks.own", profile.Info, "Writing marks took %.3g ms in %d of %d frames; it is not in the times.", float64(p.ownNS)/1e6, p.own, p.frames)
	}
	if outside := r.outside(); outside > 0 {
		d.Found("marks.outside", profile.Info, "%d passes of stages were outside of any frame: they are in the timeline only.", outside)
	}
	ended := 0
	for _, x := range r.c.Processes {
		if x.Ended {
			ended++
		}
	}
	if open := len(r.c.Processes) - ended; open > 0 || r.cut > 0 {
		d.Missing = append(d.Missing, profile.Missing{Cause: profile.ByEnd, Text: fmt.Sprintf("%d of %d processes ended without their last word: what they had not written is not here", open, len(r.c.Processes))})
	}
}

// outside counts stages outside of frames, if there are frames.
func (r *reader) outside() (n int64) {
	for i, p := range r.pipes {
		if r.c.Explicit && r.c.Pipelines[i].Implied {
			n += p.frames
		}
	}
	return n
}
