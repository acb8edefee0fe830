package simd

import "testing"

// UseEmulated makes s, AVXVNNI or AMX, the current instruction set until undo is called. The
// emulator executes its products.
func UseEmulated(t *testing.T, s Set) (undo func()) {
	t.Helper()
	before := *intKernels[s]
	if s == AMX {
		intKernels[s].matrixTiles = emulatedTiles(t, &amxKernels)
	} else {
		intKernels[s] = emulated(t, intKernels[s])
	}
	put := Use(s)
	return func() {
		put()
		intKernels[s] = &before
	}
}
