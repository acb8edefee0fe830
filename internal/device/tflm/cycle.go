package tflm

import "slices"

// Windows in which a stream without marks is looked at, in events. What repeats in them must do so
// eight times: the blocks of a network repeat, too, though not as often.
var windows = []int{512, 4096, 32768}

const repeats = 8

// settle finds the order of operators of a device that prints nothing between inferences and never
// rests, by what repeats.
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

// cycle is the shortest row of operators that a sequence repeats at least so many times, with the last
// one of it at its end; nil where it repeats none, or one operator only.
func cycle(all []string, least int) []string {
	// The prefix function of Knuth, Morris and Pratt: how much of the beginning ends at each place.
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

// begin turns a row that repeats so that it begins where an inference does: where the stream began, if
// that was seen; behind the one operator that networks end with. Else nothing tells, and
// the profile says so.
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
