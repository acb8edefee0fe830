// Package tflm measures models whose firmware prints the records of TensorFlow Lite Micro's
// profiler: lines of ticks, a table of events, a table of sums by operator. internal/record/tflm
// parses the lines, as in a log file; this package assembles them into inferences as they arrive.
package tflm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/lines"
	"github.com/opmeter/opmeter/internal/record/tflm"
	"github.com/opmeter/opmeter/profile"
)

// quiet is the pause of a device between two printed inferences.
const quiet = 300 * time.Millisecond

// Protocol returns the protocol.
func Protocol() *device.Protocol {
	return &device.Protocol{
		Name:   "tflm",
		Title:  "the profiler of TensorFlow Lite Micro",
		Speeds: []int{115200},
		Sure:   sure,
		Run: func(ctx context.Context, c *device.Conn, j *device.Job) error {
			k := c.Address().Kind
			return newSession(j, k == port.Serial || k == port.TCP).run(ctx, c)
		},
	}
}

// sure looks for lines that are specific to this profiler.
func sure(head []byte) int {
	n := 0
	var s lines.Splitter
	each := func(l string, dirty bool) {
		if !dirty && tflm.Known(l) {
			n = min(max(n+20, 80), 95)
		}
	}
	s.Feed(head, each)
	s.End(each)
	return n
}

// Sums is the finding of a device that prints one figure for all operators of a kind.
const Sums = "tflm.tags"

// session is one connection.
type session struct {
	job     *device.Job
	split   lines.Splitter
	console *tflm.Console
	asm     *assembler
	clock   clock

	damaged int64
	dirty   int64
	cutOff  int64 // inferences of which parts are missing
	ran     int64 // inferences that were told
	still   int64 // inferences in which all ticks are 0
	mean    []sum // by operator, of the inferences that count
	total   sum
	byTag   map[string]int64 // ticks of the last whole inference
	table1  []tflm.Event     // a table of sums that came before the first inference was known
	sums    bool             // tables of sums are the inferences
	err     error
}

// sum is the ticks over all inferences.
type sum struct {
	ticks float64
	n     int64
	some  []float64 // the first of them
}

// odd reports whether the ticks of one inference are far from the others', as after a lost or
// damaged digit.
func (m *sum) odd() bool {
	if len(m.some) < 3 {
		return false
	}
	middle := stats.Median(m.some)
	const far = 1.2
	return slices.Max(m.some) > far*middle+5 || slices.Min(m.some) < middle/far-5
}

func newSession(j *device.Job, joined bool) *session {
	s := &session{job: j}
	s.console = tflm.NewConsole(&tflm.Hooks{
		Event: s.event,
		Break: func() { s.asm.mark() },
		Round: func(n, ticks, _ int64) {
			s.asm.mark()
			if s.asm.round = -1; n == 1 && ticks > 0 {
				s.asm.round = ticks
			}
		},
		Table: s.table,
	})
	s.asm = newAssembler(operators(j.Model), !joined, s.inference, s.describe)
	if joined {
		s.split.Gap(func(string, bool) {}) // the first line may be incomplete
	}
	return s
}

// operators returns the operators of a model in execution order.
func operators(m *profile.Profile) []string {
	if m == nil {
		return nil
	}
	var out []string
	for i := range m.Layers {
		if m.Layers[i].Parent == nil {
			out = append(out, m.Layers[i].Op)
		}
	}
	return out
}

func (s *session) run(ctx context.Context, c *device.Conn) error {
	silent := false
	for {
		wait := quiet
		if silent {
			wait = 0
		}
		x, err := c.Read(ctx, wait)
		switch {
		case err == nil:
		case errors.Is(err, device.ErrSilent) && !silent:
			silent = true
			if s.asm.ops == nil {
				s.asm.mark() // while the order is learnt; later, one operator may take that long
			}
			if s.err != nil {
				return s.err
			}
			continue
		default:
			if errors.Is(err, device.ErrEnough) || ctx.Err() != nil {
				s.again(true) // stopped in the middle of something
			}
			s.split.End(s.last)
			s.asm.mark()
			s.asm.end()
			if e := s.finish(); s.err == nil {
				s.err = e
			}
			if s.err != nil {
				return s.err
			}
			return err
		}
		silent = false
		if x.Again {
			s.again(x.Cut)
		}
		if x.Gap {
			s.split.Gap(s.line)
			s.console.Gap()
			s.asm.gap()
		}
		s.split.Feed(x.Data, s.line)
		if s.err != nil {
			if e := s.finish(); e != nil {
				return e
			}
			return s.err
		}
	}
}

