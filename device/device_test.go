package device_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
	"github.com/opmeter/opmeter/internal/testing/mltkdevice"
	"github.com/opmeter/opmeter/internal/testing/tflmdevice"
	"github.com/opmeter/opmeter/internal/testing/tinydevice"
	"github.com/opmeter/opmeter/internal/testing/wire"
	"github.com/opmeter/opmeter/profile"
)

// speeds are those of serial ports that boards use, in baud.
var speeds = []int{9600, 19200, 38400, 57600, 74880, 115200, 230400, 250000, 460800, 500000, 921600, 1000000, 1500000, 2000000, 3000000}

// boards are made-up devices that speak as real ones, and what is true of them: the protocol and
// the time of the first layer in seconds. One that prints without an end does so for some runs.
func boards(runs int) map[string]struct {
	device   wire.Device
	protocol string
	first    float64
} {
	tflm := &tflmdevice.Board{Ops: []string{"CONV_2D", "DEPTHWISE_CONV_2D", "SOFTMAX"}, ClockHz: 1000000}
	mltk := &mltkdevice.Board{Name: "net", ClockHz: 78000000, RAM: 5000, Layers: []mltkdevice.Layer{
		{Op: "CONV_2D", Ops: 2000, MACs: 900, TimeUS: 1500, CPU: 100000},
		{Op: "SOFTMAX", Ops: 50, TimeUS: 40, CPU: 3000},
	}}
	tiny := &tinydevice.Board{Model: "kws01", Input: 490, Latency: 20 * time.Millisecond, Results: "0.1,0.9", Sleep: true}
	pack := func(w io.Writer, _ io.Reader) {
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(w, "{\"ModelNumber\":0,\"Type\":\"Cycles\", \"FeatureCycles\":[%d,2000,3000],\"ClassifierCycles\": 500}\n\n", 1000+i%2); err != nil {
				return
			}
		}
	}
	return map[string]struct {
		device   wire.Device
		protocol string
		first    float64
	}{
		// Each inference takes 3 ticks more. The first line may be cut where listening begins, so
		// that inference 0 is not whole; 1 is warm-up: the middle of 2 to 7.
		"tflm":    {tflm.Run(runs), "tflm", (1000 + 3*4.5) / 1e6},
		"mltk":    {mltk.Run(10), "mltk", 1.5e-3},
		"tiny":    {tiny.Run, "tiny", 0},
		"sensiml": {pack, "sensiml", 1000.5 / 1e6},
	}
}

// TestMeasureDevice measures boards of every protocol at every speed over pseudo-terminals.
func TestMeasureDevice(t *testing.T) {
	t.Parallel()
	for _, speed := range speeds {
		for name, b := range boards(1000) {
			t.Run(fmt.Sprint(name, " at ", speed), func(t *testing.T) {
				t.Parallel()
				path, _ := wire.Line{Baud: speed}.Open(t, b.device)
				var found string
				p, err := device.Measure(t.Context(), nil, device.Options{
					Port: path, Speed: speed, Runs: 6, ClockHz: 1e6, Timeout: 20 * time.Second,
					Benchmark: device.Benchmark{Window: 50 * time.Millisecond},
					Found:     func(protocol string, at int) { found = fmt.Sprint(protocol, " at ", at) },
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Validate(); err != nil {
					t.Error(err)
				}
				if want := fmt.Sprint(b.protocol, " at ", speed); found != want {
					t.Errorf("recognised %q, want %q", found, want)
				}
				if b.first == 0 {
					if v, ok := p.Totals.Latency.Best(); !ok || !(v > 0) {
						t.Errorf("whole: %+v", p.Totals.Latency)
					}
					return
				}
				m := p.Layers[0].Latency
				// a tick, and what the texts round to
				if v, ok := m.Best(); !ok || !(abs(v-b.first) <= 1e-6) {
					t.Errorf("first layer %v s, want %v: %+v", v, b.first, m)
				}
			})
		}
	}
}

func abs(v float64) float64 { return max(v, -v) }

// TestReplay measures over a wire with faults and records what comes: the recording holds all that
// was measured, so that it gives the same profile again.
func TestReplay(t *testing.T) {
	t.Parallel()
	for name, b := range boards(200) {
		if name == "tiny" {
			continue // its host asks, and checks the times against its own clock
		}
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "board.bin")
				rec, err := os.Create(file)
				if err != nil {
					t.Fatal(err)
				}
				path, _ := wire.Line{Faults: wire.Faults{Seed: seed, Corrupt: 2e-4, Cut: 2e-4, Duplicate: 1e-4, Reorder: 1e-4}}.Open(t, b.device)
				o := device.Options{Port: path, Speed: 115200, Runs: 6, ClockHz: 1e6, Timeout: 10 * time.Second, Protocol: b.protocol, Record: rec, Created: time.Unix(1, 0)}
				live, liveErr := device.Measure(t.Context(), nil, o)
				if err := rec.Close(); err != nil {
					t.Fatal(err)
				}
				o.Port, o.Record = "file:"+file, nil
				again, err := device.Measure(t.Context(), nil, o)
				if liveErr != nil || err != nil {
					// Where the damage ended it, both end, with what each had.
					if (liveErr == nil) != (err == nil) {
						t.Errorf("live: %v; again: %v", liveErr, err)
					}
					return
				}
				if d := cmp.Diff(live.Layers, again.Layers); d != "" {
					t.Errorf("layers (-live +recorded):\n%s", d)
				}
				if d := cmp.Diff(live.Totals, again.Totals); d != "" {
					t.Errorf("totals (-live +recorded):\n%s", d)
				}
			})
		}
	}
}

