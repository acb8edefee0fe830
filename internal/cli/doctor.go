package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/port"
	internaldevice "github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

func newDeviceDoctor(a *app) *cobra.Command {
	var (
		name, format string
		f            deviceFlags
	)
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose why a board cannot be measured",
		Long: `Check the connection to a board step by step: port, permission, other programs that use it,
incoming data, speed, protocol, an inference, and the clock. Each step prints a line, with a
remedy where it fails. The exit status is 0 only if the board can be measured. A silent board
is sent the start commands of the known protocols.`,
		Example: `  opmeter device doctor
  opmeter device doctor --port /dev/ttyACM0
  opmeter device doctor --port tcp:127.0.0.1:5000 --format json`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "table" && format != "json" {
				return useError("--format %q: use table or json", format)
			}
			d := doctor{app: a, s: sockets(), measure: device.Measure, o: device.Options{Port: name, Speed: f.speed, Protocol: f.protocol, Timeout: f.timeout, Stdin: a.in}}
			if format == "json" {
				d.quiet = true
			}
			return d.run(c.Context(), format)
		},
	}
	c.Flags().StringVar(&name, "port", "", "`PORT` of the device (default: the one that is connected)")
	c.Flags().StringVar(&format, "format", "table", "`NAME`: table or json")
	f.addProtocol(c)
	f.addSpeed(c)
	f.addTimeout(c, internaldevice.DefaultTimeout)
	return c
}

// States of a step.
const (
	stepOK      = "ok"
	stepProblem = "problem"
	stepSkipped = "skipped"
)

// step is one thing that has to be right.
type step struct {
	Step  string `json:"step"`
	State string `json:"state"`
	// Text says what was found, Advice what to do.
	Text   string `json:"text,omitzero"`
	Advice string `json:"advice,omitzero"`
}

// doctorSteps are the steps in order.
var doctorSteps = []string{"port", "permission", "free", "answer", "speed", "protocol", "inference", "clock"}

// doctor walks through the steps.
type doctor struct {
	app     *app
	s       socket
	measure func(context.Context, *opmeter.Model, device.Options) (*profile.Profile, error)
	o       device.Options
	quiet   bool // print nothing before the end
	addr    port.Address
	steps   []step
	seen    *internaldevice.Seen
}

// run does the steps and prints them. A step that fails leaves the others out.
func (d *doctor) run(ctx context.Context, format string) error {
	for _, f := range []func(context.Context) bool{d.port, d.mine, d.hear, d.inference} {
		if !f(ctx) {
			break
		}
	}
	if ctx.Err() != nil {
		return errStopped
	}
	bad := ""
	for _, s := range d.steps {
		if s.State == stepProblem {
			bad = s.Step
		}
	}
	for _, name := range doctorSteps[len(d.steps):] {
		d.add(step{Step: name, State: stepSkipped})
	}
	if format == "json" {
		err := jsonx.MarshalWrite(d.app.out, struct {
			Port  string               `json:"port,omitzero"`
			Ready bool                 `json:"ready"`
			Steps []step               `json:"steps"`
			Seen  *internaldevice.Seen `json:"heard,omitzero"`
		}{d.addr.String(), bad == "", d.steps, d.seen})
		if err != nil {
			return err
		}
	}
	if bad != "" {
		return withStatus(statusGate, fmt.Errorf("cannot be measured yet: see %s", bad))
	}
	return nil
}

// add notes a step, and prints it as it comes.
func (d *doctor) add(s step) bool {
	d.steps = append(d.steps, s)
	if !d.quiet {
		mark, what := s.State, s.Text
		if s.State == stepSkipped {
			mark, what = "-", "not reached"
		}
		lead := fmt.Sprintf("%-8s %-10s ", mark, s.Step)
		d.app.indented(lead, text.Clean(what))
		if s.Advice != "" {
			d.app.indented(strings.Repeat(" ", len(lead)), text.Clean(s.Advice))
		}
	}
	return s.State != stepProblem
}

