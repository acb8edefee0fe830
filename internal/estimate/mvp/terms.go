package mvp

import (
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
)

// Coefficients lists the figures of a runtime by name, in cycles. Figures of layers on the
// accelerator have their names from target files, figures of operators on the processor the form
// op.OPERATOR.TYPE.FEATURE.
func Coefficients(rt *chip.Runtime) map[string]float64 { return coefficients(rt) }

// Terms are the components of one layer's cycles, for fitting: the amount of each coefficient, in
// addition to the counted cycles.
type Terms struct {
	// Group of errors in the target file: "conv", or "op.SOFTMAX" on the processor.
	Group string
	// Simulated accelerator cycles, 0 on the processor.
	Simulated float64
	// Accelerator and CPU give the amount of each coefficient, by name.
	Accelerator, CPU map[string]float64

	counts *Counts
	lib    Library
}

// Layers returns the terms of the layers of the main graph that have figures, nil for the others.
func Layers(m *graph.Model, rt *chip.Runtime) ([]*Terms, error) {
	c, err := newFitted(rt)
	if err != nil {
		return nil, err
	}
	ops := newProcessor(c.c)
	g := m.Main()
	out := make([]*Terms, len(g.Nodes))
	for i, n := range g.Nodes {
		in, outs := count.Declared(g, n.Inputs), count.Declared(g, n.Outputs)
		if !known(in, outs) {
			continue
		}
		t := &Terms{Accelerator: map[string]float64{}, CPU: map[string]float64{}, lib: c.lib}
		if k, _, _ := c.accelerate(n, in, outs); k != nil && k.Programs > 0 {
			t.Group, t.Simulated, t.counts = string(k.Kernel), float64(k.Simulated()), k
			for name := range c.c {
				one := &fitted{lib: c.lib, c: map[string]float64{name: 1}}
				if v := one.device(k) - t.Simulated; v != 0 {
					t.Accelerator[name] = v
				}
				if v, _ := one.cpu(k, 0); v != 0 {
					t.CPU[name] = v
				}
			}
			out[i] = t
			continue
		}
		if _, _, missing := ops.cycles(m, g, n, in, outs); missing != nil {
			continue
		}
		t.Group = "op." + n.Op
		for name := range c.c {
			if !strings.HasPrefix(name, t.Group+".") {
				continue
			}
			one := newProcessor(map[string]float64{name: 1})
			if v, _, missing := one.cycles(m, g, n, in, outs); missing == nil && v != 0 {
				t.CPU[name] = v
			}
		}
		out[i] = t
	}
	return out, nil
}

// Cycles returns the cycles of the accelerator, of the processor, and elapsed until the layer is
// done, for the given coefficients.
func (t *Terms) Cycles(coefficients map[string]float64) (accelerator, cpu, elapsed float64) {
	if t.counts == nil {
		for name, n := range t.CPU {
			cpu += coefficients[name] * n
		}
		return 0, cpu, cpu
	}
	c := &fitted{lib: t.lib, c: coefficients}
	accelerator = c.device(t.counts)
	cpu, elapsed = c.cpu(t.counts, accelerator)
	return accelerator, cpu, elapsed
}
