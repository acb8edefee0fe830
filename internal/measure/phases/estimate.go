package phases

import (
	"math"

	"github.com/opmeter/opmeter/internal/measure/machine/rates"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/profile"
)

// Speeds are the measured rates that an estimate needs: of reading as many bytes as weights and
// caches have, and of float32 multiply-accumulates.
type Speeds struct{ Read, Float rates.Rate }

// part is a fraction of a rate that layers reach: the usual one, and the band of 9 in 10.
type part struct{ usual, least, most float64 }

// class is a kind of layer for the estimate. Fractions come from go run ./bench/llm/band.
type class struct{ read, compute part }

var (
	products = class{read: part{0.72, 0.5, 0.98}, compute: part{1.05, 0.7, 1.35}}
	// 8-bit arithmetic, in float32 operations: 0.8 on AVX2, 1.6 with VNNI.
	lowBit = class{read: part{0.72, 0.5, 0.98}, compute: part{1.4, 0.7, 2.6}}
	// Types with minima, such as Q4_K, have a second product.
	minima    = class{read: part{0.55, 0.4, 0.76}, compute: part{1.4, 0.7, 2.6}}
	attention = class{read: part{0.45, 0.25, 0.7}, compute: part{0.4, 0.15, 0.9}}
	others    = class{read: part{0.5, 0.15, 1}, compute: part{0.1, 0.02, 0.5}}
)

// classes lists operators by class; those that are missing are others.
var classes = map[string]*class{
	"MatMul": &products, "Gemm": &products, "MatMulNBits": &lowBit, "ExpertMatMul": &lowBit,
	"GroupQueryAttention": &attention, "MultiHeadAttention": &attention, "Attention": &attention,
}

// overhead is the time of a layer without work, in seconds.
var overhead = part{0.5e-6, 0.2e-6, 1.5e-6}

// estimateMethod says how the times of [Estimate] are made.
const estimateMethod = "from the measured rates of reading and of float32 arithmetic, with a band that is made to hold 9 of 10 cases"

// Estimate adds times to the layers and the totals of a run that was only counted.
func Estimate(r *Run, m *llm.Model, s *Speeds) {
	p, ph := r.Profile, r.Phase
	p.Target.Peaks = []profile.Peak{{DType: "float32", OpsPerSecond: 2 * s.Float.Best, Spread: new(s.Float.Spread())}}
	p.Target.Levels = []profile.Level{{Name: "reads", BytesPerSecond: s.Read.Best, Spread: new(s.Read.Spread())}}
	var sum [3]float64
	written := m.CacheBytes(ph.Batch, ph.Tokens)
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Constant || l.State == profile.Folded || l.State == profile.Fused || l.State == profile.NotReached || l.Ops == nil && !chooses(l) || l.BytesRead == nil || l.BytesWritten == nil {
			continue
		}
		c := classes[l.Op]
		switch {
		case c == nil:
			c = &others
		case c == &lowBit && len(l.Inputs) > 3 && l.Inputs[3].DType == "float32":
			c = &minima
		}
		bytes := float64(*l.BytesRead + *l.BytesWritten)
		if c == &attention { // only the new positions are written
			bytes = float64(*l.BytesRead) + float64(written)/float64(max(m.Layers, 1))
		}
		var ops float64
		if l.Ops != nil {
			ops = float64(*l.Ops)
		}
		at := func(read, compute, overhead float64) float64 {
			return overhead + max(bytes/(read*s.Read.Best), ops/(compute*2*s.Float.Best))
		}
		t := [3]float64{
			at(c.read.usual, c.compute.usual, overhead.usual), at(c.read.most, c.compute.most, overhead.least), at(c.read.least, c.compute.least, overhead.most),
		}
		l.Latency = estimated(t)
		for k := range sum {
			sum[k] += t[k]
		}
	}
	if sum[0] > 0 && !math.IsInf(sum[2], 0) {
		p.Totals.Latency = estimated(sum)
	}
}

// estimated is a figure with its band.
func estimated(t [3]float64) *profile.Metric {
	m := profile.Value(profile.Estimated, t[0], estimateMethod)
	m.Band = &[2]float64{t[1], t[2]}
	return m
}
