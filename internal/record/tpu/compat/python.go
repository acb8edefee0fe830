package compat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// The converter is a Python program. The functions below format values as Python prints them.

// literal is a text that lists contain without quotes.
type literal string

// repr formats a floating-point number.
func repr(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	switch a := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(s), "+")
	case a != 0 && (a < 1e-4 || a >= 1e16):
		return strconv.FormatFloat(f, 'e', -1, 64)
	case strings.Contains(s, "."):
		return s
	}
	return s + ".0"
}

// show formats a value without quotes.
func show(v any) string {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		return repr(v)
	case literal:
		return string(v)
	}
	return v.(string)
}

// pyList formats a list. Texts get quotes.
func pyList(values ...any) string {
	parts := make([]string, len(values))
	for i, v := range values {
		if s, ok := v.(string); ok {
			v = pyText(s)
		}
		parts[i] = show(v)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// anys converts a list for calls with any number of values of any type.
func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

var pyEscapes = strings.NewReplacer(
	`\`, `\\`, "'", `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// pyText formats a text as an element of a list.
func pyText(s string) string {
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return `"` + strings.ReplaceAll(pyEscapes.Replace(s), `\'`, "'") + `"`
	}
	return "'" + pyEscapes.Replace(s) + "'"
}

// round rounds to a number of decimals, ties of the exact value to even.
func round(f float64, decimals int) float64 {
	r, _ := strconv.ParseFloat(fixed(f, decimals), 64)
	return r
}

// fixed formats a number with a number of decimals.
func fixed(f float64, decimals int) string { return strconv.FormatFloat(f, 'f', decimals, 64) }

// percent formats a share with a number of decimals and a percent sign.
func percent(f float64, decimals int) string { return fixed(f*100, decimals) + "%" }

// share2 and share3 format a share with two and three decimals, 0 if the whole is 0.
func share2(a, b uint64) string { return percent(ratio(a, b), 2) }

func share3(v, of float64) string {
	if of == 0 {
		v, of = 0, 1
	}
	return percent(v/of, 3)
}

// ratio divides integers as Python does: the exact quotient, rounded once. It is 0 for b = 0.
func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	if a < 1<<53 && b < 1<<53 {
		return float64(a) / float64(b)
	}
	q, _ := new(big.Rat).SetFrac(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b)).Float64()
	return q
}

func itoa[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

// giga formats a rate per second in units of 10⁹.
func giga(v float64) literal { return literal(strconv.FormatFloat(v/1e9, 'f', -1, 64)) }

// digits6 rounds a number to six significant digits.
func digits6(f float64) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 6, 64), 64)
	return v
}

// sortDescending returns the descending order of texts by the algorithm of the converter's library:
// an unstable quicksort of the reversed list.
func sortDescending(keys []string) []int {
	n := len(keys)
	q := quicksort{v: make([]string, n), at: make([]int, n)}
	for i := range keys {
		q.v[i] = keys[n-1-i]
		q.at[i] = i
	}
	q.sort()
	out := make([]int, n)
	for i := range out {
		out[i] = n - 1 - q.at[n-1-i]
	}
	return out
}

// quicksort orders positions by their texts: median of three, the larger part later, short parts by
// insertion sort, parts beyond a depth by heapsort.
type quicksort struct {
	v  []string
	at []int
}

const smallPart = 15

func (q *quicksort) less(i, j int) bool { return q.v[i] < q.v[j] }

func (q *quicksort) sort() {
	type part struct{ lo, hi, depth int }
	now := part{0, len(q.at) - 1, 2 * log2(len(q.at))}
	var later []part
	for {
		if now.depth < 0 {
			q.heap(now.lo, now.hi)
		} else {
			for now.hi-now.lo > smallPart {
				i := q.partition(now.lo, now.hi)
				next := part{now.lo, i - 1, 0}
				other := part{i + 1, now.hi, 0}
				if i-now.lo >= now.hi-i {
					next, other = other, next
				}
				now.depth--
				next.depth, other.depth = now.depth, now.depth
				later = append(later, other)
				now = next
			}
			q.insertion(now.lo, now.hi)
		}
		if len(later) == 0 {
			return
		}
		now = later[len(later)-1]
		later = later[:len(later)-1]
	}
}

// partition splits a part at its median of three and returns the position of the median.
func (q *quicksort) partition(lo, hi int) int {
	at := q.at
	mid := lo + (hi-lo)>>1
	if q.less(at[mid], at[lo]) {
		at[mid], at[lo] = at[lo], at[mid]
	}
	if q.less(at[hi], at[mid]) {
		at[hi], at[mid] = at[mid], at[hi]
	}
	if q.less(at[mid], at[lo]) {
		at[mid], at[lo] = at[lo], at[mid]
	}
	pivot := at[mid]
	i, j := lo, hi-1
	at[mid], at[j] = at[j], at[mid]
	for {
		i++
		for q.less(at[i], pivot) {
			i++
		}
		j--
		for q.less(pivot, at[j]) {
			j--
		}
		if i >= j {
			break
		}
		at[i], at[j] = at[j], at[i]
	}
	at[i], at[hi-1] = at[hi-1], at[i]
	return i
}

func (q *quicksort) insertion(lo, hi int) {
	for i := lo + 1; i <= hi; i++ {
		k, j := q.at[i], i
		for ; j > lo && q.less(k, q.at[j-1]); j-- {
			q.at[j] = q.at[j-1]
		}
		q.at[j] = k
	}
}

func (q *quicksort) heap(lo, hi int) {
	n := hi - lo + 1
	a := func(i int) *int { return &q.at[lo+i-1] }
	sift := func(i, x int) {
		for j := 2 * i; j <= n; j = 2 * i {
			if j < n && q.less(*a(j), *a(j + 1)) {
				j++
			}
			if !q.less(x, *a(j)) {
				break
			}
			*a(i) = *a(j)
			i = j
		}
		*a(i) = x
	}
	for l := n / 2; l > 0; l-- {
		sift(l, *a(l))
	}
	for n > 1 {
		x := *a(n)
		*a(n) = *a(1)
		n--
		sift(1, x)
	}
}
