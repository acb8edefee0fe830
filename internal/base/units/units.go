// Package units parses the units of quantities in target files and flags.
package units

import "strings"

// Unit is a unit that may follow a number, with its factor.
type Unit struct {
	Suffix string
	Factor float64
}

// Units of sizes and frequencies, longer ones before their suffixes.
var (
	Bytes = []Unit{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}
	Hertz = []Unit{{"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}, {"Hz", 1}}
)

// Cut removes the unit from a text and returns the number, without spaces around it, in multiples
// of factor. Without a known unit ok is false and factor 1.
func Cut(text string, among []Unit) (number string, factor float64, ok bool) {
	for _, u := range among {
		if rest, found := strings.CutSuffix(text, u.Suffix); found {
			return strings.TrimSpace(rest), u.Factor, true
		}
	}
	return text, 1, false
}
