package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/port"
	internaldevice "github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/all"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
)

// socket is what the commands about ports know of this computer.
type socket struct {
	list    func() ([]port.Info, error)
	inspect func(name string) port.Inspection
	around  func() []string
	// probe listens to a port; speed 0 finds it, ask lets it send what protocols begin with.
	probe func(ctx context.Context, a port.Address, o listening) (*internaldevice.Seen, error)
}

// listening says how a port is listened to.
type listening struct {
	speed   int
	timeout time.Duration
	ask     bool
	app     *app
}

// sockets are those of this computer.
func sockets() socket {
	return socket{port.List, port.Inspect, port.Around, func(ctx context.Context, a port.Address, o listening) (*internaldevice.Seen, error) {
		list := all.Protocols(all.Options{})
		if !o.ask {
			for i, p := range list {
				q := *p
				q.Ask = nil
				list[i] = &q
			}
		}
		return internaldevice.Probe(ctx, a, internaldevice.ProbeOptions{Protocols: list, Port: port.Options{Speed: o.speed, Stdin: o.app.in}, Timeout: o.timeout})
	}}
}

func newDevices(a *app) *cobra.Command {
	var (
		format string
		quiet  bool
		wait   time.Duration
	)
	c := &cobra.Command{
		Use:   "devices",
		Short: "List connected boards and what they send",
		Long: `List the serial ports with the boards behind them, listen at each for a moment, and show the
speed and protocol of what arrives. Nothing is sent. Opening a port resets some boards; with
--no-listen no port is opened. A port that cannot be used has a line with the reason.`,
		Example: `  opmeter devices
  opmeter devices --no-listen
  opmeter devices --format json`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "table" && format != "json" {
				return useError("--format %q: use table or json", format)
			}
			return a.devices(c.Context(), sockets(), format, quiet, wait)
		},
	}
	c.Flags().StringVar(&format, "format", "table", "`NAME`: table or json")
	c.Flags().BoolVar(&quiet, "no-listen", false, "only list ports, open none")
	spanVar(c, &wait, "timeout", 3*time.Second, 1, "how long to listen to a silent device", "a time above zero, such as 10s")
	return c
}

// found is a port with what was heard at it.
type found struct {
	port.Info
	// Seen is what was heard, nil where nobody listened.
	Seen *internaldevice.Seen `json:"heard,omitzero"`
	// State is a word for what is wrong, "" for nothing: permission, no-node, busy, silent,
	// or that of an error.
	State string `json:"state,omitzero"`
	// Problem says it, and what to do.
	Problem string `json:"problem,omitzero"`
}

