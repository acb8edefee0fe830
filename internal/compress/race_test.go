package compress

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

func TestMixes(t *testing.T) {
	t.Parallel()
	p := &study.Speed{}
	for i := range 4 {
		for _, x := range []struct {
			c     study.Change
			ratio float64
			cause study.Cause
		}{
			{study.Change{Structure: study.Unstructured, Level: .5}, .7, ""},
			{study.Change{Format: study.Int8}, .4, ""},
			{study.Change{Format: study.Half}, 1.1, ""},
			{study.Change{Format: study.Weight4}, .9, study.NoKernel},
		} {
			p.Points = append(p.Points, study.SpeedPoint{Layer: i, Change: x.c, Ratio: measured(x.ratio), Cause: x.cause})
		}
	}
	all := Mixes(p, 4, 8, 0)
	if len(all) != 8 || !reflect.DeepEqual(all, Mixes(p, 4, 8, 0)) || reflect.DeepEqual(all, Mixes(p, 4, 8, 1)) {
		t.Errorf("%d mixes: %v", len(all), all)
	}
	ints := 0
	for _, mix := range all {
		if slices.ContainsFunc(mix, func(c study.Change) bool { return c.Format == study.Half || c.Format == study.Weight4 }) {
			t.Errorf("%v gains nothing", mix)
		}
		if slices.ContainsFunc(mix, func(c study.Change) bool { return c.Format == study.Int8 }) {
			ints++
		}
	}
	if ints < 3 {
		t.Errorf("%d mixes of 8 have 8-bit activations", ints)
	}
	if got := Mixes(&study.Speed{}, 4, 8, 0); got != nil {
		t.Errorf("nothing gains: %v", got)
	}
}

func TestRivals(t *testing.T) {
	t.Parallel()
	plan := func(low, mid, high float64) *study.Plan {
		m := profile.Value(profile.Estimated, mid, "")
		m.Band = &[2]float64{low, high}
		return &study.Plan{Predicted: study.Outcome{Speedup: m}}
	}
	a := plan(1.8, 2, 2.2)
	for _, tt := range []struct {
		name string
		b    *study.Plan
		want bool
	}{
		{"meets", plan(1.7, 1.75, 1.85), true},
		{"slower", plan(1.5, 1.6, 1.7), false},
		{"faster", plan(3, 3.1, 3.2), true},
		{"unknown", &study.Plan{}, false},
	} {
		if got := rivals(tt.b, a); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestEarlier looks whether a plan for a tighter limit comes into question for a looser one, and not the other way round, nor where
// something is left out that it has.
func TestEarlier(t *testing.T) {
	t.Parallel()
	j := opened(t, "autoencoder.yaml", filepath.Join(t.TempDir(), "m.study"))
	pruned := study.Change{Structure: study.Unstructured, Level: .5}
	choices := make([]study.Choice, len(j.Layers))
	for i := range choices {
		choices[i].Layer = i
	}
	choices[1].Change = pruned
	lo := &study.Loss{LossSettings: study.LossSettings{Name: "l", Metric: "relative_error"}}
	if err := j.File.Append(study.Record{Plan: &study.Plan{
		Name: "tight", Speed: "s", Loss: "l", Goal: study.Goal{MaxLoss: new(.01)}, Choices: choices, Measured: &study.Outcome{Speedup: measured(2)},
	}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		limit   float64
		without []study.Structure
		keep    map[int]study.Cause
		want    int
	}{
		{"looser", .05, nil, nil, 1},
		{"the same", .01, nil, nil, 1},
		{"tighter", .005, nil, nil, 0},
		{"structure left out", .05, []study.Structure{study.Unstructured}, nil, 0},
		{"layer left out", .05, nil, map[int]study.Cause{1: study.First}, 0},
	} {
		c := &choose.Options{Loss: lo, Goal: study.Goal{MaxLoss: &tt.limit}, WithoutStructures: tt.without, Keep: tt.keep}
		p := &study.Plan{Speed: "s", Loss: "l", Goal: c.Goal, Front: []study.FrontPoint{{Changes: make([]study.Change, len(choices)), Chosen: true}}}
		got, err := j.earlier(t.Context(), c, p, nil)
		if err != nil || len(got) != tt.want {
			t.Errorf("%s: %d plans, %v", tt.name, len(got), err)
		}
		for _, x := range got {
			if *x.Goal.MaxLoss != tt.limit || x.Front[0].Chosen || x.Choices[1].Change != pruned {
				t.Errorf("%s: %+v", tt.name, x)
			}
		}
	}
}

// TestRace measures two plans and takes the one that wins; a plan that stands there twice runs once.
func TestRace(t *testing.T) {
	j := opened(t, "autoencoder.yaml", filepath.Join(t.TempDir(), "m.study"))
	plan := func(level float64) *study.Plan {
		p := &study.Plan{Choices: make([]study.Choice, len(j.Layers))}
		for i := range p.Choices {
			p.Choices[i] = study.Choice{Layer: i, Change: study.Change{Structure: study.Unstructured, Level: level}}
		}
		return p
	}
	a, b, again := plan(.5), plan(.9), plan(.5)
	sp := &study.Speed{SpeedSettings: study.SpeedSettings{Target: "host"}}
	last := func(*study.Plan, *study.Plan) bool { return true }
	got, err := j.race(t.Context(), &PlanOptions{Time: time.Millisecond}, []*study.Plan{a, b, again}, nil, sp, last)
	if err != nil || got != b || a.Measured.Speedup == nil || b.Measured.Speedup == nil || again.Measured != nil {
		t.Errorf("%v, %v", got == b, err)
	}
	sp.Target = "nrf52840"
	if got, err = j.race(t.Context(), &PlanOptions{}, []*study.Plan{a, b}, nil, sp, last); err != nil || got != a || a.Measured.Speedup != nil {
		t.Errorf("where nothing is measured: %v, %v", got == a, err)
	}
}
