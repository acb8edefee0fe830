package profile

import (
	"math"
	"testing"
)

func TestSelectGroupSum(t *testing.T) {
	t.Parallel()
	p := &Profile{Layers: []Layer{
		{Op: "Conv", Ops: new(int64(4)), Latency: Value(Measured, 2, "")},
		{Op: "Add", Ops: new(int64(100))},
		{Op: "Conv", Ops: new(int64(6)), Latency: Value(Measured, 3, ""), Figures: map[string]*Metric{"heat": Value(Measured, 40, "")}},
	}}
	all := p.Select(func(*Layer) bool { return true })
	gs := all.Group(func(l *Layer) string { return l.Op })
	if len(gs) != 2 || gs[0].Name != "Conv" || len(gs[0].Layers) != 2 || gs[1].Name != "Add" {
		t.Fatalf("%+v", gs)
	}
	gs[0].Layers[1].Name = "x"
	if p.Layers[2].Name != "x" {
		t.Error("layers are copies")
	}
	for _, tt := range []struct {
		ls   Layers
		key  string
		want float64
		ok   bool
	}{
		{all, "ops", 110, true},
		{all, "latency_s", 5, true},
		{all, "ops_per_s", 2, true}, // the work of Add took no time that is known
		{gs[1].Layers, "ops_per_s", 0, false},
		{gs[1].Layers, "latency_s", 0, false},
		{all, "live_bytes", 0, false}, // does not add up
		{all, "heat", 0, false},       // nobody says that it does
		{nil, "ops", 0, false},
	} {
		if v, ok := tt.ls.Sum(tt.key); v != tt.want || ok != tt.ok {
			t.Errorf("%s: %v, %v, want %v, %v", tt.key, v, ok, tt.want, tt.ok)
		}
	}
	if v, ok := all.SumOf(&Quantity{Key: "heat", Adds: true}); v != 40 || !ok {
		t.Error(v, ok)
	}
	if v, ok := all.SumOf(&Quantity{Key: "heat"}); v != 0 || ok {
		t.Error(v, ok)
	}
	if v, ok := all.SumOf(&Quantity{Key: "heat_per_op", Of: []string{"heat"}, Per: []string{"ops"}}); math.Abs(v-40.0/6) > 1e-12 || !ok {
		t.Error(v, ok)
	}
	huge := Layers{{Latency: Value(Measured, 1e308, "")}, {Latency: Value(Measured, 1e308, "")}}
	if v, ok := huge.Sum("latency_s"); ok {
		t.Error(v, "is not a figure")
	}
}
