package mvp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/chip"
)

// Coefficients of the model, in cycles unless said otherwise. Those that a
// target leaves out are zero: the term does not exist.
var coefficients = map[string]string{
	"conv.parallel":       "accelerator, per inner loop with two products",
	"conv.real":           "accelerator, per inner loop with one product",
	"conv.parallel_store": "accelerator, per result of programs with two products",
	"conv.real_store":     "accelerator, per result of programs with one product",
	"conv.stride_noop":    "accelerator, per no-op that walks the output",
	"conv.program":        "accelerator, per program",
	"fc.output":           "accelerator, per output",
	"fc.program":          "accelerator, per program",
	"fc_large.output":     "accelerator, per output where each has its program",
	"dw_opt.pair":         "accelerator, per stored pair",
	"dw_opt.program":      "accelerator, per program",
	"dw_gen.output":       "accelerator, per result",
	"dw_gen.noop":         "accelerator, per no-op",
	"max_gen.program":     "accelerator, per program",
	"avg_gen.program":     "accelerator, per program",
	"avg_opt.program":     "accelerator, per program",
	"add.pair":            "accelerator, per pair",
	"add.program":         "accelerator, per program",
	"mul.pair":            "accelerator, per pair",
	"mul.program":         "accelerator, per program",

	"cpu.conv.program":    "processor, per program",
	"cpu.conv.fixed":      "processor, per layer",
	"cpu.fc.fixed":        "processor, per layer",
	"cpu.fc_large.output": "processor, per output where each has its program",
	"cpu.fc_large.fixed":  "processor, per layer where each output has its program",
	"cpu.dw_opt.program":  "processor, per program",
	"cpu.dw_opt.fixed":    "processor, per layer",
	"cpu.dw_gen.program":  "processor, per program",
	"cpu.dw_gen.segment":  "processor, per part of the output with a filter of its own",
	"cpu.dw_gen.fixed":    "processor, per layer",
	"cpu.max_gen.program": "processor, per program",
	"cpu.max_gen.fixed":   "processor, per layer",
	"cpu.avg_gen.pixel":   "processor, per output pixel (check whether the kernel fits)",
	"cpu.avg_gen.program": "processor, per program",
	"cpu.avg_opt.program": "processor, per program",
	"cpu.avg_opt.fixed":   "processor, per layer",
	"cpu.add.program":     "processor, per program",
	"cpu.add.fixed":       "processor, per layer",
	"cpu.mul.program":     "processor, per program",
	"cpu.mul.fixed":       "processor, per layer",
	"cpu.tconv.program":   "processor, per program",

	"overlap.program":      "elapsed, per program beside the accelerator's cycles",
	"overlap.dw_opt.least": "elapsed, least per program of the optimised depthwise kernel, whatever accelerator and processor do",
	"overlap.dw_gen.cpu":   "share of the processor's cycles that do not overlap, of the general depthwise kernel",
}

// fitted is the model with the coefficients of one target.
type fitted struct {
	lib  Library
	c    map[string]float64
	band map[string][2]float64 // by group, as factors
}

func newFitted(rt *chip.Runtime) (*fitted, error) {
	for _, name := range slices.Sorted(maps.Keys(rt.Coefficients)) {
		if _, ok := coefficients[name]; !ok && !strings.HasPrefix(name, "op.") {
			return nil, fmt.Errorf("runtime %s: coefficient %q is not one of the mvp model", rt.Name, name)
		}
	}
	m := &fitted{lib: SpeedOpt, c: rt.Coefficients, band: map[string][2]float64{}}
	switch lib := rt.Settings["library"]; Library(lib) {
	case "", SpeedOpt:
	case Baseline:
		m.lib = Baseline
	default:
		return nil, fmt.Errorf("runtime %s: library is %q, want %q or %q", rt.Name, lib, SpeedOpt, Baseline)
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

// figure puts the band of a group around a value; without one there is none.
func (m *fitted) figure(v float64, group string) *chip.Figure {
	b, ok := m.band[group]
	if !ok {
		b = [2]float64{1, 1}
	}
	return chip.Scaled(v, b[0], b[1])
}

// device is the accelerator's cycles on hardware.
func (m *fitted) device(c *Counts) float64 {
	v := float64(c.Simulated())
	per := func(name string, n int64) { v += m.c[name] * float64(n) }
	switch c.Kernel {
	case KernelConv:
		per("conv.parallel", c.ParallelIterations)
		per("conv.real", c.RealIterations)
		per("conv.parallel_store", c.parallelStores)
		per("conv.real_store", c.realStores)
		per("conv.stride_noop", c.strideNoOps)
		per("conv.program", c.Programs)
	case KernelFullyConnected:
		if c.byOutput {
			per("fc_large.output", c.Stores)
		} else {
			per("fc.output", c.Stores)
			per("fc.program", c.Programs)
		}
	case KernelDepthwiseOpt:
		per("dw_opt.pair", c.Stores)
		per("dw_opt.program", c.Programs)
	case KernelDepthwise:
		per("dw_gen.output", c.Stores)
		per("dw_gen.noop", c.NoOps)
	case KernelAdd, KernelMul:
		per(string(c.Kernel)+".pair", c.pairs)
		per(string(c.Kernel)+".program", c.Programs)
	default:
		per(string(c.Kernel)+".program", c.Programs)
	}
	return v
}

// cpu is the processor's cycles for a layer on the accelerator, and elapsed the
// cycles until the layer is done when the accelerator takes acc.
func (m *fitted) cpu(c *Counts, acc float64) (cpu, elapsed float64) {
	n := float64(c.Programs)
	k := string(c.Kernel)
	overlapped := func(cpu float64) float64 { return max(acc+m.c["overlap.program"]*n, cpu) }
	switch c.Kernel {
	case KernelFullyConnected:
		cpu = m.c["cpu.fc.fixed"]
		if c.byOutput {
			cpu = m.c["cpu.fc_large.fixed"] + m.c["cpu.fc_large.output"]*float64(c.Stores)
		}
		return cpu, acc + cpu // the wait is serial
	case KernelAdd, KernelMul:
		cpu = m.c["cpu."+k+".fixed"] + m.c["cpu."+k+".program"]*n
		return cpu, acc + cpu
	case KernelDepthwise:
		cpu = m.c["cpu.dw_gen.fixed"] + m.c["cpu.dw_gen.program"]*n + m.c["cpu.dw_gen.segment"]*float64(c.segments)
		return cpu, acc + m.c["overlap.dw_gen.cpu"]*cpu
	case KernelAveragePool:
		check := m.c["cpu.avg_gen.pixel"] * float64(c.pixels)
		rest := m.c["cpu.avg_gen.program"] * n
		return check + rest, check + overlapped(rest)
	case KernelTransposeConv:
		cpu = m.c["cpu.tconv.program"] * n
		return cpu, overlapped(cpu)
	}
	cpu = m.c["cpu."+k+".fixed"] + m.c["cpu."+k+".program"]*n
	elapsed = overlapped(cpu)
	if c.Kernel == KernelDepthwiseOpt {
		elapsed = max(elapsed, m.c["overlap.dw_opt.least"]*n)
	}
	return cpu, elapsed
}
