package simd

import "testing"

// UseEmulated makes s, AVXVNNI or AMX, the current instruction set until undo is called. The
// emulator executes its products.
func UseEmulated(t *testing.T, s Set) (undo func()) {
	t.Helper()
	before := *ints[s]
	if s == AMX {
		ints[s].tiles = emulatedTiles(t, &amxLoops)
	} else {
		ints[s] = emulated(t, ints[s])
	}
	put := Use(s)
	return func() {
		put()
		ints[s] = &before
	}
}
