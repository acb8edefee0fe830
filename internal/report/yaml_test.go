package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// TestYAMLIsJSON reads both texts of one profile and compares what they hold.
func TestYAMLIsJSON(t *testing.T) {
	t.Parallel()
	p := withHostileNames()
	p.Model.Opsets = map[string]int64{"ai.onnx": 17, "true": 1, "a: b": 2}
	p.Settings.Inputs = map[string]profile.InputSource{"x\n": {Kind: "random", Shape: []int64{}}}
	p.Layers[0].Samples = []float64{0, 1e-9, 1e-7, 0.25, 1e21, 123456789}
	p.Layers[0].Provenance = &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Name: "null"}, {Name: "~"}, {Name: "\u0085\u2028\ufeff\x7f"}, {Name: "- x"}, {Name: "1e3"}, {Name: "Yes"}}}
	p.Timeline = &timeline.Timeline{
		Names:    []string{"a, b", "[c]", "plain", "no", ""},
		Lanes:    []timeline.Lane{{Name: "l", Kind: timeline.Layer, Starts: []float64{0, 1}, Durations: []float64{1, 1}, Layers: []int32{-1, 2}, Bytes: []int64{-1, 5}}, {Name: "e", Kind: timeline.Host, Starts: []float64{}, Durations: []float64{}}},
		Counters: []timeline.Counter{{Name: "c", Times: []float64{0}, Values: []float64{-1.5e-9}}},
	}
	var a, b bytes.Buffer
	if err := writeYAML(&a, p, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Encode(&b); err != nil {
		t.Fatal(err)
	}
	var y, j any
	if err := yaml.Unmarshal(a.Bytes(), &y); err != nil {
		t.Fatalf("%v in\n%s", err, a.Bytes())
	}
	// Numbers come back in different types: compare them as JSON does.
	text, err := json.Marshal(y)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &y); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &j); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(j, y); d != "" {
		t.Errorf("-JSON +YAML:\n%s", d)
	}
}
