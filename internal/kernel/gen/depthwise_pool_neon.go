package main

import "fmt"

// smlalAll multiplies four 16-bit values each and adds the products to sums of 32 bits.
func (a *arm) smlalAll(half, m, n, d int) { a.three("SMLAL", 0x0E608000|half, m, n, d) }

// Registers of windows.
const (
	winT      = "R0"
	winDst    = "R1"
	winSrc    = "R2"
	winPlaces = "R3"
	winCol    = "R4"
	winLeft   = "R5"
	winAt     = "R6"
	winW      = "R7"
	winOffs   = "R8"
	winTaps   = "R9"
	winBase   = "R10"
	winFlags  = "R11"
	winStep   = "R12"
	winTmp    = "R13"
)

func neonWindows(a *arm) {
	for kind := range kindNames {
		a.window(kind)
	}
	a.intWindow(false)
	a.intWindow(true)
	a.every2()
}

// limits keeps V(x) between V9 and V10: NaN stays. V15 is lost.
func (a *arm) limits(x int) {
	a.fcmgt(x, 9, 15)
	a.bit(15, 9, x)
	a.fcmgt(10, x, 15)
	a.bit(15, 10, x)
}

// windowWalk carries out body for each place and advances to the next one.
func (a *arm) windowWalk(body func()) {
	a.line("MOVD t+0(FP), %s", winT)
	a.line("MOVD %d(%s), %s", windowDst, winT, winDst)
	a.line("MOVD %d(%s), %s", windowSrc, winT, winSrc)
	a.line("MOVD %d(%s), %s", windowPlaces, winT, winPlaces)
	a.label("place")
	body()
	a.line("MOVD %d(%s), %s", windowStepDst, winT, winTmp)
	a.line("ADD %s, %s, %s", winTmp, winDst, winDst)
	a.line("MOVD %d(%s), %s", windowStepSrc, winT, winTmp)
	a.line("ADD %s, %s, %s", winTmp, winSrc, winSrc)
	a.line("SUBS $1, %s, %s", winPlaces, winPlaces)
	a.line("BNE place")
	a.line("RET")
}

// window writes a walk of windows: at each place the taps are taken in order, for 16 values, for
// 4, and for each one that is left.
func (a *arm) window(kind int) {
	a.function(kindNames[kind]+"NEON", "func(t *Window)", 8)
	a.line("MOVD t+0(FP), %s", winT)
	for i, field := range []int{windowMin, windowMax} {
		a.line("ADD $%d, %s, %s", field, winT, winTmp)
		a.line("VLD1R (%s), [V%d.S4]", winTmp, 9+i)
	}
	a.line("MOVD $0xFF800000, %s", winTmp) // minus infinity
	a.line("VDUP %s, V11.S4", winTmp)
	a.line("MOVWU %d(%s), %s", windowFlags, winT, winFlags)
	a.line("MOVD %d(%s), %s", windowStepW, winT, winStep)
	a.windowWalk(func() {
		a.line("MOVD $0, %s", winCol)
		a.line("MOVD %d(%s), %s", windowN, winT, winLeft)
		for _, values := range []int{16, 4, 1} {
			name := fmt.Sprintf("of%d", values)
			a.label(name)
			a.line("CMP $%d, %s", values, winLeft)
			a.line("BLT after%d", values)
			a.windowPart(kind, name, values)
			a.line("ADD $%d, %s, %s", 4*values, winCol, winCol)
			a.line("SUB $%d, %s, %s", values, winLeft, winLeft)
			a.line("JMP %s", name)
			a.label(fmt.Sprintf("after%d", values))
		}
	})
}

