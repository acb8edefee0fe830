package profile

import (
	"math"
	"testing"
)

// threeLevels is a target with two peaks and three levels of memory: round figures.
func threeLevels() *Target {
	return &Target{
		Peaks:  []Peak{{DType: "float32", OpsPerSecond: 100}, {DType: "int8", OpsPerSecond: 400}},
		Levels: []Level{{Name: "L1", Bytes: new(int64(1000)), BytesPerSecond: 50}, {Name: "L2", Bytes: new(int64(10_000)), BytesPerSecond: 20}, {Name: "memory", BytesPerSecond: 5}},
	}
}

func TestRoof(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                    string
		dtype, computes         string
		ops, read, written      int64
		calls, seconds          float64
		wantBound               Bound
		wantLevel               string
		wantOps, wantBytes, use float64
	}{
		{"arithmetic", "float32", "", 1000, 50, 50, 1, 20, BoundCompute, "L1", 100, 50, 0.5},
		{"another type has another peak", "int8", "", 1000, 50, 50, 1, 20, BoundCompute, "L1", 400, 50, 0.125},
		{"all 8-bit types are one", "uint8", "", 4000, 50, 50, 1, 20, BoundCompute, "L1", 400, 50, 0.5},
		{"half precision is computed in float32", "float16", "", 1000, 50, 50, 1, 20, BoundCompute, "L1", 100, 50, 0.5},
		{"what just fits a level", "float32", "", 10, 600, 400, 1, 40, BoundMemory, "L1", 100, 50, 0.5},
		{"a byte more", "float32", "", 10, 601, 400, 1, 100, BoundMemory, "L2", 100, 20, 1001.0 / 20 / 100},
		{"memory", "float32", "", 10, 10_000, 10_000, 1, 8000, BoundMemory, "memory", 100, 5, 0.5},
		{"each call touches its part", "float32", "", 10, 1000, 1000, 4, 80, BoundMemory, "L1", 100, 50, 0.5},
		{"below 10 % of peak", "float32", "", 10, 10, 10, 1, 100, BoundOverhead, "L1", 100, 50, 0.4 / 100},
		{"faster than the roof", "float32", "", 1000, 10, 10, 1, 5, BoundCompute, "L1", 100, 50, 2},
		{"computed in another type", "float32", "uint8", 4000, 50, 50, 1, 20, BoundCompute, "L1", 400, 50, 0.5},
	} {
		l := &Layer{
			State: Ran, Computes: tt.computes, Inputs: []Tensor{{DType: tt.dtype, Constant: false}, {DType: "int32", Constant: true}}, Calls: &tt.calls,
			Ops: &tt.ops, BytesRead: &tt.read, BytesWritten: &tt.written, Latency: Value(Measured, tt.seconds, ""),
		}
		r := threeLevels().RoofOf(l)
		if r == nil {
			t.Errorf("%s: no roof", tt.name)
			continue
		}
		if r.Bound != tt.wantBound || r.Level != tt.wantLevel || *r.OpsPerSecond != tt.wantOps || *r.BytesPerSecond != tt.wantBytes || !(math.Abs(*r.Use-tt.use) <= 1e-12) {
			t.Errorf("%s: %s at %s, %v op/s, %v B/s, use %v", tt.name, r.Bound, r.Level, *r.OpsPerSecond, *r.BytesPerSecond, *r.Use)
		}
	}
}

// TestRoofOfFused: what other layers leave to one is done in its time.
func TestRoofOfFused(t *testing.T) {
	t.Parallel()
	p := &Profile{Target: Target{PeakOpsPerSecond: new(100.0)}, Layers: []Layer{
		{State: Fused, FusedInto: new(int64(2)), Ops: new(int64(300))},
		{State: Fused, FusedInto: new(int64(2))},
		{State: Ran, Ops: new(int64(100)), Latency: Value(Measured, 10, "")},
		{State: Ran, Ops: new(int64(100)), Latency: Value(Measured, 10, "")},
	}}
	uses := func() (v [2]float64) {
		p.roofs()
		return [2]float64{*p.Layers[2].Roof.Use, *p.Layers[3].Roof.Use}
	}
	p.Layers[1].Ops = new(int64(100))
	if got := uses(); got != [2]float64{0.5, 0.1} {
		t.Errorf("uses %v, want 0.5 with what is fused, and 0.1", got)
	}
	p.Layers[1].Ops = new(int64(math.MaxInt64 - 350))
	if got := uses(); got != [2]float64{0.1, 0.1} {
		t.Errorf("uses %v, want 0.1 of work that no number holds", got)
	}
}

