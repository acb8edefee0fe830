//go:build linux || darwin

package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/mltkdevice"
	"github.com/opmeter/opmeter/internal/testing/wire"
)

// A board that profiles again and again at an unusual speed of the list is found ready, by
// the program as it is, over a pseudo-terminal; one that is silent is not, nor one that
// speaks at a speed that no one tries.
func TestDoctorOverTerminal(t *testing.T) {
	t.Parallel()
	board := mltkdevice.Board{
		Name: "kws", Accelerator: "mvp", ClockHz: 78_000_000, RAM: 20000,
		Layers: []mltkdevice.Layer{{Op: "conv_2d", Ops: 2000, MACs: 900, TimeUS: 1200, CPU: 50000, Accelerator: 60000}, {Op: "softmax", Ops: 100, TimeUS: 20, CPU: 1560}},
	}
	for _, c := range []struct {
		name   string
		line   wire.Line
		wait   string // for each speed: enough for a busy machine where something is to be heard
		device wire.Device
		status int
		want   []string
	}{
		{"ready", wire.Line{Baud: 921600}, "5s", board.Run(1 << 30), statusDone, []string{"ok       speed      921600 baud", "ok       protocol   mltk", "ok       inference  ", "ok       clock      "}},
		{"silent", wire.Line{}, "200ms", wire.Silent, statusGate, []string{"problem  answer     nothing came within 200ms"}},
		{"text", wire.Line{Baud: 115200}, "5s", wire.Flood([]byte("temp 22\n")), statusGate, []string{"ok       speed      115200 baud", "problem  protocol   text that no protocol knows, such as \"temp 22\""}},
		{"unplugged", wire.Line{UnplugAfter: 100}, "200ms", func(w io.Writer, r io.Reader) {
			for {
				if _, err := w.Write([]byte{1, 2, 3, 4, 5, 6, 7}); err != nil {
					return
				}
			}
		}, statusGate, []string{"problem"}},
	} {
		path, _ := c.line.Open(t, c.device)
		var out bytes.Buffer
		got := run(t.Context(), []string{"device", "doctor", "--port", path, "--timeout", c.wait}, strings.NewReader(""), &out, &out)
		if got != c.status {
			t.Errorf("%s: status %d\n%s", c.name, got, out.String())
		}
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: no %q in\n%s", c.name, w, out.String())
			}
		}
	}
}
