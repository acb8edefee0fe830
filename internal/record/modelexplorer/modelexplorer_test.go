package modelexplorer_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/modelexplorer"
	writer "github.com/opmeter/opmeter/internal/report/modelexplorer"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

func TestFile(t *testing.T) {
	t.Parallel()
	p := records.Read(t, modelexplorer.Format(), records.Files(t, material.Path(t, "raw", "traces", "model-explorer", "node_data_latency_mnv2.json")), record.Options{})[0]
	for i, want := range []float64{0.0439, 0.0256, 0.0173, 0.107} {
		if v, _ := p.Layers[i].Value("node_value"); v != want {
			t.Errorf("node %s is %g, want %g", p.Layers[i].Name, v, want)
		}
	}
	if p.Layers[0].Name != "149" || p.Totals.Latency != nil {
		t.Errorf("%+v", p.Layers[0])
	}
}

// TestRoundTrip reads what opmeter writes.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	p := sample.Large(12, 20, 0)
	want := map[string]float64{}
	for i := range p.Layers {
		l := &p.Layers[i]
		l.Provenance = &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: int64(100 + i)}}}
		v, _ := l.Latency.Best()
		want[string([]byte{'1', byte('0' + i/10), byte('0' + i%10)})] = v * 1e3
	}
	var b bytes.Buffer
	if err := writer.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	f := record.Bytes("a.json", b.Bytes())
	runs, err := modelexplorer.Format().Read(t.Context(), &record.Input{Files: []*record.File{f}})
	if err != nil || modelexplorer.Format().Match(f) != record.Certain {
		t.Fatal(err)
	}
	got := records.Collect(t, runs[0])
	if len(got.Layers) != len(want) {
		t.Fatalf("%d layers of %d", len(got.Layers), len(want))
	}
	for i := range got.Layers {
		l := &got.Layers[i]
		if v, _ := l.Value("node_value"); math.Abs(v-want[l.Name]) > 1e-12*v || *runs[0].Hints[i].Index != int64(100+i) {
			t.Errorf("node %s is %g, want %g", l.Name, v, want[l.Name])
		}
	}
}

func FuzzModelExplorer(f *testing.F) {
	f.Add([]byte(`{"main":{"results":{"1":{"value":2,"x":"y"},"a/b":3},"gradient":[{"stop":0,"bgColor":"x"}]},"sub":{"results":{"1":{"value":"t"}}}}`))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, modelexplorer.Format(), "a.json", b) })
}