// windowPart computes 16, 4 or 1 values of a place.
func (a *arm) windowPart(kind int, name string, values int) {
	vecs := max(1, values/4)
	const spread, value = 8, 4
	load := func(at string, first int) {
		if values == 1 {
			a.line("FMOVS (%s), F%d", at, first)
			return
		}
		a.line("VLD1 (%s), %s", at, list(first, vecs))
	}
	each := func(f func(v int)) {
		for v := range vecs {
			f(v)
		}
	}
	a.line("MOVD %d(%s), %s", windowOffs, winT, winOffs)
	a.line("MOVD %d(%s), %s", windowTaps, winT, winTaps)
	a.line("ADD %s, %s, %s", winCol, winSrc, winBase)
	a.line("MOVD %d(%s), %s", windowW, winT, winW)
	if kind == kindLanes {
		a.line("ADD %s, %s, %s", winCol, winW, winW)
	}
	switch kind {
	case kindLanes, kindSum:
		each(func(v int) { a.line("VEOR V%d.B16, V%d.B16, V%d.B16", v, v, v) })
	case kindSpread:
		a.line("MOVD %d(%s), %s", windowBias, winT, winAt)
		each(func(v int) { a.line("VLD1R (%s), [V%d.S4]", winAt, v) })
	case kindLargest, kindGreatest:
		each(func(v int) { a.line("VMOV V11.B16, V%d.B16", v) })
	}
	a.label(name + "tap")
	a.line("MOVD.P 8(%s), %s", winOffs, winAt)
	a.line("ADD %s, %s, %s", winBase, winAt, winAt)
	if kind == kindCopy {
		load(winAt, 0)
	} else {
		load(winAt, value)
	}
	switch kind {
	case kindLanes:
		load(winW, 16)
		a.line("ADD %s, %s, %s", winStep, winW, winW)
		each(func(v int) {
			a.multiply(16+v, value+v, value+v)
			a.add(value+v, v, v)
		})
	case kindSpread:
		a.line("VLD1R.P 4(%s), [V%d.S4]", winW, spread)
		each(func(v int) { a.line("VFMLA V%d.S4, V%d.S4, V%d.S4", spread, value+v, v) })
	case kindSum:
		each(func(v int) { a.add(value+v, v, v) })
	case kindLargest:
		// The value if it is larger, else the earlier maximum, as a loop with > does.
		each(func(v int) {
			a.fcmgt(v, value+v, 15)
			a.bit(15, value+v, v)
		})
	case kindGreatest:
		each(func(v int) { a.max(value+v, v, v) })
	}
	a.line("SUBS $1, %s, %s", winTaps, winTaps)
	a.line("BNE %stap", name)
	if kind == kindLanes {
		a.line("MOVD %d(%s), %s", windowBias, winT, winW)
		a.line("CBZ %s, %snobias", winW, name)
		a.line("ADD %s, %s, %s", winCol, winW, winW)
		load(winW, value)
		each(func(v int) { a.add(value+v, v, v) })
		a.label(name + "nobias")
	}
	switch kind {
	case kindLargest, kindGreatest:
		each(a.limits)
	case kindCopy:
	default:
		a.line("TBZ $2, %s, %sfree", winFlags, name)
		each(a.limits)
		a.label(name + "free")
	}
	a.line("ADD %s, %s, %s", winCol, winDst, winAt)
	if values == 1 {
		a.line("FMOVS F0, (%s)", winAt)
		return
	}
	a.line("VST1 %s, (%s)", list(0, vecs), winAt)
}

// intWindow writes a walk of windows over 16-bit numbers in blocks of 8; see that for amd64.
func (a *arm) intWindow(spread bool) {
	name := "intLanesNEON"
	if spread {
		name = "intSpreadNEON"
	}
	a.function(name, "func(t *IntWindow)", 8)
	a.windowWalk(func() {
		a.line("MOVD %s, %s", winSrc, winBase)
		a.line("MOVD %s, %s", winDst, winCol)
		a.line("MOVD %d(%s), %s", windowW, winT, winW)
		a.line("MOVD %d(%s), %s", windowN, winT, winLeft)
		a.label("block")
		if spread {
			a.line("MOVD %d(%s), %s", windowW, winT, winW)
		}
		a.line("VEOR V0.B16, V0.B16, V0.B16")
		a.line("VEOR V1.B16, V1.B16, V1.B16")
		a.line("MOVD %d(%s), %s", windowOffs, winT, winOffs)
		a.line("MOVD %d(%s), %s", windowTaps, winT, winTaps)
		a.label("pair")
		if spread {
			a.line("VLD1R.P 4(%s), [V4.S4]", winW)
		} else {
			a.line("VLD2.P 32(%s), %s", winW, listOf(4, 2, "H8"))
		}
		for i := range 2 {
			a.line("MOVD.P 8(%s), %s", winOffs, winAt)
			a.line("ADD %s, %s, %s", winBase, winAt, winAt)
			a.line("VLD1 (%s), [V%d.H8]", winAt, 2+i)
			for half := range 2 {
				if spread {
					a.smlal(upper*half, 4, i, 2+i, half)
				} else {
					a.smlalAll(upper*half, 4+i, 2+i, half)
				}
			}
		}
		a.line("SUBS $1, %s, %s", winTaps, winTaps)
		a.line("BNE pair")
		a.line("VST1.P %s, 32(%s)", list(0, 2), winCol)
		a.line("ADD $16, %s, %s", winBase, winBase)
		a.line("SUBS $1, %s, %s", winLeft, winLeft)
		a.line("BNE block")
	})
}

// every2 copies every other value of lines: 4 at a time while more than those are left, since the
// neighbour of the last one may not be there.
func (a *arm) every2() {
	p := a.element("every2", "func(dst *float32, stepDst int, src *float32, stepSrc, n, lines int, in, out *int32)")
	a.pointers(p, "dst", "stepDst", "src", "stepSrc", "n", "lines")
	a.label("line")
	a.line("MOVD R0, R6")
	a.line("MOVD R2, R7")
	a.line("MOVD R4, R8")
	a.label("four")
	a.line("CMP $4, R8")
	a.line("BLE one")
	a.line("VLD2.P 32(R7), %s", list(0, 2))
	a.line("VST1.P %s, 16(R6)", list(0, 1))
	a.line("SUB $4, R8, R8")
	a.line("JMP four")
	a.label("one")
	a.line("FMOVS.P 8(R7), F0")
	a.line("FMOVS.P F0, 4(R6)")
	a.line("SUBS $1, R8, R8")
	a.line("BNE one")
	a.line("ADD R1, R0, R0")
	a.line("ADD R3, R2, R2")
	a.line("SUBS $1, R5, R5")
	a.line("BNE line")
	a.line("RET")
}
