package sensiml_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/device"
	devsensiml "github.com/opmeter/opmeter/internal/device/sensiml"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/talk"
	"github.com/opmeter/opmeter/internal/testing/wire"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/sensiml"
)

func stream(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(material.Path(t, "raw", "sensiml", "format", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func pack(t testing.TB, name string) *sensiml.Pack {
	t.Helper()
	p, err := sensiml.OpenPack(material.Path(t, "raw", "sensiml", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// means are those of the slots of a model in a recording, from one inference on, the classifier's
// last.
func means(t testing.TB, data []byte, model, slots, from int) []float64 {
	t.Helper()
	sum, n := make([]float64, slots+1), 0
	for line := range strings.Lines(string(data)) {
		var x struct {
			ModelNumber      int
			FeatureCycles    []float64
			ClassifierCycles float64
		}
		if !strings.Contains(line, `"Cycles"`) || json.Unmarshal([]byte(line), &x) != nil || x.ModelNumber != model {
			continue
		}
		if n++; n <= from {
			continue
		}
		for i := range slots {
			sum[i] += x.FeatureCycles[i]
		}
		sum[slots] += x.ClassifierCycles
	}
	for i := range sum {
		sum[i] /= float64(n - from)
	}
	return sum
}

func near(a, b float64) bool { d := a - b; return d <= 1e-9*b && -d <= 1e-9*b }

// TestGenerators: layers are the generators with their sensors, and the classifier.
func TestGenerators(t *testing.T) {
	t.Parallel()
	data := stream(t, "dup_runner.log")
	p, err := talk.Bytes(t, devsensiml.Protocol(pack(t, "format/dup_model.json")), data, device.Rules{Warmup: 1, ClockHz: 64e6})
	if err != nil {
		t.Fatal(err)
	}
	want := means(t, data, 0, 4, 1)
	names := []string{"Mean AccelerometerX", "Mean AccelerometerY", "Mean AccelerometerZ", "Sum AccelerometerX", "classifier"}
	if len(p.Layers) != len(names) || p.Model.Name != "dup_rank_0" {
		t.Fatalf("%d layers of %s", len(p.Layers), p.Model.Name)
	}
	for i, l := range p.Layers {
		c := l.CPUCycles
		if l.Name != names[i] || c == nil || c.Kind != profile.Measured || !near(*c.Mean, want[i]) || !near(*l.Latency.Mean, want[i]/64e6) {
			t.Errorf("layer %d: %s: %+v, want %s with %v cycles", i, l.Name, c, names[i], want[i])
		}
	}
	if l := p.Totals.Latency; l == nil {
		t.Error("no time of the whole")
	}
}

// TestSeveralModels: layers are named after their models, those that are not sent are lost, and a
// total says what it lacks.
func TestSeveralModels(t *testing.T) {
	t.Parallel()
	data := stream(t, "xg24_two_models.log")
	p, err := talk.Bytes(t, devsensiml.Protocol(pack(t, "real/xg24_2022_two_models_model.json")), data, device.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Layers) != 2+13 || p.Totals.CPUCycles != nil && p.Totals.CPUCycles.Method == "" {
		t.Fatalf("%d layers, total %v", len(p.Layers), p.Totals.CPUCycles)
	}
	want := means(t, data, 1, 7, 0)
	for i := range 7 {
		if c := p.Layers[2+i].CPUCycles; c == nil || !near(*c.Mean, want[i]) {
			t.Errorf("%s: %+v, want %v", p.Layers[2+i].Name, c, want[i])
		}
	}
	for i := 9; i < 14; i++ {
		if l := p.Layers[i]; l.State != profile.Lost || l.Cause == nil || l.CPUCycles != nil || !strings.HasPrefix(l.Name, "IMU_MODEL: ") {
			t.Errorf("%s: %s, %+v", l.Name, l.State, l.Cause)
		}
	}
}

// TestSure: a stream is recognised from any place in a burst.
func TestSure(t *testing.T) {
	t.Parallel()
	p := devsensiml.Protocol(nil)
	for _, name := range []string{"roc7_nano33.log", "roc7_runner.log"} {
		data := stream(t, name)
		for at := 0; at < 400; at += 7 {
			if n := p.Sure(data[at:min(at+600, len(data))]); n < 90 {
				t.Errorf("%s from byte %d: %d", name, at, n)
			}
		}
	}
	for _, other := range []string{"", "CONV_2D took 12 ticks (0 ms).\n", "m-ready\r\n", `{"name":"x"}`, "\xa5\x5a\x00\x01"} {
		if n := p.Sure([]byte(other)); n != 0 {
			t.Errorf("%q: %d", other, n)
		}
	}
}

// TestNoFigures: a pack that prints classes only is an error with advice.
func TestNoFigures(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("{\"ModelNumber\":0,\"Classification\":1}\n"), 100)
	if _, err := talk.Bytes(t, devsensiml.Protocol(nil), data, device.Rules{}); err == nil || !strings.Contains(err.Error(), "debug and profile") {
		t.Errorf("%v", err)
	}
}

// TestFaults: whatever a wire does, the profile is valid and figures are honest ones.
func TestFaults(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat(stream(t, "roc7_runner.log"), 2)
	want := means(t, data, 0, 7, 0)
	for seed := range uint64(25) {
		bad, _ := wire.Faults{Seed: seed, Corrupt: 0.002, Cut: 0.0005, Duplicate: 0.0005}.Apply(data)
		p, err := talk.Bytes(t, devsensiml.Protocol(pack(t, "format/roc7_model.json")), bad, device.Rules{})
		if p == nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		if err := p.Validate(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for i, l := range p.Layers {
			// Within a quarter nothing tells damage from a figure.
			if c := l.CPUCycles; c != nil && (!(*c.Min >= 0.73*want[i]) || !(*c.Max <= 1.27*want[i])) {
				t.Errorf("seed %d: %s from %v to %v, the device's are near %v", seed, l.Name, *c.Min, *c.Max, want[i])
			}
		}
	}
}
