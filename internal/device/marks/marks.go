// Package marks measures applications that report their stages while they run
// (docs/reference/marks.md): a frame is an inference, its stages are the layers.
// internal/source/stages defines the format; internal/record/marks reads complete files, with a
// timeline.
package marks

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/source/stages"
	"github.com/opmeter/opmeter/profile"
)

const (
	// learning is how many frames are examined before the stages are listed, and patience how
	// long they are waited for: some stages run in some frames only.
	learning = 16
	patience = 2 * time.Second

	maxFigures = 200 // kinds of them
)

// Protocol returns the protocol.
func Protocol() *device.Protocol {
	return &device.Protocol{
		Name:  "marks",
		Title: "an application that marks its stages",
		Sure:  stages.Sure,
		Run: func(ctx context.Context, c *device.Conn, j *device.Job) error {
			s := &session{job: j}
			s.c.Frame = s.frame
			return s.run(ctx, c)
		},
	}
}

// session is one stream.
type session struct {
	job  *device.Job
	d    stages.Decoder
	c    stages.Collector
	wait []*stages.Frame // until the stages are listed
	from time.Time       // when the first of them came

	pipeline int
	layout   *stages.Layout
	known    map[string]bool // figures that are described
	others   int64           // frames of other pipelines
	frames   int64
	begin    int64
	end      int64
	one      *stages.Process // of all frames until now, nil for several
	several  bool
	err      error
}

func (s *session) run(ctx context.Context, c *device.Conn) error {
	var stop error
	for stop == nil {
		x, err := c.Read(ctx, 0)
		if err != nil {
			stop = err
			break
		}
		if s.from.IsZero() && len(s.wait) > 0 {
			s.from = x.At
		}
		s.d.Feed(x.Data, s.c.Block)
		if s.layout == nil && len(s.wait) > 0 && !s.from.IsZero() && x.At.Sub(s.from) > patience {
			s.list()
		}
		if s.err != nil {
			stop = s.err
		}
	}
	if !errors.Is(stop, device.ErrEnough) {
		s.d.End(s.c.Block)
		if errors.Is(stop, io.EOF) {
			s.c.End()
		}
		if s.layout == nil && len(s.wait) > 0 {
			s.list()
		}
		if s.err != nil && errors.Is(stop, io.EOF) {
			stop = s.err
		}
	}
	s.finish()
	return stop
}

func (s *session) frame(f *stages.Frame) {
	if s.err != nil {
		return
	}
	if s.layout == nil {
		s.wait = append(s.wait, f)
		if len(s.wait) >= learning {
			s.list()
		}
		return
	}
	s.tell(f)
}

// list sends the list of stages, then the waiting frames. The pipeline is the most frequent one.
func (s *session) list() {
	of := map[int]int{}
	best := -1
	for _, f := range s.wait {
		of[f.Pipeline]++
		better := best < 0 || of[f.Pipeline] > of[best]
		if s.c.Explicit && best >= 0 && s.c.Pipelines[best].Implied != s.c.Pipelines[f.Pipeline].Implied {
			better = s.c.Pipelines[best].Implied
		}
		if better {
			best = f.Pipeline
		}
	}
	s.pipeline, s.layout = best, s.c.Layout(best)
	s.known = map[string]bool{}
	p := &profile.Profile{Layers: append([]profile.Layer{}, s.layout.Layers...), Quantities: []profile.Quantity{stages.Unmarked, stages.Rate}}
	p.Target = profile.Target{Kind: profile.TargetDevice, ID: "application", Description: "an application with marks"}
	if p.Model.Name = s.c.Pipelines[best].Name; p.Model.Name == "" {
		p.Model.Name = "frame"
	}
	s.job.Clock(0, device.Nanoseconds)
	if s.err = s.job.DescribeParts(p, s.layout.Attach); s.err != nil {
		return
	}
	wait := s.wait
	s.wait = nil
	for _, f := range wait {
		if s.err == nil {
			s.tell(f)
		}
	}
}