// last handles a line without a line ending: it is complete if it ends with the profiler's last
// characters.
func (s *session) last(text string, dirty bool) {
	s.line(text, dirty && !strings.HasSuffix(text, " ms)."))
}

// again ends the current inference: the program was restarted. If it was ended on purpose (cut),
// that is not a loss.
func (s *session) again(cut bool) {
	if cut {
		s.split = lines.Splitter{}
	} else {
		s.split.End(s.last)
	}
	s.asm.again(cut)
	s.console.Gap()
}

func (s *session) line(text string, dirty bool) {
	switch {
	case s.err != nil:
	case dirty && strings.ContainsAny(text, "0123456789"), piece(text):
		s.dirty++ // may have been one of the profiler's
	default:
		s.console.Line(text)
	}
}

// piece reports whether a line looks like part of a profiler line, or like several merged ones.
func piece(text string) bool {
	if tflm.Known(text) {
		return strings.Count(text, "took") > 1 || strings.Count(text, "ticks") > 1 && !strings.HasPrefix(text, `"`)
	}
	return strings.Contains(text, "took") || strings.Contains(text, "ticks") && !strings.Contains(text, "number of ticks") || strings.HasSuffix(text, " ms).")
}

func (s *session) event(e tflm.Event) {
	if !s.clock.accept(e) {
		s.damaged++
		return
	}
	s.asm.event(e)
}

// describe describes the operators that the device runs.
func (s *session) describe(ops []string) {
	run := s.console.Describe("", ops)
	p := run.Profile
	p.Target = profile.Target{Kind: profile.TargetDevice, Engine: p.Target.Engine, Description: p.Target.Description}
	s.mean = make([]sum, len(ops))
	if err := s.job.Describe(p, run.Hints); err != nil {
		s.err = err
		return
	}
	s.job.Clock(0, device.Ticks)
}

// inference passes on one inference.
func (s *session) inference(x inference) {
	if s.err != nil {
		return
	}
	s.ran++
	if !x.whole {
		s.cutOff++
	}
	if len(x.events) == 0 {
		return
	}
	out := device.Inference{Partial: !x.whole}
	tags := map[string]int64{}
	total := int64(0)
	for i, e := range x.events {
		out.Layers = append(out.Layers, device.LayerFigures{Layer: x.at[i], Figures: map[string]float64{"ticks": float64(e.Ticks)}})
		total += e.Ticks
		tags[e.Tag] += e.Ticks
	}
	if total == 0 && x.whole {
		s.still++
		for i := range out.Layers {
			out.Layers[i].Figures = nil // the clock did not run: the figures are unknown, not zero
		}
	}
	if x.round >= total && x.round > 0 {
		out.Whole = map[string]float64{"ticks": float64(x.round)}
		total = x.round
	}
	before := s.job.Runs()
	s.err = s.job.Inference(out)
	if x.whole {
		s.byTag = tags
	}
	if s.job.Runs() == before {
		return
	}
	if total == 0 {
		return
	}
	for i, e := range x.events {
		m := &s.mean[x.at[i]]
		m.ticks += float64(e.Ticks)
		m.n++
		if len(m.some) < min(256, 2_000_000/len(s.mean)) {
			m.some = append(m.some, float64(e.Ticks))
		}
	}
	s.total.ticks += float64(total)
	s.total.n++
}

// table handles sums by operator: they confirm the events before, or are the only data.
func (s *session) table(rows []tflm.Event, total int64) {
	s.asm.mark()
	sum := int64(0)
	for _, r := range rows {
		sum += r.Ticks
	}
	if (sum-total)%(1<<32) != 0 {
		s.damaged += int64(max(1, len(rows)))
		return // lines of it are missing or damaged
	}
	// A benchmark prints such a table of its setup before the model runs, too.
	isOps := slices.ContainsFunc(rows, func(r tflm.Event) bool { return strings.ToUpper(r.Tag) == r.Tag })
	if !isOps {
		return
	}
	if s.asm.ops == nil && len(s.asm.held) == 0 {
		s.sums = true
		s.asm.model = nil
		s.asm.know(tags(rows))
	}
	if s.sums {
		for i, r := range rows {
			r.Row = int64(i)
			s.asm.event(r)
		}
		s.asm.mark()
		return
	}
	if s.byTag == nil {
		s.table1 = rows // the inference before is not assembled yet
		return
	}
	s.compare(rows)
}