func (d *doctor) ok(name, format string, args ...any) bool {
	return d.add(step{Step: name, State: stepOK, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) problem(name, what, advice string) bool {
	return d.add(step{Step: name, State: stepProblem, Text: what, Advice: advice})
}

// port finds the port: that which was named, or the only one.
func (d *doctor) port(context.Context) bool {
	if d.o.Port == "" {
		list, err := d.s.list()
		switch {
		case err != nil:
			return d.problem("port", "the list of serial ports cannot be had: "+err.Error(), "name it with --port")
		case len(list) == 0:
			return d.problem("port", "no serial port is connected", strings.Join(checklist(runtime.GOOS, d.s.around()), " "))
		case len(list) > 1:
			names := make([]string, 0, len(list))
			for _, i := range list {
				names = append(names, strings.TrimSpace(i.Name+" "+parens(i.Title())))
			}
			return d.problem("port", fmt.Sprintf("%d ports are connected", len(list)), "name one with --port: "+strings.Join(names, ", "))
		}
		d.o.Port = list[0].Name
	}
	a, err := port.Parse(d.o.Port)
	if err != nil {
		return d.problem("port", err.Error(), "")
	}
	d.addr = a
	if a.Kind != port.Serial {
		return d.ok("port", "%s", a)
	}
	i := d.s.inspect(a.Name)
	switch {
	case !i.Exists:
		if info := noNode(d.s, a.Name); info != nil {
			return d.problem("port", "the system has it, but there is no file "+a.Name, nodeAdvice(a.Name, d.s.around()))
		}
		return d.problem("port", a.Name+" is absent", d.others())
	case i.Kind == "a file":
		return d.problem("port", a.Name+" is a file", "a recording is file:"+a.Name)
	case i.Kind != "":
		return d.problem("port", a.Name+" is "+i.Kind, "")
	}
	return d.ok("port", "%s", described(i))
}

// noNode is the entry of a device that has no file here.
func noNode(s socket, name string) *port.Info {
	list, err := s.list()
	if err != nil {
		return nil
	}
	for i := range list {
		if list[i].Name == name && list[i].Access == port.NoNode {
			return &list[i]
		}
	}
	return nil
}

// others lists what is connected instead.
func (d *doctor) others() string {
	list, err := d.s.list()
	if err != nil || len(list) == 0 {
		return "nothing else is connected. " + strings.Join(checklist(runtime.GOOS, d.s.around()), " ")
	}
	var names []string
	for _, i := range list {
		names = append(names, strings.TrimSpace(i.Name+" "+parens(i.Title())))
	}
	return "connected: " + strings.Join(names, ", ")
}

func parens(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// described names a device with what is known about it.
func described(i port.Inspection) string {
	s := i.Name
	if i.Path != i.Name {
		s += " is " + i.Path
	}
	var facts []string
	if i.Pseudo {
		facts = append(facts, "a pseudo-terminal: a program plays the device")
	}
	if i.Info != nil {
		for _, f := range []string{i.Info.Title(), i.Info.Numbers()} {
			if f != "" {
				facts = append(facts, f)
			}
		}
		if i.Info.Link != "" && i.Info.Link != i.Name {
			facts = append(facts, "whose name for good is "+i.Info.Link)
		}
	}
	if len(facts) > 0 {
		s += ": " + strings.Join(facts, ", ")
	}
	return s
}

// mine looks whether the port may be opened and nobody else has it.
func (d *doctor) mine(context.Context) bool {
	if d.addr.Kind != port.Serial {
		return d.add(step{"permission", stepOK, "none is needed", ""}) && d.add(step{"free", stepOK, "nobody else can have it", ""})
	}
	i := d.s.inspect(d.addr.Name)
	if i.Access == port.Denied {
		return d.problem("permission", "you may not open it", i.PermissionAdvice())
	}
	d.ok("permission", "you may open it")
	if len(i.Holders) > 0 && (!i.Pseudo || i.Holders[0].Lock) {
		e := &port.OpenError{Address: d.addr, Cause: port.Busy, Holders: i.Holders}
		return d.problem("free", strings.TrimPrefix(e.Error(), d.addr.String()+": "), port.BusyAdvice(i.Holders))
	}
	return d.ok("free", "nobody else has it")
}

// hear listens: does something come, at which speed, and who speaks.
func (d *doctor) hear(ctx context.Context) bool {
	seen, err := d.s.probe(ctx, d.addr, listening{d.o.Speed, d.o.Timeout, true, d.app})
	d.seen = seen
	if e, ok := errors.AsType[*port.OpenError](err); ok {
		return d.problem("answer", e.Error(), "")
	}
	heardNothing := seen == nil || seen.Bytes == 0
	switch {
	case errors.Is(err, internaldevice.ErrSilent) && heardNothing:
		return d.problem("answer", fmt.Sprintf("nothing came within %v", d.o.Timeout), silentAdvice(d.addr))
	case err != nil:
		return d.problem("answer", err.Error(), "")
	case heardNothing:
		return d.problem("answer", "it ended before anything came", "")
	}
	d.ok("answer", "%s", plural(seen.Bytes, "byte"))
	switch {
	case d.addr.Kind != port.Serial:
		d.ok("speed", "it has none")
	case seen.Protocol != "" || seen.Text:
		d.ok("speed", "%d baud", seen.Speed)
	default:
		tried := make([]string, 0, len(seen.Tried))
		for _, t := range seen.Tried {
			tried = append(tried, fmt.Sprint(t.Speed))
		}
		return d.problem("speed", "what comes means nothing at "+strings.Join(tried, ", ")+" baud", "name the speed of the firmware with --speed; a port of a debug probe may also belong to another processor, and ground has to be connected")
	}
	if seen.Protocol == "" {
		what := fmt.Sprintf("bytes that no protocol knows, beginning with % x", seen.Sample[:min(len(seen.Sample), 12)])
		if seen.Text {
			what = fmt.Sprintf("text that no protocol knows, such as %q", sample(seen))
		}
		return d.problem("protocol", what, "the firmware has to print a profile: opmeter device firmware makes one that does, firmware/opmeter.h adds it to yours; known are "+strings.Join(seen.Names, ", "))
	}
	return d.ok("protocol", "%s", seen.Protocol)
}

// silentAdvice says what may be wrong with a device that says nothing.
func silentAdvice(a port.Address) string {
	switch a.Kind {
	case port.Serial:
		return "press the board's reset; is the firmware one that prints, on this port, and are transmit and receive crossed?"
	case port.TCP:
		return "the other side is there and sends nothing: does its device run?"
	}
	return "does it print without being asked, and flush what it prints?"
}

// inference measures one, and sees by it whether the clock is known.
func (d *doctor) inference(ctx context.Context) bool {
	if d.addr.Kind == port.Stdin {
		// What was heard cannot be read again.
		d.add(step{Step: "inference", State: stepSkipped, Text: "standard input is read once"})
		return false
	}
	o := d.o
	o.Port, o.Speed, o.Protocol, o.Runs, o.Discard = d.addr.String(), d.seen.Speed, d.seen.Protocol, 1, -1
	p, err := d.measure(ctx, nil, o)
	if p == nil || err != nil && len(p.Layers) == 0 {
		if err == nil {
			err = errors.New("none received")
		}
		return d.problem("inference", err.Error(), "is the model run again and again, and its profile printed?")
	}
	d.ok("inference", "%s with %s", told1(p), plural(len(p.Layers), "layer"))
	for _, f := range p.Findings {
		if f.ID == "device.instructions" {
			return d.ok("clock", "an emulator counts instructions, which are not time")
		}
		if f.ID == "device.no_clock" {
			return d.problem("clock", "the device counts cycles and does not tell their frequency", "name it when you measure, such as --clock 64MHz")
		}
	}
	if p.Target.ClockHz != nil {
		return d.ok("clock", "%g MHz", *p.Target.ClockHz/1e6)
	}
	return d.ok("clock", "the device tells times")
}

// told1 says what the inference took.
func told1(p *profile.Profile) string {
	if m := p.Totals.Latency; m != nil && m.Median != nil {
		return amount("latency_s", *m.Median)
	}
	return "one"
}
