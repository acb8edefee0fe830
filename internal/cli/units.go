package cli

import (
	"strconv"
	"strings"
)

// unit is what may stand behind a number, with its factor.
type unit struct {
	name   string
	factor float64
}

// Units of flags, longer names before those that end alike.
var (
	sizes = []unit{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}
	hertz = []unit{{"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}, {"Hz", 1}, {"", 1}}
)

// quantity reads a positive number with a unit; want says in words what a flag
// takes.
func quantity(flag, text, want string, units []unit) (float64, error) {
	for _, u := range units {
		n, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
		if err != nil || !(v > 0) || v*u.factor > 1<<53 {
			break
		}
		return v * u.factor, nil
	}
	return 0, useError("--%s %q: write %s", flag, text, want)
}
