// Package figures lists the figures of layers and bars for formats that write them by
// their keys, whatever they are.
package figures

import (
	"iter"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// OfBar walks the further figures of a bar by their keys; those that are not known
// are left out. The keys begin with "bar_", because the layer of the bar may have the
// same figure for all its bars.
func OfBar(l *timeline.Lane, bar int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, key := range slices.Sorted(maps.Keys(l.Figures)) {
			if column := l.Figures[key]; bar < len(column) && column[bar] != -1 && !yield("bar_"+key, column[bar]) {
				return
			}
		}
	}
}

// Stored lists the quantities that some layer of the profile has and that do not
// follow from others: what formats write at the bars of a layer.
func Stored(p *profile.Profile) []profile.Quantity {
	return slices.DeleteFunc(p.AllQuantities(), func(q profile.Quantity) bool {
		return q.Derived() || !slices.ContainsFunc(p.Layers, func(l profile.Layer) bool {
			_, ok := l.Value(q.Key)
			return ok
		})
	})
}

// Verb is how strconv writes a figure: whole ones in full.
func Verb(q *profile.Quantity) byte {
	if q.Whole {
		return 'f'
	}
	return 'g'
}
