package tiny_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/tiny"
	"github.com/opmeter/opmeter/internal/testing/talk"
	"github.com/opmeter/opmeter/internal/testing/tinydevice"
	"github.com/opmeter/opmeter/internal/testing/wire"
	"github.com/opmeter/opmeter/profile"
)

func finding(p *profile.Profile, id string) (text string, s profile.Severity) {
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text, f.Severity
		}
	}
	return "", ""
}

// ic is a board that takes 1.25 ms for an inference, which its clock counts in microseconds.
func ic() *tinydevice.Board {
	return &tinydevice.Board{Model: "ic01", Latency: 1250 * time.Microsecond, Results: "0.010,0.020,0.900,0.070", Clock: 5}
}

const window = 20 * time.Millisecond

func TestMeasure(t *testing.T) {
	t.Parallel()
	b := ic()
	in := make([]byte, 3072)
	for i := range in {
		in[i] = byte(i * 7)
	}
	var got []float64
	p, err := talk.Device(t, tiny.Protocol(tiny.Options{Input: in, Window: window, Expected: []float64{0, 0, 1, 0}, Results: func(r []float64) { got = r }}), wire.Line{}, b.Run, device.Rules{Runs: 5}, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Got, in) {
		t.Errorf("the board has %d bytes that are not the input", len(b.Got))
	}
	if m := p.Totals.Latency; *m.N != 5 || *m.Median != 1.25e-3 || *m.Min != *m.Max || m.Kind != profile.Measured {
		t.Errorf("%+v", m)
	}
	// the quotient of a rounded time
	if v, _ := p.Totals.Value("inferences_per_s"); !(math.Abs(v-800) <= 1e-9) {
		t.Errorf("%g inferences a second", v)
	}
	if p.Model.Name != "ic01" || p.Target.Description != "Made up" || !slices.Equal(got, []float64{.01, .02, .9, .07}) {
		t.Errorf("%s, %s, %v", p.Model.Name, p.Target.Description, got)
	}
	if s, sev := finding(p, "tiny.top1"); !strings.Contains(s, "agree") || sev != profile.Info {
		t.Error(s)
	}
	if s, _ := finding(p, "tiny.rules"); !strings.HasPrefix(s, "5 windows of at least 0.02 s") {
		t.Error(s)
	}
	for _, f := range p.Findings {
		if f.Severity == profile.Warning {
			t.Errorf("%s: %s", f.ID, f.Text)
		}
	}
}

// TestClock: a counter of 32 bits that begins again, a class that differs, a clock that is wrong.
func TestClock(t *testing.T) {
	t.Parallel()
	b := ic()
	b.Clock = 1<<32 - 30_000
	p, err := talk.Device(t, tiny.Protocol(tiny.Options{Window: window, Expected: []float64{1, 0, 0, 0}}), wire.Line{}, b.Run, device.Rules{Runs: 5}, 5*time.Second)
	if err != nil || *p.Totals.Latency.Max != 1.25e-3 || *p.Totals.Latency.Min != 1.25e-3 {
		t.Fatalf("%v %+v", err, p)
	}
	if s, sev := finding(p, "tiny.top1"); !strings.Contains(s, "class 2") || sev != profile.Warning {
		t.Error(s)
	}
	if len(b.Got) != 3072 || slices.Max(b.Got) != 0 {
		t.Errorf("zeros of the model's size are fed: %d", len(b.Got))
	}
	p, err = talk.Device(t, tiny.Protocol(tiny.Options{}), wire.Line{}, ic().Run, device.Rules{Runs: 2}, 5*time.Second)
	if s, sev := finding(p, "tiny.clock"); err != nil || s == "" || sev != profile.Warning {
		t.Errorf("a second by the board's clock that took none here: %v %q", err, s)
	}
}

