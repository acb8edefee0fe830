package describe

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// The statistics are those of the definition, for all types and for more elements than are read
// at a time.
func TestStatistics(t *testing.T) {
	t.Parallel()
	for _, typ := range []tensor.Type{tensor.Float32, tensor.Float16, tensor.Float64, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int4} {
		for _, n := range []int{1, 2, 4096, 4097, 9999} {
			c := tensor.New(typ, n)
			for i := range n {
				tensor.Put(c, i, float64(i%13-6)*float64(1-i%2*2)/2)
			}
			var sum, squares float64
			low, high := math.Inf(1), math.Inf(-1)
			for i := range n {
				v := tensor.At(c, i)
				sum, low, high = sum+v, min(low, v), max(high, v)
			}
			for i := range n {
				squares += math.Pow(tensor.At(c, i)-sum/float64(n), 2)
			}
			w := &profile.Weights{}
			statistics(w, c, n)
			near := func(a *float64, b float64) bool { return a != nil && math.Abs(*a-b) <= 1e-9*(1+math.Abs(b)) }
			if !near(w.Min, low) || !near(w.Max, high) || !near(w.Mean, sum/float64(n)) || !near(w.StdDev, math.Sqrt(squares/float64(n))) {
				t.Errorf("%d × %v: %v to %v, mean %v, deviation %v; want %g to %g, %g, %g", n, typ, w.Min, w.Max, w.Mean, w.StdDev, low, high, sum/float64(n), math.Sqrt(squares/float64(n)))
			}
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		c := tensor.New(tensor.Float32, 5000)
		tensor.Put(c, 4500, bad)
		w := &profile.Weights{}
		if statistics(w, c, 5000); w.Min != nil || w.StdDev != nil {
			t.Errorf("weights with %g have statistics", bad)
		}
	}
}

// Layers that share a constant share its statistics; a constant above the budget has none.
func TestWeightStatistics(t *testing.T) {
	t.Parallel()
	c := tensor.New(tensor.Int8, 2, 3)
	tensor.Put(c, 5, -7)
	g, n := weighing(c, &tensor.Quant{Scale: []float32{1}, Zero: []int64{0}})
	m := &graph.Model{Graphs: []*graph.Graph{g}}
	slots := []plan.Slot{{Step: plan.Step{Node: n}}, {Step: plan.Step{Node: n}}, {Step: plan.Step{Node: &graph.Node{Op: "RELU", Domain: graph.TFLite}}}}
	p := &profile.Profile{Layers: []profile.Layer{{Weights: &profile.Weights{}}, {Weights: &profile.Weights{}}, {}}}
	WeightStatistics(p, m, slots)
	for i := range 2 {
		if w := p.Layers[i].Weights; w.Min == nil || *w.Min != -7 || *w.Max != 0 {
			t.Errorf("layer %d: %+v", i, w)
		}
	}
}

// A tensor with a scale for each channel has their range and its axis, one with blocks has not.
func TestChannelScales(t *testing.T) {
	t.Parallel()
	port := func(q *tensor.Quant) profile.Tensor {
		return Port(&graph.Graph{Values: []*graph.Value{{Type: tensor.Int8, Quant: q}}}, 0, nil)
	}
	p := port(&tensor.Quant{Scale: []float32{0.5, 0.25, 2}, Zero: []int64{0, 0, 0}, Axis: 1})
	if p.ChannelScales == nil || *p.ChannelScales != [2]float64{0.25, 2} || *p.ChannelAxis != 1 || p.Scale != nil {
		t.Errorf("%+v", p)
	}
	for _, q := range []*tensor.Quant{{Scale: []float32{1}, Zero: []int64{0}}, {Scale: []float32{1, 2}, Zero: []int64{0, 0}, Block: 32}, {Scale: []float32{1, float32(math.NaN())}, Zero: []int64{0, 0}}} {
		if p := port(q); p.ChannelScales != nil || p.ChannelAxis != nil {
			t.Errorf("%+v: %+v", q, p)
		}
	}
}
