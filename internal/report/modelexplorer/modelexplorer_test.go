package modelexplorer

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

type data map[string]struct {
	Results map[string]struct {
		Value *float64 `json:"value"`
	} `json:"results"`
	Gradient []struct {
		Stop    *float64 `json:"stop"`
		BgColor string   `json:"bgColor"`
	} `json:"gradient"`
}

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
	r := json.NewDecoder(&b)
	r.DisallowUnknownFields()
	if err := r.Decode(&d); err != nil {
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
