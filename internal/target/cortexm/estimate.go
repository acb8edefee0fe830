package cortexm

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/target"
)

// Names of further coefficients and settings in target files.
const (
	BandNear  = "band_near"  // half-width of the band in logarithms, for networks like those fitted to
	BandFar   = "band_far"   // the same for other networks
	BandLayer = "band_layer" // the same for one layer
	Family    = "family"     // family whose prior tells mixes
	Tier      = "tier"       // tier of cores
	Pruned    = "pruned"     // "true" when channels with zero weights are left out
	Seen      = "seen"       // mixes of the networks that were fitted to
)

// Model is the structural cycle model.
type Model struct{}

var _ target.CycleModel = Model{}

// Costs estimates the layers of the main graph.
func (Model) Costs(m *graph.Model, t *target.Target, rt *target.Runtime, _ target.Options) (*target.Costs, error) {
	coef, err := Coefficients(rt)
	if err != nil {
		return nil, fmt.Errorf("target %s, runtime %s: %w", t.ID, rt.Name, err)
	}
	near, far, single := rt.Coefficients[BandNear], rt.Coefficients[BandFar], rt.Coefficients[BandLayer]
	pruned := rt.Settings[Pruned] == "true"
	slow := slowMemory(t)
	layers := Layers(m)
	costs := &target.Costs{Layers: make([]target.LayerCost, len(layers)), Method: "structural model, " + rt.Name}
	total, waits, missing := coef[Call], 0.0, 0
	var work Vector
	for i := range layers {
		l := &layers[i]
		out := &costs.Layers[i]
		out.Simulated = -1
		out.Kernel = l.Kernel
		switch {
		case l.Missing != "":
			out.Missing = l.Missing
		case l.Float:
			out.Missing = m.Main().Nodes[i].Key() + ": kernels in floating point are not calibrated"
		}
		if out.Missing != "" {
			missing++
			continue
		}
		w := l.Work
		if pruned {
			w = l.Live
		}
		wait := slow.cycles(l)
		c := coef.Dot(w) + wait
		if i == 0 {
			c += coef[Call]
			total -= coef[Call]
		}
		work = work.Plus(w)
		total += c
		waits += wait
		half := single
		if wait > 0.2*c {
			half = math.Max(half, slowHalf)
		}
		out.CPU = target.Scaled(c, math.Exp(-half), math.Exp(half))
		out.Latency = out.CPU
	}
	if missing == len(layers) {
		return costs, nil
	}
	distance := Nearest(Mix(Prior(rt.Settings[Family], rt.Settings[Tier]), work), mixes(rt.Settings[Seen]))
	work[Call] = 1
	half := Half(near, far, distance, Overhead(coef, work))
	if waits > 0.2*total {
		half = math.Max(half, slowHalf)
		costs.Remarks = append(costs.Remarks, "weights are read from slow memory, which is a rough estimate")
	}
	if near < far && distance > FarAway/2 {
		costs.Remarks = append(costs.Remarks, fmt.Sprintf("the mix of operators is unlike the networks that %s was calibrated on, so the band is wider", rt.Name))
	}
	costs.CPU = target.Scaled(total, math.Exp(-half), math.Exp(half))
	costs.Latency = costs.CPU
	costs.Energy = energy(t, total, half)
	return costs, nil
}

// energy is the power model applied to a whole inference. The errors of cycles and
// of power are independent, so that their squares add up.
func energy(t *target.Target, cycles, half float64) *target.Figure {
	e := t.Energy
	if e == nil || e.Watts != 0 || e.MAC != 0 {
		return nil // left to the power model of the target
	}
	v := cycles * (e.ElapsedCycle + e.CPUCycle)
	if e.Band == nil || e.Band[0] <= 0 || e.Band[1] <= 0 {
		return &target.Figure{Value: v, Low: v, High: v}
	}
	low, high := math.Hypot(half, math.Log(e.Band[0])), math.Hypot(half, math.Log(e.Band[1]))
	return target.Scaled(v, math.Exp(-low), math.Exp(high))
}

// Coefficients reads the terms of a runtime.
func Coefficients(rt *target.Runtime) (Vector, error) {
	var v Vector
	if rt == nil {
		return v, fmt.Errorf("no runtime is given")
	}
	for i, name := range Names {
		c, ok := rt.Coefficients[name]
		if !ok {
			return v, fmt.Errorf("coefficient %q is missing", name)
		}
		if c < 0 || math.IsNaN(c) || math.IsInf(c, 0) {
			return v, fmt.Errorf("coefficient %q is %v; a cost cannot be negative or unlimited", name, c)
		}
		v[i] = c
	}
	return v, nil
}

// slowHalf is the half-width of the band where waiting for memory matters: boards
// differ by a factor of two.
const slowHalf = 0.7

// memory is where weights are read from, when reading them is slow.
type memory struct{ cost, cache float64 }

// slowMemory finds the memory that holds the model: external flash of a chip that
// has none inside, with a stated cost of reading.
func slowMemory(t *target.Target) memory {
	if _, ok := t.Flash(); ok {
		return memory{}
	}
	for i := range t.Memories {
		if x := &t.Memories[i]; x.Role == "external-flash" && x.ReadCyclesPerByte != nil {
			return memory{*x.ReadCyclesPerByte, float64(x.Cache)}
		}
	}
	return memory{}
}

// cycles spent waiting for a layer's weights: once when a quarter of the cache holds
// them, at every pass otherwise. The rest of the cache is for code and for what
// falls on the same lines.
func (s memory) cycles(l *Layer) float64 {
	if s.cost == 0 {
		return 0
	}
	if l.WeightBytes <= s.cache/4 {
		return s.cost * l.WeightBytes
	}
	return s.cost * l.WeightBytes * l.Passes
}

// FormatMixes writes mixes for a target file.
func FormatMixes(mixes []Vector) string {
	var b strings.Builder
	for i, m := range mixes {
		if i > 0 {
			b.WriteString("; ")
		}
		first := true
		for k, v := range m {
			if v < 0.005 {
				continue
			}
			if !first {
				b.WriteByte(' ')
			}
			first = false
			b.WriteString(Names[k] + "=" + strconv.FormatFloat(v, 'f', 2, 64))
		}
	}
	return b.String()
}

// mixes reads what [FormatMixes] wrote; what cannot be read is left out.
func mixes(s string) []Vector {
	var out []Vector
	for _, one := range strings.Split(s, ";") {
		var v Vector
		any := false
		for _, f := range strings.Fields(one) {
			name, value, _ := strings.Cut(f, "=")
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				continue
			}
			for k := range Names {
				if Names[k] == name {
					v[k], any = x, true
				}
			}
		}
		if any {
			out = append(out, v)
		}
	}
	return out
}