// compare reports where a table contradicts the last inference.
func (s *session) compare(rows []tflm.Event) {
	for _, r := range rows {
		if have, ok := s.byTag[r.Tag]; ok && have != r.Ticks {
			s.job.Found("tflm.sums", profile.Warning, "The device's table of ticks by operator contradicts the events before it (%s: %d and %d): one of them is damaged, or it is of several inferences.", r.Tag, r.Ticks, have)
			return
		}
	}
}

// finish reports the final findings when the stream ends.
func (s *session) finish() error {
	if !s.job.Described() {
		return nil
	}
	lost := func(n int64, text string) {
		if n > 0 {
			s.job.Lost(-1, n, profile.ByRecord, text)
			s.job.Found("tflm.lost", profile.Warning, "%d %s.", n, text)
		}
	}
	lost(s.dirty, "lines were damaged or cut on the way")
	lost(s.damaged, "lines whose figures contradict each other were left out")
	lost(s.asm.lost, "lines are of inferences of which others were lost, and were left out")
	if s.cutOff > 0 {
		s.job.Found("tflm.partial", profile.Warning, "Of %d inferences %d are not whole: lines were lost.", s.ran, s.cutOff)
	}
	odd := 0
	for i := range s.mean {
		if s.mean[i].odd() {
			odd++
		}
	}
	if odd > 0 {
		s.job.Found("tflm.odd", profile.Warning, "Of %d operators the ticks of an inference differ much from the other inferences. The text has no checksum: a digit may have been damaged on the way, or the device did something else meanwhile.", odd)
	}
	if s.still > 0 {
		s.job.Found("tflm.ticks", profile.Problem, "Of %d inferences %d have ticks of 0 only and no figures: the clock of the profiler did not run. TensorFlow Lite Micro has one where it is compiled with TF_LITE_USE_CTIME or for a board.", s.ran, s.still)
	}
	if len(s.asm.alien) > 0 {
		names := slices.Sorted(maps.Keys(s.asm.alien))
		s.job.Found("tflm.others", profile.Info, "The device timed other things than operators, which are left out: %s.", strings.Join(names[:min(len(names), 10)], ", "))
	}
	if s.asm.turned {
		s.job.Found("tflm.begin", profile.Info, "The device prints nothing between inferences: where one begins is not known, and the first layer may be one of the middle. With the model, the order is its own.")
	}
	if s.ran == 1 && s.byTag != nil {
		s.compare(s.table1)
	}
	if s.sums {
		s.job.Found(Sums, profile.Info, "The device prints one figure for all operators of a kind: a layer here is such a sum.")
	}
	return s.bounds()
}

// bounds sets times with error bounds from the bounds of the clock, if the clock was not given.
func (s *session) bounds() error {
	lo, hi, ok := s.clock.bounds()
	given := s.job.ClockHz()
	switch {
	case !ok:
		return nil
	case given > 0:
		if given < lo || given > hi {
			s.job.Found("tflm.clock", profile.Warning, "The clock of %.6g Hz that was given contradicts the printed milliseconds, which ask for %.6g to %.6g Hz.", given, lo, hi)
		}
		return nil
	}
	s.job.Found("tflm.clock", profile.Warning, "The device counts ticks and does not tell their frequency. By the milliseconds that it prints, cut to whole ones, it lies between %.6g and %.6g Hz, and times are given by that: name it, such as --clock %.10g, for exact ones.", lo, hi, tflm.Roundest(lo, hi))
	method := fmt.Sprintf("mean ticks, by a clock of %.6g to %.6g Hz that the printed milliseconds ask for", lo, hi)
	set := func(layer int, m sum) error {
		if m.n == 0 {
			return nil
		}
		t := m.ticks / float64(m.n)
		v := profile.Value(profile.Measured, 2*t/(lo+hi), method)
		v.Band = &[2]float64{t / hi, t / lo}
		return s.job.Count(layer, "latency_s", v)
	}
	for i, m := range s.mean {
		if err := set(i, m); err != nil {
			return err
		}
	}
	return set(-1, s.total)
}
