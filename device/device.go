package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/all"
	"github.com/opmeter/opmeter/internal/device/tiny"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// Protocol is a format in which devices send measurements.
type Protocol struct {
	// Name is the value for [Options].Protocol, Title says what speaks it.
	Name, Title string
}

// Protocols lists the protocols that [Measure] recognises.
func Protocols() (out []Protocol) {
	for _, p := range all.Protocols(all.Options{}) {
		out = append(out, Protocol{p.Name, p.Title})
	}
	return out
}

// Options configures [Measure]. Only Port is needed.
type Options struct {
	// Port is where the device is: a serial port ("/dev/ttyACM0", "COM3"), "tcp:HOST:PORT",
	// "exec:COMMAND" for the output of a program, "-" for standard input, "file:PATH" for a
	// recording.
	Port string
	// Speed of a serial port in baud; 0 tries the usual ones.
	Speed int
	// Protocol is the only one to look for, "" for all of [Protocols].
	Protocol string
	// Runs is the number of measured inferences; 0 means 10, and all those of a recording. A
	// negative number means as many as come.
	Runs int
	// Discard is the number of inferences ignored before them; 0 means 1, a negative number none.
	Discard int
	// Until ends the measurement when half of the 95 % confidence interval of the median is at most
	// this part of it, such as 0.01. Runs is then the most; 0 means 10,000.
	Until float64
	// ClockHz is the frequency of the device's counter, 0 if the device sends it.
	ClockHz float64
	// Timeout is how long the device may be silent, 0 for 10 s; six times that is how long it may
	// send without an inference. Reconnect is how long to wait
	// for one that was unplugged, 0 not at all.
	Timeout, Reconnect time.Duration
	// Record receives every byte from the device when it arrives, for a later "file:"; may be nil.
	Record io.Writer
	// Stdin is what "-" reads.
	Stdin io.Reader
	// Restart starts the device, nil if that is impossible. It is called once the port is open, and
	// before each further inference of a device that runs one inference a start.
	Restart func(context.Context) error
	// Benchmark is for boards with the firmware of MLPerf Tiny.
	Benchmark Benchmark
	// Inputs sets the shapes in which the model runs on the device.
	Inputs opmeter.Inputs
	// Journal is a file that keeps what was measured, as in [opmeter.Options].
	Journal string
	// Created is the time of the profile; the zero value means now.
	Created time.Time
	// Found is called with the recognised protocol and speed, Progress after each inference. Both
	// may be nil.
	Found    func(protocol string, speed int)
	Progress func(Progress)
	// Waiting is called about once a second while bytes come and no inference is complete: with
	// the bytes, the time since the last inference, and the time at which the measurement is given
	// up, 0 for never. It may be nil.
	Waiting func(bytes int64, since, limit time.Duration)
	// Output is called with tensors that the firmware sends, such as the model's outputs; may be
	// nil.
	Output func(name string, index int, data []byte)
}

// Benchmark configures boards with the firmware of MLPerf Tiny.
type Benchmark struct {
	// Input is what the board is fed, in the layout that its firmware expects; nil for zeros.
	Input []byte
	// Window is how long inferences run in a row for one figure, 0 for a second. The rules of the
	// benchmark ask for five of ten seconds.
	Window time.Duration
	// Expected is the model's output for the input, to compare the class with; nil if unknown.
	Expected []float64
	// Results is called with the board's outputs; may be nil.
	Results func([]float64)
}

// Progress is the state of a measurement after an inference.
type Progress struct {
	// Runs is the number of counted inferences, Want the number wanted, 0 if unknown.
	Runs, Want int
	// Warming says that the last inference was warm-up.
	Warming bool
	// Quantity is the key of Median: "latency_s", or the counter's if no time is known.
	Quantity string
	Median   float64
	// Half is half the 95 % confidence interval of the median, relative to it; NaN below six
	// inferences.
	Half float64
	// Layers has one entry per layer.
	Layers []LayerProgress
}

// LayerProgress is the state of one layer.
type LayerProgress struct {
	Name string
	// Last is [Progress].Quantity in the last inference, NaN if the device did not send it.
	Last float64
	// Mean is the mean over counted inferences, NaN for none.
	Mean float64
}

// Error reports a fault of a device or of the connection to it.
type Error struct {
	// Port is where the device is.
	Port string
	Err  error
}

