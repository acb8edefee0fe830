package main

import "fmt"

// three writes an instruction that the assembler does not know, with registers m and n in and d
// out.
func (a *arm) three(name string, code, m, n, d int) {
	a.line("WORD $0x%08X // %s V%d, V%d, V%d", code|m<<16|n<<5|d, name, d, n, m)
}

// two writes an instruction that the assembler does not know, with register n in and d out.
func (a *arm) two(name string, code, n, d int) {
	a.line("WORD $0x%08X // %s V%d, V%d", code|n<<5|d, name, d, n)
}

// upper makes an instruction take the upper halves of its narrow registers.
const upper = 1 << 30

// Arm Architecture Reference Manual, C7.2, by name; numbers have 32 bits unless the comment says
// otherwise.
func (a *arm) sdot(m, n, d int)     { a.three("SDOT", 0x4E809400, m, n, d) }
func (a *arm) smmla(m, n, d int)    { a.three("SMMLA", 0x4E80A400, m, n, d) }
func (a *arm) sshl(m, n, d int)     { a.three("SSHL", 0x4EA04400, m, n, d) }
func (a *arm) srshl(m, n, d int)    { a.three("SRSHL", 0x4EA05400, m, n, d) }
func (a *arm) sqadd(m, n, d int)    { a.three("SQADD", 0x4EA00C00, m, n, d) }
func (a *arm) sqrdmulh(m, n, d int) { a.three("SQRDMULH", 0x6EA0B400, m, n, d) }
func (a *arm) smax(m, n, d int)     { a.three("SMAX", 0x4EA06400, m, n, d) }
func (a *arm) smin(m, n, d int)     { a.three("SMIN", 0x4EA06C00, m, n, d) }
func (a *arm) neg(n, d int)         { a.two("NEG", 0x6EA0B800, n, d) }
func (a *arm) signs(n, d int)       { a.two("SSHR $31,", 0x4F210400, n, d) }
func (a *arm) sxtl(half, n, d int)  { a.two("SXTL", 0x0F08A400|half, n, d) } // 8 to 16 bits
func (a *arm) xtn16(half, n, d int) { a.two("XTN", 0x0E612800|half, n, d) }  // 32 to 16 bits
func (a *arm) xtn8(n, d int)        { a.two("XTN", 0x0E212800, n, d) }       // 16 to 8 bits

// smlal multiplies four 16-bit values by number i of m, one of the first 16 registers.
func (a *arm) smlal(half, m, i, n, d int) {
	a.three(fmt.Sprintf("SMLAL %d of", i), 0x0F402000|half|i&1<<20|i>>1&1<<21, m, n, d)
}

// listOf names n registers V(first) on with an arrangement.
func listOf(first, n int, kind string) string {
	s := "["
	for i := range n {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("V%d.%s", first+i, kind)
	}
	return s + "]"
}

// armStart points to what sums begin with.
const armStart = "R19"

func neonBytes(a *arm) {
	for _, kind := range []intKind{narrow, wide} {
		for r := 1; r <= 6; r++ {
			a.pairTile(r, kind)
		}
	}
	for _, kind := range []intKind{quads, turned, half} {
		for r := 1; r <= 6; r++ {
			a.dotTile(r, kind)
			a.matrixTile(r, kind)
		}
	}
	a.widen(true)
	a.widen(false)
	a.gatherPairs()
	a.gatherQuads(4)
	a.gatherQuads(8)
	a.requantise()
	a.lookup()
}

// rowsOf points to rows that begin at field first and lie field by apart.
func (a *arm) rowsOf(rows, first, by int) {
	a.line("MOVD %d(%s), %s", first, armTile, armRow(0))
	a.line("MOVD %d(%s), %s", by, armTile, armStep)
	for r := 1; r < rows; r++ {
		a.line("ADD %s, %s, %s", armStep, armRow(r-1), armRow(r))
	}
}

