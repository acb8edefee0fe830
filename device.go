package opmeter

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/all"
	"github.com/opmeter/opmeter/internal/device/tiny"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// DeviceProtocol is a way in which devices tell what they measure.
type DeviceProtocol struct {
	// Name is what [DeviceOptions].Protocol takes, Title says what speaks it.
	Name, Title string
}

// DeviceProtocols lists the protocols that [MeasureDevice] recognises.
func DeviceProtocols() (out []DeviceProtocol) {
	for _, p := range all.Protocols(all.Options{}) {
		out = append(out, DeviceProtocol{p.Name, p.Title})
	}
	return out
}

// DeviceOptions says how a device is measured. Only Port is needed.
type DeviceOptions struct {
	// Port is where the device is: a serial port ("/dev/ttyACM0", "COM3"), "tcp:HOST:PORT",
	// "exec:COMMAND" for the output of a program, "-" for standard input, "file:PATH" for a
	// recording.
	Port string
	// Speed of a serial port in baud; 0 tries the usual ones.
	Speed int
	// Protocol is the only one to look for, "" for all of [DeviceProtocols].
	Protocol string
	// Runs is how many inferences are wanted; 0 means 10, and all those of a recording. Less
	// than 0 is as many as come.
	Runs int
	// Discard is how many are left out before them; 0 means 1, less than 0 none.
	Discard int
	// Until ends the runs when half of the 95 % interval of the median is no larger part
	// of it, such as 0.01. Runs is then the most; 0 means 10,000.
	Until float64
	// ClockHz is the frequency of the device's counter, 0 where the device tells it.
	ClockHz float64
	// Timeout is how long the device may be silent, 0 for 10 s. Reconnect is how long to wait
	// for one that was unplugged, 0 not at all.
	Timeout, Reconnect time.Duration
	// Record takes every byte that comes, as it comes, for "file:"; nil for nobody.
	Record io.Writer
	// Stdin is what "-" reads.
	Stdin io.Reader
	// Restart starts the device, nil where nothing can: it is called once the port is open, and
	// before each further inference of a device that gives one a start.
	Restart func(context.Context) error
	// Benchmark is for boards with the firmware of MLPerf Tiny.
	Benchmark DeviceBenchmark
	// Inputs says in which shapes the model runs there.
	Inputs Inputs
	// Journal is a file that keeps what was measured, as in [Options].
	Journal string
	// Created is the time of the profile; the zero value means now.
	Created time.Time
	// Found is told what was recognised, Progress after an inference what is known. nil for
	// nobody.
	Found    func(protocol string, speed int)
	Progress func(DeviceProgress)
	// Output takes tensors that the firmware sends, such as the model's outputs.
	Output func(name string, index int, data []byte)
}

// DeviceBenchmark says how boards with the firmware of MLPerf Tiny are measured.
type DeviceBenchmark struct {
	// Input is what the board is fed, as its firmware takes it; nil for zeros.
	Input []byte
	// Window is how long inferences run in a row for one figure, 0 for a second. The rules of the
	// benchmark ask for five of ten seconds.
	Window time.Duration
	// Expected is what the model gives for the input, to compare the class with; nil for not known.
	Expected []float64
	// Results takes what the board gave, nil for nobody.
	Results func([]float64)
}

// DeviceProgress is what is known while a device is measured.
type DeviceProgress = device.Progress

// DeviceLayer is what is known about one layer meanwhile.
type DeviceLayer = device.LayerProgress

// DeviceError tells what is wrong with a device or the way to it.
type DeviceError struct {
	// Port is where it is.
	Port string
	Err  error
}

// Error names the port and the reason.
func (e *DeviceError) Error() string {
	if s := e.Err.Error(); strings.HasPrefix(s, e.Port) {
		return s
	}
	return e.Port + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *DeviceError) Unwrap() error { return e.Err }

// Validate refuses what suits no device, with an [OptionError].
func (o *DeviceOptions) Validate() error {
	_, _, err := o.parsed()
	return err
}

// parsed checks the options, and returns where the device is and what it may speak.
func (o *DeviceOptions) parsed() (at port.Address, list []*device.Protocol, err error) {
	if at, err = port.Parse(o.Port); err != nil {
		return at, nil, &OptionError{Option: "Port", Text: err.Error(), Err: err}
	}
	if err := o.bounds(); err != nil {
		return at, nil, err
	}
	if list, err = o.protocols(); err != nil {
		return at, nil, err
	}
	return at, list, o.Inputs.Validate()
}

// bounds refuses figures that no device has.
func (o *DeviceOptions) bounds() error {
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

// protocols are those to look for.
func (o *DeviceOptions) protocols() ([]*device.Protocol, error) {
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

// MeasureDevice measures what runs on a device: it listens at its port, recognises who
// speaks there, and makes a profile of the inferences that it tells of. m is the model
// that runs there: its operators are found in what the device sends, which gets shapes, work
// and weights from it; nil for none. When ctx ends, and when the device goes away, the
// profile holds what came before and says so. Errors are an [OptionError], a [ModelError] or a
// [DeviceError]; a profile may stand beside one.
func MeasureDevice(ctx context.Context, m *Model, o DeviceOptions) (*profile.Profile, error) {
	addr, protocols, err := o.parsed()
	if err != nil {
		return nil, err
	}
	d := device.Options{
		Opened:    o.Restart,
		Protocols: protocols, Timeout: o.Timeout, AtMost: o.Runs <= 0,
		Port:  port.Options{Speed: o.Speed, Record: o.Record, Reconnect: o.Reconnect, Stdin: o.Stdin},
		Rules: device.Rules{Runs: o.runs(addr), Warmup: o.discard(), Until: o.Until, ClockHz: o.ClockHz, Progress: o.Progress},
	}
	if o.Found != nil {
		d.Recognised = func(s *device.Seen) { o.Found(s.Protocol, s.Speed) }
	}
	if m != nil {
		if d.Model, err = Count(m, o.Inputs); err != nil {
			return nil, err
		}
	}
	p, err := source.Collect(ctx, device.New(addr, d), source.Options{Version: buildinfo.Version(), Created: o.Created, Journal: o.Journal})
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return p, err
	case errors.Is(err, profile.ErrJournal):
		return p, journalError(err)
	}
	return p, &DeviceError{Port: addr.String(), Err: err}
}

// runs is how many inferences are wanted.
func (o *DeviceOptions) runs(a port.Address) int {
	recorded := a.Kind == port.File || a.Kind == port.Stdin
	switch {
	case o.Runs != 0 || recorded:
		return max(0, o.Runs)
	case o.Until > 0:
		return 10_000
	}
	return 10
}

// discard is how many inferences are left out.
func (o *DeviceOptions) discard() int {
	if o.Discard == 0 {
		return 1
	}
	return max(0, o.Discard)
}
