package main

import (
	"fmt"
	"strings"
)

// The assembler's library knows amd64 only: what arm64 has is written as text, in the
// syntax of Go's assembler. Instructions that it does not know are numbers, with their
// meaning beside them.

// arm builds one assembly file for arm64.
type arm struct {
	text  strings.Builder
	stubs stubs
}

// line writes an instruction.
func (a *arm) line(format string, args ...any) { fmt.Fprintf(&a.text, "\t"+format+"\n", args...) }

// label writes the target of a jump.
func (a *arm) label(name string) { fmt.Fprintf(&a.text, "\n%s:\n", name) }

// function begins a function with arguments of size bytes.
func (a *arm) function(name, sig string, size int) {
	a.stubs.add(name, sig)
	fmt.Fprintf(&a.text, "\n// func %s%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, strings.TrimPrefix(sig, "func"), name, size)
}

// vector writes an instruction on four float32 that the assembler does not know.
func (a *arm) vector(name string, code, m, n, d int) {
	a.line("WORD $0x%08X // %s V%d.4S, V%d.4S, V%d.4S", code|m<<16|n<<5|d, name, d, n, m)
}

// Arm Architecture Reference Manual, C7.2: FADD, FMUL, FMAX and FMIN (vector), of four
// single-precision numbers.
func (a *arm) add(m, n, d int)      { a.vector("FADD", 0x4E20D400, m, n, d) }
func (a *arm) multiply(m, n, d int) { a.vector("FMUL", 0x6E20DC00, m, n, d) }
func (a *arm) max(m, n, d int)      { a.vector("FMAX", 0x4E20F400, m, n, d) }
func (a *arm) min(m, n, d int)      { a.vector("FMIN", 0x4EA0F400, m, n, d) }

// list names registers V(first) on.
func list(first, n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("V%d.S4", first+i))
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// Registers of tiles. R16 to R18 and R26 to R30 belong to the system and to Go.
const (
	armTile  = "R0"
	armK     = "R1"
	armSegs  = "R2"
	armStepA = "R3"
	armStepB = "R4"
	armB     = "R5"
	armSeg   = "R6"
	armFlags = "R13"
	armStep  = "R14"
	armTmp   = "R15"
	armPanel = "R19"
	armSteps = "R20"
	armNext  = "R21"
)

// armRow points to row r.
func armRow(r int) string { return fmt.Sprintf("R%d", 7+r) }

func neonFloats(a *arm) {
	for _, exact := range []bool{false, true} {
		for _, vecs := range []int{4, 2} {
			for r := 1; r <= 6; r++ {
				a.tile(r, vecs, exact, false)
			}
		}
		a.tile(1, 16, exact, true)
	}
	a.gather()
	a.spread()
}

// tile writes the product of up to 6 rows by one panel of 16 columns, or by half of it, or
// of one row by four panels (wide); see the tile for amd64. All columns are there.
func (a *arm) tile(rows, vecs int, exact, wide bool) {
	kind := "fused"
	if exact {
		kind = "exact"
	}
	name := fmt.Sprintf("%s%dx%dNEON", kind, rows, vecs)
	if wide {
		name = kind + "WideNEON"
	}
	a.function(name, "func(t *Tile)", 8)
	a.line("MOVD t+0(FP), %s", armTile)
	a.line("MOVWU %d(%s), %s", tileFlags, armTile, armFlags)
	sum := func(r, v int) int { return r*vecs + v }
	b, one, product := 24, 28, 29
	bases := func(first, by int) {
		a.line("MOVD %d(%s), %s", first, armTile, armRow(0))
		a.line("MOVD %d(%s), %s", by, armTile, armStep)
		for r := 1; r < rows; r++ {
			a.line("ADD %s, %s, %s", armStep, armRow(r-1), armRow(r))
		}
	}
	// each moves the values of rows, four registers at a time.
	each := func(f func(r, v, n int, at string)) {
		for r := range rows {
			if vecs <= 4 {
				f(r, 0, vecs, armRow(r))
				continue
			}
			a.line("MOVD %s, %s", armRow(r), armTmp)
			for v := 0; v < vecs; v += 4 {
				f(r, v, 4, armTmp)
				if v+4 < vecs {
					a.line("ADD $64, %s, %s", armTmp, armTmp)
				}
			}
		}
	}
	a.line("TBZ $0, %s, zero", armFlags)
	bases(tileC, tileRowC)
	each(func(r, v, n int, at string) { a.line("VLD1 (%s), %s", at, list(sum(r, v), n)) })
	a.line("JMP begin")
	a.label("zero")
	for i := range rows * vecs {
		a.line("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	a.label("begin")
	bases(tileA, tileRowA)
	a.line("MOVD %d(%s), %s", tileStepA, armTile, armStepA)
	a.line("MOVD %d(%s), %s", tileStepB, armTile, armStepB)
	a.line("MOVD %d(%s), %s", tileB, armTile, armB)
	a.line("MOVD %d(%s), %s", tileSegs, armTile, armSegs)
	a.line("MOVD %d(%s), %s", tileK, armTile, armSteps)
	if wide {
		a.line("MOVD %d(%s), %s", tilePanelB, armTile, armPanel)
	}
	// From the end of a segment of a to the beginning of the next one.
	a.line("MOVD %d(%s), %s", tileSegA, armTile, armSeg)
	a.line("MUL %s, %s, %s", armStepA, armSteps, armTmp)
	a.line("SUB %s, %s, %s", armTmp, armSeg, armSeg)
	multiply := func(x, s int) {
		if exact {
			a.multiply(one, x, product)
			a.add(product, s, s)
			return
		}
		a.line("VFMLA V%d.S4, V%d.S4, V%d.S4", one, x, s)
	}
	a.label("segment")
	a.line("MOVD %s, %s", armSteps, armK)
	a.label("step")
	if wide {
		a.line("VLD1R.P (%s)(%s), [V%d.S4]", armRow(0), armStepA, one)
		a.line("MOVD %s, %s", armB, armNext)
		for p := range 4 {
			a.line("VLD1 (%s), %s", armNext, list(b, 4))
			if p < 3 {
				a.line("ADD %s, %s, %s", armPanel, armNext, armNext)
			}
			for v := range 4 {
				multiply(b+v, sum(0, 4*p+v))
			}
		}
		a.line("ADD %s, %s, %s", armStepB, armB, armB)
	} else {
		a.line("VLD1.P (%s)(%s), %s", armB, armStepB, list(b, vecs))
		for r := range rows {
			a.line("VLD1R.P (%s)(%s), [V%d.S4]", armRow(r), armStepA, one)
			for v := range vecs {
				multiply(b+v, sum(r, v))
			}
		}
	}
	a.line("SUBS $1, %s, %s", armK, armK)
	a.line("BNE step")
	for r := range rows {
		a.line("ADD %s, %s, %s", armSeg, armRow(r), armRow(r))
	}
	a.line("SUBS $1, %s, %s", armSegs, armSegs)
	a.line("BNE segment")

	bases(tileC, tileRowC)
	a.line("TBZ $1, %s, noaccumulate", armFlags)
	each(func(r, v, n int, at string) {
		a.line("VLD1 (%s), %s", at, list(b, n))
		for i := range n {
			a.add(b+i, sum(r, v+i), sum(r, v+i))
		}
	})
	a.label("noaccumulate")
	a.line("MOVD %d(%s), %s", tileBiasM, armTile, armTmp)
	a.line("CBZ %s, norows", armTmp)
	for r := range rows {
		a.line("VLD1R.P 4(%s), [V%d.S4]", armTmp, one)
		for v := range vecs {
			a.add(one, sum(r, v), sum(r, v))
		}
	}
	a.label("norows")
	a.line("MOVD %d(%s), %s", tileBiasN, armTile, armTmp)
	a.line("CBZ %s, nocolumns", armTmp)
	for v := 0; v < vecs; v += 4 {
		n := min(4, vecs-v)
		a.line("VLD1.P %d(%s), %s", 16*n, armTmp, list(b, n))
		for r := range rows {
			for i := range n {
				a.add(b+i, sum(r, v+i), sum(r, v+i))
			}
		}
	}
	a.label("nocolumns")
	a.line("TBZ $2, %s, noclamp", armFlags)
	a.line("ADD $%d, %s, %s", tileMin, armTile, armTmp)
	a.line("VLD1R.P 4(%s), [V%d.S4]", armTmp, b)
	a.line("VLD1R (%s), [V%d.S4]", armTmp, b+1)
	for i := range rows * vecs {
		a.max(b, i, i)
		a.min(b+1, i, i)
	}
	a.label("noclamp")
	each(func(r, v, n int, at string) { a.line("VST1 %s, (%s)", list(sum(r, v), n), at) })
	a.line("RET")
}

// gather writes n rows of a panel of 16 columns; see that for amd64.
func (a *arm) gather() {
	a.function("gatherNEON", "func(dst, src *float32, offs *int32, n int, runs *int32, nruns int)", 48)
	for i, name := range []string{"dst", "src", "offs", "n", "runs", "nruns"} {
		a.line("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
	a.label("row")
	a.line("MOVW.P 4(R2), R6")
	a.line("ADD R6<<2, R1, R6")
	a.line("MOVD R4, R7")
	a.line("MOVD R5, R8")
	a.label("run")
	a.line("MOVW.P 4(R7), R9")
	a.line("MOVW.P 4(R7), R10")
	a.line("ADD R9<<2, R6, R9")
	a.line("ADD R10<<2, R0, R10")
	a.line("VLD1 (R9), %s", list(0, 4))
	a.line("VST1 %s, (R10)", list(0, 4))
	a.line("SUBS $1, R8, R8")
	a.line("BNE run")
	a.line("ADD $64, R0, R0")
	a.line("SUBS $1, R3, R3")
	a.line("BNE row")
	a.line("RET")
}

// spread cuts n lines into panels of 16 columns; see that for amd64.
func (a *arm) spread() {
	a.function("spreadNEON", "func(dst *float32, panel int, src *float32, line, n, panels int)", 48)
	for i, name := range []string{"dst", "panel", "src", "line", "n", "panels"} {
		a.line("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
	a.label("line")
	a.line("MOVD R2, R6")
	a.line("MOVD R0, R7")
	a.line("MOVD R5, R8")
	a.label("panel")
	a.line("VLD1.P 64(R6), %s", list(0, 4))
	a.line("VST1 %s, (R7)", list(0, 4))
	a.line("ADD R1, R7, R7")
	a.line("SUBS $1, R8, R8")
	a.line("BNE panel")
	a.line("ADD R3, R2, R2")
	a.line("ADD $64, R0, R0")
	a.line("SUBS $1, R4, R4")
	a.line("BNE line")
	a.line("RET")
}