// intProduct writes what the products of integers by a panel of 16 columns share: sums come from
// the result or begin anew, a step after the other is added to them, they are stored. A segment
// has K steps of 4 bytes.
func (a *arm) intProduct(name string, rows int, load, begin, segment, store func()) {
	a.function(name, "func(t *IntTile)", 8)
	a.line("MOVD t+0(FP), %s", armTile)
	a.line("MOVD %d(%s), %s", intFlags, armTile, armFlags)
	a.line("CBZ %s, anew", armFlags)
	a.rowsOf(rows, intC, intRowC)
	load()
	a.line("JMP begin")
	a.label("anew")
	a.line("MOVD %d(%s), %s", intStart, armTile, armStart)
	begin()
	a.label("begin")
	a.rowsOf(rows, intA, intRowA)
	a.line("MOVD %d(%s), %s", intB, armTile, armB)
	a.line("MOVD %d(%s), %s", intSegs, armTile, armSegs)
	a.line("MOVD %d(%s), %s", intK, armTile, armSteps)
	// From the end of a segment of a to the beginning of the next one.
	a.line("MOVD %d(%s), %s", intSegA, armTile, armSeg)
	a.line("SUB %s<<2, %s, %s", armSteps, armSeg, armSeg)
	a.label("segment")
	segment()
	for r := range rows {
		a.line("ADD %s, %s, %s", armSeg, armRow(r), armRow(r))
	}
	a.line("SUBS $1, %s, %s", armSegs, armSegs)
	a.line("BNE segment")
	a.rowsOf(rows, intC, intRowC)
	store()
	a.line("RET")
}

// steps repeats f for each step of a segment.
func (a *arm) steps(f func()) {
	a.line("MOVD %s, %s", armSteps, armK)
	a.label("step")
	f()
	a.line("SUBS $1, %s, %s", armK, armK)
	a.line("BNE step")
}

// pairTile writes the product of rows of pairs of 16-bit numbers by a panel of pairs of 8-bit
// (narrow) or 16-bit ones.
func (a *arm) pairTile(rows int, kind intKind) {
	sum := func(r int) int { return 8 + 4*r }
	const one = 4
	each := func(f func(r int)) func() {
		return func() {
			for r := range rows {
				f(r)
			}
		}
	}
	a.intProduct(fmt.Sprintf("%s%dNEON", kind, rows), rows,
		each(func(r int) { a.line("VLD1 (%s), %s", armRow(r), list(sum(r), 4)) }),
		func() {
			for i := range 4 * rows {
				a.line("VEOR V%d.B16, V%d.B16, V%d.B16", 8+i, 8+i, 8+i)
			}
		},
		func() {
			a.steps(func() {
				// The first numbers of the pairs of 8 columns in V0, the second in V1, those of
				// the other columns in V2 and V3.
				if kind == wide {
					a.line("VLD2.P 32(%s), %s", armB, listOf(0, 2, "H8"))
					a.line("VLD2.P 32(%s), %s", armB, listOf(2, 2, "H8"))
				} else {
					a.line("VLD2.P 32(%s), %s", armB, listOf(0, 2, "B16"))
					a.sxtl(upper, 0, 2)
					a.sxtl(upper, 1, 3)
					a.sxtl(0, 0, 0)
					a.sxtl(0, 1, 1)
				}
				for r := range rows {
					a.line("VLD1R.P 4(%s), [V%d.S4]", armRow(r), one)
					for i := range 2 {
						for v := range 4 {
							a.smlal(upper*(v%2), one, i, v/2*2+i, sum(r)+v)
						}
					}
				}
			})
		},
		each(func(r int) { a.line("VST1 %s, (%s)", list(sum(r), 4), armRow(r)) }))
}

// dotTile writes the product of rows of fours of 8-bit numbers with a sign by a panel of them.
func (a *arm) dotTile(rows int, kind intKind) {
	vecs := 4
	name := fmt.Sprintf("%s%dNEONDot", kind, rows)
	if kind == half {
		vecs, kind = 2, turned
	}
	const b, one = 24, 28
	each := func(f func(r int)) func() {
		return func() {
			for r := range rows {
				f(r)
			}
		}
	}
	a.intProduct(name, rows,
		each(func(r int) { a.line("VLD1 (%s), %s", armRow(r), list(r*vecs, vecs)) }),
		each(func(r int) {
			if kind == quads {
				a.line("VLD1 (%s), %s", armStart, list(r*vecs, vecs))
				return
			}
			a.line("VLD1R.P 4(%s), [V%d.S4]", armStart, r*vecs)
			for v := 1; v < vecs; v++ {
				a.line("VMOV V%d.B16, V%d.B16", r*vecs, r*vecs+v)
			}
		}),
		func() {
			a.line("MOVD $64, %s", armStepB)
			a.steps(func() {
				a.line("VLD1.P (%s)(%s), %s", armB, armStepB, list(b, vecs))
				for r := range rows {
					a.line("VLD1R.P 4(%s), [V%d.S4]", armRow(r), one)
					for v := range vecs {
						a.sdot(one, b+v, r*vecs+v)
					}
				}
			})
		},
		each(func(r int) { a.line("VST1 %s, (%s)", list(r*vecs, vecs), armRow(r)) }))
}

