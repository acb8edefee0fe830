package speedscope

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// file is what the schema of speedscope demands.
type file struct {
	Schema   string `json:"$schema"`
	Exporter string `json:"exporter"`
	Name     string `json:"name"`
	Active   *int   `json:"activeProfileIndex"`
	Shared   *struct {
		Frames []struct {
			Name *string `json:"name"`
			File string  `json:"file"`
			Line int     `json:"line"`
			Col  int     `json:"col"`
		} `json:"frames"`
	} `json:"shared"`
	Profiles []struct {
		Type       string `json:"type"`
		Name       string `json:"name"`
		Unit       string `json:"unit"`
		StartValue *int64 `json:"startValue"`
		EndValue   *int64 `json:"endValue"`
		Events     []struct {
			Type  string `json:"type"`
			At    *int64 `json:"at"`
			Frame *int   `json:"frame"`
		} `json:"events"`
		Samples [][]int `json:"samples"`
		Weights []int64 `json:"weights"`
	} `json:"profiles"`
}

func read(t *testing.T, p *profile.Profile) *file {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 50e6 {
		t.Errorf("%d bytes are too many for speedscope", b.Len())
	}
	var f file
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	if f.Schema != "https://www.speedscope.app/file-format-schema.json" || f.Shared == nil || f.Active == nil || *f.Active < 0 || *f.Active >= len(f.Profiles) || !strings.HasPrefix(f.Exporter, "opmeter") {
		t.Fatalf("envelope %+v", f)
	}
	frames := len(f.Shared.Frames)
	for _, fr := range f.Shared.Frames {
		if fr.Name == nil {
			t.Fatal("a frame without a name")
		}
	}
	for _, q := range f.Profiles {
		if q.Unit != "nanoseconds" || q.StartValue == nil || q.EndValue == nil || *q.EndValue < *q.StartValue {
			t.Fatalf("%q: from %v to %v %s", q.Name, q.StartValue, q.EndValue, q.Unit)
		}
		switch q.Type {
		case "evented":
			last := *q.StartValue
			var open []int
			for i, e := range q.Events {
				if e.At == nil || e.Frame == nil || *e.At < last || *e.At > *q.EndValue || *e.Frame < 0 || *e.Frame >= frames {
					t.Fatalf("%q: event %d is %+v", q.Name, i, e)
				}
				last = *e.At
				switch {
				case e.Type == "O":
					open = append(open, *e.Frame)
				case e.Type == "C" && len(open) > 0 && open[len(open)-1] == *e.Frame:
					open = open[:len(open)-1]
				default:
					t.Fatalf("%q: event %d closes what is not open", q.Name, i)
				}
			}
			if len(open) > 0 {
				t.Fatalf("%q: %d frames stay open", q.Name, len(open))
			}
		case "sampled":
			if len(q.Samples) != len(q.Weights) {
				t.Fatalf("%d samples, %d weights", len(q.Samples), len(q.Weights))
			}
			sum := int64(0)
			for i, s := range q.Samples {
				sum += q.Weights[i]
				for _, k := range s {
					if k < 0 || k >= frames {
						t.Fatalf("frame %d of %d", k, frames)
					}
				}
			}
			if sum != *q.EndValue {
				t.Fatalf("weights add up to %d of %d", sum, *q.EndValue)
			}
		default:
			t.Fatalf("type %q", q.Type)
		}
	}
	return &f
}

func TestRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		p := sample.Random(rand.New(rand.NewPCG(seed, 4)))
		f := read(t, p)
		has := func(name string) bool {
			return slices.ContainsFunc(f.Shared.Frames, func(x struct {
				Name *string `json:"name"`
				File string  `json:"file"`
				Line int     `json:"line"`
				Col  int     `json:"col"`
			},
			) bool {
				return *x.Name == name
			})
		}
		for i := range p.Layers {
			l := &p.Layers[i]
			if _, ok := l.Latency.Best(); ok && l.State == profile.Ran && !has(spans.LayerName(l)) {
				t.Fatalf("seed %d: layer %d %.60q is absent", seed, i, spans.LayerName(l))
			}
		}
		v, _, _ := spans.Of(p).MedianRun()
		shown := lanes(v)
		if len(f.Profiles) != len(shown)+1 {
			t.Fatalf("seed %d: %d profiles of %d lanes", seed, len(f.Profiles), len(shown))
		}
		for k, i := range shown {
			opened := 0
			for _, e := range f.Profiles[k].Events {
				if e.Type == "O" && *f.Shared.Frames[*e.Frame].Name != "stall" {
					opened++
				}
			}
			if opened != len(v.Lanes[i].Starts) {
				t.Fatalf("seed %d: %d of %d bars", seed, opened, len(v.Lanes[i].Starts))
			}
		}
	}
}

func TestMedianAndCut(t *testing.T) {
	t.Parallel()
	p := sample.Large(10, 101, 100_000)
	f := read(t, p)
	if len(f.Profiles) != 2 || len(f.Profiles[0].Events) != 20 || !strings.HasPrefix(f.Profiles[0].Name, "median run (iteration ") || len(f.Profiles[1].Samples) != 10 {
		t.Errorf("%d profiles, the first %q with %d events", len(f.Profiles), f.Profiles[0].Name, len(f.Profiles[0].Events))
	}
	p.Timeline = nil
	if f = read(t, p); !strings.Contains(f.Profiles[0].Name, "not recorded") {
		t.Errorf("times that were laid out are called %q", f.Profiles[0].Name)
	}
	p = sample.Large(2, 200_000, 1_000_000)
	p.Timeline.Lanes = p.Timeline.Lanes[1:] // nothing tells iterations apart
	f = read(t, p)
	if n := len(f.Profiles[0].Events); n != 2*MaxBars || !strings.HasSuffix(f.Profiles[0].Name, "(first 250000 of 400000 bars)") {
		t.Errorf("%d events in %q", n, f.Profiles[0].Name)
	}
}
