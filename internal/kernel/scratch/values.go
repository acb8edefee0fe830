package scratch

import (
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
)

// CopyGrain is the minimum number of values per copy work item: a thread copies about four
// float32 values per nanosecond, or converts as many 8-bit values.
var CopyGrain = workers.Grain(4)

// Fill sets all of d to v.
func Fill[T any](d []T, v T) {
	if len(d) > fillOne {
		fillMany(d, v)
		return
	}
	for i := range d {
		d[i] = v
	}
}

// fillOne is the length up to which values are set one by one. More values are copied from those
// already set, at most fillNear at a time, which stay in the L1 cache.
const (
	fillOne  = 16
	fillNear = 4096
)

// fillMany is fill for more than fillOne values.
func fillMany[T any](d []T, v T) {
	for i := range d[:fillOne] {
		d[i] = v
	}
	for n := fillOne; n < len(d); {
		n += copy(d[n:], d[:min(n, fillNear)])
	}
}

// Interleave writes a and b, of the same length, alternately.
func Interleave(d, a, b []float32) {
	d, b = d[:2*len(a)], b[:len(a)]
	for len(a) >= 2 && len(b) >= 2 && len(d) >= 4 {
		*(*[4]float32)(d) = [4]float32{a[0], b[0], a[1], b[1]}
		a, b, d = a[2:], b[2:], d[4:]
	}
	if len(a) == 1 && len(b) == 1 {
		*(*[2]float32)(d) = [2]float32{a[0], b[0]}
	}
}

// Zeroed returns v with length n, all zero, and grows it if needed.
func Zeroed[T any](v []T, n int) []T {
	if cap(v) < n {
		return hugepages.Make[T](n)
	}
	v = v[:n]
	clear(v)
	return v
}

// RoundUp rounds n up to a multiple of a step.
func RoundUp(n, to int) int { return (n + to - 1) / to * to }
