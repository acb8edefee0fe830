// Package gcpolicy says for parts of a program how far the heap may grow before it is collected. The setting is the whole process's:
// parts that overlap, in whatever order they end, restore what stood before the first of them.
package gcpolicy

import (
	"runtime/debug"
	"slices"
	"sync"
)

// Off switches the collector off.
const Off = -1

var settings struct {
	sync.Mutex
	wanted []int // by the parts that have begun and not ended
	before int   // the percentage outside of all parts
	now    int   // the one that holds
}

// At lets the heap grow by so many percent at least, or with [Off] without bound, until restore is called. Calling that again does nothing.
// Of parts that overlap the one holds that lets it grow most.
func At(percent int) (restore func()) {
	settings.Lock()
	defer settings.Unlock()
	if len(settings.wanted) == 0 {
		settings.before, settings.now = debug.SetGCPercent(percent), percent
	}
	settings.wanted = append(settings.wanted, percent)
	settle()
	return sync.OnceFunc(func() {
		settings.Lock()
		defer settings.Unlock()
		i := slices.Index(settings.wanted, percent)
		settings.wanted = slices.Delete(settings.wanted, i, i+1)
		settle()
	})
}

// settle sets the percentage that is to hold, if it does not already: a change stops the whole process for a moment.
func settle() {
	most := settings.before
	for _, p := range settings.wanted {
		if p < 0 || most >= 0 && p > most {
			most = p
		}
	}
	if most != settings.now {
		settings.now = most
		debug.SetGCPercent(most)
	}
}
