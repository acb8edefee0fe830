package conv

import (
	"slices"
)

// A phase is the set of outputs of a transposed convolution with the same remainder modulo the
// strides. Each phase is a convolution with every stride-th weight in reverse order, so no
// multiplication is repeated.

// PhaseRun is a range of adjacent phases of an axis with the same window geometry.
type PhaseRun struct {
	First, N              int
	Kernel, Dilation, Pad int
	Out                   int     // outputs of the first phase
	Taps                  [][]int // weight indices of the window of each phase, -1 for none
}

// PhaseRuns returns the phases of an axis with out outputs. A window begins with taps without a
// weight if padding removes the first inputs. A phase without weights has a single such tap.
func PhaseRuns(out, k, stride, dilation, pad int) (runs []PhaseRun) {
	common := gcd(stride, dilation)
	apart, dil := stride/common, dilation/common
	for r := range min(stride, out) {
		p := PhaseRun{First: r, N: 1, Dilation: dil, Out: (out-r-1)/stride + 1}
		t := 0
		for t < k && (t*dilation-r-pad)%stride != 0 {
			t++
		}
		base := 0 // the input that the first tap reads for the first output
		if t < k {
			base = (r + pad - t*dilation) / stride
		}
		var taps []int
		for ; t < k; t += apart {
			taps = append(taps, t)
		}
		for len(taps) == 0 || (len(taps)-1)*dil < base {
			taps = append(taps, -1)
		}
		slices.Reverse(taps)
		p.Kernel, p.Pad, p.Taps = len(taps), (len(taps)-1)*dil-base, [][]int{taps}
		if i := len(runs) - 1; i >= 0 && runs[i].Kernel == p.Kernel && runs[i].Pad == p.Pad {
			runs[i].N++
			runs[i].Taps = append(runs[i].Taps, taps)
		} else {
			runs = append(runs, p)
		}
	}
	return runs
}

// SinglePhases splits runs into single phases of an axis with out outputs.
func SinglePhases(runs []PhaseRun, out, stride int) (all []PhaseRun) {
	for _, r := range runs {
		for i, taps := range r.Taps {
			one := r
			one.First, one.N, one.Taps = r.First+i, 1, [][]int{taps}
			one.Out = (out-one.First-1)/stride + 1
			all = append(all, one)
		}
	}
	return all
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
