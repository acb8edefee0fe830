package blocks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// maxLevels is how many numbers of a name may number blocks: two in "layers.3/experts.7/up".
const maxLevels = 3

// byName returns units of layers whose names have the same number at a level, from 0, and which are
// equal in any order. Names that number operators of a kind do not number blocks.
func byName(body profile.Layers, signs []int, level int) []unit {
	var order []string
	at := map[string][]int{}
	for i, l := range body {
		prefixes := prefixesOf(l)
		if level >= len(prefixes) {
			continue
		}
		p := prefixes[level]
		if at[p] == nil {
			order = append(order, p)
		}
		at[p] = append(at[p], i)
	}
	var units []unit
	known := map[string]int{}
	for _, p := range order {
		block := at[p]
		if len(block) < 2 {
			continue
		}
		sorting.Stable(block, func(a, b int) int { return cmp.Or(signs[a]-signs[b], a-b) })
		key := strings.TrimRight(p, "0123456789")
		for _, i := range block {
			key += " " + strconv.Itoa(signs[i])
		}
		n, ok := known[key]
		if !ok {
			n = len(units)
			known[key], units = n, append(units, nil)
		}
		units[n] = append(units[n], block)
	}
	units = slices.DeleteFunc(units, func(u unit) bool { return len(u) < 2 })
	for _, u := range units {
		byFirst(u)
	}
	return units
}

// byFirst puts the places of a unit in the order of its first block.
func byFirst(u unit) {
	order := make([]int, len(u[0]))
	for k := range order {
		order[k] = k
	}
	sorting.Stable(order, func(a, b int) int { return u[0][a] - u[0][b] })
	for n, block := range u {
		sorted := make([]int, len(block))
		for k, from := range order {
			sorted[k] = block[from]
		}
		u[n] = sorted
	}
}

// prefixesOf lists the beginnings of the path of a layer up to each part that ends in a number:
// "layers.0" and "layers.0/experts.1" of "layers.0/experts.1/up". The path is the name, else the
// scope.
func prefixesOf(l *profile.Layer) []string {
	for _, path := range []string{l.Name, l.Scope} {
		var out []string
		for i := 1; i < len(path) && len(out) < maxLevels; i++ {
			if (path[i] == '/' || path[i] == '.') && digit(path[i-1]) {
				out = append(out, path[:i])
			}
		}
		if out != nil {
			return out
		}
	}
	return nil
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// numbersOf returns the numbers in the name of a layer, "" for none.
func numbersOf(l *profile.Layer) string {
	name := cmp.Or(l.Name, l.Scope)
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' }), ".")
}
