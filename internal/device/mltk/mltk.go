// Package mltk measures models with the firmware of the Silicon Labs MLTK model profiler: it
// reads the text that a board prints from "Starting Model Profiler" to "done".
//
// Source of the format: see internal/record/mltk/console, which parses the text.
package mltk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/lines"
	"github.com/opmeter/opmeter/internal/record/mltk/console"
	"github.com/opmeter/opmeter/profile"
)

// FailedError says that the firmware reported a failure.
type FailedError struct{ Line string }

// Error returns the line and the most likely remedy.
func (e *FailedError) Error() string {
	advice := "see what the board printed before it (--record FILE keeps it)"
	if s := strings.ToLower(e.Line); strings.Contains(s, "alloc") || strings.Contains(s, "memory") {
		advice = "the model needs more memory than the board has"
	}
	return fmt.Sprintf("the board's profiler failed: %q: %s", e.Line, advice)
}

// after is how long to wait after a board is done: newer firmware continues, and a board may be
// reset by hand.
const after = 2 * time.Second

// Protocol returns the protocol. reset restarts the board for another run, nil if that is not
// possible.
func Protocol(reset func(context.Context) error) *device.Protocol {
	return &device.Protocol{
		Name:   "mltk",
		Title:  "the Silicon Labs MLTK model profiler",
		Speeds: []int{115200},
		Sure:   sure,
		Warm:   true, // each inference is the first after a start
		Once:   reset == nil,
		Run: func(ctx context.Context, c *device.Conn, j *device.Job) error {
			s := &session{job: j, log: &console.Log{}}
			return s.run(ctx, c, reset)
		},
	}
}

// sure looks for lines that are specific to this firmware.
func sure(head []byte) int {
	n := 0
	var s lines.Splitter
	each := func(l string, dirty bool) {
		l = strings.TrimSpace(l)
		switch {
		case console.Starts(l):
			n = 95
		case dirty:
		case l == "Loading model":
			n = max(n, 40)
		case console.Known(l):
			n = max(n+45, 60)
		}
	}
	s.Feed(head, each)
	s.End(each)
	return min(n, 95)
}

// session is one connection.
type session struct {
	job   *device.Job
	split lines.Splitter
	log   *console.Log
	held  []*console.Reading // cut ones that came before a whole one
	names []string           // of the layers, as described
	last  *console.Reading
	err   error // the error that ends the session, from within a line
}

func (s *session) run(ctx context.Context, c *device.Conn, reset func(context.Context) error) error {
	if k := c.Address().Kind; k == port.Serial || k == port.TCP {
		s.split.Gap(s.line) // may be joined in the middle of a line
	}
	for {
		wait := time.Duration(0)
		if s.log.Done || s.last != nil && s.log.Empty() {
			wait = after
		}
		x, err := c.Read(ctx, wait)
		if err != nil {
			s.split.End(s.line)
			done := s.log.Done || s.last != nil && s.log.Empty()
			if e := s.end(); s.err == nil {
				s.err = e
			}
			switch {
			case s.err != nil:
				return s.err
			case done && ctx.Err() == nil:
				return nil // the device had finished
			}
			return err
		}
		if x.Gap {
			s.split.Gap(s.line)
			s.log.Gap()
		}
		was := s.last
		s.split.Feed(x.Data, s.line)
		if s.log.Done {
			s.flush()
		}
		if s.err == nil && s.log.Failed != "" {
			line := s.log.Failed
			s.err = errors.Join(s.end(), &FailedError{line})
		}
		if s.err != nil {
			return s.err
		}
		if reset != nil && s.last != was && s.log.Empty() {
			if err := reset(ctx); err != nil {
				return err
			}
		}
	}
}

// line handles a line.
func (s *session) line(text string, dirty bool) {
	if s.err != nil {
		return
	}
	if (s.log.Done && strings.TrimSpace(text) != "") || console.Starts(text) && !s.log.Empty() {
		s.flush()
	}
	s.log.Line(text, dirty)
}

// flush ends the text of a run, and begins another.
func (s *session) flush() {
	l := s.log
	s.log = &console.Log{}
	r := l.Reading("mltk", "")
	switch {
	case r == nil:
	case !l.Done && s.names == nil && len(s.held) < 100:
		s.held = append(s.held, r)
	default:
		if s.err == nil {
			s.err = s.take(r, l.Done)
		}
	}
}

// end uses what was read, including truncated texts.
func (s *session) end() error {
	s.flush()
	if s.names == nil && len(s.held) > 0 {
		// The longest one covers most of the model.
		sorting.Stable(s.held, func(a, b *console.Reading) int { return len(b.Layers) - len(a.Layers) })
	}
	for _, r := range s.held {
		if err := s.take(r, false); err != nil {
			return err
		}
	}
	s.held = nil
	if s.err == nil && s.last != nil && s.job.Runs() == 1 {
		return s.bands()
	}
	return s.err
}

