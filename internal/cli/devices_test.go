package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
	"github.com/opmeter/opmeter/internal/base/port"
	internaldevice "github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/profile"
)

// bench is a made-up computer with boards in every state.
func bench() socket {
	list := []port.Info{
		{Name: "/dev/ttyACM0", USB: true, VID: 0x2341, PID: 0x805a, Board: "Arduino Nano 33 BLE", Product: "Nano 33 BLE", Access: port.Allowed, Link: "/dev/serial/by-id/usb-Arduino_Nano"},
		{Name: "/dev/ttyACM1", USB: true, VID: 0x0483, PID: 0x374e, Board: "STLINK-V3 (STM32)", Access: port.Allowed, Busy: "minicom (process 12)", Holders: []port.Holder{{PID: 12, Program: "minicom"}}},
		{Name: "/dev/ttyACM2", USB: true, VID: 0x1366, PID: 0x0105, Board: "SEGGER J-Link (Silicon Labs, Nordic, Ambiq kits)", Access: port.Denied},
		{Name: "/dev/ttyUSB0", USB: true, VID: 0x0403, PID: 0x6001, Board: "FTDI FT232R bridge", Product: "\x1b[2Jevil", Access: port.Allowed},
		{Name: "/dev/ttyUSB1", USB: true, VID: 0xdead, PID: 0xbeef, Access: port.Allowed},
		{Name: "/dev/ttyUSB2", Access: port.NoNode},
		{Name: "/dev/ttyUSB3", Access: port.Allowed},
		{Name: "/dev/ttyUSB4", Access: port.Allowed},
	}
	names := []string{"agent", "mltk"}
	return socket{
		list: func() ([]port.Info, error) { return list, nil },
		inspect: func(name string) port.Inspection {
			i := port.Inspection{Name: name, Path: name, Owner: "root", Group: "dialout", Mode: 0o660, User: "ann"}
			if k := slices.IndexFunc(list, func(l port.Info) bool { return l.Name == name }); k >= 0 && list[k].Access != port.NoNode {
				i.Exists, i.Access, i.Holders, i.Info = true, list[k].Access, list[k].Holders, &list[k]
			}
			return i
		},
		around: func() []string { return []string{"container"} },
		probe: func(_ context.Context, a port.Address, _ listening) (*internaldevice.Seen, error) {
			switch a.Name {
			case "/dev/ttyACM0":
				return &internaldevice.Seen{Protocol: "mltk", Speed: 921600, Bytes: 900, Text: true, Names: names, Tried: []internaldevice.Tried{{Speed: 921600, Bytes: 900}}}, nil
			case "/dev/ttyUSB0":
				return &internaldevice.Seen{Speed: 115200, Bytes: 70, Text: true, Sample: []byte("p 12\r\ntemp 22\r\nte"), Names: names}, nil
			case "/dev/ttyUSB1":
				return &internaldevice.Seen{Names: names}, &internaldevice.SilentError{Port: a, Waited: time.Second}
			case "/dev/ttyUSB3":
				return &internaldevice.Seen{Speed: 9600, Bytes: 70, Sample: []byte{1, 2, 0xff}, Names: names, Tried: []internaldevice.Tried{{Speed: 115200, Bytes: 60}, {Speed: 9600, Bytes: 70}}}, nil
			}
			return nil, &port.OpenError{Address: a, Cause: port.Missing, Advice: "connected: none"}
		},
	}
}

// try runs something of an app and returns what it prints.
func try(t *testing.T, do func(a *app) error) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &out)
	err := do(a)
	for _, l := range strings.Split(out.String(), "\n") {
		if !strings.HasPrefix(out.String(), "{") && utf8.RuneCountInString(l) > 80 {
			t.Errorf("wider than 80 columns: %q", l)
		}
		if strings.ContainsRune(l, '\x1b') {
			t.Errorf("raw text of a device: %q", l)
		}
	}
	return out.String(), err
}

