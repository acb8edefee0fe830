package loss

import (
	"context"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// Calibrated losses are those of the model at the anchors, lie between them between, and are of
// the layers that change together.
func TestCalibrated(t *testing.T) {
	t.Parallel()
	b := network(3)
	s := b.data(t, 12) // so few that anchors are run on all
	ls := weights.Find(b.m, nil)
	cs := slices.Concat(
		changes([]study.Structure{study.Unstructured}, .3, .6, .7, .8, .9, .95, .99), changes([]study.Structure{study.Filter}, .4, .6, .8),
		changes([]study.Structure{study.Block4x1}, .5), []study.Change{{Format: study.Int8}, {Format: study.Half}},
	)
	run := func(method study.Method, threads int, anchors []study.LossPoint) (all map[layerChange]study.LossPoint, found []study.LossPoint) {
		all = map[layerChange]study.LossPoint{}
		j := &Job{Model: b.m, Layers: ls, Data: s, Threads: threads, Anchors: anchors, Settings: study.LossSettings{Method: method, Metric: KL, Changes: cs}}
		j.Anchor = func(p study.LossPoint) error { found = append(found, p); return nil }
		j.Point = func(p study.LossPoint) error {
			at := layerChange{p.Layer, p.Change}
			if _, twice := all[at]; twice {
				t.Errorf("%+v twice", at)
			}
			all[at] = p
			return nil
		}
		if _, err := j.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		return all, found
	}
	got, anchors := run(study.Calibrated, 1, nil)
	want, _ := run(study.EndToEnd, 1, nil)
	if len(got) != len(ls)*len(cs) || len(anchors) != len(ls)*7 {
		t.Fatalf("%d points and %d anchors, want %d and %d", len(got), len(anchors), len(ls)*len(cs), len(ls)*7)
	}
	again, more := run(study.Calibrated, 2, anchors)
	if !reflect.DeepEqual(got, again) || len(more) > 0 {
		t.Errorf("from anchors that are there, with two threads: other points, and %d anchors more", len(more))
	}
	for at, p := range got {
		w := want[at]
		if p.Cause != w.Cause || !slices.Equal(p.With, w.With) {
			t.Errorf("%+v: cause %q with %v, want %q with %v", at, p.Cause, p.With, w.Cause, w.With)
		}
		v, ok := p.Value.Best()
		if p.Cause != "" {
			continue
		}
		if _, own := p.More[OwnError]; !ok || !own || v < 0 {
			t.Errorf("%+v: %+v", at, p)
		}
		if x := *w.Value.Median; slices.Contains(anchorsOf(at.change), at.change) && v != x {
			t.Errorf("%+v: %v, measured %v", at, v, x)
		}
	}
	for l := range ls {
		c := func(level float64) float64 {
			return *got[layerChange{l, study.Change{Structure: study.Unstructured, Level: level}}].Value.Median
		}
		if lo, hi := min(c(.6), c(.8)), max(c(.6), c(.8)); c(.3) > c(.6) || c(.7) < lo || c(.7) > hi {
			t.Errorf("layer %d: %v, %v, %v, %v", l, c(.3), c(.6), c(.7), c(.8))
		}
	}
}

func TestThrough(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		errs, losses []float64
		at, want     float64
	}{
		{"no error", []float64{.1}, []float64{1}, 0, 0},
		{"nothing known", nil, nil, 0, 0},
		{"in proportion below", []float64{.1, .4}, []float64{1, 16}, .05, .5},
		{"as a power between", []float64{.1, .4}, []float64{1, 16}, .2, 4},
		{"at an anchor", []float64{.1, .4}, []float64{1, 16}, .4, 16},
		{"in proportion above", []float64{.1, .4}, []float64{1, 16}, .8, 32},
		{"from nothing on", []float64{.1, .3}, []float64{0, 1}, .2, .5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := interpolate(tt.errs, tt.losses, tt.at); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	t.Run("rises with losses that rise", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			up := func(what string) []float64 {
				v := rapid.SliceOfN(rapid.Float64Range(1e-6, 1), 3, 3).Draw(t, what)
				return []float64{v[0], v[0] + v[1], v[0] + v[1] + v[2]}
			}
			errs, losses := up("errors"), up("losses")
			a, b := rapid.Float64Range(0, 4).Draw(t, "a"), rapid.Float64Range(0, 4).Draw(t, "b")
			if x, y := interpolate(errs, losses, min(a, b)), interpolate(errs, losses, max(a, b)); x > y*(1+1e-12) {
				t.Fatalf("%v at %v, %v at %v", x, min(a, b), y, max(a, b))
			}
		})
	})
}

func TestClasses(t *testing.T) {
	t.Parallel()
	// An answer is the data times a gain, shifted.
	answer := func(b *builder, x int, gain float32, shift ...float32) int {
		by := tensor.New(tensor.Float32, len(shift))
		tensor.Fill(by, func(i int) float64 { return float64(shift[i]) })
		return b.node("Add", nil, tensor.Float32, b.node("Mul", nil, tensor.Float32, x, b.scalar(gain)), b.constant(by))
	}
	for _, tt := range []struct {
		name string
		outs func(b *builder) []int
		want bool
	}{
		{"scores", func(b *builder) []int { return []int{answer(b, b.input(tensor.Float32, 1, 3), 20, 0, 0, 0)} }, true},
		{"probabilities", func(b *builder) []int {
			return []int{b.node("Softmax", nil, tensor.Float32, b.input(tensor.Float32, 1, 3))}
		}, true},
		{"small figures", func(b *builder) []int { return []int{answer(b, b.input(tensor.Float32, 1, 3), .1, 0, 0, 0)} }, false},
		{"one always in front", func(b *builder) []int { return []int{answer(b, b.input(tensor.Float32, 1, 3), 20, 0, 1e4, 0)} }, false},
		{"one figure", func(b *builder) []int { return []int{answer(b, b.input(tensor.Float32, 1, 1), 20, 0)} }, false},
		{"several rows", func(b *builder) []int { return []int{answer(b, b.input(tensor.Float32, 1, 4, 3), 20, 0, 0, 0)} }, false},
		{"two outputs", func(b *builder) []int {
			x := b.input(tensor.Float32, 1, 3)
			return []int{answer(b, x, 20, 0, 0, 0), answer(b, x, 20, 0, 0, 0)}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder("onnx", 5)
			b.g.Outputs = tt.outs(b)
			got, err := IsClassifier(context.Background(), b.m, b.data(t, 80), 1)
			if err != nil || got != tt.want {
				t.Errorf("%v, error %v; want %v", got, err, tt.want)
			}
		})
	}
}
