package tflm

import "slices"

// Window sizes, in events, in which a stream without marks is examined. The sequence in them must
// repeat eight times: blocks of a network repeat, too, but less often.
var windows = []int{512, 4096, 32768}

const repeats = 8

// settle finds the order of operators by repetition, for a device that prints nothing between
// inferences and never pauses.
func (a *assembler) settle() {
	n := len(a.held)
	for _, w := range windows {
		if n < w || n%(w/2) != 0 {
			continue
		}
		if u := cycle(tags(a.held[n-w:]), repeats); u != nil {
			a.know(a.begin(u))
			return
		}
	}
}

// cycle returns the shortest sequence of operators that repeats at least the given number of
// times and ends at the end; nil if absent, or if it is a single operator.
func cycle(all []string, least int) []string {
	// The prefix function of Knuth, Morris and Pratt: the length of the longest prefix that ends
	// at each position.
	n := len(all)
	if n == 0 {
		return nil
	}
	border := make([]int, n)
	for i := 1; i < n; i++ {
		k := border[i-1]
		for k > 0 && all[i] != all[k] {
			k = border[k-1]
		}
		if all[i] == all[k] {
			k++
		}
		border[i] = k
	}
	p := n - border[n-1]
	if p < 2 || n < least*p {
		return nil
	}
	return all[n-p:]
}

// begin rotates a repeating sequence so that it begins where an inference does: at the start of
// the stream, if that was seen, or after the one operator that networks end with. Otherwise the
// begin is unknown, and the profile says so.
func (a *assembler) begin(u []string) []string {
	twice := append(slices.Clone(u), u...)
	p := len(u)
	if a.begun {
		for r := range p {
			if len(a.held) >= p && same(a.held[:p], twice[r:r+p]) {
				return twice[r : r+p]
			}
		}
	}
	for _, end := range []string{"DEQUANTIZE", "ARG_MAX", "SOFTMAX", "LOGISTIC"} {
		at := slices.Index(u, end)
		if at < 0 {
			continue
		}
		if !slices.Contains(u[at+1:], end) {
			return twice[at+1 : at+1+p]
		}
		break
	}
	a.turned = true
	return u
}
