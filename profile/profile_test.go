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
			{Index: 0, Op: "CONV_2D", Latency: &Metric{Kind: Measured, N: new(int64(3)), Median: new(2.0), Min: new(1.0), Max: new(3.0)}, Share: new(1.0)},
			{Index: 1, Op: "FOO", Unsupported: true, Reason: "no kernel", Provenance: &Provenance{Confidence: Exact, SourceNodes: []SourceNode{{Node: 1}}}},
		},
		Findings: []Finding{{ID: "a.b", Severity: Info, Text: "One.", Layers: []int64{1}}},
	}
}

func TestAbsentIsLeftOut(t *testing.T) {
	t.Parallel()
	p := &Profile{Schema: SchemaV1, Model: Model{Name: "m"}, Target: Target{ID: "host", Kind: TargetHost}, Layers: []Layer{{Op: "Add", Ops: new(int64(0))}}}
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

func TestDamagedFile(t *testing.T) {
	t.Parallel()
	good, err := Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if p, err := Unmarshal(good[:n]); err == nil || p != nil {
			t.Fatalf("cut to %d of %d bytes: %v, %v", n, len(good), p, err)
		}
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 0x10
		p, err := Unmarshal(b)
		// Bytes 10 and 11 are reserved, and some bits of the frame's header say
		// nothing; a profile that is read in spite of damage must be the right one.
		if err == nil && i < headerBytes && i != 10 && i != 11 {
			t.Errorf("byte %d damaged: no error", i)
		}
		if err == nil && cmp.Diff(example(), p) != "" {
			t.Errorf("byte %d damaged: another profile", i)
		}
	}
	tests := []struct{ name, in, want string }{
		{"empty", "", "empty"},
		{"random", "hello, world", "magic"},
		{"text mode", "\x89OPM\n\x1a\nxxxxxxx", "line ends"},
		{"JSON of another version", `{"schema":"opmeter/profile/v2","layers":7}`, `"opmeter/profile/v2"`},
		{"other JSON", `{"x":1}`, `schema is ""`},
		{"cut JSON", `{"schema":"opmeter/profile/v1","model":{"na`, "EOF"},
		{"deep JSON", `{"schema":` + strings.Repeat("[", 5000), "nest deeper"},
		{"huge", string(good[:12]) + "\xff\xff\xff\xff\xff\xff\xff\x7f" + string(good[20:]), "more than"},
		{"bomb", string(good[:12]) + "\x00\x00\x00\x3f\x00\x00\x00\x00" + string(good[20:]), "says that"},
		{"container version", string(good[:8]) + "\x09\x00" + string(good[10:]), "version 9"},
	}
	for _, tt := range tests {
		if _, err := Unmarshal([]byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		do   func(p *Profile)
		want string
	}{
		{"good", func(*Profile) {}, ""},
		{"schema", func(p *Profile) { p.Schema = "x" }, "schema"},
		{"kind", func(p *Profile) { p.Target.Kind = "moon" }, "target.kind"},
		{"hash", func(p *Profile) { p.Model.SHA256 = "0A" }, "model.sha256"},
		{"dimension", func(p *Profile) { p.Model.Inputs[0].Shape[0] = -2 }, "model.inputs[0].shape"},
		{"negative count", func(p *Profile) { p.Totals.Ops = new(int64(-1)) }, "totals.ops"},
		{"metric kind", func(p *Profile) { p.Totals.Latency.Kind = "" }, "totals.latency_s"},
		{"metric order", func(p *Profile) { p.Layers[0].Latency.Median = new(9.0) }, "layers[0].latency_s"},
		{"interval", func(p *Profile) { p.Layers[0].Latency.CI95 = &[2]float64{2, 1} }, "ci95"},
		{"infinite", func(p *Profile) { p.Layers[0].Latency.Max = new(math.Inf(1)) }, "layers[0].latency_s"},
		{"negative time", func(p *Profile) { p.Totals.Latency.Median = new(-1.0) }, "totals.latency_s"},
		{"index", func(p *Profile) { p.Layers[1].Index = 5 }, "layers[1].index"},
		{"op", func(p *Profile) { p.Layers[1].Op = "" }, "layers[1].op"},
		{"parent", func(p *Profile) { p.Layers[1].Parent = new(int64(1)) }, "layers[1].parent"},
		{"fused", func(p *Profile) { p.Layers[1].FusedInto = new(int64(2)) }, "layers[1].fused_into"},
		{"share", func(p *Profile) { p.Layers[0].Share = new(1.5) }, "layers[0].share"},
		{"samples", func(p *Profile) { p.Layers[0].Samples = []float64{1, math.NaN()} }, "layers[0].samples_s"},
		{"accelerated", func(p *Profile) { p.Layers[0].Accelerated = "maybe" }, "accelerated"},
		{"confidence", func(p *Profile) { p.Layers[1].Provenance.Confidence = "" }, "confidence"},
		{"finding", func(p *Profile) { p.Findings[0].Layers[0] = 2 }, "findings[0].layers"},
		{"severity", func(p *Profile) { p.Findings[0].Severity = "" }, "severity"},
		{"memory", func(p *Profile) { p.Memory = &Memory{Plan: []Placement{{Offset: -1}}} }, "memory.plan[0]"},
		{"memory steps", func(p *Profile) { p.Memory = &Memory{StepLayers: []int64{-1, 99}} }, "memory.step_layers[1]"},
		{"host", func(p *Profile) { p.Host = &Host{Before: &HostState{TemperatureC: new(-300.0)}} }, "temperature_c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := example()
			tt.do(p)
			err := p.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate = %v, want %q", err, tt.want)
			}
		})
	}
	if err := (*Profile)(nil).Validate(); err == nil {
		t.Error("nil is valid")
	}
}

func TestReadTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.opmeter")
	if err := Write(path, example()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, "xx"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.HasSuffix(err.Error(), "something follows its end") {
		t.Error(err)
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

func TestBest(t *testing.T) {
	t.Parallel()
	if v, ok := (*Metric)(nil).Best(); ok || v != 0 {
		t.Error("nil has a figure")
	}
	if v, ok := (&Metric{Mean: new(2.0), Min: new(1.0)}).Best(); !ok || v != 2 {
		t.Errorf("Best = %v, %v", v, ok)
	}
}

func FuzzUnmarshal(f *testing.F) {
	good, err := Marshal(example())
	if err != nil {
		f.Fatal(err)
	}
	var text bytes.Buffer
	if err := example().Encode(&text); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:60])
	f.Add(text.Bytes())
	f.Add([]byte(`{"schema":"opmeter/profile/v1","layers":[{"index":0,"op":"x","outputs":[{"shape":[1e9]}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Unmarshal(b)
		if err != nil {
			if p != nil {
				t.Fatal("both a profile and an error")
			}
			return
		}
		again, err := Marshal(p)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		q, err := Unmarshal(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if d := cmp.Diff(p, q); d != "" {
			t.Fatalf("round trip (-first +second):\n%s", d)
		}
	})
}
