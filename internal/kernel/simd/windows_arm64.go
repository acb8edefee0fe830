package simd

var windows = family[Windows]{
	NEON: {
		Floats: NEON, Ints: NEON, floats: 4, every2: every2NEON,
		lanes: windowLanesNEON, spread: windowSpreadNEON, largest: windowLargestNEON, greatest: windowGreatestNEON, sum: windowSumNEON, copy: windowCopyNEON,
		Block: 8, intLanes: intLanesNEON, intSpread: intSpreadNEON,
	},
}

//go:noescape
func windowLanesNEON(t *Window)

//go:noescape
func windowSpreadNEON(t *Window)

//go:noescape
func windowLargestNEON(t *Window)

//go:noescape
func windowGreatestNEON(t *Window)

//go:noescape
func windowSumNEON(t *Window)

//go:noescape
func windowCopyNEON(t *Window)

//go:noescape
func intLanesNEON(t *IntWindow)

//go:noescape
func intSpreadNEON(t *IntWindow)

//go:noescape
func every2NEON(dst *float32, stepDst int, src *float32, stepSrc, n, lines int, in, out *int32)
