package history

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Constants of [Divide].
const (
	// least is the number of points on either side of a change.
	least = 4
	// permutations and level are those of the significance test. Many series are tested at once,
	// so that one in a hundred may show a change by chance, and not one in twenty.
	permutations = 499
	level        = 0.01
)

// Split is a change point.
type Split struct {
	// At is the index of the first value after it.
	At int
	// P is the part of permutations that show at least as large a change.
	P float64
}

// Divide finds the points at which the distribution of a series changes, in order. It is E-divisive
// (Matteson and James, A nonparametric approach for multiple change point analysis of multivariate
// data, JASA 109, 2014): a series is divided where the energy distance of both parts is largest, if
// few random permutations of it show a larger one, and so are its parts. The result depends on the
// values only.
func Divide(values []float64) []Split {
	var out []Split
	var divide func(from, to int)
	divide = func(from, to int) {
		part := values[from:to]
		at, q := widest(part)
		if at == 0 {
			return
		}
		p, ok := significance(part, q)
		if !ok {
			return
		}
		out = append(out, Split{from + at, p})
		divide(from, from+at)
		divide(from+at, to)
	}
	divide(0, len(values))
	sorting.Func(out, func(a, b Split) int { return cmp.Compare(a.At, b.At) })
	return out
}

// widest finds the division with the largest energy statistic; at is 0 for series that are too
// short.
func widest(v []float64) (at int, q float64) {
	n := len(v)
	if n < 2*least {
		return 0, 0
	}
	// Sums of the distances between the parts, and within each.
	var between, left, right float64
	for i := range v {
		for j := range i {
			right += math.Abs(v[i] - v[j])
		}
	}
	q = math.Inf(-1)
	for i := range n - least {
		// Value i moves from the right part to the left one.
		var toLeft, toRight float64
		for _, w := range v[:i] {
			toLeft += math.Abs(v[i] - w)
		}
		for _, w := range v[i+1:] {
			toRight += math.Abs(v[i] - w)
		}
		between += toRight - toLeft
		left += toLeft
		right -= toRight
		l, r := float64(i+1), float64(n-i-1)
		if i+1 < least {
			continue
		}
		if e := l * r / (l + r) * (2*between/(l*r) - 2*left/(l*(l-1)) - 2*right/(r*(r-1))); e > q {
			at, q = i+1, e
		}
	}
	if !(q > 0) {
		return 0, 0
	}
	return at, q
}

// significance is the part of the permutations of a series whose statistic is at least q. ok is
// false once it is certain to be above the level.
func significance(v []float64, q float64) (p float64, ok bool) {
	random := rand.New(rand.NewPCG(1, uint64(len(v))))
	mixed := slices.Clone(v)
	above := 0
	for range permutations {
		random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if _, e := widest(mixed); e >= q {
			above++
		}
		if float64(above+1) > level*(permutations+1) {
			return 1, false
		}
	}
	return float64(above+1) / (permutations + 1), true
}
