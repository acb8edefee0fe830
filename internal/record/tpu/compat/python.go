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
