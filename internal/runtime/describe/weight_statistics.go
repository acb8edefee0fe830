package describe

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// WeightStatistics adds range, mean and standard deviation to the weights of the layers of a
// profile that [Model] made of the slots. It reads [ZerosBudget] weights at most. Weights with
// elements that are not finite get none.
func WeightStatistics(p *profile.Profile, m *graph.Model, slots []plan.Slot) {
	d := &describer{m: m, slots: slots, made: map[int][]*graph.Node{}}
	left := int64(ZerosBudget)
	done := map[*tensor.Tensor]*profile.Weights{}
	for i := range slots {
		w := p.Layers[i].Weights
		if w == nil {
			continue
		}
		g := m.Graphs[slots[i].Graph]
		r := weights.ReadingOf(g, d.producers(slots[i].Graph), slots[i].Node)
		if r == nil {
			continue
		}
		c := g.Values[r.Value].Const
		if same := done[c]; same != nil {
			w.Min, w.Max, w.Mean, w.StdDev = same.Min, same.Max, same.Mean, same.StdDev
			continue
		}
		n := c.Len()
		if n == 0 || int64(n) > left || !c.Type.IsNumber() || len(c.Data) < c.Type.Bytes(n) {
			continue
		}
		left -= int64(n)
		statistics(w, c, n)
		done[c] = w
	}
}

// statistics reads all n elements of a constant.
func statistics(w *profile.Weights, c *tensor.Tensor, n int) {
	var buf [4096]float64
	low, high := math.Inf(1), math.Inf(-1)
	var mean, squares float64 // squares of the distances from the mean
	for at := 0; at < n; {
		x := buf[:min(len(buf), n-at)]
		tensor.Read(x, c, at)
		var sum float64
		for _, v := range x {
			low, high = min(low, v), max(high, v)
			sum += v
		}
		own := sum / float64(len(x))
		var distances float64
		for _, v := range x {
			distances += (v - own) * (v - own)
		}
		// Joins the moments of the elements before and of these.
		by, k := own-mean, float64(len(x))
		squares += distances + by*by*float64(at)*k/(float64(at)+k)
		mean += by * k / (float64(at) + k)
		at += len(x)
	}
	sd := math.Sqrt(squares / float64(n))
	if math.IsNaN(sd) || math.IsInf(sd, 0) || math.IsInf(mean, 0) {
		return
	}
	w.Min, w.Max, w.Mean, w.StdDev = &low, &high, &mean, &sd
}
