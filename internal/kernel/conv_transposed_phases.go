package kernel

import "slices"

// Results of a transposed convolution whose places leave the same remainder when divided by the strides, a phase, are those of a
// convolution with every stride-th weight, in reverse: each product is computed once.

// PhaseRun are neighbouring phases of an axis whose windows are alike.
type PhaseRun struct {
	First, N              int
	Kernel, Dilation, Pad int
	Out                   int     // results of the first phase
	Taps                  [][]int // of each phase the weights of its window, -1 for none
}

// PhaseRuns are the phases of an axis of out results. A window has taps without a weight before the others where padding leaves out the first
// inputs, and a single one where a phase has no weights.
func PhaseRuns(out, k, stride, dilation, pad int) (runs []PhaseRun) {
	common := gcd(stride, dilation)
	apart, dil := stride/common, dilation/common
	for r := range min(stride, out) {
		p := PhaseRun{First: r, N: 1, Dilation: dil, Out: (out-r-1)/stride + 1}
		t := 0
		for t < k && (t*dilation-r-pad)%stride != 0 {
			t++
		}
		base := 0 // the input that the first of them sees at the first place
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

// SinglePhases are phases of an axis of out results, each by itself.
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