func TestDevicesTable(t *testing.T) {
	t.Parallel()
	got, err := try(t, func(a *app) error { return a.devices(t.Context(), bench(), "table", false, time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	want := `port          board                         status
/dev/ttyACM0  Arduino Nano 33 BLE           mltk at 921600 baud
/dev/ttyACM1  STLINK-V3 (STM32)             busy
/dev/ttyACM2  SEGGER J-Link …, Ambiq kits)  permission
/dev/ttyUSB0  \x1b[2Jevil                   text at 115200 baud
/dev/ttyUSB1  dead:beef                     no output
/dev/ttyUSB2                                no-node
/dev/ttyUSB3                                unknown data
/dev/ttyUSB4                                missing

/dev/ttyACM1: in use by minicom (process 12)
/dev/ttyACM2: you may not open it: it belongs to the group dialout: sudo usermod
  -aG dialout ann, then log out and in again; or for now sudo chmod a+rw
  /dev/ttyACM2
/dev/ttyUSB0: sends text of no known protocol, such as "temp 22"
/dev/ttyUSB1: no output: press its reset button, or run opmeter device doctor
  --port /dev/ttyUSB1
/dev/ttyUSB2: the system has it, but no file /dev/ttyUSB2: start the container
  with --device=/dev/ttyUSB2
/dev/ttyUSB3: sends data that no usual baud rate decodes: run opmeter device
  doctor --port /dev/ttyUSB3
/dev/ttyUSB4: no such device; connected: none
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Nothing is opened where nobody is to listen, and where nothing may be.
func TestDevicesOpensNothing(t *testing.T) {
	t.Parallel()
	s := bench()
	s.probe = func(_ context.Context, a port.Address, _ listening) (*internaldevice.Seen, error) {
		t.Errorf("%s is opened", a)
		return nil, errors.New("no")
	}
	if got, err := try(t, func(a *app) error { return a.devices(t.Context(), s, "table", true, time.Second) }); err != nil || !strings.Contains(got, "\n/dev/ttyACM0  Arduino Nano 33 BLE\n") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestDevicesJSON(t *testing.T) {
	t.Parallel()
	got, err := try(t, func(a *app) error { return a.devices(t.Context(), bench(), "json", false, time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Ports []struct {
			Name, State, Problem, Busy, Board string
			VID, PID                          int
			Heard                             *struct {
				Protocol string
				Speed    int
			}
		}
	}
	if err := json.Unmarshal([]byte(got), &doc); err != nil {
		t.Fatal(err)
	}
	states := make([]string, 0, len(doc.Ports))
	for _, p := range doc.Ports {
		states = append(states, p.State)
	}
	if want := []string{"", "busy", "permission", "", "silent", "no-node", "", "missing"}; !slices.Equal(states, want) {
		t.Errorf("states %q, want %q", states, want)
	}
	p := doc.Ports[0]
	if p.VID != 0x2341 || p.PID != 0x805a || p.Heard == nil || p.Heard.Protocol != "mltk" || p.Heard.Speed != 921600 {
		t.Errorf("%+v", p)
	}
}

// Where nothing is connected, a list says what to look at, and the exit status tells.
func TestNothingConnected(t *testing.T) {
	t.Parallel()
	s := bench()
	s.list = func() ([]port.Info, error) { return nil, nil }
	got, err := try(t, func(a *app) error { return a.devices(t.Context(), s, "table", false, time.Second) })
	if e, ok := errors.AsType[*statusError](err); !ok || e.status != statusGate || err.Error() != "no serial port is connected" {
		t.Errorf("%v", err)
	}
	for _, part := range []string{"The cable carries data", "--device=/dev/ttyACM0"} {
		if !strings.Contains(got, part) {
			t.Errorf("nothing of %q in\n%s", part, got)
		}
	}
	for _, system := range []string{"linux", "windows", "darwin", "freebsd"} {
		for _, around := range []string{"", "wsl", "container", "machine"} {
			if l := checklist(system, []string{around}); len(l) < 3 {
				t.Errorf("%s in %q: %q", system, around, l)
			}
		}
	}
	if _, err := try(t, func(a *app) error { return a.devices(t.Context(), s, "json", false, time.Second) }); err == nil {
		t.Error("JSON: no status")
	}
}

// measured returns a measurement with findings.
func measured(clock *float64, ids ...string) func(context.Context, *opmeter.Model, device.Options) (*profile.Profile, error) {
	return func(context.Context, *opmeter.Model, device.Options) (*profile.Profile, error) {
		p := &profile.Profile{Layers: make([]profile.Layer, 3), Totals: profile.Totals{Latency: &profile.Metric{Median: new(0.0125)}}}
		p.Target.ClockHz = clock
		for _, id := range ids {
			p.Findings = append(p.Findings, profile.Finding{ID: id})
		}
		return p, nil
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	silent := func(context.Context, *opmeter.Model, device.Options) (*profile.Profile, error) {
		return nil, &device.Error{Port: "/dev/ttyACM0", Err: errors.New("no more data within 10 s")}
	}
	fine := "ok ok ok ok ok ok"
	for _, c := range []struct {
		name, port string
		measure    func(context.Context, *opmeter.Model, device.Options) (*profile.Profile, error)
		want       string // of the steps
		last       string // of the last that was reached
	}{
		{"all", "/dev/ttyACM0", measured(new(64e6)), fine + " ok ok", "64 MHz"},
		{"times", "/dev/ttyACM0", measured(nil), fine + " ok ok", "the device tells times"},
		{"no clock", "/dev/ttyACM0", measured(nil, "device.no_clock"), fine + " ok problem", "the device counts cycles and does not tell their frequency"},
		{"no inference", "/dev/ttyACM0", silent, fine + " problem skipped", "/dev/ttyACM0: no more data within 10 s"},
		{"several", "", nil, "problem skipped skipped skipped skipped skipped skipped skipped", "8 ports are connected"},
		{"name", "udp:1", nil, "problem skipped skipped skipped skipped skipped skipped skipped", ""},
		{"absent", "/dev/ttyACM7", nil, "problem skipped skipped skipped skipped skipped skipped skipped", "/dev/ttyACM7 is absent"},
		{"no node", "/dev/ttyUSB2", nil, "problem skipped skipped skipped skipped skipped skipped skipped", "the system has it, but there is no file /dev/ttyUSB2"},
		{"permission", "/dev/ttyACM2", nil, "ok problem skipped skipped skipped skipped skipped skipped", "you may not open it"},
		{"busy", "/dev/ttyACM1", nil, "ok ok problem skipped skipped skipped skipped skipped", "in use by minicom (process 12)"},
		{"silent", "/dev/ttyUSB1", nil, "ok ok ok problem skipped skipped skipped skipped", "nothing came within 10s"},
		{"speed", "/dev/ttyUSB3", nil, "ok ok ok ok problem skipped skipped skipped", "what comes means nothing at 115200, 9600 baud"},
		{"protocol", "/dev/ttyUSB0", nil, "ok ok ok ok ok problem skipped skipped", `text that no protocol knows, such as "temp 22"`},
	} {
		var d doctor
		got, err := try(t, func(a *app) error {
			d = doctor{app: a, s: bench(), measure: c.measure, o: device.Options{Port: c.port, Timeout: 10 * time.Second}}
			return d.run(t.Context(), "table")
		})
		var states []string
		last := step{}
		for i, s := range d.steps {
			states = append(states, s.State)
			if s.Step != doctorSteps[i] {
				t.Errorf("%s: step %d is %s", c.name, i, s.Step)
			}
			if s.State != stepSkipped {
				last = s
			}
			if s.State == stepProblem && s.Advice == "" && c.name != "name" {
				t.Errorf("%s: no advice for %q", c.name, s.Text)
			}
		}
		if s := strings.Join(states, " "); s != c.want || c.last != "" && last.Text != c.last {
			t.Errorf("%s: %s: %q\n%s", c.name, s, last.Text, got)
		}
		if wantErr := strings.Contains(c.want, stepProblem); (err != nil) != wantErr {
			t.Errorf("%s: %v", c.name, err)
		} else if e, ok := errors.AsType[*statusError](err); wantErr && (!ok || e.status != statusGate) {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := strings.Count(got, "not reached"); n != strings.Count(c.want, stepSkipped) {
			t.Errorf("%s: %d steps not reached\n%s", c.name, n, got)
		}
	}
}

// The steps as JSON have the same states, and the status is the same.
func TestDoctorJSON(t *testing.T) {
	t.Parallel()
	got, err := try(t, func(a *app) error {
		d := doctor{app: a, s: bench(), quiet: true, o: device.Options{Port: "/dev/ttyACM1"}}
		return d.run(t.Context(), "json")
	})
	if err == nil {
		t.Error("no status")
	}
	var doc struct {
		Port  string
		Ready bool
		Steps []step
	}
	if e := json.Unmarshal([]byte(got), &doc); e != nil {
		t.Fatal(e)
	}
	if doc.Port != "/dev/ttyACM1" || doc.Ready || len(doc.Steps) != 8 || doc.Steps[2].State != stepProblem || doc.Steps[3].State != stepSkipped || !strings.Contains(doc.Steps[2].Advice, "kill 12") {
		t.Errorf("%+v", doc)
	}
}

// The program itself, at ports that are there on every computer.
func TestDoctorRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"device doctor --port file:nowhere.rec --format json", statusGate, `"file:nowhere.rec: no such file;`},
		{"device doctor --port /dev/ttyNOSUCH", statusGate, "problem  port       /dev/ttyNOSUCH is absent"},
		{"device doctor --format xml", statusUse, "use table or json"},
		{"devices --format xml", statusUse, "use table or json"},
	} {
		var out bytes.Buffer
		if got := run(t.Context(), strings.Fields(c.args), strings.NewReader(""), &out, &out); got != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: status %d\n%s", c.args, got, out.String())
		}
	}
}
