package profile

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ShapeText writes a shape as "1x3x32x32", "scalar", or "?" where not even the rank
// is known; single dimensions that are not known are "?".
func ShapeText(d []int64) string {
	switch {
	case d == nil:
		return "?"
	case len(d) == 0:
		return "scalar"
	}
	s := make([]string, len(d))
	for i, v := range d {
		s[i] = strconv.FormatInt(v, 10)
		if v < 0 {
			s[i] = "?"
		}
	}
	return strings.Join(s, "x")
}

// DeclaredText writes the shape that the file declares for an input with open
// dimensions, by their names where those are for people: "batch x 3 x height x width",
// or "?x3x?x?". It is "" for other tensors.
func (t *Tensor) DeclaredText() string {
	if t.Declared == nil {
		return ""
	}
	name := func(i int) string {
		if i < len(t.DimNames) && t.Declared[i] < 0 && readable(t.DimNames[i]) {
			return t.DimNames[i]
		}
		return ""
	}
	s := make([]string, len(t.Declared))
	named := false
	for i, v := range t.Declared {
		switch {
		case name(i) != "":
			s[i], named = name(i), true
		case v < 0:
			s[i] = "?"
		default:
			s[i] = strconv.FormatInt(v, 10)
		}
	}
	if named {
		return strings.Join(s, " x ")
	}
	return strings.Join(s, "x")
}

// readable reports whether somebody chose the name of a dimension: exporters number
// those that no one named.
func readable(name string) bool {
	if name == "" || utf8.RuneCountInString(name) > 40 || strings.HasPrefix(name, "unk") {
		return false
	}
	return !slices.ContainsFunc([]rune(name), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-+* ", r))
	})
}
