package report

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	pprofformat "github.com/google/pprof/profile"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// TestNames puts a name wherever a profile has one, writes every format that can
// be read back, and looks for the name.
func TestNames(t *testing.T) {
	t.Parallel()
	_, of := profiled(t)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		name := rapid.OneOf(rapid.String(), rapid.SampledFrom(append(sample.Hostile, "\xff\xfe", "a\xc3")), rapid.StringMatching(`[\x00-\x7f]{1,50}`)).Draw(t, "name")
		p := sample.Random(rand.New(rand.NewPCG(seed, 8)))
		if name == "" {
			name = "x" // names of models and lanes must not be empty
		}
		p.Model.Name = name
		p.Layers = append(p.Layers, profile.Layer{
			Index: int64(len(p.Layers)), Name: name, Op: name, State: profile.Ran, Options: []profile.Option{{Key: name, Value: name}}, Scope: name, Kernel: name, Latency: profile.Value(profile.Measured, 1e-3, ""),
			Provenance: &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Name: "n"}}},
		})
		if p.Timeline != nil {
			at := int32(len(p.Layers) - 1)
			p.Timeline.Names = append(p.Timeline.Names, name)
			p.Timeline.Lanes = append(p.Timeline.Lanes, timeline.Lane{Name: name, Kind: timeline.Layer, Group: name, Starts: []float64{0}, Durations: []float64{1}, Layers: []int32{at}})
			p.Timeline.Counters = append(p.Timeline.Counters, timeline.Counter{Name: name, Unit: name, Times: []float64{0}, Values: []float64{1}})
		}
		want := string([]rune(name)) // every bad byte becomes U+FFFD
		for _, format := range Formats(false) {
			if format == "profile" || strings.HasSuffix(format, ".gz") {
				continue // the same texts again, and compressing is what takes the time
			}
			if format == "onnx" {
				of(p)
			}
			var b bytes.Buffer
			if err := Write(&b, p, format, Options{}); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			out := b.Bytes()
			switch format {
			case "json", "trace", "firefox", "speedscope":
				var v any
				if err := json.Unmarshal(out, &v); err != nil {
					t.Fatalf("%s: %v", format, err)
				}
				if !holds(v, want) {
					t.Fatalf("%s: no %q", format, want)
				}
			case "yaml":
				var v any
				if err := yaml.Unmarshal(out, &v); err != nil {
					t.Fatalf("%s: %v", format, err)
				}
				if !holds(v, want) {
					t.Fatalf("%s: no %q in\n%s", format, want, out)
				}
			case "nodes":
				if !json.Valid(out) {
					t.Fatalf("%s: not JSON", format)
				}
			case "pprof":
				q, err := pprofformat.ParseData(out)
				if err != nil {
					t.Fatalf("%s: %v", format, err)
				}
				root := q.Sample[len(q.Sample)-1].Location
				if got := root[len(root)-1].Line[0].Function.Name; got != strings.ToValidUTF8(name, "\ufffd") {
					t.Fatalf("%s: %q, want %q", format, got, name)
				}
			case "perfetto":
				if !bytes.Contains(out, []byte(strings.ToValidUTF8(name, "\ufffd"))) {
					t.Fatalf("%s: no %q", format, name)
				}
			}
		}
	})
}

// holds looks for a text in what was decoded.
func holds(v any, s string) bool {
	switch v := v.(type) {
	case string:
		return v == s || strings.HasPrefix(v, s+" on ")
	case []any:
		for _, x := range v {
			if holds(x, s) {
				return true
			}
		}
	case map[string]any:
		for k, x := range v {
			if k == s || holds(x, s) {
				return true
			}
		}
	case map[any]any:
		for _, x := range v {
			if holds(x, s) {
				return true
			}
		}
	}
	return false
}

// TestLargeFiles writes a profile with some thousand bars in every format that
// exists, so that none is forgotten.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	_, of := profiled(t)
	p, annotated := sample.Large(20, 200, 3000), sample.Large(20, 200, 3000)
	of(annotated)
	dir := t.TempDir()
	for _, e := range Endings() {
		for _, ending := range strings.Fields(e[0]) {
			made := p
			if ending == ".onnx" { // needs its model
				made = annotated
			}
			if err := File(filepath.Join(dir, "p"+ending), made, Options{}); err != nil {
				t.Errorf("%s: %v", ending, err)
			}
		}
	}
}

func TestWantsEvents(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"a.trace.json": true, "b.OPMETER": true, "c.trace.json.gz": true, "d.json": false, "e.csv": false, "f.nodes.json": false, "g.pdf": false} {
		if got := WantsEvents(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
