package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/profile"
)

// Name is the name of the protocol on the command line.
const Name = "agent"

// Options of the protocol.
type Options struct {
	// Output receives blocks of data that the firmware sends, such as output tensors: each whole
	// and unchanged. If it is set, the protocol waits for the blocks after the last wanted
	// inference. nil ignores them; see [Outputs].
	Output func(name string, index int, data []byte)
}

// New returns the protocol.
func New(o Options) *device.Protocol {
	return &device.Protocol{
		Name: Name, Title: "opmeter agent",
		Speeds: []int{115200, 921600, 460800, 230400, 1000000, 2000000, 3000000, 57600, 38400, 19200, 9600},
		Sure:   sure,
		Run: func(ctx context.Context, c *device.Conn, j *device.Job) error {
			return listen(ctx, c, j, o)
		},
	}
}

// connection is the used part of a device.Conn.
type connection interface {
	Read(ctx context.Context, wait time.Duration) (device.Chunk, error)
}

// Limits of a listener.
const (
	maxWaiting = 16 // inferences that wait for the layers to be known
	maxNames   = 32 // kinds of memory
	maxLines   = 3  // of the firmware's own output

	// Without a frame for this many bytes (noise or text), the stream is another device's, or at
	// another speed.
	maxNoise = 64 << 10
	maxTalk  = 4 << 20
)

// waiting is an inference with the description of its counter, nil until it is known.
type waiting struct {
	run   *Run
	hello *Hello
}

// listener computes inferences for a recorder.
type listener struct {
	j *device.Job
	o Options
	s *Stream

	hello   *Hello // of this start of the device
	first   *Hello // of the start that was described
	info    map[uint8]string
	queue   []waiting
	tags    map[uint16]string // of earlier starts
	layers  map[uint16]int    // by index of the operator
	calls   map[uint16]int    // in an inference, 0 where that varies
	foreign bool              // the device has another model or counter since

	findings []profile.Finding // until there is a profile to hold them
	memory   map[string]int64
	names    []string // of memory, in order
	keys     map[string]bool
	lines    []string
	line     []byte
	printed  int64
	restarts int
	unused   int64 // inferences that are of another firmware, or of no known one
	wrong    int64 // inferences in which the agent was used wrongly
	problem  string

	enough bool
	done   bool
	err    error
}

// listen reads bytes until the stream ends, the firmware has finished, or the recorder has
// enough.
func listen(ctx context.Context, c connection, j *device.Job, o Options) error {
	l := &listener{j: j, o: o, memory: map[string]int64{}, tags: map[uint16]string{}, keys: map[string]bool{}}
	l.s = NewStream(l.event)
	for l.err == nil && !l.done {
		x, err := c.Read(ctx, 0)
		if err != nil {
			if l.enough && (errors.Is(err, io.EOF) || errors.Is(err, device.ErrSilent)) {
				err = device.ErrEnough // it was the data after them that did not come
			}
			return l.end(err)
		}
		if x.Gap {
			l.s.Gap()
		}
		l.s.Feed(x.Data, x.At)
		if l.err == nil && !l.done {
			l.err = l.s.adrift()
		}
	}
	return l.end(l.err)
}

// event handles an event of the stream.
func (l *listener) event(e Event) {
	if l.err != nil || l.done {
		return // the rest of the same bytes is ignored
	}
	switch {
	case e.Hello != nil:
		l.greet(e.Hello)
	case e.Run != nil:
		l.run(e.Run)
	case e.Memory != nil:
		l.use(e.Memory)
	case e.Data != nil:
		if l.o.Output != nil {
			l.o.Output(e.Data.Name, e.Data.Index, e.Data.Bytes)
		}
	case e.Output != nil:
		l.print(e.Output)
	case e.Text != "":
		l.found("agent.text", profile.Info, "The firmware says: %s", clip(e.Text, 500))
	case e.Problem != nil:
		l.misuse(*e.Problem)
	case e.Restart:
		l.restart()
	case e.Done:
		l.done = true
	case e.Version != 0:
		l.err = fmt.Errorf("the firmware speaks version %d of the agent's format, and this opmeter version %d: build the firmware with the header that opmeter device agent writes", e.Version, version)
	}
}

