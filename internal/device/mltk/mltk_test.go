package mltk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/mltk"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/mltkdevice"
	"github.com/opmeter/opmeter/internal/testing/talk"
	"github.com/opmeter/opmeter/internal/testing/wire"
	"github.com/opmeter/opmeter/profile"
)

// table reads the published device tables as boards that print them.
func tables(t testing.TB) (boards []*mltkdevice.Board, models []string) {
	t.Helper()
	u := func(s string) uint32 {
		v, err := strconv.ParseFloat(s, 64)
		if s != "" && err != nil {
			t.Fatal(err)
		}
		return uint32(math.Round(v))
	}
	at := map[string]*mltkdevice.Board{}
	for _, r := range material.Table(t, "data", "mltk_golden.csv") {
		if r["mode"] != "device" {
			continue
		}
		b := &mltkdevice.Board{Name: r["model"], Accelerator: strings.ToUpper(r["accelerator"]), ClockHz: u(r["clock_hz"]), RAM: u(r["runtime_memory_bytes"])}
		at[r["table_id"]] = b
		boards, models = append(boards, b), append(models, r["tflite_sha1_8"])
	}
	for _, r := range material.Table(t, "data", "mltk_golden_layers.csv") {
		if r["mode"] != "device" {
			continue
		}
		seconds, err := strconv.ParseFloat(r["time_s"], 64)
		if err != nil && r["time_s"] != "" {
			t.Fatal(err)
		}
		b := at[r["table_id"]]
		b.Layers = append(b.Layers, mltkdevice.Layer{
			Op: strings.ToUpper(r["opcode"]), Ops: u(r["ops"]), MACs: u(r["macs"]), CPU: u(r["cpu_cycles"]), Accelerator: u(r["acc_cycles"]),
			TimeUS: uint32(math.Round(seconds * 1e6)), Refused: r["error_msg"],
		})
	}
	return boards, models
}

// model is what is known about a reference model, nil where its file is absent.
func model(t *testing.T, sha string) *profile.Profile {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(material.Path(t, "models", "mltk"), "*__"+sha+".tflite"))
	if err != nil || len(files) == 0 {
		return nil
	}
	m, err := opmeter.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// check compares a profile with what the board printed, figure by figure. The numbers in the
// tables have fewer digits than the firmware prints, so that nothing is cut.
func check(t *testing.T, b *mltkdevice.Board, p *profile.Profile, joined bool) {
	t.Helper()
	if len(p.Layers) != len(b.Layers) {
		t.Fatalf("%s: %d layers, want %d", b.Name, len(p.Layers), len(b.Layers))
	}
	if *p.Target.ClockHz != float64(b.ClockHz) || *p.Totals.RAMBytes != int64(b.RAM) || p.Target.Kind != profile.TargetDevice {
		t.Errorf("%s: %g Hz, %d bytes, %s", b.Name, *p.Target.ClockHz, *p.Totals.RAMBytes, p.Target.Kind)
	}
	for i, l := range b.Layers {
		y := &p.Layers[i]
		figures := map[string]float64{"latency_s": float64(l.TimeUS) / 1e6, "cpu_cycles": float64(l.CPU), "accelerator_cycles": float64(l.Accelerator)}
		if !joined { // the model's file has the work with all its digits
			figures["mltk_ops"], figures["mltk_macs"] = float64(l.Ops), float64(l.MACs)
		}
		for key, want := range figures {
			v, ok := y.Value(key)
			if want == 0 && !ok {
				continue // the firmware prints nothing that is 0
			}
			if !ok || !(math.Abs(v-want) <= 1e-12*want) { // one rounding of a product
				t.Errorf("%s: %s of %d is %v %v, want %v", b.Name, key, i, v, ok, want)
			}
		}
		if m := y.CPUCycles; m != nil && (m.Kind != profile.Measured || m.Band != nil && !(m.Band[0] == float64(l.CPU) && m.Band[1] > m.Band[0])) {
			t.Errorf("%s: %+v", b.Name, m)
		}
		if !strings.EqualFold(y.Op, l.Op) && (joined || l.Ops+l.MACs+l.TimeUS+l.CPU+l.Accelerator > 0) {
			t.Errorf("%s: %d is %s, want %s", b.Name, i, y.Op, l.Op)
		}
		if (l.Refused != "") != (y.Placement != nil && y.Placement.Cause == profile.ByLimit) {
			t.Errorf("%s: %d refused: %q, %+v", b.Name, i, l.Refused, y.Placement)
		}
	}
	for _, f := range p.Findings {
		if f.Severity == profile.Warning {
			t.Errorf("%s: %s: %s", b.Name, f.ID, f.Text)
		}
	}
}