// devices lists ports.
func (a *app) devices(ctx context.Context, s socket, format string, quiet bool, wait time.Duration) error {
	list, err := s.list()
	if err != nil {
		return withStatus(statusSource, fmt.Errorf("cannot list serial ports: %w", err))
	}
	ports := make([]found, len(list))
	var wg sync.WaitGroup
	for i := range list {
		ports[i].Info = list[i]
		wg.Go(func() { ports[i].hear(ctx, s, listening{timeout: wait, app: a}, quiet) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return errStopped
	}
	if format == "json" {
		err = a.devicesJSON(ports, s)
	} else {
		a.devicesTable(ports, s)
	}
	if err == nil && len(ports) == 0 {
		err = withStatus(statusGate, errors.New("no serial port is connected"))
	}
	return err
}

// hear listens to a port that may be opened.
func (f *found) hear(ctx context.Context, s socket, o listening, quiet bool) {
	switch {
	case f.Access == port.NoNode:
		f.State, f.Problem = "no-node", "the system has it, but no file "+f.Name+": "+nodeAdvice(f.Name, s.around())
		return
	case f.Access == port.Denied:
		i := s.inspect(f.Name)
		f.State, f.Problem = "permission", "you may not open it: "+i.PermissionAdvice()
		return
	case f.Busy != "":
		f.State, f.Problem = "busy", "in use by "+f.Busy
		return
	case quiet:
		return
	}
	// One speed after the other takes a while, and a list is not for waiting.
	limited, cancel := context.WithTimeout(ctx, o.timeout+10*time.Second)
	defer cancel()
	seen, err := s.probe(limited, port.Address{Kind: port.Serial, Name: f.Name}, o)
	f.Seen = seen
	switch {
	case errors.Is(err, internaldevice.ErrSilent):
		f.State = "silent"
	case err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		// What was heard until then stands.
	case err != nil:
		f.State, f.Problem = "error", err.Error()
		if e, ok := errors.AsType[*port.OpenError](err); ok {
			f.State = string(e.Cause)
		}
	}
}

// nodeAdvice says how to get a device file.
func nodeAdvice(name string, around []string) string {
	if slices.Contains(around, "container") {
		return "start the container with --device=" + name
	}
	return "udev creates it: plug the board in again and read dmesg"
}

// status is what was received, or why nothing was, in a few words.
func (f *found) status() string {
	switch s := f.Seen; {
	case f.State == "silent":
		return "no output"
	case f.State != "" && f.State != "error":
		return f.State
	case f.State != "":
		return "error"
	case s == nil:
		return ""
	case s.Protocol != "":
		return heard(s.Protocol, s.Speed)
	case s.Bytes == 0:
		return "no output"
	case s.Text:
		return heard("text", s.Speed)
	default:
		return "unknown data"
	}
}

// devicesTable prints a line a port, and a note below for each that has one.
func (a *app) devicesTable(ports []found, s socket) {
	if len(ports) == 0 {
		fmt.Fprintln(a.out, "No serial port is connected. Check in this order:")
		for i, l := range checklist(runtime.GOOS, s.around()) {
			a.indented(fmt.Sprintf("%3d. ", i+1), l)
		}
		return
	}
	rows := [][3]string{{"port", "board", "status"}}
	for i := range ports {
		f := &ports[i]
		title := f.Title()
		if title == "" {
			title = f.Numbers()
		}
		rows = append(rows, [3]string{text.Clean(f.Name), text.Clean(title), f.status()})
	}
	// The last column is never cut, the others leave it room.
	width := [2]int{}
	for _, r := range rows {
		width[0] = min(max(width[0], report.Columns(r[0])), 28)
		width[1] = min(max(width[1], report.Columns(r[1])), 28)
	}
	for _, r := range rows {
		fmt.Fprintln(a.out, strings.TrimRight(report.Column(r[0], width[0])+"  "+report.Column(r[1], width[1])+"  "+r[2], " "))
	}
	notes := false
	note := func(f *found, s string) {
		if !notes {
			fmt.Fprintln(a.out)
			notes = true
		}
		a.indented("", text.Clean(f.Name+": "+strings.TrimPrefix(s, f.Name+": ")))
	}
	for i := range ports {
		f := &ports[i]
		switch {
		case f.Problem != "":
			note(f, f.Problem)
		case f.State == "silent":
			note(f, "no output: press its reset button, or run opmeter device doctor --port "+f.Name)
		case f.Seen != nil && f.Seen.Protocol == "" && f.Seen.Bytes > 0 && f.Seen.Text:
			note(f, fmt.Sprintf("sends text of no known protocol, such as %q", sample(f.Seen)))
		case f.Seen != nil && f.Seen.Protocol == "" && f.Seen.Bytes > 0:
			note(f, "sends data that no usual baud rate decodes: run opmeter device doctor --port "+f.Name)
		}
	}
}

// sample is the beginning of the first whole line that was heard.
func sample(s *internaldevice.Seen) string {
	lines := strings.FieldsFunc(strings.ToValidUTF8(string(s.Sample), "?"), func(r rune) bool { return r == '\r' || r == '\n' })
	switch len(lines) {
	case 0:
		return ""
	case 1, 2:
		return lines[0]
	}
	return lines[1] // the first one may have begun before
}

// indented prints text of several lines behind a lead.
func (a *app) indented(lead, s string) {
	for _, l := range report.Wrap(s, 80-len(lead)) {
		fmt.Fprintln(a.out, lead+l)
		if strings.TrimSpace(lead) == "" && lead == "" {
			lead = "  "
		}
		lead = strings.Repeat(" ", len(lead))
	}
}

// checklist says what may be wrong where nothing is connected, the most usual first.
func checklist(system string, around []string) []string {
	out := []string{"The cable carries data (many carry power only): try another cable and another socket."}
	switch {
	case slices.Contains(around, "wsl"):
		out = append(out, `Windows passes the device on to WSL: there, "usbipd list" shows it, "usbipd bind --busid ID" and "usbipd attach --wsl --busid ID" pass it on.`)
	case slices.Contains(around, "container"):
		out = append(out, "This is a container: start it with the device, such as --device=/dev/ttyACM0.")
	case slices.Contains(around, "machine"):
		out = append(out, "This is a virtual machine: pass the USB device on in its settings.")
	}
	switch system {
	case "windows":
		out = append(out, "The device manager shows the board under its ports; where it has a warning sign, the driver of its bridge (CP210x, CH340, FTDI) is missing.")
	case "darwin":
		out = append(out, `"ls /dev/cu.*" shows the board; where it does not, the driver of its bridge (CH340) is missing or not allowed in the settings.`)
	default:
		out = append(out, `"sudo dmesg | tail" shows the board when it is plugged in: where it does not, cable, socket or board are at fault; where no tty is named, the driver of its bridge is missing.`)
	}
	if system == "linux" {
		out = append(out, "Permission comes later: a port that you may not open would be in this list.")
	}
	return append(out, "The board runs: its light is on, and it is not in its bootloader (a board that shows as a disk is).")
}

// devicesJSON prints what is known as JSON.
func (a *app) devicesJSON(ports []found, s socket) error {
	doc := struct {
		Ports  []found  `json:"ports"`
		Around []string `json:"around,omitzero"`
		Check  []string `json:"check,omitzero"`
	}{Ports: ports, Around: s.around()}
	if len(ports) == 0 {
		doc.Check = checklist(runtime.GOOS, doc.Around)
	}
	return jsonx.MarshalWrite(a.out, doc)
}
