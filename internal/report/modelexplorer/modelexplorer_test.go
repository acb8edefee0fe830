package modelexplorer

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

type values struct {
	Results map[string]struct {
		Value *float64 `json:"value"`
	} `json:"results"`
	Gradient []struct {
		Stop    *float64 `json:"stop"`
		BgColor string   `json:"bgColor"`
	} `json:"gradient"`
}

type data map[string]values

// read returns the graphs of a file. One without a name is called "".
func read(t *testing.T, p *profile.Profile) data {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		if !errors.Is(err, ErrNoNodes) {
			t.Fatal(err)
		}
		return nil
	}
	var d data
	var single values
	decode := func(to any) error {
		r := json.NewDecoder(bytes.NewReader(b.Bytes()))
		r.DisallowUnknownFields()
		return r.Decode(to)
	}
	if decode(&single) == nil {
		d = data{"": single}
	} else if err := decode(&d); err != nil {
		t.Fatal(err)
	}
	for name, g := range d {
		last := -1.0
		for _, s := range g.Gradient {
			if s.Stop == nil || *s.Stop <= last || s.BgColor == "" {
				t.Fatalf("gradient %+v", g.Gradient)
			}
			last = *s.Stop
		}
		if last != 1 || len(g.Results) == 0 {
			t.Fatalf("graph %q: %+v", name, g)
		}
		for id, r := range g.Results {
			if _, err := strconv.ParseUint(id, 10, 63); err != nil || r.Value == nil || *r.Value < 0 {
				t.Fatalf("node %q: %v", id, r.Value)
			}
		}
	}
	return d
}

func TestRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		p := sample.Random(rand.New(rand.NewPCG(seed, 7)))
		p.Model.Format = "tflite"
		want, got := 0.0, 0.0
		graphs := map[int64]bool{}
		for i := range p.Layers {
			l := &p.Layers[i]
			if v, ok := l.Latency.Best(); ok && l.State == profile.Ran && l.Provenance != nil && len(l.Provenance.SourceNodes) > 0 {
				want += 1e3 * v
				graphs[l.Provenance.SourceNodes[0].Graph] = true
			}
		}
		d := read(t, p)
		for _, g := range d {
			for _, r := range g.Results {
				got += *r.Value
			}
		}
		if math.Abs(got-want) > 1e-9*(1+want) || len(d) != len(graphs) {
			t.Fatalf("seed %d: %g ms in %d graphs, want %g in %d", seed, got, len(d), want, len(graphs))
		}
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	p := sample.Large(4, 1, 0)
	p.Model.Format = "tflite"
	if d := read(t, p); len(d[""].Results) != 4 {
		t.Errorf("a single graph has a name: %+v", d)
	}
	p.Layers[2].Provenance.SourceNodes[0].Graph = 1
	p.Layers[2].Graph = "main" // a body that is called like the main graph
	p.Layers[3].Latency = nil
	d := read(t, p)
	if len(d) != 2 || len(d["main"].Results) != 2 || d["main 1"].Results["2"].Value == nil {
		t.Errorf("%+v", d)
	}
	if got, want := *d["main"].Results["1"].Value, 1e3**p.Layers[1].Latency.Median; math.Abs(got-want) > 1e-12 {
		t.Errorf("node 1 takes %g ms, want %g", got, want)
	}
}

// TestNames writes nodes of ONNX models by their names, without those that Model Explorer calls
// otherwise: nodes without a name, and all but the first of a name.
func TestNames(t *testing.T) {
	t.Parallel()
	p := sample.Large(4, 1, 0)
	p.Model.Format = "onnx"
	for i, n := range []profile.SourceNode{{Node: 3, Name: "a"}, {Node: 1, Name: "a"}, {Node: 2}, {Graph: 1, Name: "b \"c\""}} {
		p.Layers[i].Provenance = &profile.Provenance{SourceNodes: []profile.SourceNode{n}}
		p.Layers[i].Latency = profile.Value(profile.Measured, float64(i+1), "")
	}
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	want := "{\"results\":{\n\"a\":{\"value\":2000},\n\"b \\\"c\\\"\":{\"value\":4000}\n},"
	if got := b.String(); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
	p.Layers = p.Layers[2:3]
	if err := Write(&b, p); !errors.Is(err, ErrNoNodes) {
		t.Errorf("nodes without names: %v", err)
	}
}

// Nodes that a file leaves out are counted, with their part of the time.
func TestLeftOut(t *testing.T) {
	var p profile.Profile
	for i, name := range []string{"conv", "", "conv", "relu"} {
		p.Layers = append(p.Layers, profile.Layer{
			Index: int64(i), Op: "Conv", State: profile.Ran, Latency: profile.Value(profile.Measured, float64(i+1), ""),
			Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Node: int64(i), Name: name}}},
		})
	}
	if got := LeftOut(&p); got != "" {
		t.Errorf("nodes of other formats are named by their positions: %q", got)
	}
	p.Model.Format = "onnx"
	if got, want := LeftOut(&p), "2 of 4 nodes with a time left out (no name of their own), 50 % of the time"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Layers[1], p.Layers[2] = p.Layers[0], p.Layers[3]
	if got := LeftOut(&p); got != "" {
		t.Errorf("all are there: %q", got)
	}
}