// greet handles the description of the counter.
func (l *listener) greet(h *Hello) {
	l.hello = h
	for i := range l.queue {
		if l.queue[i].hello == nil {
			l.queue[i].hello = h
		}
	}
	if f := l.first; f != nil {
		l.foreign = f.Unit != h.Unit || f.Hz != h.Hz || f.Num != h.Num || f.Den != h.Den
	}
	if h.Flags&flagStill != 0 {
		l.found("agent.still", profile.Warning, "The counter of the device (%s) did not move when it was started: no figure of it is one.", counterName(l.s.Info[infoCounter]))
	}
	if h.Flags&flagPolled != 0 {
		text := fmt.Sprintf("%d counts", h.Period)
		if h.Hz > 0 {
			text = fmt.Sprintf("%.3g s", float64(h.Period)/float64(h.Hz))
		}
		l.found("agent.polled", profile.Warning, "SysTick is the counter and its interrupt does not reach opmeter_systick: times of operators of %s and more are too short. Call opmeter_systick in SysTick_Handler, with interrupts on.", text)
	}
}

func counterName(s string) string {
	if s == "" {
		return "the built-in one, or opmeter_config.now"
	}
	return s
}

// restart is called when the device restarted or was replaced.
func (l *listener) restart() {
	l.restarts++
	for k, v := range l.s.Tags {
		l.tags[k] = v
	}
	l.hello = nil
	l.queue = slices.DeleteFunc(l.queue, func(w waiting) bool {
		if w.hello == nil {
			l.unused++
		}
		return w.hello == nil
	})
}

// run handles an inference.
func (l *listener) run(r *Run) {
	if l.enough {
		l.err = device.ErrEnough // the data between inferences is over
		return
	}
	if r.Wrong {
		l.wrong++
		return
	}
	if l.layers == nil || l.hello == nil || len(l.queue) > 0 {
		l.queue = append(l.queue, waiting{r, l.hello})
		l.flush(false)
		return
	}
	l.take(r, l.hello)
}

// flush describes the device once a complete inference with all its names has arrived, or when no
// more are expected (now). It then passes on the waiting inferences.
func (l *listener) flush(now bool) {
	if l.layers == nil {
		ready := slices.ContainsFunc(l.queue, func(w waiting) bool { return w.hello != nil && !w.run.Partial && w.run.Sure })
		full := len(l.queue) > maxWaiting && slices.ContainsFunc(l.queue, func(w waiting) bool { return w.hello != nil })
		if !ready && !full && !now {
			l.trim()
			return
		}
		if l.hello == nil && !l.adopt() {
			l.unused += int64(len(l.queue))
			l.queue = nil
			return
		}
		if len(l.queue) == 0 {
			return
		}
		if l.err = l.describe(); l.err != nil {
			return
		}
		if !ready {
			l.j.Lost(-1, 0, profile.ByRecord, "no inference came whole before the layers were listed")
			l.found("agent.layers", profile.Warning, "No inference came whole before the layers were listed: operators may be missing, and sums over layers lack them.")
		}
	}
	queue := l.queue
	l.queue = nil
	for _, w := range queue {
		switch {
		case l.err != nil:
			return
		case w.hello != nil:
			l.take(w.run, w.hello)
		case now:
			l.unused++
		default:
			l.queue = append(l.queue, w)
		}
	}
	l.trim()
}

// adopt uses the counter description of a waiting inference if the device's last start sent none.
func (l *listener) adopt() bool {
	for _, w := range l.queue {
		if w.hello != nil {
			l.hello = w.hello
		}
	}
	return l.hello != nil
}

// trim bounds the waiting inferences.
func (l *listener) trim() {
	const most = 4 * maxWaiting
	if n := len(l.queue) - most; n > 0 {
		l.unused += int64(n)
		l.queue = slices.Delete(l.queue, 0, n)
	}
}

// take passes an inference to the recorder.
func (l *listener) take(r *Run, h *Hello) {
	if l.foreign || l.other() {
		l.unused++
		l.found("agent.other", profile.Warning, "The device began anew with another model or counter: its inferences since then are left out.")
		return
	}
	x := l.figures(r, h)
	if l.err != nil {
		return
	}
	err := l.j.Inference(x)
	switch {
	case errors.Is(err, device.ErrEnough) && l.o.Output != nil:
		l.enough = true
	case err != nil:
		l.err = err
	}
}

// other reports whether the device now reports another model than the described one.
func (l *listener) other() bool {
	for _, k := range []uint8{infoName, infoModel} {
		if a, b := l.info[k], l.s.Info[k]; a != "" && b != "" && a != b {
			return true
		}
	}
	return false
}

// end reports what is left. err is why the stream ended.
func (l *listener) end(err error) error {
	l.done, l.enough = false, l.enough || errors.Is(err, device.ErrEnough)
	why := l.err
	l.err = nil
	if !l.enough {
		l.s.End()
		l.flush(true)
	}
	if l.err != nil && !errors.Is(l.err, device.ErrEnough) && why == nil {
		err = l.err
	}
	if !l.j.Described() {
		if l.problem != "" && (err == nil || errors.Is(err, io.EOF)) {
			return fmt.Errorf("no inference came whole: %s", l.problem)
		}
		return err
	}
	l.remarks()
	return err
}

