package pprof_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	format "github.com/google/pprof/profile"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/pprof"
	report "github.com/opmeter/opmeter/internal/report/pprof"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// TestPrograms compares real profiles of programs with sums over what the project's own
// library reads.
func TestPrograms(t *testing.T) {
	t.Parallel()
	dir := material.Path(t, "raw", "traces", "pprof")
	for _, path := range records.In(t, dir) {
		name := filepath.Base(path)
		if name == "empty" || strings.HasPrefix(name, "model") {
			continue
		}
		p := records.Read(t, pprof.Format(), records.Files(t, path), record.Options{})[0]
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want, err := format.Parse(f)
		if err != nil {
			t.Fatal(err)
		}
		own, with := map[string]float64{}, map[string]float64{}
		for _, s := range want.Sample {
			seen := map[string]bool{}
			for i, l := range s.Location {
				names := []string{fmt.Sprintf("0x%x", l.Address)}
				if len(l.Line) > 0 {
					names = nil
					for _, x := range l.Line {
						names = append(names, x.Function.Name)
					}
				}
				for j, n := range names {
					if i == 0 && j == 0 {
						own[n] += float64(s.Value[1]) / 1e9
					}
					if !seen[n] {
						with[n] += float64(s.Value[1]) / 1e9
					}
					seen[n] = true
				}
			}
		}
		gotOwn, gotWith := records.Layers(p, "latency_s"), records.Layers(p, "with_callees_s")
		for n, w := range own {
			if !(math.Abs(gotOwn[n]-w) < 1e-9) {
				t.Errorf("%s: %s: %v s, want %v", name, n, gotOwn[n], w)
			}
		}
		for n, w := range with {
			// One name may be several functions: then each counts by itself.
			if g := gotWith[n]; !(g >= w-1e-9) || g < w && len(gotOwn) > 0 && !(math.Abs(g-w) < 1e-9) {
				t.Errorf("%s: %s with callees: %v s, want %v", name, n, g, w)
			}
		}
		if len(own) == 0 {
			t.Errorf("%s has no samples", name)
		}
	}
	for _, f := range records.Files(t, filepath.Join(dir, "empty")) {
		if s := pprof.Match(f); s != record.No {
			t.Errorf("an empty file is recognised: %v", s)
		}
	}
}

// TestModel reads the profile of a model: figures are of one of its 200 inferences.
func TestModel(t *testing.T) {
	t.Parallel()
	path := material.Path(t, "raw", "traces", "pprof", "model_layers_mnv2.pb.gz")
	p := records.Read(t, pprof.Format(), records.Files(t, path), record.Options{})[0]
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := format.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Layers) != len(want.Sample) || p.Settings.Runs == nil || *p.Settings.Runs != 200 {
		t.Fatalf("%d layers of %d samples, %v runs", len(p.Layers), len(want.Sample), p.Settings.Runs)
	}
	for i, s := range want.Sample {
		l := &p.Layers[i]
		v, _ := l.Value("latency_s")
		b, _ := l.Value("output_bytes")
		if l.Op != s.Label["op_type"][0] || l.Name != s.Location[0].Line[0].Function.Name || !(math.Abs(v-float64(s.Value[1])/200e9) < 1e-15) || b != float64(s.Value[2])/200 {
			t.Errorf("layer %d: %s %s, %v s, %v bytes", i, l.Op, l.Name, v, b)
		}
		if n := s.NumLabel["parameter_size"][0]; n > 0 && (l.WeightsBytes == nil || *l.WeightsBytes != n) {
			t.Errorf("layer %d: weights %v, want %d", i, l.WeightsBytes, n)
		}
	}
	if d := cmp.Diff([]profile.Tensor{{DType: "float", Shape: []int64{1, 16, 64, 64}}}, p.Layers[0].Outputs); d != "" {
		t.Error(d)
	}
	if p.Target.Engine != "CPUExecutionProvider" {
		t.Errorf("%+v", p.Target)
	}
}

