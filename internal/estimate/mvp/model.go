package mvp

import (
	"fmt"
	"maps"

	"github.com/opmeter/opmeter/internal/estimate/chip"
)

// fitted is the model with the coefficients of one target.
type fitted struct {
	lib  Library
	c    map[string]float64
	band map[string][2]float64 // by group, as factors
}

// coefficients lists the figures of a runtime by name, in cycles unless noted. Figures of layers
// on the accelerator have their names from target files, figures of the processor the form
// op.OPERATOR.TYPE.FEATURE. Missing ones are 0.
func coefficients(rt *chip.Runtime) map[string]float64 {
	c := maps.Clone(rt.MVP.Cycles)
	if c == nil {
		c = map[string]float64{}
	}
	for op, types := range rt.MVP.Operators {
		for typ, o := range types {
			for i, v := range features(&o) {
				if *v != 0 {
					c["op."+op+"."+typ+"."+featureNames[i]] = *v
				}
			}
		}
	}
	return c
}

func newFitted(rt *chip.Runtime) (*fitted, error) {
	if rt.MVP == nil {
		return nil, fmt.Errorf("runtime %s: has no figures of the cycle model mvp", rt.Name)
	}
	m := &fitted{lib: Library(rt.MVP.Library), c: coefficients(rt), band: map[string][2]float64{}}
	if m.lib == "" {
		m.lib = Second
	}
	if rt.Calibration != nil {
		for _, r := range rt.Calibration.Errors {
			e := r.P90Error
			if e == 0 {
				e = 2.5 * r.MedianError
			}
			m.band[r.Group] = [2]float64{max(1-e, 0), 1 + e}
		}
	}
	return m, nil
}

// figure adds the band of a group to a value; without one it returns nil.
func (m *fitted) figure(v float64, group string) *chip.Figure {
	b, ok := m.band[group]
	if !ok {
		b = [2]float64{1, 1}
	}
	return chip.Scaled(v, b[0], b[1])
}

// device returns the accelerator's cycles on hardware.
func (m *fitted) device(c *Counts) float64 {
	v := float64(c.Simulated())
	per := func(name string, n int64) { v += m.c[name] * float64(n) }
	switch c.Kernel {
	case KernelConv:
		per("conv.double", c.DoubleIterations)
		per("conv.single", c.SingleIterations)
		per("conv.double_store", c.doubleStores)
		per("conv.single_store", c.singleStores)
		per("conv.stride_noop", c.strideNoOps)
		per("conv.program", c.Programs)
	case KernelDense:
		if c.byOutput {
			per("dense_each.output", c.Stores)
		} else {
			per("dense.output", c.Stores)
			per("dense.program", c.Programs)
		}
	case KernelDepthwisePixel:
		per("depthwise_pixel.pair", c.Stores)
		per("depthwise_pixel.program", c.Programs)
	case KernelDepthwise:
		per("depthwise.output", c.Stores)
		per("depthwise.noop", c.NoOps)
	case KernelAdd, KernelMul:
		per(string(c.Kernel)+".pair", c.pairs)
		per(string(c.Kernel)+".program", c.Programs)
	default:
		per(string(c.Kernel)+".program", c.Programs)
	}
	return v
}

// cpu returns the processor's cycles for a layer on the accelerator, and the elapsed cycles until
// the layer is done if the accelerator takes acc.
func (m *fitted) cpu(c *Counts, acc float64) (cpu, elapsed float64) {
	n := float64(c.Programs)
	k := string(c.Kernel)
	overlapped := func(cpu float64) float64 { return max(acc+m.c["overlap.program"]*n, cpu) }
	switch c.Kernel {
	case KernelDense:
		cpu = m.c["cpu.dense.fixed"]
		if c.byOutput {
			cpu = m.c["cpu.dense_each.fixed"] + m.c["cpu.dense_each.output"]*float64(c.Stores)
		}
		return cpu, acc + cpu // the wait is serial
	case KernelAdd, KernelMul:
		cpu = m.c["cpu."+k+".fixed"] + m.c["cpu."+k+".program"]*n
		return cpu, acc + cpu
	case KernelDepthwise:
		cpu = m.c["cpu.depthwise.fixed"] + m.c["cpu.depthwise.program"]*n + m.c["cpu.depthwise.segment"]*float64(c.segments)
		return cpu, acc + m.c["overlap.depthwise.cpu"]*cpu
	case KernelAveragePool:
		check := m.c["cpu.average_pool.pixel"] * float64(c.pixels)
		rest := m.c["cpu.average_pool.program"] * n
		return check + rest, check + overlapped(rest)
	case KernelTransposeConv:
		cpu = m.c["cpu.transpose_conv.program"] * n
		return cpu, overlapped(cpu)
	}
	cpu = m.c["cpu."+k+".fixed"] + m.c["cpu."+k+".program"]*n
	elapsed = overlapped(cpu)
	if c.Kernel == KernelDepthwisePixel {
		elapsed = max(elapsed, m.c["overlap.depthwise_pixel.least"]*n)
	}
	return cpu, elapsed
}