// listed returns the layer of a stage, or of the nearest enclosing stage that is listed.
func (s *session) listed(node int) (layer int, late, ok bool) {
	for n := node; n >= 0; n = s.c.Nodes[n].Parent {
		if at, ok := s.layout.At[n]; ok {
			return at, n != node, true
		}
	}
	return -1, true, false
}

func (s *session) tell(f *stages.Frame) {
	if f.Pipeline != s.pipeline {
		s.others++
		return
	}
	x := device.Inference{Whole: map[string]float64{
		"latency_s": float64(max(0, f.End-f.Begin-f.Own)) / 1e9, stages.Unmarked.Key: float64(f.Unmarked) / 1e9,
	}}
	// A stage that does not run in a frame takes no time in it.
	for i := range s.layout.Layers {
		x.Layers = append(x.Layers, device.LayerFigures{Layer: i, Figures: map[string]float64{"latency_s": 0}})
	}
	for _, h := range f.Shares {
		at, late, ok := s.listed(h.Node)
		if late {
			s.job.Found("marks.late", profile.Warning, "Stage %q ran for the first time after the stages had been listed: its time stands at the one around it, if there is one.", s.c.Nodes[h.Node].Name)
		}
		if ok {
			x.Layers[at].Figures["latency_s"] += float64(h.Self) / 1e9
		}
	}
	for _, v := range f.Figures {
		key, ok := s.figure(v.Name)
		if !ok || v.Value < 0 {
			continue
		}
		if v.Node < 0 {
			x.Whole[key] += v.Value
		} else if at, _, ok := s.listed(v.Node); ok {
			x.Layers[at].Figures[key] += v.Value
		}
	}
	if s.one != nil && s.one != f.Process {
		s.several = true
	}
	if s.frames++; s.one == nil {
		s.one, s.begin, s.end = f.Process, f.Begin, f.End
	}
	s.begin, s.end = min(s.begin, f.Begin), max(s.end, f.End)
	s.err = s.job.Inference(x)
}

// figure returns the key of an application's own figure, described once.
func (s *session) figure(name string) (string, bool) {
	q, ok := stages.Quantity(name, true)
	if !ok || s.known[q.Key] {
		return q.Key, ok
	}
	if len(s.known) >= maxFigures {
		return "", false
	}
	if err := s.job.Note(&profile.Noted{Quantities: []profile.Quantity{q}}); err != nil {
		s.err = err
		return "", false
	}
	s.known[q.Key] = true
	return q.Key, true
}

// finish reports losses and the frame rate.
func (s *session) finish() {
	if s.layout == nil {
		return
	}
	n := &s.c.Problems
	if v := n[stages.DroppedMarks]; v > 0 {
		s.job.Lost(-1, v, profile.ByRecord, "marks that the application left out: its reader was too slow")
	}
	if v := n[stages.LostBlocks]; v > 0 {
		s.job.Lost(-1, v, profile.ByRecord, "blocks that did not arrive")
	}
	if v := n[stages.LostFrames]; v > 0 {
		s.job.Lost(-1, v, profile.ByRecord, "frames of which something was lost")
	}
	if v := n[stages.EndWithoutBegin] + n[stages.LeftOpen] + n[stages.FrameWithoutBegin] + n[stages.TooDeep]; v > 0 {
		s.job.Found("marks.nesting", profile.Warning, "%d marks do not fit: stages that end without a beginning in their thread, or with an outer one.", v)
	}
	if s.others > 0 {
		s.job.Found("marks.others", profile.Info, "%d frames of other pipelines than %q came, too: a recording with --record shows them with opmeter import.", s.others, s.c.Pipelines[s.pipeline].Name)
	}
	if t := float64(s.end-s.begin) / 1e9; s.frames > 1 && t > 0 && !s.several {
		// the session ends in any case
		_ = s.job.Count(-1, stages.Rate.Key, profile.Value(profile.Measured, float64(s.frames)/t, ""))
	}
}
