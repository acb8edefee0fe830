package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
)

// usual is the number of significant digits of figures.
const usual = 3

// digits writes v with three significant digits, in exponent form only if it is huge.
func digits(v float64) string { return withDigits(v, usual) }

// withDigits writes v with n significant digits, three or more.
func withDigits(v float64, n int) string {
	a := math.Abs(v)
	switch {
	case a >= 99.95 || a == 0:
		return words.Fixed(v, n-usual)
	case a >= 9.995:
		return words.Fixed(v, n-2)
	case a >= 0.9995:
		return words.Fixed(v, n-1)
	}
	return strconv.FormatFloat(v, 'g', n-1, 64)
}

// prefixed is a kind of figures: the base of its prefixes, these, the place of the empty one, and
// the unit.
type prefixed struct {
	base     float64
	prefixes []string
	first    int
	unit     string
}

// text picks the prefix with which v has one to three digits before the point, and writes n
// significant ones.
func (k prefixed) text(v float64, n int) string {
	i := k.first
	for math.Abs(v) >= k.base*0.9995 && i < len(k.prefixes)-1 {
		v /= k.base
		i++
	}
	for v != 0 && math.Abs(v) < 0.9995 && i > 0 {
		v *= k.base
		i--
	}
	return strings.TrimSpace(withDigits(v, n) + " " + k.prefixes[i] + k.unit)
}

var (
	timePrefixes  = []string{"n", "µ", "m", ""}
	countPrefixes = []string{"", "k", "M", "G", "T", "P"}
	binPrefixes   = []string{"", "Ki", "Mi", "Gi", "Ti"}
	allPrefixes   = []string{"p", "n", "µ", "m", "", "k", "M", "G", "T"}
)

var (
	durations = prefixed{1000, timePrefixes, 3, "s"}
	counts    = prefixed{1000, countPrefixes, 0, ""}
	sizes     = prefixed{1024, binPrefixes, 0, "B"}
)

func quantities(unit string) prefixed { return prefixed{1000, allPrefixes, 4, unit} }

// Duration writes seconds with a fitting unit, such as "1.24 ms".
func Duration(s float64) string { return durations.text(s, usual) }

// Count writes a count with a decimal prefix, such as "2.66 M".
func Count(n int64) string {
	if n > -1000 && n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return counts.text(float64(n), usual)
}

// Bytes writes a size with a binary prefix, such as "52.7 KiB".
func Bytes(n int64) string {
	if n > -1024 && n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return sizes.text(float64(n), usual)
}

// Quantity writes any figure with a decimal prefix and its unit.
func Quantity(v float64, unit string) string { return quantities(unit).text(v, usual) }

// Percent writes a fraction as "12.3 %".
func Percent(f float64) string { return words.Fixed(100*f, 1) + " %" }

// Change writes a relative change with its sign: "+5.0 %", "−99.8 %". It has more decimals where
// these would say that nothing changed, or that nothing is left.
func Change(f float64, decimals int) string {
	v := 100 * math.Abs(f)
	at := func(decimals int) float64 { return math.Round(v*math.Pow10(decimals)) / math.Pow10(decimals) }
	vague := func(n float64) bool { return n != v && (n == 0 || n == 100 && f < 0) }
	least, most := decimals, decimals+3
	for decimals < most && vague(at(decimals)) {
		decimals++
	}
	sign := "+"
	switch n := at(decimals); {
	case n == 0:
		sign, decimals = "", least
	case f < 0:
		sign = "−"
	}
	return sign + words.Fixed(v, decimals) + " %"
}

// Range writes an interval with its unit once where both ends have the same: "231 to 245 µs".
func Range(low, high float64, show func(float64) string) string {
	return pairOf(low, " to ", high, show)
}

// pairOf writes two figures with their unit once where both have the same.
func pairOf(a float64, between string, b float64, show func(float64) string) string {
	return pairOfTexts(show(a), between, show(b))
}

func pairOfTexts(first, between, second string) string {
	if _, unit, ok := strings.Cut(second, " "); ok {
		first = strings.TrimSuffix(first, " "+unit)
	}
	return first + between + second
}

func inSeconds(iv *[2]float64) string { return Range(iv[0], iv[1], Duration) }
