package profile

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is a small valid profile with most parts set.
func example() *Profile {
	return &Profile{
		Schema:   SchemaV1,
		Created:  "2026-01-02T03:04:05Z",
		Model:    Model{Name: "net", Format: "tflite", SHA256: strings.Repeat("0a", 32), FileBytes: new(int64(1000)), Inputs: []Tensor{{Name: "x", DType: "int8", Shape: []int64{1, -1}}, {Name: "s", Shape: []int64{}}}},
		Target:   Target{ID: "host", Kind: TargetHost, ClockHz: new(1e9)},
		Settings: Settings{Seed: new(uint64(math.MaxUint64)), Inputs: map[string]InputSource{"x": {Kind: "random"}}},
		Totals: Totals{
			Layers: new(int64(2)), Ops: new(int64(2000)), MACs: new(int64(1000)), BytesRead: new(int64(300)), BytesWritten: new(int64(100)),
			Latency: Value(Measured, 0.001, ""), CPUCycles: Value(Measured, 5e5, ""), Energy: Value(Estimated, 2e-6, ""),
		},
		Reconcile: &Reconcile{OverheadS: &Metric{Kind: Measured, Median: new(-1e-9), CI95: &[2]float64{-2e-9, 1e-9}}},
		Layers: []Layer{
			{Index: 0, Op: "CONV_2D", State: Ran, Options: []Option{{"padding", "same"}}, Latency: &Metric{Kind: Measured, N: new(int64(3)), Median: new(2.0), Min: new(1.0), Max: new(3.0)}, Share: new(1.0)},
			{Index: 1, Op: "FOO", State: Unsupported, Cause: &Cause{ByOperator, "no kernel"}, Placement: &Placement{On: CPU, Cause: ByType}, Provenance: &Provenance{Confidence: Exact, SourceNodes: []SourceNode{{Node: 1}}}},
		},
		Findings: []Finding{{ID: "a.b", Severity: Info, Text: "One.", Layers: []int64{1}}},
	}
}

func TestAbsentIsLeftOut(t *testing.T) {
	t.Parallel()
	p := &Profile{Schema: SchemaV1, Model: Model{Name: "m"}, Target: Target{ID: "host", Kind: TargetHost}, Layers: []Layer{{Op: "Add", State: Ran, Ops: new(int64(0))}}}
	var b bytes.Buffer
	if err := p.Encode(&b); err != nil {
		t.Fatal(err)
	}
	want := `{
  "schema": "opmeter/profile/v1",
  "model": {
    "name": "m"
  },
  "target": {
    "id": "host",
    "kind": "host"
  },
  "settings": {},
  "totals": {},
  "layers": [
    {
      "index": 0,
      "op": "Add",
      "state": "ran",
      "ops": 0
    }
  ]
}
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	p := example()
	var text bytes.Buffer
	if err := p.Encode(&text); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, got); d != "" {
		t.Errorf("JSON (-want +got):\n%s", d)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a"+Extension)
	if err := Write(path, p); err != nil {
		t.Fatal(err)
	}
	if got, err = Read(path); err != nil {
		t.Fatal(err)
	}
	// Written piece by piece or at once, the bytes are the same.
	if b, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	} else if m, err := Marshal(p); err != nil || !bytes.Equal(m, b) {
		t.Errorf("Marshal and Write differ: %v", err)
	}
	if d := cmp.Diff(p, got); d != "" {
		t.Errorf("file (-want +got):\n%s", d)
	}
	if es, _ := os.ReadDir(dir); len(es) != 1 {
		t.Errorf("%d files are left, want one", len(es))
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = Read(path); err != nil || cmp.Diff(p, got) != "" {
		t.Errorf("JSON file: %v", err)
	}
}

func TestWriteKeepsTheOldFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a"+Extension)
	if err := Write(path, example()); err != nil {
		t.Fatal(err)
	}
	bad := example()
	bad.Layers[0].Share = new(math.NaN())
	if err := Write(path, bad); err == nil || !strings.Contains(err.Error(), "layers[0].share") {
		t.Errorf("writing an invalid profile: %v", err)
	}
	if _, err := Read(path); err != nil {
		t.Errorf("the old file is damaged: %v", err)
	}
	if err := Write(filepath.Join(path, "no", "such"), example()); err == nil {
		t.Error("writing into a missing folder succeeded")
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	want := Rates{
		OpsPerSecond: new(2e6), MACsPerSecond: new(1e6), InferencesPerSecond: new(1000.0), JoulesPerOp: new(1e-9), JoulesPerMAC: new(2e-9),
		Watts: new(2e-3), CPUUtilization: new(0.5), BytesPerSecond: new(4e5), OpsPerByte: new(5.0),
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) })
	if d := cmp.Diff(want, example().Rates(), near); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff(Rates{}, (&Layer{}).Rates()); d != "" {
		t.Errorf("of nothing (-want +got):\n%s", d)
	}
}

// TestRatesLeaveOut takes work out of rates that took no part of the time.
func TestRatesLeaveOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		layer Layer
		ops   float64
	}{
		{"ran", Layer{State: Ran, Ops: new(int64(500))}, 2e6},
		{"could not run", Layer{State: Unsupported, Ops: new(int64(500))}, 1.5e6},
		{"lost", Layer{State: Lost, Ops: new(int64(500))}, 1.5e6},
		{"no work known", Layer{State: Lost}, 2e6},
		{"fused", Layer{State: Fused, FusedInto: new(int64(0)), Ops: new(int64(500))}, 2e6},
		{"constant, in no total", Layer{State: Unsupported, Constant: true, Ops: new(int64(500))}, 2e6},
		{"more than all", Layer{State: Failed, Ops: new(int64(5000))}, 0},
	} {
		p := example()
		p.Layers[1] = tt.layer
		// a sum and a quotient of small numbers
		if got := p.Rates().OpsPerSecond; got == nil || math.Abs(*got-tt.ops) > 1e-6 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.ops)
		}
		if *p.Totals.Ops != 2000 {
			t.Errorf("%s: totals changed", tt.name)
		}
	}
}

func TestBest(t *testing.T) {
	t.Parallel()
	if v, ok := (*Metric)(nil).Best(); ok || v != 0 {
		t.Error("nil has a figure")
	}
	if v, ok := (&Metric{Mean: new(2.0), Min: new(1.0)}).Best(); !ok || v != 2 {
		t.Errorf("Best = %v, %v", v, ok)
	}
}