// take converts a reading to an inference.
func (s *session) take(r *console.Reading, whole bool) error {
	run := r.Draft.Run()
	if s.names == nil {
		if err := s.describe(run, r); err != nil {
			return err
		}
		if held := s.held; len(held) > 0 && whole {
			s.held = nil
			for _, h := range held {
				if err := s.take(h, false); err != nil {
					return err
				}
			}
		}
	} else {
		for i := range run.Profile.Layers {
			if n := run.Profile.Layers[i].Op; i >= len(s.names) || n != s.names[i] && n != console.Unknown && s.names[i] != console.Unknown {
				s.job.Found("mltk.other", profile.Warning, "The board ran another model than before: this run is left out.")
				s.job.Lost(-1, 1, profile.ByRecord, "a run of another model")
				return nil
			}
		}
		for _, f := range run.Profile.Findings {
			if f.ID != "record.settings" {
				s.job.Found(f.ID, f.Severity, "%s", f.Text)
			}
		}
	}
	for _, l := range run.Lost {
		s.job.Lost(-1, deref(l.Records), l.Cause.Code, l.Cause.Text)
	}
	x := device.Inference{Whole: map[string]float64{}, Partial: !whole}
	for k, v := range r.Whole {
		x.Whole[k] = v.Value
	}
	for i, figures := range r.Layers {
		f := map[string]float64{}
		for k, v := range figures {
			f[k] = v.Value
		}
		x.Layers = append(x.Layers, device.LayerFigures{Layer: i, Figures: f})
	}
	if whole {
		s.last = r
	}
	return s.job.Inference(x)
}

// name names operators that the board did not print, by the model, if all others match the model.
func name(layers []profile.Layer, m *profile.Profile) {
	if m == nil {
		return
	}
	var ops []string
	for i := range m.Layers {
		if m.Layers[i].Parent == nil {
			ops = append(ops, m.Layers[i].Op)
		}
	}
	for i := range layers {
		if i >= len(ops) || layers[i].Op != console.Unknown && !strings.EqualFold(layers[i].Op, ops[i]) {
			return
		}
	}
	for i := range layers {
		if l := &layers[i]; l.Op == console.Unknown {
			l.Op, l.Name = ops[i], strings.ToLower(ops[i])
		}
	}
}

// bands sets the error bounds of the figures of a single run.
func (s *session) bands() error {
	set := func(layer int, figures map[string]console.Value) error {
		for _, k := range slices.Sorted(maps.Keys(figures)) {
			v := figures[k]
			if v.High <= v.Value {
				continue
			}
			m := profile.Value(profile.Measured, v.Value, "as printed: digits beyond are cut off")
			m.Band = &[2]float64{v.Value, v.High}
			if err := s.job.Count(layer, k, m); err != nil {
				return err
			}
		}
		return nil
	}
	if err := set(-1, s.last.Whole); err != nil {
		return err
	}
	for i, f := range s.last.Layers {
		if err := set(i, f); err != nil {
			return err
		}
	}
	return nil
}

// foreign describes the figures that opmeter's table lacks.
func foreign(r *console.Reading) []profile.Quantity {
	found := map[string]profile.Quantity{}
	for k, v := range r.Whole {
		v.Quantity.Model = true
		found[k] = v.Quantity
	}
	for _, l := range r.Layers {
		for k, v := range l {
			found[k] = v.Quantity
		}
	}
	var out []profile.Quantity
	for _, k := range slices.Sorted(maps.Keys(found)) {
		if _, ok := profile.Lookup(k); !ok {
			out = append(out, found[k])
		}
	}
	return out
}

func deref(n *int64) int64 {
	if n == nil {
		return 1
	}
	return *n
}

// describe describes what the board runs.
func (s *session) describe(run *runlog.Run, r *console.Reading) error {
	p := run.Profile
	p.Target = profile.Target{Kind: profile.TargetDevice, Engine: p.Target.Engine, Accelerator: p.Target.Accelerator, ClockHz: p.Target.ClockHz}
	p.Quantities = append(p.Quantities, foreign(r)...)
	p.Findings = append(p.Findings, profile.Finding{ID: "mltk.resolution", Severity: profile.Info, Text: "The board prints two decimals and cuts the rest off: cycles lie between the printed figure and one in its last digit more. Its clock counts steps of 31 µs."})
	s.names = make([]string, len(p.Layers))
	for i := range p.Layers {
		s.names[i] = p.Layers[i].Op
	}
	name(p.Layers, s.job.Model)
	if err := s.job.Describe(p, run.Hints); err != nil {
		return err
	}
	s.job.Clock(0, device.Nanoseconds)
	return nil
}
