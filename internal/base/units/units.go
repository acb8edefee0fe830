// Package units has the units in which people write quantities, in target files and
// behind flags alike.
package units

import "strings"

// Unit is what may stand behind a number, with its factor.
type Unit struct {
	Suffix string
	Factor float64
}

// Units of sizes and frequencies, longer ones before those that end alike.
var (
	Bytes = []Unit{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}
	Hertz = []Unit{{"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}, {"Hz", 1}}
)

// Cut takes the unit off a text: what is left is the number, without spaces around it,
// in multiples of factor. Without one of the units ok is false and factor 1.
func Cut(text string, among []Unit) (number string, factor float64, ok bool) {
	for _, u := range among {
		if rest, found := strings.CutSuffix(text, u.Suffix); found {
			return strings.TrimSpace(rest), u.Factor, true
		}
	}
	return text, 1, false
}
