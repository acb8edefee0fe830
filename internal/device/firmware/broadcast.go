package firmware

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// dims is the number of nested loops of the kernels, K_DIMS.
const dims = 6

// broadcast returns the initialiser of a k_spread: how inputs of shapes a and b broadcast to the
// shape out. Adjacent dimensions with contiguous strides in both inputs are merged.
func broadcast(out, a, b []int) (string, error) {
	sa, sb := repeated(out, a), repeated(out, b)
	var size, ta, tb []int
	for i, d := range out {
		if d == 1 {
			continue
		}
		if n := len(size); n > 0 && ta[n-1] == sa[i]*d && tb[n-1] == sb[i]*d {
			size[n-1] *= d
			ta[n-1], tb[n-1] = sa[i], sb[i]
			continue
		}
		size, ta, tb = append(size, d), append(ta, sa[i]), append(tb, sb[i])
	}
	if len(size) > dims {
		return "", unsupported("inputs that broadcast along %d dimensions, at most %d are possible", len(size), dims)
	}
	return fmt.Sprintf("{.size = %s, .a = %s, .b = %s}", padded(size, 1), padded(ta, 0), padded(tb, 0)), nil
}

// repeated returns the strides of a tensor broadcast to the shape out; broadcast dimensions have
// stride 0.
func repeated(out, shape []int) []int {
	st := make([]int, len(out))
	own := tensor.Strides(shape)
	for i := range shape {
		if at := len(out) - len(shape) + i; shape[i] > 1 {
			st[at] = own[i]
		}
	}
	return st
}

// padded returns a list of K_DIMS numbers, padded at the front.
func padded(v []int, fill int) string {
	s := make([]string, 0, dims)
	for range dims - len(v) {
		s = append(s, fmt.Sprint(fill))
	}
	for _, x := range v {
		s = append(s, fmt.Sprint(x))
	}
	return "{" + strings.Join(s, ", ") + "}"
}