// TestPublished renders the published device tables as a board prints them and reads them back,
// joined with the model's file where that is there.
func TestPublished(t *testing.T) {
	t.Parallel()
	boards, models := tables(t)
	joined := 0
	for i, b := range boards {
		p, err := talk.Bytes(t, mltk.Protocol(nil), b.Text(), device.Rules{})
		if err != nil {
			t.Fatalf("%s: %v", b.Name, err)
		}
		check(t, b, p, false)
		m := model(t, models[i])
		if m == nil {
			continue
		}
		p, err = talk.Bytes(t, mltk.Protocol(nil), b.Text(), device.Rules{Model: m})
		if err != nil {
			t.Fatalf("%s: %v", b.Name, err)
		}
		check(t, b, p, true)
		joined++
		for k := range p.Layers {
			if l := &p.Layers[k]; l.Provenance == nil || l.Op != m.Layers[k].Op || len(l.Outputs) != len(m.Layers[k].Outputs) {
				t.Errorf("%s: %d %s was not joined with the model", b.Name, k, l.Op)
			}
		}
	}
	if len(boards) != 49 || joined < 40 {
		t.Errorf("%d tables, %d with a model", len(boards), joined)
	}
}

// kws is a board of its own, whose figures have more digits than are printed.
func kws() *mltkdevice.Board {
	b := &mltkdevice.Board{Name: "kws", Accelerator: "MVP", ClockHz: 78e6, RAM: 11296}
	for i, op := range []string{"CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "MAX_POOL_2D", "CONV_2D", "AVERAGE_POOL_2D", "RESHAPE", "FULLY_CONNECTED", "SOFTMAX"} {
		n := uint32(i + 1)
		l := mltkdevice.Layer{Op: op, Ops: 812347 / n, MACs: 401234 / n, TimeUS: 5071 / n * 3, CPU: 23456 * n, Accelerator: 312349 / n}
		if op == "RESHAPE" || op == "SOFTMAX" {
			l.MACs, l.Accelerator = 0, 0
		}
		b.Layers = append(b.Layers, l)
	}
	return b
}

