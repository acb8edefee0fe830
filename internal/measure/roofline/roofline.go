// Package roofline writes measured peak rates of an engine to a profile's target: of opmeter's
// own engine by its kernels, of external engines by small models.
package roofline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/machine/rates"
	"github.com/opmeter/opmeter/profile"
)

// Way says how rates were measured.
type Way struct {
	// Kernel names the kernel, for the record.
	Kernel string
	// Half says that float32 was computed in 16 bits: the theoretical float32 peak of the
	// processor is omitted.
	Half bool
	// Threads is the number of threads.
	Threads int
	// Earlier says that the rates are from an earlier measurement in the same process.
	Earlier bool
	// Operations and Bytes say how rates of either kind were measured, as the first words of "…
	// (last-level cache 8 MiB)".
	Operations, Bytes string
}

// Types lists the element types with a measured peak that layers compute in.
func Types(layers []profile.Layer) []string {
	out := []string{}
	for i := range layers {
		t := layers[i].ArithmeticType()
		if slices.Contains(rates.Types, t) && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// Put writes rates to a target. host has the features of the processor.
func Put(t *profile.Target, r *rates.Rates, w *Way, host *profile.Host) {
	var said []string
	for _, x := range []struct {
		dtype string
		rate  rates.Rate
	}{{"float32", r.Float}, {"int8", r.Integer}} {
		if !(x.rate.Best > 0) {
			continue
		}
		// Two operations per multiply-accumulate, as everywhere: docs/explanation/counting.md.
		k := profile.Peak{DType: x.dtype, Kernel: w.Kernel, OpsPerSecond: 2 * x.rate.Best, Spread: new(x.rate.Spread())}
		if th, ok := rates.TheoryOf(x.dtype, host.CPUVendor, host.Features); ok && !(w.Half && x.dtype == "float32") {
			hz := r.Clock
			if hz == 0 && host.MaxHz != nil {
				hz = *host.MaxHz
			}
			if hz > 0 {
				k.ProcessorOpsPerSecond, k.ProcessorSet = new(th.OpsPerCycle*hz*float64(w.Threads)), th.Set
			}
		}
		t.Peaks = append(t.Peaks, k)
		if t.PeakOpsPerSecond == nil || k.OpsPerSecond > *t.PeakOpsPerSecond {
			t.PeakOpsPerSecond = new(k.OpsPerSecond)
		}
	}
	if len(t.Peaks) > 0 {
		s := w.Operations + ", a multiply-accumulate being two"
		if w.Half {
			s += ", float32 in 16 bits"
		}
		said = append(said, s)
	}
	for _, l := range r.Levels {
		if !(l.Best > 0) {
			continue
		}
		v := profile.Level{Name: l.Name, BytesPerSecond: l.Best, Spread: new(l.Spread())}
		if l.Bytes > 0 {
			v.Bytes = new(l.Bytes)
		}
		if l.Read.Best > 0 {
			v.ReadBytesPerSecond = new(l.Read.Best)
		}
		t.Levels = append(t.Levels, v)
	}
	if n := len(t.Levels); n > 0 && t.Levels[n-1].Bytes == nil {
		t.PeakBytesPerSecond = new(t.Levels[n-1].BytesPerSecond)
		s := fmt.Sprintf("%s in %d MiB", w.Bytes, r.Buffer>>20)
		if r.Cache > 0 {
			s += fmt.Sprintf(" (last-level cache %d MiB)", r.Cache>>20)
		}
		said = append(said, s)
	}
	if len(said) == 0 {
		return
	}
	when := "measured here after the runs"
	if r.Interleaved > 0 {
		when = fmt.Sprintf("measured here in %d slices between the inferences, the last-level cache and the memory after them", r.Interleaved)
	}
	if w.Earlier {
		when = "measured here earlier in the same process"
	}
	if r.Passes > 1 {
		when += fmt.Sprintf(" (in %d passes, since the machine was busy)", r.Passes)
	}
	n := "1 thread"
	if w.Threads != 1 {
		n = fmt.Sprintf("%d threads", w.Threads)
	}
	t.PeakMethod = fmt.Sprintf("%s, %s: %s", when, n, strings.Join(said, "; "))
}