// Error names the port and the reason.
func (e *Error) Error() string {
	if s := e.Err.Error(); strings.HasPrefix(s, e.Port) {
		return s
	}
	return e.Port + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Validate checks the options without a device. The error is an [opmeter.OptionError].
func (o *Options) Validate() error {
	_, _, err := o.parsed()
	return err
}

// parsed checks the options and returns the address of the device and the protocols to look for.
func (o *Options) parsed() (at port.Address, list []*device.Protocol, err error) {
	if at, err = port.Parse(o.Port); err != nil {
		return at, nil, &opmeter.OptionError{Option: "Port", Text: err.Error(), Err: err}
	}
	if err := o.bounds(); err != nil {
		return at, nil, err
	}
	if list, err = o.protocols(); err != nil {
		return at, nil, err
	}
	return at, list, o.Inputs.Validate()
}

// bounds checks the numbers.
func (o *Options) bounds() error {
	switch {
	case o.Speed < 0 || o.Speed > 1e8:
		return wrong("Speed", "use a speed in baud, such as 115200, not %d", o.Speed)
	case !(o.Until >= 0 && o.Until < 1):
		return wrong("Until", "use a part of the time between 0 and 1, such as 0.01, not %v", o.Until)
	case o.ClockHz != 0 && !(o.ClockHz > 0 && o.ClockHz < 1e15):
		return wrong("ClockHz", "use a frequency above 0, not %v Hz", o.ClockHz)
	case o.Timeout < 0:
		return wrong("Timeout", "use a time above 0, not %v", o.Timeout)
	case o.Benchmark.Window < 0:
		return wrong("Benchmark.Window", "use a time above 0, not %v", o.Benchmark.Window)
	case o.Reconnect < 0:
		return wrong("Reconnect", "use a time of 0 or more, not %v", o.Reconnect)
	}
	return nil
}

// protocols returns the protocols to look for.
func (o *Options) protocols() ([]*device.Protocol, error) {
	list := all.Protocols(all.Options{Output: o.Output, Restart: o.Restart, Tiny: tiny.Options(o.Benchmark)})
	if o.Protocol == "" {
		return list, nil
	}
	i := slices.IndexFunc(list, func(p *device.Protocol) bool { return p.Name == o.Protocol })
	if i < 0 {
		var names []string
		for _, p := range list {
			names = append(names, p.Name)
		}
		return nil, wrong("Protocol", "no protocol is called %q: use one of %s", o.Protocol, strings.Join(names, ", "))
	}
	return list[i : i+1], nil
}

// Measure measures a model that runs on a device: it listens at the port, recognises the protocol,
// and makes a profile of the inferences that the device reports. m is the model that runs there,
// nil if unknown: its operators are matched with the reported ones, which get shapes, work and
// weights from it. When ctx ends, or the device disappears, the profile holds what came before and
// says so. Errors are an [opmeter.OptionError], an [opmeter.ModelError] or an [Error]; a profile
// may come beside one.
func Measure(ctx context.Context, m *opmeter.Model, o Options) (*profile.Profile, error) {
	addr, protocols, err := o.parsed()
	if err != nil {
		return nil, err
	}
	d := device.Options{
		Opened:    o.Restart,
		Protocols: protocols, Timeout: o.Timeout, AtMost: o.Runs <= 0,
		Port:  port.Options{Speed: o.Speed, Record: o.Record, Reconnect: o.Reconnect, Stdin: o.Stdin},
		Rules: device.Rules{Runs: o.runs(addr), Warmup: o.discard(), Until: o.Until, ClockHz: o.ClockHz},
	}
	if o.Progress != nil {
		d.Progress = func(p device.Progress) { o.Progress(newProgress(p)) }
	}
	if o.Waiting != nil {
		d.Waiting = func(w device.Waiting) { o.Waiting(w.Bytes, w.Since, w.Limit) }
	}
	if o.Found != nil {
		d.Recognised = func(s *device.Seen) { o.Found(s.Protocol, s.Speed) }
	}
	if m != nil {
		if d.Model, err = bridge.Joined(m, o.Inputs); err != nil {
			return nil, err
		}
	}
	p, err := source.Collect(ctx, device.New(addr, d), source.Options{Version: buildinfo.Version(), Created: o.Created, Journal: o.Journal})
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return p, err
	case errors.Is(err, profile.ErrJournal):
		return p, bridge.Failed("", err)
	}
	return p, &Error{Port: addr.String(), Err: err}
}

// newProgress returns the public form of a progress report.
func newProgress(p device.Progress) Progress {
	out := Progress{Runs: p.Runs, Want: p.Want, Warming: p.Warming, Quantity: p.Quantity, Median: p.Median, Half: p.Half}
	for _, l := range p.Layers {
		out.Layers = append(out.Layers, LayerProgress(l))
	}
	return out
}

// wrong returns the error for an option.
func wrong(option, format string, args ...any) error {
	return &opmeter.OptionError{Option: option, Text: fmt.Sprintf(format, args...)}
}

// runs returns the number of inferences to measure.
func (o *Options) runs(a port.Address) int {
	recorded := a.Kind == port.File || a.Kind == port.Stdin
	switch {
	case o.Runs != 0 || recorded:
		return max(0, o.Runs)
	case o.Until > 0:
		return 10_000
	}
	return 10
}

// discard returns the number of inferences to ignore.
func (o *Options) discard() int {
	if o.Discard == 0 {
		return 1
	}
	return max(0, o.Discard)
}
