package simd

var windowKernels = family[Windows]{
	NEON: {
		Floats: NEON, Ints: NEON, floats: 4, every2: every2NEON,
		lanes: windowLanesNEON, spread: windowSpreadNEON, largest: windowLargestNEON, greatest: windowGreatestNEON, sum: windowSumNEON, copy: windowCopyNEON,
		Block: 8, intLanes: intLanesNEON, intSpread: intSpreadNEON,
	},
}