// TestWholes: what parts of a whole hand to each other is in no memory, and its work counts by
// whatever way a layer is fused into it.
func TestWholes(t *testing.T) {
	t.Parallel()
	one := func(names ...string) (out []Tensor) {
		for _, n := range names {
			bytes := int64(400) // of numbers; codes have a quarter
			if n[0] == 'c' {
				bytes = 100
			}
			out = append(out, Tensor{Name: n, Bytes: &bytes})
		}
		return out
	}
	layer := func(into int64, in, out []Tensor) Layer {
		l := Layer{State: Ran, Inputs: in, Outputs: out, Ops: new(int64(10)), BytesRead: new(int64(0)), BytesWritten: new(int64(0))}
		if into >= 0 {
			l.State, l.FusedInto = Fused, &into
		}
		for _, v := range in {
			*l.BytesRead += *v.Bytes
		}
		for _, v := range out {
			*l.BytesWritten += *v.Bytes
		}
		return l
	}
	for _, tt := range []struct {
		name               string
		layers             []Layer
		outputs            []Tensor
		at                 int
		ops, read, written int64
	}{
		{"alone", []Layer{layer(-1, one("x"), one("y"))}, one("y"), 0, 10, 400, 400},
		{"codes before and behind, fused by way of others", []Layer{
			layer(2, one("cx"), one("x")), layer(2, one("cw"), one("w")), layer(-1, one("x", "w"), one("y")),
			layer(2, one("y"), one("z")), layer(3, one("z"), one("cz")),
		}, one("cz"), 2, 50, 200, 100},
		{"a result that others read, too", []Layer{layer(-1, one("x"), one("y")), layer(0, one("y"), one("z")), layer(-1, one("y", "z"), one("q"))}, one("q"), 0, 20, 400, 800},
		{"a result of the model", []Layer{layer(-1, one("x"), one("y")), layer(0, one("y"), one("z"))}, one("y", "z"), 0, 20, 400, 800},
		{"numbers of another whole", []Layer{layer(1, one("cx"), one("x")), layer(-1, one("x"), one("y")), layer(-1, one("x"), one("q"))}, one("y", "q"), 2, 10, 100, 400},
		{"a circle", []Layer{layer(1, one("x"), one("y")), layer(0, one("y"), one("z")), layer(-1, one("z"), one("q"))}, one("q"), 2, 10, 400, 400},
	} {
		w := newWholes(&Profile{Layers: tt.layers, Model: Model{Outputs: tt.outputs}})
		l := w.complete(tt.at)
		if *l.Ops != tt.ops || *l.BytesRead != tt.read || *l.BytesWritten != tt.written {
			t.Errorf("%s: %d operations, %d bytes read, %d written, want %d, %d, %d", tt.name, *l.Ops, *l.BytesRead, *l.BytesWritten, tt.ops, tt.read, tt.written)
		}
	}
}

// TestRoofOfOnePeak: one limit gives a use and does not tell arithmetic and memory
// apart.
func TestRoofOfOnePeak(t *testing.T) {
	t.Parallel()
	l := &Layer{State: Ran, Ops: new(int64(100)), BytesRead: new(int64(30)), BytesWritten: new(int64(20)), Latency: Value(Estimated, 10, "")}
	for _, tt := range []struct {
		name string
		t    Target
		use  float64
	}{
		{"arithmetic", Target{PeakOpsPerSecond: new(100.0)}, 0.1},
		{"memory", Target{PeakBytesPerSecond: new(10.0)}, 0.5},
	} {
		r := tt.t.RoofOf(l)
		if r == nil || r.Bound != "" || !(math.Abs(*r.Use-tt.use) <= 1e-12) {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
	both := Target{PeakOpsPerSecond: new(100.0), PeakBytesPerSecond: new(10.0)}
	if r := both.RoofOf(l); r == nil || r.Bound != BoundMemory || r.Level != "memory" || !(math.Abs(*r.Use-0.5) <= 1e-12) {
		t.Errorf("both: %+v", r)
	}
}

// TestNoRoof: what is not known gives none, never one of nothing.
func TestNoRoof(t *testing.T) {
	t.Parallel()
	whole := Layer{State: Ran, Inputs: []Tensor{{DType: "float32"}}, Ops: new(int64(1)), BytesRead: new(int64(1)), BytesWritten: new(int64(1)), Latency: Value(Measured, 1, "")}
	for name, spoil := range map[string]func(*Layer, *Target){
		"no time":   func(l *Layer, _ *Target) { l.Latency = nil },
		"zero time": func(l *Layer, _ *Target) { l.Latency = Value(Measured, 0, "") },
		"no ops":    func(l *Layer, _ *Target) { l.Ops = nil },
		"no limits": func(_ *Layer, t *Target) { *t = Target{} },
	} {
		l, g := whole, threeLevels()
		spoil(&l, g)
		if r := g.RoofOf(&l); r != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// No kernel of this type was measured: bytes alone.
	l := whole
	l.Inputs = []Tensor{{DType: "float64"}}
	if r := threeLevels().RoofOf(&l); r == nil || r.Bound != "" || r.OpsPerSecond != nil || r.BytesPerSecond == nil {
		t.Errorf("a type without a peak: %+v", r)
	}
}
