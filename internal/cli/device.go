package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
	internaldevice "github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// newDevice gathers the commands about devices.
func newDevice(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:        "device",
		SuggestFor: []string{"doctor", "monitor", "flash", "firmware"},
		Short:      "Work with boards: live view, diagnosis, firmware",
		Long: `Commands for boards. To measure a model on one, use opmeter profile MODEL --on device:PORT;
opmeter devices lists the connected ones.`,
		Example: `  opmeter device doctor --port /dev/ttyACM0
  opmeter device monitor --port /dev/ttyACM0 --model model.tflite
  opmeter device run model.tflite --board mps2-an505 --emulate`,
	}
	c.AddCommand(newDeviceMonitor(a), newDeviceDoctor(a), newDeviceSensiml(a), newDeviceFirmware(a), newDeviceRun(a), newDeviceAgent(a), newDeviceTiny(a), newDeviceMLTK(a))
	return c
}

// devicePort is the port of a target device:PORT.
func devicePort(id string) (at string, ok bool) { return strings.CutPrefix(id, "device:") }

// deviceFlags say how to measure a device.
type deviceFlags struct {
	speed, discard     int
	protocol, record   string
	until              string
	timeout, reconnect time.Duration
}

// deviceOnly are those that nothing else has.
var deviceOnly = []string{"speed", "discard", "protocol", "record", "until", "timeout", "reconnect"}

func (f *deviceFlags) add(c *cobra.Command) {
	f.addSpeed(c)
	f.addDiscard(c)
	c.Flags().StringVar(&f.until, "until", "", "`PART`: measure until the 95 % CI is ± this, such as 1%")
	f.addProtocol(c)
	f.addRecord(c)
	f.addTimeout(c, internaldevice.DefaultTimeout)
	f.addReconnect(c)
}

// addOf adds the flags for a command that knows the protocol and what is warm-up.
func (f *deviceFlags) addOf(c *cobra.Command) {
	f.add(c)
	for _, name := range []string{"discard", "protocol"} {
		_ = c.Flags().MarkHidden(name) // fails for unknown flags only
	}
}

func (f *deviceFlags) addSpeed(c *cobra.Command) {
	wholeVar(c, &f.speed, "speed", 0, 1, 100_000_000, "baud rate of the serial port (default: detected)", "leave it out to detect it")
}

func (f *deviceFlags) addDiscard(c *cobra.Command) {
	wholeVar(c, &f.discard, "discard", 1, 0, most, "skip the first N inferences of a device", "0 keeps all")
}

func (f *deviceFlags) addProtocol(c *cobra.Command) {
	c.Flags().StringVar(&f.protocol, "protocol", "", "`NAME`: protocol of the device (default: detected)")
}

func (f *deviceFlags) addRecord(c *cobra.Command) {
	c.Flags().StringVar(&f.record, "record", "", "`FILE`: record every received byte, for file:FILE")
}

func (f *deviceFlags) addTimeout(c *cobra.Command, usual time.Duration) {
	spanVar(c, &f.timeout, "timeout", usual, 1, "maximum silence of the device; without an inference six times that", "a time above zero, such as 30s")
}

func (f *deviceFlags) addReconnect(c *cobra.Command) {
	spanVar(c, &f.reconnect, "reconnect", 0, 0, "time to wait for a disconnected device", "a time of zero or more, such as 30s")
}

// options gathers what is known about a device and how to measure it.
func (f *deviceFlags) options(a *app, at string, r *runFlags, t *targetFlags, m *modelFlags) (o device.Options, err error) {
	if o.Inputs, err = m.inputs(); err != nil {
		return o, err
	}
	o.Port, o.Speed, o.Protocol, o.Runs, o.Timeout, o.Reconnect, o.Stdin = at, f.speed, f.protocol, r.runs, f.timeout, f.reconnect, a.in
	if o.Discard = f.discard; o.Discard == 0 {
		o.Discard = -1
	}
	if f.until != "" {
		if o.Until, err = part("until", f.until); err != nil {
			return o, err
		}
	}
	if o.ClockHz, err = t.hertz(); err != nil {
		return o, err
	}
	return o, told(o.Validate())
}

// part reads a part of something: "1%", "±0.5 %", "0.01".
func part(flag, s string) (float64, error) {
	t := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "±"))
	number, percent := strings.CutSuffix(t, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, useError("--%s %q: use a part such as 1%%", flag, s)
	}
	return v, nil
}

