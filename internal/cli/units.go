package cli

import (
	"slices"
	"strconv"

	"github.com/opmeter/opmeter/internal/base/units"
)

// sizes are those of flags: bytes where no unit is named.
var sizes = slices.Concat(units.Bytes, []units.Unit{{Suffix: "", Factor: 1}})

// quantity reads a positive number with a unit; want says in words what a flag
// takes.
func quantity(flag, text, want string, among []units.Unit) (float64, error) {
	if n, factor, ok := units.Cut(text, among); ok {
		if v, err := strconv.ParseFloat(n, 64); err == nil && v > 0 && v*factor <= 1<<53 {
			return v * factor, nil
		}
	}
	return 0, useError("--%s %q: write %s", flag, text, want)
}
