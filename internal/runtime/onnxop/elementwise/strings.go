package elementwise

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// castStrings casts to or from strings.
func castStrings(out, in *tensor.Tensor, cv tensor.Conversion) error {
	if in.Type == tensor.String {
		if out.Type == tensor.String {
			copy(out.Strings, in.Strings)
			return nil
		}
		return parseStrings(out, in.Strings, cv)
	}
	n := out.Len()
	if !in.Type.IsFloat() {
		var ib [element.Block]int64
		for lo := 0; lo < n; lo += element.Block {
			b := ib[:min(element.Block, n-lo)]
			tensor.Read(b, in, lo)
			for i, v := range b {
				out.Strings[lo+i] = formatInt(in.Type, v)
			}
		}
		return nil
	}
	var fb [element.Block]float64
	for lo := 0; lo < n; lo += element.Block {
		b := fb[:min(element.Block, n-lo)]
		tensor.Read(b, in, lo)
		for i, v := range b {
			out.Strings[lo+i] = FormatFloat(in.Type, v)
		}
	}
	return nil
}

func formatInt(t tensor.Type, v int64) string {
	switch t {
	case tensor.Uint64:
		return strconv.FormatUint(uint64(v), 10)
	case tensor.Bool:
		if v != 0 {
			return "True"
		}
		return "False"
	}
	return strconv.FormatInt(v, 10)
}

// FormatFloat formats a number as NumPy does: the shortest digits that read back as the same
// value of the type, with a point, or in scientific notation below 1e-4 and from the magnitude on
// at which the type runs out of exact digits.
func FormatFloat(t tensor.Type, v float64) string {
	switch {
	case v != v:
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	digits, limit := shortest(t, v), 1e16
	switch t {
	case tensor.Float64:
	case tensor.Float32:
		limit = 1e6
	default:
		limit = 1e3
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= limit) {
		return digits
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return digits
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// shortest returns scientific notation with the fewest digits that distinguish v from its
// neighbours in type t.
func shortest(t tensor.Type, v float64) string {
	switch t {
	case tensor.Float64:
		return strconv.FormatFloat(v, 'e', -1, 64)
	case tensor.Float32:
		return strconv.FormatFloat(v, 'e', -1, 32)
	}
	one := tensor.New(t, 1)
	for p := 0; p < 9; p++ {
		s := strconv.FormatFloat(v, 'e', p, 64)
		f, _ := strconv.ParseFloat(s, 64)
		var back [1]float64
		tensor.WriteFloat64(one, 0, []float64{f}, tensor.Conversion{Saturate: true})
		tensor.Read(back[:], one, 0)
		if back[0] == v {
			return s
		}
	}
	return strconv.FormatFloat(v, 'e', -1, 32)
}

// parseStrings parses numbers, "INF", "NaN" and, for booleans, words.
func parseStrings(out *tensor.Tensor, src []string, cv tensor.Conversion) error {
	var fb [element.Block]float64
	var ib [element.Block]int64
	for lo := 0; lo < len(src); lo += element.Block {
		b := src[lo:min(lo+element.Block, len(src))]
		if out.Type.IsFloat() {
			for i, s := range b {
				f, err := parseFloat(s)
				if err != nil {
					return err
				}
				fb[i] = f
			}
			tensor.WriteFloat64(out, lo, fb[:len(b)], cv)
			continue
		}
		for i, s := range b {
			v, err := parseInt(out.Type, s)
			if err != nil {
				return err
			}
			ib[i] = v
		}
		tensor.WriteInt64(out, lo, ib[:len(b)])
	}
	return nil
}

func parseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return f, nil
}

func parseInt(t tensor.Type, s string) (int64, error) {
	s = strings.TrimSpace(s)
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, nil
	}
	if v, err := strconv.ParseUint(s, 10, 64); err == nil {
		return int64(v), nil
	}
	if t == tensor.Bool {
		if b, err := strconv.ParseBool(strings.ToLower(s)); err == nil {
			return int64(tensor.Truth(b)), nil
		}
	}
	f, err := parseFloat(s)
	if t == tensor.Bool {
		return int64(tensor.Truth(f != 0)), err
	}
	return tensor.Truncate(f), err
}