// TestDeviceEnds is about devices that go, are silent, flood, or speak nothing that is known:
// there is an error that says which, in the time that was given, and what came stays.
func TestDeviceEnds(t *testing.T) {
	t.Parallel()
	tflm := boards(1000)["tflm"].device
	for _, tt := range []struct {
		name   string
		line   wire.Line
		device wire.Device
		want   string
		runs   bool // some inferences are there
	}{
		{"unplugged", wire.Line{UnplugAfter: 30000}, tflm, "went away", true},
		{"silent", wire.Line{}, wire.Silent, "nothing came within 2 s", false},
		{"falls silent", wire.Line{}, (&tflmdevice.Board{Ops: []string{"CONV_2D", "SOFTMAX"}, ClockHz: 1000000}).Run(20), "nothing more came within 2 s", true},
		{"flood", wire.Line{}, wire.Flood(bytes.Repeat([]byte("nonsense that never ends\n"), 100)), "sends text that no protocol knows", false},
		{"noise", wire.Line{}, wire.Flood([]byte("\x80\xff\x00\x9c\xe3\x01\x88")), "sends bytes that no protocol knows", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path, _ := tt.line.Open(t, tt.device)
			// Far more than the tries at all speeds take: it must end by itself.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			p, err := device.Measure(ctx, nil, device.Options{Port: path, Runs: 1000, Timeout: 2 * time.Second})
			e, ok := errors.AsType[*device.Error](err)
			if !ok || e.Port != path || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %q", err, tt.want)
			}
			if !tt.runs {
				if p != nil {
					t.Errorf("a profile of nothing: %+v", p.Totals)
				}
				return
			}
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
			if !slices.ContainsFunc(p.Incomplete, func(m profile.Missing) bool {
				return m.Got != nil && m.Want != nil && *m.Want == 1000 && *m.Got >= 5
			}) {
				t.Errorf("incomplete: %+v", p.Incomplete)
			}
			if p.Layers[0].Figure("ticks") == nil {
				t.Errorf("what came is gone: %+v", p.Layers[0])
			}
		})
	}
}

// TestDeviceOptions refuses what suits no device.
func TestDeviceOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]device.Options{
		"Port":      {},
		"Speed":     {Port: "-", Speed: -1},
		"Until":     {Port: "-", Until: 1},
		"ClockHz":   {Port: "-", ClockHz: -5},
		"Timeout":   {Port: "-", Timeout: -1},
		"Reconnect": {Port: "-", Reconnect: -1},
		"Protocol":  {Port: "-", Protocol: "morse"},
	} {
		_, err := device.Measure(t.Context(), nil, o)
		if e, ok := errors.AsType[*opmeter.OptionError](err); !ok || e.Option != want {
			t.Errorf("%s: %v", want, err)
		}
	}
	// Every protocol has a name and a title, and none comes twice.
	names := map[string]bool{}
	for _, p := range device.Protocols() {
		if p.Name == "" || p.Title == "" || names[p.Name] {
			t.Errorf("%+v", p)
		}
		names[p.Name] = true
	}
	if len(names) < 5 {
		t.Errorf("protocols: %v", names)
	}
	if _, err := device.Measure(t.Context(), nil, device.Options{Port: "-", Stdin: strings.NewReader("")}); err == nil || !strings.Contains(err.Error(), "ended before anything came") {
		t.Errorf("nothing on standard input: %v", err)
	}
}
