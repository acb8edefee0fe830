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
	"conv.parallel":              "accelerator, per inner loop with two products",
	"conv.real":                  "accelerator, per inner loop with one product",
	"conv.parallel_store":        "accelerator, per result of programs with two products",
	"conv.real_store":            "accelerator, per result of programs with one product",
	"conv.stride_noop":           "accelerator, per no-op that walks the output",
	"conv.program":               "accelerator, per program",
	"dense.output":               "accelerator, per output",
	"dense.program":              "accelerator, per program",
	"dense_each.output":          "accelerator, per output where each has its program",
	"depthwise_pixel.pair":       "accelerator, per stored pair",
	"depthwise_pixel.program":    "accelerator, per program",
	"depthwise.output":           "accelerator, per result",
	"depthwise.noop":             "accelerator, per no-op",
	"max_pool.program":           "accelerator, per program",
	"average_pool.program":       "accelerator, per program",
	"average_pool_pixel.program": "accelerator, per program",
	"add.pair":                   "accelerator, per pair",
	"add.program":                "accelerator, per program",
	"mul.pair":                   "accelerator, per pair",
	"mul.program":                "accelerator, per program",

	"cpu.conv.program":               "processor, per program",
	"cpu.conv.fixed":                 "processor, per layer",
	"cpu.dense.fixed":                "processor, per layer",
	"cpu.dense_each.output":          "processor, per output where each has its program",
	"cpu.dense_each.fixed":           "processor, per layer where each output has its program",
	"cpu.depthwise_pixel.program":    "processor, per program",
	"cpu.depthwise_pixel.fixed":      "processor, per layer",
	"cpu.depthwise.program":          "processor, per program",
	"cpu.depthwise.segment":          "processor, per part of the output with a filter of its own",
	"cpu.depthwise.fixed":            "processor, per layer",
	"cpu.max_pool.program":           "processor, per program",
	"cpu.max_pool.fixed":             "processor, per layer",
	"cpu.average_pool.pixel":         "processor, per output pixel (check whether the kernel fits)",
	"cpu.average_pool.program":       "processor, per program",
	"cpu.average_pool_pixel.program": "processor, per program",
	"cpu.average_pool_pixel.fixed":   "processor, per layer",
	"cpu.add.program":                "processor, per program",
	"cpu.add.fixed":                  "processor, per layer",
	"cpu.mul.program":                "processor, per program",
	"cpu.mul.fixed":                  "processor, per layer",
	"cpu.transpose_conv.program":     "processor, per program",

	"overlap.program":               "elapsed, per program beside the accelerator's cycles",
	"overlap.depthwise_pixel.least": "elapsed, least per program of the depthwise kernel with one per pixel, whatever accelerator and processor do",
	"overlap.depthwise.cpu":         "share of the processor's cycles that do not overlap, of the depthwise kernel over runs of outputs",
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
	m := &fitted{lib: Second, c: rt.Coefficients, band: map[string][2]float64{}}
	switch lib := rt.Settings["library"]; Library(lib) {
	case "", Second:
	case First:
		m.lib = First
	default:
		return nil, fmt.Errorf("runtime %s: library is %q, want %q or %q", rt.Name, lib, First, Second)
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

// cpu is the processor's cycles for a layer on the accelerator, and elapsed the
// cycles until the layer is done when the accelerator takes acc.
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
