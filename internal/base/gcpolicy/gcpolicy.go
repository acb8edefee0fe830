// Package gcpolicy sets the garbage collector's percentage (GOGC) for sections of a program. The
// setting applies to the whole process: overlapping sections, in whatever order they end, restore
// the value from before the first.
package gcpolicy

import (
	"runtime/debug"
	"slices"
	"sync"
)

// Off disables the garbage collector.
const Off = -1

var settings struct {
	sync.Mutex
	wanted []int // by the parts that have begun and not ended
	tight  int   // number of parts that want a small heap
	before int   // the percentage outside of all parts
	now    int   // the one that holds
}

// At lets the heap grow by at least this percentage, or with [Off] without limit, until restore
// is called. Calling restore again does nothing. Among overlapping sections the largest value
// applies.
func At(percent int) (restore func()) {
	settings.Lock()
	defer settings.Unlock()
	begin(percent)
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

// tightPercent is the percentage of sections that want a small heap.
const tightPercent = 40

// Tight keeps the heap small at the expense of time, until restore is called: for sections that
// hold much more than they produce garbage. [At] has precedence.
func Tight() (restore func()) {
	settings.Lock()
	defer settings.Unlock()
	begin(tightPercent)
	settings.tight++
	settle()
	return sync.OnceFunc(func() {
		settings.Lock()
		defer settings.Unlock()
		settings.tight--
		settle()
	})
}

// begin keeps the percentage outside of all parts before the first one.
func begin(percent int) {
	if len(settings.wanted) == 0 && settings.tight == 0 {
		settings.before, settings.now = debug.SetGCPercent(percent), percent
	}
}

// settle sets the effective percentage if it changed: a change stops the whole process for a
// moment.
func settle() {
	most := settings.before
	if settings.tight > 0 && (most < 0 || most > tightPercent) {
		most = tightPercent
	}
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
