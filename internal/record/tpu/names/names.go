// Package names contains the names of the numbers of Sophgo's runtime and driver for kinds of
// layers and for calls.
package names

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// Kind is a list of names.
type Kind string

// The lists.
const (
	Layer    Kind = "layer"    // layers of the compiler's log
	Firmware Kind = "firmware" // layers that the firmware runs
	Copy     Kind = "copy"     // copies that the firmware makes
	CPU      Kind = "cpu"      // layers that the computer runs
	Call     Kind = "call"     // functions of the driver
)

// names.txt has a line for each name. A number before a name is its number. Others count on.
//
//go:embed names.txt
var text string

var lists = sync.OnceValue(func() map[Kind]map[uint64]string {
	out := map[Kind]map[uint64]string{}
	var now map[uint64]string
	var next uint64
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			now, next = map[uint64]string{}, 0
			out[Kind(strings.TrimSuffix(name, "]"))] = now
			continue
		}
		if number, name, ok := strings.Cut(line, " "); ok {
			next, _ = strconv.ParseUint(number, 10, 64)
			line = name
		}
		now[next] = line
		next++
	}
	return out
})

// Of returns the name of a number, for unknown numbers the kind with the number.
func Of(k Kind, n uint64) string {
	if s, ok := lists()[k][n]; ok {
		return s
	}
	return string(k) + " " + strconv.FormatUint(n, 10)
}