// TestCut: digits are cut off, and the figure says between which values the true one lies.
func TestCut(t *testing.T) {
	t.Parallel()
	b := kws()
	p, err := talk.Bytes(t, mltk.Protocol(nil), b.Text(), device.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range b.Layers {
		m := p.Layers[i].CPUCycles
		if v, _ := m.Best(); m.Band == nil || !(m.Band[0] <= float64(l.CPU) && float64(l.CPU) < m.Band[1]) || m.Band[1]-m.Band[0] > 0.01*v || m.Kind != profile.Measured {
			t.Errorf("%d: %+v, true are %d cycles", i, m, l.CPU)
		}
		if v, _ := p.Layers[i].Latency.Best(); v != float64(l.TimeUS)/1e6 {
			t.Errorf("%d: %g s, want %d µs", i, v, l.TimeUS)
		}
	}
	sum := uint32(0)
	for _, l := range b.Layers {
		sum += l.CPU
	}
	if m := p.Totals.CPUCycles; !(m.Band[0] <= float64(sum) && float64(sum) < m.Band[1]) {
		t.Errorf("the whole: %+v, true are %d cycles", m, sum)
	}
	if v, ok := p.Totals.Value("free_running_cycles"); !ok || v <= 0 {
		t.Errorf("free running: %g", v)
	}
}

// TestJoined: a stream that is joined in the middle of a run, a run that follows, a board that is
// started again.
func TestJoined(t *testing.T) {
	t.Parallel()
	b := kws()
	text := b.Text()
	p, err := talk.Bytes(t, mltk.Protocol(nil), append(text[len(text)*3/4:len(text):len(text)], text...), device.Rules{})
	if err != nil || p.Totals.Latency == nil || len(p.Layers) != len(b.Layers) {
		t.Fatalf("%v %+v", err, p)
	}
	half := append(text[:len(text)/2:len(text)/2], text...)
	p, err = talk.Bytes(t, mltk.Protocol(nil), append(half, text...), device.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Totals.Latency.N; n == nil || *n != 2 {
		t.Errorf("two whole runs and a cut one: %+v", p.Totals.Latency)
	}
	other := kws()
	other.Layers = other.Layers[1:]
	p, err = talk.Bytes(t, mltk.Protocol(nil), append(b.Text(), other.Text()...), device.Rules{})
	if err != nil || len(p.Layers) != len(b.Layers) || finding(p, "mltk.other") == "" {
		t.Errorf("another model behind: %v, %d layers", err, len(p.Layers))
	}
	resets := 0
	p, err = talk.Device(t, mltk.Protocol(func(context.Context) error { resets++; return nil }), wire.Line{}, b.Run(3), device.Rules{Runs: 3}, time.Second)
	if err != nil || resets != 2 || *p.Totals.Latency.N != 3 {
		t.Errorf("%d resets for three runs: %v", resets, err)
	}
}

func finding(p *profile.Profile, id string) string {
	if p == nil {
		return ""
	}
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

// TestFailed: what the firmware says when it fails ends the measurement at once, and what was
// printed before stays.
func TestFailed(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"*** HardFault ***", "Error while running inference", "Profiler: x, failed to alloc memory"} {
		text := kws().Text()
		cut := append(text[:len(text)*3/4:len(text)*3/4], "\r\n"+line+"\r\nmore\r\n"...)
		p, err := talk.Device(t, mltk.Protocol(nil), wire.Line{}, func(w io.Writer, r io.Reader) { _, _ = w.Write(cut) }, device.Rules{}, 20*time.Second)
		f, ok := errors.AsType[*mltk.FailedError](err)
		if !ok || f.Line != line || p == nil || len(p.Layers) == 0 || p.Layers[0].Latency == nil || p.Incomplete == nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// TestUnplugged pulls the plug after each line.
func TestUnplugged(t *testing.T) {
	t.Parallel()
	b := kws()
	text := b.Text()
	for at, c := range text {
		if c != '\n' {
			continue
		}
		p, err := talk.Device(t, mltk.Protocol(nil), wire.Line{UnplugAfter: int64(at + 1)}, b.Run(1), device.Rules{}, 5*time.Second)
		if at == len(text)-1 {
			if err != nil {
				t.Errorf("at the end: %v", err)
			}
			continue
		}
		if _, ok := errors.AsType[*port.GoneError](err); !ok {
			t.Fatalf("after %d bytes: %v", at+1, err)
		}
		if p != nil && p.Incomplete == nil {
			t.Errorf("after %d bytes: a profile that does not say that it is incomplete", at+1)
		}
		wrong(t, b, p, fmt.Sprint("unplugged at ", at))
	}
}

// wrong lists figures that are not those that the board printed.
func wrong(t *testing.T, b *mltkdevice.Board, p *profile.Profile, what string) (out []string) {
	t.Helper()
	if p == nil {
		return nil
	}
	good, err := talk.Bytes(t, mltk.Protocol(nil), b.Text(), device.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Layers {
		for _, key := range []string{"latency_s", "cpu_cycles", "accelerator_cycles", "mltk_ops", "mltk_macs"} {
			v, ok := p.Layers[i].Value(key)
			if !ok {
				continue
			}
			if i >= len(good.Layers) {
				out = append(out, fmt.Sprintf("%s: a layer %d", what, i))
				continue
			}
			if w, ok := good.Layers[i].Value(key); !ok || w != v {
				out = append(out, fmt.Sprintf("%s: %s of %d is %g, want %g", what, key, i, v, w))
			}
		}
	}
	return out
}

// marked reports whether a profile says that something is wrong with it.
func marked(p *profile.Profile) bool {
	for _, f := range p.Findings {
		if f.Severity == profile.Warning {
			return true
		}
	}
	return p.Incomplete != nil
}

// TestFaults sends the text over a wire with faults, 10,000 in all. Nothing may hang or break. The
// text has no checksum: a digit that became another digit cannot always be seen, and a fault in
// 200 of that kind may pass. All others are marked.
func TestFaults(t *testing.T) {
	t.Parallel()
	b := kws()
	text := b.Text()
	rnd := rand.New(rand.NewPCG(11, 4))
	faults, silent, runs := 0, 0, 0
	byKind := map[wire.FaultKind]int{}
	for seed := uint64(0); faults < 10000; seed++ {
		runs++
		rate := math.Pow(10, -2-2*rnd.Float64()) / 4
		got, places := wire.Faults{Seed: seed, Corrupt: rate, Cut: rate, Duplicate: rate, Reorder: rate}.Apply(text)
		faults += len(places)
		p, err := talk.Bytes(t, mltk.Protocol(nil), got, device.Rules{})
		if p == nil {
			if err == nil {
				t.Fatal("neither a profile nor an error")
			}
			continue
		}
		if bad := wrong(t, b, p, fmt.Sprint("seed ", seed)); len(bad) > 0 && !marked(p) {
			silent++
			if len(places) == 1 {
				byKind[places[0].Kind]++
			}
			t.Logf("%v: %q", places, bad)
		}
	}
	t.Logf("%d faults in %d runs: %d runs with a wrong figure and no mark, of single faults %v", faults, runs, silent, byKind)
	if silent*200 > faults {
		t.Errorf("%d of %d faults passed", silent, faults)
	}
}

func FuzzMLTK(f *testing.F) {
	f.Add(kws().Text())
	f.Add([]byte("Op0-A\n 1.00k CPU cycles\nOp99999999999-B\n 1 ms\ndone\nOp1-C\n 2 ms\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := mltk.Protocol(nil)
		if n := p.Sure(b); n < 0 || n > 100 {
			t.Fatal(n)
		}
		p.Sure = func([]byte) int { return 100 }
		_, _ = talk.Bytes(t, p, b, device.Rules{})
	})
}

// TestSure: other texts are not taken for this one.
func TestSure(t *testing.T) {
	t.Parallel()
	p := mltk.Protocol(nil)
	text := kws().Text()
	for at := 0; at < len(text)-600; at += 97 {
		if n := p.Sure(text[at : at+600]); n < 30 {
			t.Errorf("joined at %d: %d", at, n)
		}
	}
	for _, s := range []string{"", "CONV_2D took 5 ticks (0 ms).\n", "m-ready\r\n", "hello\nworld\n", "Loading configuration\nerror\n"} {
		if n := p.Sure([]byte(s)); n != 0 {
			t.Errorf("%q: %d", s, n)
		}
	}
	if _, err := os.Stat("testdata/fuzz"); err == nil {
		t.Log("findings of the fuzz test are run, too")
	}
}