// matrixTile is dotTile with products of two rows of eight numbers by two columns. The panel has
// for two fours the eights of all columns, and for the last four of an odd number the fours. A
// register of sums has two of a row, then two of the next one; what stands for a row that is
// absent is never stored.
func (a *arm) matrixTile(rows int, kind intKind) {
	vecs := 4 // of four columns
	name := fmt.Sprintf("%s%dI8MM", kind, rows)
	if kind == half {
		vecs, kind = 2, turned
	}
	pairs := (rows + 1) / 2
	sum := func(p, j int) int { return p*2*vecs + j }
	const b, x, zero = 24, 28, 31
	eachRow := func(p int, f func(r, i int)) {
		for i := range min(2, rows-2*p) {
			f(2*p+i, i)
		}
	}
	a.intProduct(name, rows,
		func() {
			for p := range pairs {
				eachRow(p, func(r, i int) { a.line("VLD1 (%s), %s", armRow(r), list(b+4*i, vecs)) })
				for v := range vecs {
					a.line("VZIP1 V%d.D2, V%d.D2, V%d.D2", b+4+v, b+v, sum(p, 2*v))
					a.line("VZIP2 V%d.D2, V%d.D2, V%d.D2", b+4+v, b+v, sum(p, 2*v+1))
				}
			}
		},
		func() {
			for p := range pairs {
				if kind == turned {
					eachRow(p, func(_, i int) { a.line("VLD1R.P 4(%s), [V%d.S4]", armStart, b+i) })
					a.line("VZIP1 V%d.D2, V%d.D2, V%d.D2", b+1, b, sum(p, 0))
				}
				for j := range 2 * vecs {
					switch {
					case kind == quads && p == 0:
						a.line("VLD1R.P 8(%s), [V%d.D2]", armStart, sum(p, j))
					case kind == quads:
						a.line("VMOV V%d.B16, V%d.B16", sum(0, j), sum(p, j))
					case j > 0:
						a.line("VMOV V%d.B16, V%d.B16", sum(p, 0), sum(p, j))
					}
				}
			}
		},
		func() {
			a.line("LSR $1, %s, %s", armSteps, armK)
			a.line("CBZ %s, last", armK)
			a.label("step")
			for p := range pairs {
				eachRow(p, func(r, i int) { a.line("VLD1.P 8(%s), V%d.D[%d]", armRow(r), x+p, i) })
			}
			for h := range 2 {
				if h == 1 && vecs == 2 {
					a.line("ADD $64, %s, %s", armB, armB)
					break
				}
				a.line("VLD1.P 64(%s), %s", armB, list(b, 4))
				for p := range pairs {
					for j := range 4 {
						a.smmla(b+j, x+p, sum(p, 4*h+j))
					}
				}
			}
			a.line("SUBS $1, %s, %s", armK, armK)
			a.line("BNE step")
			a.label("last")
			a.line("TBZ $0, %s, even", armSteps)
			a.line("VEOR V%d.B16, V%d.B16, V%d.B16", zero, zero, zero)
			for p := range pairs {
				eachRow(p, func(r, i int) { a.line("VLD1.P 4(%s), V%d.S[%d]", armRow(r), x+p, 2*i) })
			}
			// Columns have zeros for the other four, so that it does not matter what the rows have.
			for v := range vecs {
				a.line("VLD1.P 16(%s), [V%d.S4]", armB, b)
				a.line("VZIP1 V%d.S4, V%d.S4, V%d.S4", zero, b, b+1)
				a.line("VZIP2 V%d.S4, V%d.S4, V%d.S4", zero, b, b+2)
				for p := range pairs {
					a.smmla(b+1, x+p, sum(p, 2*v))
					a.smmla(b+2, x+p, sum(p, 2*v+1))
				}
			}
			if vecs == 2 {
				a.line("ADD $32, %s, %s", armB, armB)
			}
			a.label("even")
		},
		func() {
			for p := range pairs {
				for v := range vecs {
					a.line("VZIP1 V%d.D2, V%d.D2, V%d.D2", sum(p, 2*v+1), sum(p, 2*v), b+v)
					a.line("VZIP2 V%d.D2, V%d.D2, V%d.D2", sum(p, 2*v+1), sum(p, 2*v), b+4+v)
				}
				eachRow(p, func(r, i int) { a.line("VST1 %s, (%s)", list(b+4*i, vecs), armRow(r)) })
			}
		})
}

