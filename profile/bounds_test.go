package profile

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// hostOf is a profile of this computer with three levels and layers that take the given work.
func hostOf(layers ...Layer) *Profile {
	t := *threeLevels()
	t.ID, t.Kind = "host", TargetHost
	p := &Profile{Schema: SchemaV1, Model: Model{Name: "m"}, Target: t, Layers: layers}
	for i := range p.Layers {
		p.Layers[i].Index, p.Layers[i].Op = int64(i), "Op"
	}
	return p
}

func worked(dtype string, ops, bytes int64, seconds float64) Layer {
	return Layer{
		State: Ran, Computes: dtype, Ops: &ops, BytesRead: &bytes, BytesWritten: new(int64(0)),
		Latency: Value(Measured, seconds, ""),
	}
}

// TestRaisedPeaks: the greater of the measured rate and what layers reach is the peak, per type and
// per level, and what was measured is kept.
func TestRaisedPeaks(t *testing.T) {
	t.Parallel()
	p := hostOf(
		worked("float32", 200, 1, 1),     // twice the float32 peak of 100
		worked("int8", 100, 1, 1),        // below its peak
		worked("float32", 1, 7_500, 250), // 30 B/s of the L2's 20
		worked("float32", 1, 20_000, 2500),
	)
	for range 2 { // a later figure must not build on a raised peak
		p.roofs()
		g := &p.Target
		if k := g.Peaks[0]; k.OpsPerSecond != 200 || *k.MeasuredOpsPerSecond != 100 || *k.ReachedBy != 0 {
			t.Errorf("float32: %+v", k)
		}
		if k := g.Peaks[1]; k.OpsPerSecond != 400 || k.MeasuredOpsPerSecond != nil || k.ReachedBy != nil {
			t.Errorf("int8: %+v", k)
		}
		if l := g.Levels[1]; l.BytesPerSecond != 30 || *l.MeasuredBytesPerSecond != 20 || *l.ReachedBy != 2 {
			t.Errorf("L2: %+v", l)
		}
		if l := g.Levels[0]; l.BytesPerSecond != 50 || l.ReachedBy != nil {
			t.Errorf("L1: %+v", l)
		}
		if l := g.Levels[2]; l.BytesPerSecond != 8 || *l.MeasuredBytesPerSecond != 5 || *l.ReachedBy != 3 {
			t.Errorf("memory: %+v", l)
		}
		if u := *p.Layers[0].Roof.Use; u != 1 {
			t.Errorf("the layer that reached the peak is at %v of it", u)
		}
	}
	p.Layers[0].Latency = Value(Measured, 4, "") // half of the measured peak
	p.roofs()
	if k := p.Target.Peaks[0]; k.OpsPerSecond != 100 || k.MeasuredOpsPerSecond != nil || k.ReachedBy != nil {
		t.Errorf("float32 that no layer exceeds any more: %+v", k)
	}
}

// TestFasterLevel: a level that a layer shows to be faster makes the levels before it as fast.
func TestFasterLevel(t *testing.T) {
	t.Parallel()
	p := hostOf(worked("float32", 1, 3900, 100)) // 39 B/s from the L2
	p.Target.Levels[0].BytesPerSecond = 30
	p.roofs()
	if l := p.Target.Levels[0]; l.BytesPerSecond != 39 || *l.MeasuredBytesPerSecond != 30 || *l.ReachedBy != 0 {
		t.Errorf("L1: %+v", l)
	}
}

// TestUnlikelyWork: a layer far beyond a peak did not do the work that is counted. It raises
// nothing, and its bound is unknown.
func TestUnlikelyWork(t *testing.T) {
	t.Parallel()
	p := hostOf(worked("float32", 1000, 100, 1), worked("float32", 50, 10, 1), worked("float32", 1, 500, 1))
	p.roofs()
	if p.Layers[0].Roof != nil || p.Layers[2].Roof != nil || p.Target.Peaks[0].OpsPerSecond != 100 || p.Target.Levels[0].BytesPerSecond != 50 {
		t.Errorf("%+v, peaks %+v", p.Layers[0].Roof, p.Target.Peaks)
	}
	want := []BoundPart{{Bound: BoundCompute, Share: 1. / 3, Use: new(0.5)}, {Bound: BoundUnknown, Share: 2. / 3}}
	if len(p.Bounds) != 2 || p.Bounds[0].Bound != want[0].Bound || *p.Bounds[0].Use != 0.5 || p.Bounds[0].Share != want[0].Share || p.Bounds[1] != want[1] {
		t.Errorf("parts %+v", p.Bounds)
	}
}

// TestOtherTargets: peaks of a chip are not raised.
func TestOtherTargets(t *testing.T) {
	t.Parallel()
	for _, kind := range []TargetKind{TargetSimulator, TargetDevice, TargetImport} {
		p := hostOf(worked("float32", 200, 1, 1))
		p.Target.Kind = kind
		p.roofs()
		if p.Target.Peaks[0].OpsPerSecond != 100 || *p.Layers[0].Roof.Use != 2 {
			t.Errorf("%s: %+v", kind, p.Target.Peaks[0])
		}
	}
}

// TestNoBounds: without peaks there are no parts.
func TestNoBounds(t *testing.T) {
	t.Parallel()
	p := hostOf(worked("float32", 200, 1, 1))
	p.Target.Peaks, p.Target.Levels = nil, nil
	p.roofs()
	if p.Bounds != nil || p.Layers[0].Roof != nil {
		t.Errorf("%+v, %+v", p.Bounds, p.Layers[0].Roof)
	}
}

// TestBoundProperties: parts add up to 1 and nothing on this computer is above its limit.
func TestBoundProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var layers []Layer
		for range rapid.IntRange(1, 8).Draw(r, "layers") {
			l := worked(
				rapid.SampledFrom([]string{"float32", "int8", "uint8", "float64", ""}).Draw(r, "type"),
				rapid.Int64Range(0, 1<<20).Draw(r, "ops"), rapid.Int64Range(0, 1<<20).Draw(r, "bytes"),
				rapid.Float64Range(1e-3, 1e6).Draw(r, "seconds"),
			)
			if rapid.Bool().Draw(r, "uncounted") {
				l.Ops = nil
			}
			layers = append(layers, l)
		}
		p := hostOf(layers...)
		for range 2 {
			p.roofs()
			for i := range p.Layers {
				if f := p.Layers[i].Roof; f != nil && f.Use != nil && *f.Use > 1 {
					r.Fatalf("layer %d at %v of its limit", i, *f.Use)
				}
			}
			if p.Bounds == nil {
				continue
			}
			sum := 0.0
			for _, b := range p.Bounds {
				sum += b.Share
				if b.Use != nil && *b.Use > 1+1e-12 { // a mean of figures up to 1
					r.Fatalf("%+v", b)
				}
			}
			if !(math.Abs(sum-1) <= 1e-12) { // rounding of up to 8 divisions
				r.Fatalf("parts add up to %v: %+v", sum, p.Bounds)
			}
			if err := p.Validate(); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// TestOldOverhead: a file of an earlier version has another code.
func TestOldOverhead(t *testing.T) {
	t.Parallel()
	p := hostOf(worked("float32", 50, 1, 100))
	p.Layers[0].Roof = &Roof{Bound: oldOverhead}
	p.currentBounds()
	if err := p.Validate(); err != nil || p.Layers[0].Roof.Bound != BoundOverhead {
		t.Errorf("%v, %v", p.Layers[0].Roof.Bound, err)
	}
}
