package opmeter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/tflm"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// isProgram reports whether an engine is compiled into a program.
func isProgram(e *engine.Engine) bool { return e != nil && e.Name == find.Micro }

// fitsProgram checks the options that a program with a compiled-in engine cannot take.
func (o *Options) fitsProgram() error {
	if !isProgram(o.Engine) {
		return nil
	}
	const who = "tflm=PROGRAM"
	switch in := &o.Inputs; {
	case o.Engine.Command == "":
		return wrong("Engine", "a program is missing: name it as tflm=PROGRAM")
	case !(o.Engine.ClockHz >= 0 && o.Engine.ClockHz < 1e15):
		return wrong("ClockHz", "use a frequency above 0, not %v Hz", o.Engine.ClockHz)
	case o.Threads > 1:
		return wrong("Threads", "%s takes no number of threads from outside: leave it out", who)
	case o.Pin:
		return wrong("Pin", "the threads of %s are its own: leave it out", who)
	case o.Streams > 1:
		return wrong("Streams", "%s runs one inference after the other: leave it out", who)
	case o.Rate > 0:
		return wrong("Rate", "%s runs its inferences when it likes: leave it out", who)
	case o.Cold != "":
		return wrong("Cold", "%s runs its inferences by itself: nothing can be made cold between them", who)
	case len(o.Carry) > 0:
		return wrong("Carry", "%s feeds its model by itself: leave it out", who)
	case o.MaxMemory > 0:
		return wrong("MaxMemory", "the memory of %s cannot be bounded: leave it out", who)
	case in.Batch > 0:
		return wrong("Inputs.Batch", "%s runs its model in the shapes of the file: leave it out", who)
	case len(in.Shapes) > 0:
		return wrong("Inputs.Shapes", "%s runs its model in the shapes of the file: leave it out", who)
	case len(in.Dims) > 0:
		return wrong("Inputs.Dims", "%s runs its model in the shapes of the file: leave it out", who)
	case len(o.Engine.Options) > 0:
		return wrong("Engine.Options", "%s has none: what it takes stands in its command line", who)
	}
	return nil
}

// minStarts is the least number of starts over which the inferences of a program are spread if it
// is interleaved with other engines.
const minStarts = 5

// profileTFLM measures with a program that has TensorFlow Lite Micro compiled in, by the output of
// its profiler. The program is a device whose port is a command, started as often as needed.
func (m *Model) profileTFLM(ctx context.Context, o Options, turn *external.Turn) (*profile.Profile, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if m.in.Graph.Format != "tflite" {
		return nil, engineError(m.in.Graph.Path, o.Engine.Name, external.Errorf(external.NoFormat, "TensorFlow Lite Micro reads .tflite models, this one is of format %s", m.in.Graph.Format))
	}
	base, err := m.count(o.Inputs, true)
	if err != nil {
		return nil, err
	}
	file, clean, err := m.in.File()
	if err != nil {
		return nil, err
	}
	defer clean()
	command, err := commandLine(o.Engine, file)
	if err != nil {
		return nil, err
	}
	var said tail
	p, err := source.Collect(ctx, device.New(port.Address{Kind: port.Exec, Name: command}, o.tflmOptions(base, command, turn, &said)), source.Options{Version: buildinfo.Version(), Journal: o.Journal})
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, profile.ErrJournal):
		return p, failed(m.in.Graph.Path, err)
	case p == nil && err == nil || ctx.Err() != nil:
		return p, nil
	}
	var e *external.Error
	if err != nil {
		e = tflmError(o.Engine, command, err, said.last())
	}
	if found, all := countOps(p, base); p != nil && 2*found < all && (e == nil || e.Code == external.Failed) {
		e = external.Errorf(external.Failed, "%s prints %d of the %d operators of %s: another model is compiled in, or its output ends early", o.Engine.Command, found, all, base.Model.Name)
	} else if p != nil && e == nil && !hasCost(p) {
		e = external.Errorf(external.Failed, "%s: the clock of its profiler did not run: compile TensorFlow Lite Micro with TF_LITE_USE_CTIME", o.Engine.Command)
	}
	if e == nil {
		return p, nil
	}
	if p != nil && len(p.Incomplete) == 0 {
		p.Incomplete = append(p.Incomplete, profile.Missing{Cause: profile.ByError, Text: e.Text})
	}
	return p, engineError(m.in.Graph.Path, o.Engine.Name, e)
}

// hasCost reports whether a profile has the cost of an inference.
func hasCost(p *profile.Profile) bool {
	_, m := p.Cost()
	return m != nil
}

// countOps counts the operators of a model, and those of them that a profile has, by kind and
// number. If a program prints sums of kinds, it counts kinds.
func countOps(p, model *profile.Profile) (found, all int) {
	if p == nil {
		return 0, 0
	}
	sums := slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == tflm.Sums })
	there := map[string]int{}
	for i := range p.Layers {
		there[p.Layers[i].Op]++
	}
	want := map[string]int{}
	for i := range model.Layers {
		if l := &model.Layers[i]; l.Parent == nil {
			want[l.Op]++
		}
	}
	for op, n := range want {
		if sums {
			n = 1
		}
		all += n
		found += min(n, there[op])
	}
	return found, all
}