// widen writes the differences of n 8-bit numbers to a zero point, n a multiple of 16, as 16-bit
// numbers.
func (a *arm) widen(signed bool) {
	name := "widenUint8NEON"
	if signed {
		name = "widenInt8NEON"
	}
	a.function(name, "func(dst *int16, src *byte, n int, zero int16)", 26)
	a.line("MOVD dst+0(FP), R0")
	a.line("MOVD src+8(FP), R1")
	a.line("MOVD n+16(FP), R2")
	a.line("MOVH zero+24(FP), R3")
	a.line("VDUP R3, V3.H8")
	a.label("step")
	a.line("VLD1.P 16(R1), [V0.B16]")
	if signed {
		a.sxtl(0, 0, 1)
		a.sxtl(upper, 0, 2)
	} else {
		a.line("VUXTL V0.B8, V1.H8")
		a.line("VUXTL2 V0.B16, V2.H8")
	}
	a.line("VSUB V3.H8, V1.H8, V1.H8")
	a.line("VSUB V3.H8, V2.H8, V2.H8")
	a.line("VST1.P %s, 32(R0)", listOf(1, 2, "H8"))
	a.line("SUBS $16, R2, R2")
	a.line("BNE step")
	a.line("RET")
}

// gatherPairs is gather for rows of pairs of 16-bit numbers; see that for amd64.
func (a *arm) gatherPairs() {
	a.function("gatherPairsNEON", "func(dst, src *int16, offs *int32, n int, runs *int32, nruns int)", 48)
	for i, name := range []string{"dst", "src", "offs", "n", "runs", "nruns"} {
		a.line("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
	a.label("row")
	for i := range 2 {
		a.line("MOVW.P 4(R2), R%d", 6+i)
		a.line("ADD R%d<<1, R1, R%d", 6+i, 6+i)
	}
	a.line("MOVD R4, R8")
	a.line("MOVD R5, R9")
	a.label("run")
	a.line("MOVW.P 4(R8), R10")
	a.line("MOVW.P 4(R8), R11")
	a.line("ADD R11<<2, R0, R11")
	for i := range 2 {
		a.line("ADD R10<<1, R%d, R12", 6+i)
		a.line("VLD1.P 16(R12), [V%d.H8]", i)
		a.line("VLD1 (R12), [V%d.H8]", 2+i)
	}
	a.line("VST2.P %s, 32(R11)", listOf(0, 2, "H8"))
	a.line("VST2 %s, (R11)", listOf(2, 2, "H8"))
	a.line("SUBS $1, R9, R9")
	a.line("BNE run")
	a.line("ADD $64, R0, R0")
	a.line("SUBS $1, R3, R3")
	a.line("BNE row")
	a.line("RET")
}

// gatherQuads is gather for rows of fours of 8-bit numbers; with 8 taps for rows of two fours,
// and the last of an odd number alone, as matrixTile reads them.
func (a *arm) gatherQuads(taps int) {
	name := "gatherQuadsNEONDot"
	if taps == 8 {
		name = "gatherQuadsI8MM"
	}
	a.function(name, "func(dst, src *byte, offs *int32, n int, runs *int32, nruns int)", 48)
	for i, name := range []string{"dst", "src", "offs", "n", "runs", "nruns"} {
		a.line("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
	const run, left, from, to, tmp = "R19", "R20", "R21", "R22", "R23"
	rows := func(taps int) {
		end := fmt.Sprint(taps)
		a.label("row" + end)
		if taps == 8 {
			a.line("CMP $2, R3")
			a.line("BLT last")
		}
		for i := range taps {
			a.line("MOVW.P 4(R2), R%d", 6+i)
			a.line("ADD R1, R%d, R%d", 6+i, 6+i)
		}
		a.line("MOVD R4, %s", run)
		a.line("MOVD R5, %s", left)
		a.label("run" + end)
		a.line("MOVW.P 4(%s), %s", run, from)
		a.line("MOVW.P 4(%s), %s", run, to)
		a.line("ADD %s<<%d, R0, %s", to, taps/8+2, to)
		for i := range taps {
			a.line("ADD %s, R%d, %s", from, 6+i, tmp)
			a.line("VLD1 (%s), [V%d.B16]", tmp, i)
		}
		if taps == 4 {
			a.line("VST4 %s, (%s)", listOf(0, 4, "B16"), to)
		} else {
			for i := range 4 {
				a.line("VZIP1 V%d.B16, V%d.B16, V%d.B16", 2*i+1, 2*i, 16+i)
				a.line("VZIP2 V%d.B16, V%d.B16, V%d.B16", 2*i+1, 2*i, 20+i)
			}
			a.line("VST4.P %s, 64(%s)", listOf(16, 4, "H8"), to)
			a.line("VST4 %s, (%s)", listOf(20, 4, "H8"), to)
		}
		a.line("SUBS $1, %s, %s", left, left)
		a.line("BNE run%s", end)
		a.line("ADD $%d, R0, R0", 16*taps)
		a.line("SUB $%d, R3, R3", taps/4)
	}
	if taps == 8 {
		rows(8)
		a.line("JMP row8")
		a.label("last")
		a.line("CBZ R3, done")
	}
	rows(4)
	a.line("CBNZ R3, row4")
	a.label("done")
	a.line("RET")
}

// requantise turns rows of 32-bit sums into 8-bit values, eight channels at a time; see that for
// amd64.
func (a *arm) requantise() {
	a.function("requantiseNEON", "func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, mul, up, down, bias *int32, zero, lo, hi int32)", 92)
	for i, name := range []string{"dst", "stepDst", "sums", "stepSums", "rows", "n", "mul", "up", "down", "bias"} {
		a.line("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
	for i, name := range []string{"zero", "lo", "hi"} {
		a.line("MOVW %s+%d(FP), R10", name, 80+4*i)
		a.line("VDUP R10, V%d.S4", 29+i)
	}
	const zero, lo, hi = 29, 30, 31
	const mul, up, down, bias = 16, 18, 20, 22
	a.label("channels")
	for i, first := range []int{mul, up, down, bias} {
		a.line("VLD1.P 32(R%d), %s", 6+i, list(first, 2))
	}
	a.neg(down, down)
	a.neg(down+1, down+1)
	a.line("MOVD R0, R10")
	a.line("MOVD R2, R11")
	a.line("MOVD R4, R12")
	a.label("row")
	a.line("VLD1 (R11), %s", list(0, 2))
	for i := range 2 {
		a.line("VADD V%d.S4, V%d.S4, V%d.S4", bias+i, i, i)
		a.sshl(up+i, i, i)
		a.sqrdmulh(mul+i, i, i)
		// What shifts to the right rounds ties up: negative ones lose one before, so that theirs
		// go away from zero.
		a.line("VAND V%d.B16, V%d.B16, V%d.B16", down+i, i, 2+i)
		a.signs(2+i, 2+i)
		a.sqadd(2+i, i, i)
		a.srshl(down+i, i, i)
		a.line("VADD V%d.S4, V%d.S4, V%d.S4", zero, i, i)
		a.smax(lo, i, i)
		a.smin(hi, i, i)
	}
	a.xtn16(0, 0, 0)
	a.xtn16(upper, 1, 0)
	a.xtn8(0, 0)
	a.line("VST1 [V0.B8], (R10)")
	a.line("ADD R1, R10, R10")
	a.line("ADD R3, R11, R11")
	a.line("SUBS $1, R12, R12")
	a.line("BNE row")
	a.line("ADD $8, R0, R0")
	a.line("ADD $32, R2, R2")
	a.line("SUBS $8, R5, R5")
	a.line("BNE channels")
	a.line("RET")
}