// onDevice is a runner for a device.
func (a *app) onDevice(id string, o device.Options, f *deviceFlags, done func(*profile.Profile)) runner {
	return runner{
		target: id, run: func(ctx context.Context, m *opmeter.Model, b bounds) (*profile.Profile, error) {
			p, err := a.measured(ctx, m, o, f.record, b.files)
			if p != nil {
				done(p)
			}
			return p, err
		},
		row: func(p *profile.Profile) report.TargetRow { return report.TargetRow{Profile: p} },
	}
}

// measured measures a device, with a line of progress, a journal where files are to be
// written, and the recording. m is nil where no model was named.
func (a *app) measured(ctx context.Context, m *opmeter.Model, o device.Options, record string, files []string) (p *profile.Profile, err error) {
	if record != "" {
		f, err := newRecording("--record", record)
		if err != nil {
			return nil, err
		}
		o.Record = f
		defer func() {
			if e := f.Close(); e != nil {
				err = errors.Join(err, withStatus(statusUse, plainPath(e)))
			}
		}()
	}
	if a.tty && o.Progress == nil {
		l := a.meter()
		defer l.stop()
		l.show("listening", 0)
		o.Found = func(protocol string, speed int) { l.remark(heard(protocol, speed)) }
		o.Waiting = func(bytes int64, since, limit time.Duration) {
			l.remark(unfinished(bytes, since, limit))
			l.show("listening", 0)
		}
		o.Progress = func(g device.Progress) {
			l.remark(interval(&g))
			l.show("measuring", fraction(&g, o.Until))
		}
	}
	if o.Waiting == nil && !a.tty {
		o.Waiting = a.waiting()
	}
	p, err = a.kept(files, func(journal string) (*profile.Profile, error) {
		o := o
		o.Journal = journal
		return device.Measure(ctx, m, o)
	})
	return p, told(err)
}

// waiting says once, where no terminal shows it, that a device sends and completes nothing.
func (a *app) waiting() func(bytes int64, since, limit time.Duration) {
	const worth = 5 * time.Second
	said := false
	return func(bytes int64, since, limit time.Duration) {
		if !said && since >= worth {
			said = true
			fmt.Fprintf(a.err, "%s\n", unfinished(bytes, since, limit))
		}
	}
}

// unfinished is the state of a measurement without an inference.
func unfinished(bytes int64, since, limit time.Duration) string {
	s := fmt.Sprintf("%s in %.0f s, no inference complete", plural(int(bytes), "byte"), since.Seconds())
	if limit > 0 {
		s += fmt.Sprintf("; given up after %.0f s", limit.Seconds())
	}
	return s
}

// newRecording makes the file of a recording; one that is there is not written over: it may be the
// only record of another run.
func newRecording(flag, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil, useError("%s %s: the file exists: name another, or remove it", flag, text.Clean(path))
	}
	if err != nil {
		return nil, withStatus(statusUse, plainPath(err))
	}
	return f, nil
}

// heard says what was recognised.
func heard(protocol string, speed int) string {
	if speed > 0 {
		return fmt.Sprintf("%s at %d baud", protocol, speed)
	}
	return protocol
}

// interval says what is known about the time.
func interval(g *device.Progress) string {
	s := plural(g.Runs, "inference")
	if g.Warming {
		return "warming up"
	}
	if !math.IsNaN(g.Median) {
		s += ", " + amount(g.Quantity, g.Median)
	}
	if !math.IsNaN(g.Half) {
		s += fmt.Sprintf(" ± %.2g %%", 100*g.Half)
	}
	return s
}

// fraction is how far a measurement is: by the runs, or by the interval, which narrows with the
// root of their number.
func fraction(g *device.Progress, until float64) float64 {
	f := 0.0
	if g.Want > 0 {
		f = float64(g.Runs) / float64(g.Want)
	}
	if until > 0 && g.Half > 0 {
		part := until / g.Half
		f = max(f, part*part)
	}
	return min(f, 1)
}

// remark sets what is said behind the progress.
func (m *meter) remark(s string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note = s
}

// amount writes a figure of a quantity.
func amount(key string, v float64) string {
	q, _ := profile.Lookup(key)
	switch q.Unit {
	case "s":
		return report.Duration(v)
	case "cycles", "instr.", "ticks": // words and no units: prefixes belong to the number
		return report.Quantity(v, "") + " " + q.Unit
	}
	return report.Quantity(v, q.Unit)
}