// remarks reports losses and other observations.
func (l *listener) remarks() {
	lost := &l.s.Lost
	for _, x := range []struct {
		n    int64
		text string
	}{
		{lost.Frames, "frames of the agent, by their numbers"},
		{lost.Runs, "whole inferences, by their numbers"},
		{lost.Malformed, "frames of the agent that do not have the parts of their type"},
		{lost.Data, "blocks of data that did not come whole"},
		{lost.Counters, fmt.Sprintf("figures of the firmware's own beyond %d names", maxCounters)},
		{l.unused, "inferences of a firmware that did not say hello, or of another one"},
		{l.wrong, "inferences in which the firmware uses the agent wrongly"},
	} {
		if x.n > 0 {
			l.j.Lost(-1, x.n, profile.ByRecord, x.text)
		}
	}
	if lost.Noise > 0 {
		l.found("agent.noise", profile.Info, "%d bytes were neither frames of the agent nor text: damaged frames, or the middle of one where listening began.", lost.Noise)
	}
	if lost.Twice > 0 {
		l.found("agent.twice", profile.Info, "%d frames came twice or too late and were left out.", lost.Twice)
	}
	if lost.Foreign > 0 {
		l.found("agent.foreign", profile.Info, "%d frames of the agent are of types that this version of opmeter does not know.", lost.Foreign)
	}
	if l.restarts > 0 {
		l.found("agent.restart", profile.Warning, "The device began anew %d times while it was listened to.", l.restarts)
	}
	if len(l.line) > 0 {
		l.print([]byte("\n"))
	}
	if l.printed > 0 {
		l.found("agent.output", profile.Info, "The firmware printed %d lines of its own, the first: %q. Those within an operator are part of its time.", l.printed, l.lines)
	}
	if h := l.first; h != nil && h.Flags&flagStill == 0 {
		l.found("agent.cost", profile.Info, "The agent's own time is not in the figures: what it took to send, and by its own calibration %.3g %s for each operator and %.3g for each of its other calls within one.", float64(h.Cost)*h.scale(), units[h.Unit], h.perCall()*h.scale())
	}
}

// print keeps the first lines that the firmware itself prints.
func (l *listener) print(p []byte) {
	for _, c := range p {
		switch {
		case c != '\n':
			if len(l.line) < 120 {
				l.line = append(l.line, c)
			}
		case len(l.line) > 0:
			if len(l.lines) < maxLines {
				l.lines = append(l.lines, clip(string(slices.DeleteFunc(l.line, func(c byte) bool { return c == '\r' })), 100))
			}
			l.printed++
			l.line = l.line[:0]
		}
	}
}

// misuse reports incorrect use of the agent.
func (l *listener) misuse(p Problem) {
	text := map[uint8]string{
		problemNest:      "operators stand deeper within each other than the agent has room for (OPMETER_NEST); the innermost count for those around them",
		problemOrder:     "opmeter_op_end names another operator than the one that runs",
		problemOutside:   "operators begin or end outside of opmeter_inference_begin and opmeter_inference_end",
		problemOpen:      "an inference ends while an operator runs: opmeter_op_end is missing",
		problemInference: "opmeter_inference_begin and opmeter_inference_end do not are interleaved",
		problemBackwards: "the counter of the device went back",
	}[p.Code]
	if text == "" {
		text = fmt.Sprintf("problem %d, which this version of opmeter does not know", p.Code)
	}
	if p.Code != problemInference && p.Code != problemBackwards {
		text += fmt.Sprintf(", at operator %d", p.Index)
	}
	if l.problem == "" {
		l.problem = text
	}
	l.found("agent.use", profile.Warning, "The agent says: %s.", text)
}

// found sends a finding, or keeps it until there is a profile.
func (l *listener) found(id string, s profile.Severity, format string, args ...any) {
	if l.j.Described() {
		l.j.Found(id, s, format, args...)
		return
	}
	const most = 32
	f := profile.Finding{ID: id, Severity: s, Text: fmt.Sprintf(format, args...)}
	if len(l.findings) < most && !slices.ContainsFunc(l.findings, func(g profile.Finding) bool { return g.ID == f.ID && g.Text == f.Text }) {
		l.findings = append(l.findings, f)
	}
}

// clip returns the beginning of a text as one line of valid UTF-8.
func clip(s string, most int) string {
	s = clean([]byte(s))
	if len(s) > most {
		s = clean([]byte(s[:most])) + "…"
	}
	return s
}
