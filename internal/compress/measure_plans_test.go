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
	all := RandomMixes(p, 4, 8, 0)
	if len(all) != 8 || !reflect.DeepEqual(all, RandomMixes(p, 4, 8, 0)) || reflect.DeepEqual(all, RandomMixes(p, 4, 8, 1)) {
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
	filters := study.Change{Structure: study.Filter, Level: .5}
	for i, with := range [][]int{0: {2}, 1: nil, 2: {0}, 3: nil} {
		p.Points = append(p.Points, study.SpeedPoint{Layer: i, Change: filters, Ratio: measured(.3), With: with})
	}
	together := 0
	for _, mix := range RandomMixes(p, 4, 40, 0) {
		if (mix[0] == filters) != (mix[2] == filters) {
			t.Errorf("%v has half of what is tied", mix)
		}
		if mix[0] == filters {
			together++
		}
	}
	if together == 0 {
		t.Error("what is tied never changes")
	}
	if got := RandomMixes(&study.Speed{}, 4, 8, 0); got != nil {
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
		if got := mayBeAsFast(tt.b, a); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestEarlier checks that a plan for a tighter limit is a candidate for a looser one, but not
// vice versa, and not if it has an excluded change.
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
		got, err := j.earlierPlans(t.Context(), c, p, nil)
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

// TestReplace replaces a plan for a looser limit by one that is as fast and loses no more, if its
// changes are allowed.
func TestReplace(t *testing.T) {
	t.Parallel()
	pruned := study.Change{Structure: study.Unstructured, Level: .5}
	limit := func(v float64) study.Goal { return study.Goal{MaxLoss: &v} }
	without := limit(.05)
	without.WithoutStructures = []study.Structure{study.Unstructured}
	for _, tt := range []struct {
		name        string
		old, new    study.Goal
		speed, lost float64
		want        bool
	}{
		{"faster, loses less", limit(.05), limit(.01), 2.2, .004, true},
		{"as fast, loses as much", limit(.05), limit(.01), 2, .005, true},
		{"slower", limit(.05), limit(.01), 1.9, .001, false},
		{"loses more", limit(.05), limit(.01), 2.2, .006, false},
		{"looser", limit(.01), limit(.05), 2.2, .004, false},
		{"structure left out", without, limit(.01), 2.2, .004, false},
		{"goal of another kind", study.Goal{Speedup: new(1.5)}, limit(.01), 2.2, .004, false},
		{"faster, for a lower speed-up", study.Goal{Speedup: new(1.5)}, study.Goal{Speedup: new(2.)}, 2.2, .004, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := opened(t, "autoencoder.yaml", filepath.Join(t.TempDir(), "m.study"))
			plan := func(name string, g study.Goal, change study.Change, speed, lost float64) *study.Plan {
				p := &study.Plan{Name: name, Speed: "s", Loss: "l", Goal: g, Choices: make([]study.Choice, len(j.Layers))}
				for i := range p.Choices {
					p.Choices[i].Layer = i
				}
				p.Choices[1].Change = change
				p.Measured = &study.Outcome{Speedup: measured(speed), Loss: measured(lost)}
				return p
			}
			records := []study.Record{
				{Loss: &study.Loss{LossSettings: study.LossSettings{Name: "l", Method: study.EndToEnd, Metric: "relative_error"}}},
				{Plan: plan("old", tt.old, study.Change{}, 2, .005)},
			}
			for _, r := range records {
				if err := j.File.Append(r); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.replaceBeaten(plan("new", tt.new, pruned, tt.speed, tt.lost)); err != nil {
				t.Fatal(err)
			}
			got := j.Study().Plan("old")
			if is := got.Choices[1].Change == pruned; is != tt.want || !reflect.DeepEqual(got.Goal, tt.old) {
				t.Errorf("replaced: %v, want %v; goal %+v", is, tt.want, got.Goal)
			}
		})
	}
}

// TestRace measures two plans and takes the winner; a duplicate plan runs once.
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
	got, err := j.measurePlans(t.Context(), &PlanOptions{Time: time.Millisecond}, []*study.Plan{a, b, again}, nil, sp, last)
	if err != nil || got != b || a.Measured.Speedup == nil || b.Measured.Speedup == nil || again.Measured != nil {
		t.Errorf("%v, %v", got == b, err)
	}
	sp.Target = "nrf52840"
	if got, err = j.measurePlans(t.Context(), &PlanOptions{}, []*study.Plan{a, b}, nil, sp, last); err != nil || got != a || a.Measured.Speedup != nil {
		t.Errorf("where nothing is measured: %v, %v", got == a, err)
	}
}