// TestRoundTrip writes a profile and reads it back: layers with their kinds, scopes and
// figures.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]sample.Options{"usual": {}, "hostile": {Hostile: true, Seed: 5}} {
		p := sample.New(o)
		var b bytes.Buffer
		if err := report.Write(&b, p); err != nil {
			t.Fatal(err)
		}
		// Compression is the finder's matter.
		parsed, err := format.ParseData(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		b.Reset()
		if err := parsed.WriteUncompressed(&b); err != nil {
			t.Fatal(err)
		}
		q := records.Read(t, pprof.Format(), []*record.File{record.Bytes("x.pb", b.Bytes())}, record.Options{})[0]
		if q.Model.Name != p.Model.Name || q.Target.ID != p.Target.ID {
			t.Errorf("%s: %s on %s", name, q.Model.Name, q.Target.ID)
		}
		n := 0
		for i := range p.Layers {
			x := &p.Layers[i]
			if x.State.Elsewhere() || x.State.Idle() || x.State == profile.NotReached {
				continue
			}
			if n >= len(q.Layers) {
				t.Fatalf("%s: %d layers", name, len(q.Layers))
			}
			y := &q.Layers[n]
			n++
			if x.Op != y.Op || x.Name != y.Name || x.Scope != y.Scope || x.Kernel != y.Kernel {
				t.Errorf("%s: %q %q %q, want %q %q %q", name, y.Op, y.Name, y.Scope, x.Op, x.Name, x.Scope)
			}
			for _, key := range []string{"latency_s", "macs", "accelerator_cycles", "energy_j"} {
				v, _ := x.Value(key)
				w, _ := y.Value(key)
				// The format has whole nanoseconds, cycles and nanojoules.
				unit := map[string]float64{"latency_s": 1e-9, "energy_j": 1e-9, "accelerator_cycles": 1, "macs": 0}[key]
				if !(math.Abs(v-w) <= unit) {
					t.Errorf("%s: %s of %s: %v, want %v", name, key, x.Name, w, v)
				}
			}
		}
		if n != len(q.Layers) {
			t.Errorf("%s: %d layers, want %d", name, len(q.Layers), n)
		}
	}
}

// TestCut keeps what stands before the end.
func TestCut(t *testing.T) {
	t.Parallel()
	path := material.Path(t, "raw", "traces", "pprof", "simple.prof")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parsed, err := format.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := parsed.WriteUncompressed(&b); err != nil {
		t.Fatal(err)
	}
	p := records.Read(t, pprof.Format(), []*record.File{record.Bytes("x", b.Bytes()[:b.Len()-50])}, record.Options{})[0]
	if len(p.Layers) == 0 || !slices.ContainsFunc(p.Incomplete, func(m profile.Missing) bool { return strings.Contains(m.Text, "ends early") }) {
		t.Errorf("%d layers, %+v", len(p.Layers), p.Incomplete)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	fn := &format.Function{ID: 1, Name: "f", SystemName: "operator:f"}
	loc := &format.Location{ID: 1, Line: []format.Line{{Function: fn}}}
	p := &format.Profile{
		SampleType: []*format.ValueType{{Type: "inferences", Unit: "count"}, {Type: "wall", Unit: "nanoseconds"}},
		Sample:     []*format.Sample{{Location: []*format.Location{loc}, Value: []int64{2, 5}, Label: map[string][]string{"op_type": {"Conv"}, "output_shape": {"1x2"}}, NumLabel: map[string][]int64{"layer": {3}}}},
		Location:   []*format.Location{loc}, Function: []*format.Function{fn},
	}
	if err := p.WriteUncompressed(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("heap profile: 1: 2 [3: 4] @ heapprofile\n1: 2 [3: 4] @ 0x1 0x2\n"))
	f.Add(binary())
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, pprof.Format(), "x.pb", data) })
}

// binary is a profile of the old form: a head, one stack of two places, an end.
func binary() (b []byte) {
	for _, w := range []uint32{0, 3, 0, 10000, 0, 4, 2, 0x1000, 0x2000, 0, 1, 0} {
		b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return b
}