// TestErrors: each ends at once and says what the board said.
func TestErrors(t *testing.T) {
	t.Parallel()
	small := ic()
	small.Buffer = 1000
	energy := ic()
	energy.Energy = true
	still := ic()
	still.Latency = 0
	for what, b := range map[string]*tinydevice.Board{"exceeds maximum": small, "EE_CFG_ENERGY_MODE": energy, "clock does not run": still} {
		_, err := talk.Device(t, tiny.Protocol(tiny.Options{Window: window}), wire.Line{}, b.Run, device.Rules{Runs: 5}, 5*time.Second)
		if _, ok := errors.AsType[*tiny.FaultError](err); !ok || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSilent: a board that does not answer one of the commands.
func TestSilent(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"name", "profile", "db load", "infer 1 ", "infer 16"} {
		b := ic()
		b.Drop = func(c string) bool {
			return strings.HasPrefix(c, command) && command != "name" || command == "name" && c == "name"
		}
		p := tiny.Protocol(tiny.Options{Window: window})
		tiny.Impatient(p)
		_, err := talk.Device(t, p, wire.Line{}, b.Run, device.Rules{Runs: 5}, time.Second)
		if !errors.Is(err, device.ErrSilent) {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// record keeps what a board says.
func record(t *testing.T, b *tinydevice.Board, runs int) []byte {
	t.Helper()
	var said bytes.Buffer
	var mu sync.Mutex
	dev := func(w io.Writer, r io.Reader) {
		b.Run(writer(func(p []byte) (int, error) {
			mu.Lock()
			said.Write(p)
			mu.Unlock()
			return w.Write(p)
		}), r)
	}
	if _, err := talk.Device(t, tiny.Protocol(tiny.Options{Window: window}), wire.Line{}, dev, device.Rules{Runs: runs}, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return bytes.Clone(said.Bytes())
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestReplay: a recording gives the same figures.
func TestReplay(t *testing.T) {
	t.Parallel()
	text := record(t, ic(), 4)
	p, err := talk.Bytes(t, tiny.Protocol(tiny.Options{}), text, device.Rules{})
	if err != nil || *p.Totals.Latency.N != 4 || *p.Totals.Latency.Median != 1.25e-3 || p.Model.Name != "ic01" {
		t.Fatalf("%v %+v", err, p)
	}
	behind := bytes.ReplaceAll(text, []byte("m-"), []byte("[dut]: m-"))
	p, err = talk.Bytes(t, tiny.Protocol(tiny.Options{}), behind, device.Rules{})
	if err != nil || *p.Totals.Latency.N != 4 {
		t.Fatalf("behind an interface board: %v", err)
	}
}

// TestUnplugged pulls the plug anywhere: it ends, and nothing is wrong.
func TestUnplugged(t *testing.T) {
	t.Parallel()
	n := len(record(t, ic(), 2))
	for at := 1; at < n; at += 1 + n/40 {
		p, err := talk.Device(t, tiny.Protocol(tiny.Options{Window: window}), wire.Line{UnplugAfter: int64(at)}, ic().Run, device.Rules{Runs: 10}, 5*time.Second)
		if err == nil {
			t.Fatalf("after %d bytes: no error", at)
		}
		if p != nil && (p.Incomplete == nil || p.Totals.Latency != nil && *p.Totals.Latency.Median != 1.25e-3) {
			t.Errorf("after %d bytes: %+v", at, p.Totals.Latency)
		}
		if _, ok := errors.AsType[*port.GoneError](err); !ok && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, io.EOF) {
			t.Logf("after %d bytes: %v", at, err)
		}
	}
}

// TestFaults replays what a board said over a wire with 10,000 faults in all. The text has no
// checksum: a digit of a stamp that became another one cannot be seen in a recording, where no
// clock is next to it; repeated windows show it.
func TestFaults(t *testing.T) {
	t.Parallel()
	text := record(t, ic(), 30)
	text = text[bytes.Index(text, []byte("m-load-done")):]
	rnd := rand.New(rand.NewPCG(11, 6))
	faults, silent, digits := 0, 0, 0
	for seed := uint64(0); faults < 10000; seed++ {
		rate := math.Pow(10, -2-2*rnd.Float64()) / 4
		got, places := wire.Faults{Seed: seed, Corrupt: rate, Cut: rate, Duplicate: rate, Reorder: rate}.Apply(text)
		faults += len(places)
		p, err := talk.Bytes(t, tiny.Protocol(tiny.Options{}), got, device.Rules{})
		if p == nil {
			if err == nil {
				t.Fatal("neither a profile nor an error")
			}
			continue
		}
		m := p.Totals.Latency
		if m == nil {
			continue
		}
		marked := p.Incomplete != nil
		for _, f := range p.Findings {
			marked = marked || f.Severity == profile.Warning
		}
		if lo, hi := *m.Median, *m.Median; m.Min != nil && (*m.Min != 1.25e-3 || *m.Max != 1.25e-3) || m.Min == nil && (lo != 1.25e-3 || hi != 1.25e-3) {
			digits++
			if !marked {
				silent++
				t.Logf("seed %d: %v: %+v", seed, places, m)
			}
		}
	}
	t.Logf("%d faults: %d recordings with a wrong window, %d of them without a mark", faults, digits, silent)
	if silent*50 > faults {
		t.Errorf("%d of %d faults passed", silent, faults)
	}
}

// TestCorruptLive measures over a faulty wire: it ends, whatever happens.
func TestCorruptLive(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		p := tiny.Protocol(tiny.Options{Window: window})
		tiny.Impatient(p)
		l := wire.Line{Faults: wire.Faults{Seed: seed, Corrupt: 0.002, Cut: 0.001, Duplicate: 0.001}}
		_, _ = talk.Device(t, p, l, ic().Run, device.Rules{Runs: 5}, 200*time.Millisecond)
	}
}

func FuzzTiny(f *testing.F) {
	f.Add([]byte("m-name-dut-[x]\r\nm-ready\r\nm-warmup-start-5\r\nm-infer-start-2\r\nm-lap-us-5\r\nm-lap-us-50\r\nm-infer-done\r\nm-results-[1,2]\r\nm-ready\r\n"))
	f.Add([]byte("m-infer-start-999999999\r\nm-lap-us-18446744073709551615\r\nm-lap-us-1\r\nm-infer-done\r\nm-ready\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := tiny.Protocol(tiny.Options{})
		if n := p.Sure(b); n < 0 || n > 100 {
			t.Fatal(n)
		}
		p.Sure = func([]byte) int { return 100 }
		_, _ = talk.Bytes(t, p, b, device.Rules{})
	})
}
