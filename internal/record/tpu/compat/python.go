package compat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// The converter is a Python program: these write numbers as it prints them.

// repr is a floating-point number as Python prints it.
func repr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	a := math.Abs(f)
	if a != 0 && (a < 1e-4 || a >= 1e16) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		return s
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// round rounds to a number of decimals, ties of the exact value to even.
func round(f float64, decimals int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', decimals, 64), 64)
	return r
}

// fixed writes a number with a number of decimals.
func fixed(f float64, decimals int) string { return strconv.FormatFloat(f, 'f', decimals, 64) }

// percent writes a share with a number of decimals and a percent sign.
func percent(f float64, decimals int) string { return fixed(f*100, decimals) + "%" }

// ratio divides whole numbers as Python does: the exact quotient, rounded once.
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

// fixedDigits writes a number with six digits, a point always among them.
func fixedDigits(f float64) string {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 6, 64), 64)
	return repr(v)
}