// commandLine returns the command line of a program for a model.
func commandLine(e *engine.Engine, file string) (string, error) {
	name, alone, err := port.Program(e.Command)
	if err != nil {
		return "", &OptionError{Option: "Engine", Text: err.Error(), Err: err}
	}
	if name != "" && alone {
		return e.Command + " " + port.Quote(file), nil
	}
	return strings.ReplaceAll(e.Command, "{model}", port.Quote(file)), nil
}

// tflmOptions returns how a program is measured.
func (o *Options) tflmOptions(base *profile.Profile, command string, turn *external.Turn, said *tail) device.Options {
	again := &device.Again{}
	if o.Runs == 0 {
		again.Time = cmp.Or(o.Time, loop.DefaultTime)
	}
	if turn != nil {
		again.Wait = turn.Wait
		again.Part, again.PartTime = (o.Runs+minStarts-1)/minStarts, again.Time/minStarts
	}
	rules := device.Rules{Runs: o.Runs, Warmup: 1, ClockHz: o.Engine.ClockHz, Model: base, Described: describeProgram(o.Engine, command, again.Time)}
	if o.Warmup < 0 {
		rules.Warmup = 0
	}
	if o.Progress != nil {
		begun := time.Now()
		rules.Progress = func(g device.Progress) {
			f := min(1, time.Since(begun).Seconds()/max(again.Time, 1).Seconds())
			if g.Want > 0 {
				f = float64(g.Runs) / float64(g.Want)
			}
			o.Progress("measuring", f)
		}
	}
	return device.Options{
		Rules: rules, Protocols: []*device.Protocol{tflm.Protocol()}, Timeout: cmp.Or(o.Engine.Silent, external.DefaultSilent), Again: again,
		Port: port.Options{Errors: true, Record: said},
	}
}

// describeProgram returns a function that enters the program into a profile.
func describeProgram(e *engine.Engine, command string, time time.Duration) func(p *profile.Profile) {
	return func(p *profile.Profile) {
		p.Target.ID, p.Target.Kind, p.Target.Engine = "host", profile.TargetHost, "TensorFlow Lite Micro"
		p.Settings.Engine, p.Settings.EngineLibrary = p.Target.Engine, e.Library
		p.Settings.EngineOptions = map[string]string{"command": command}
		if time > 0 {
			p.Settings.TimeS = new(time.Seconds())
		}
		w := machine.NewWatch()
		w.Begin()
		p.Host = w.End()
	}
}

// tflmError returns the fault of a program as one line.
func tflmError(e *engine.Engine, command string, err error, last string) *external.Error {
	who := e.Command
	if last != "" {
		last = "; its last words: " + last
	}
	const another = "name another program with --engine tflm=PROGRAM"
	if x, ok := errors.AsType[*port.OpenError](err); ok {
		switch x.Cause {
		case port.Missing:
			return external.Errorf(external.NotFound, "%s: no such program: %s", who, another)
		case port.Permission:
			return external.Errorf(external.NotLibrary, "%s may not be executed: chmod +x it, or %s", who, another)
		}
		return external.Errorf(external.NotLibrary, "%s does not start (%v): %s", who, x.Err, another)
	}
	if x, ok := errors.AsType[*port.ExitError](err); ok {
		switch {
		case strings.Contains(x.Signal, "killed"):
			return external.Errorf(external.Killed, "%s was killed from outside: by a user, or by the system because memory ran out", who)
		case x.Signal != "":
			return external.Errorf(external.Crashed, "%s crashed (%s)%s", who, x.Signal, last)
		}
		return external.Errorf(external.Crashed, "%s ended with exit status %d%s", who, x.Status, last)
	}
	const prints = "have it call Log or LogCsv of MicroProfiler after an inference"
	if x, ok := errors.AsType[*device.UnknownError](err); ok {
		if x.Seen.Bytes == 0 {
			return external.Errorf(external.NotLibrary, "%s printed nothing: %s", who, prints)
		}
		return external.Errorf(external.NotLibrary, "%s prints nothing of TensorFlow Lite Micro's profiler: %s%s", who, prints, last)
	}
	if x, ok := errors.AsType[*device.SilentError](err); ok {
		return external.Errorf(external.Silent, "%s has printed nothing for %v: it was ended; --engine-timeout gives it more time%s", who, x.Waited, last)
	}
	return external.Errorf(external.Failed, "%s: %s", who, strings.TrimPrefix(err.Error(), "exec:"+command+": "))
}

// tail keeps the end of the output of a program.
type tail struct {
	mu  sync.Mutex
	end []byte
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 4 << 10
	t.end = append(t.end, p[max(0, len(p)-most):]...)
	t.end = bytes.Clone(t.end[max(0, len(t.end)-most):])
	return len(p), nil
}

// last returns the last line that is not blank, without control characters.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := bytes.TrimSpace(t.end)
	s = bytes.TrimSpace(s[bytes.LastIndexAny(s, "\r\n")+1:])
	const most = 300
	s = bytes.ToValidUTF8(s[:min(len(s), most)], nil)
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s))
}
