package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.Tile, in bytes; a test there compares them.
const (
	tileA      = 8 * iota
	tileRowA   // of a
	tileStepA  //
	tileSegA   //
	tileK      //
	tileSegs   //
	tileB      //
	tileStepB  //
	tileC      //
	tileRowC   //
	tileBiasN  //
	tileBiasM  //
	tileMask   //
	tilePanelB //
	tileMin    // and Max
	tileBits   // and Flags
	tileOffs   // of rows of b
	tileNext   // what to fetch ahead
	tileFetch  // bytes of it a step
	tileMax    = tileMin + 4
	tileFlags  = tileBits + 4
)

// Bits of simd.Tile.Flags.
const (
	flagContinue = 1 << iota
	flagAccumulate
	flagClamp
	flagMasked
)

func floats(a *asm) {
	for _, w := range []width{ymm, zmm} {
		rows := 6
		if w == zmm {
			rows = 12
		}
		for _, kind := range []tileKind{fusedTile, exactTile, placedTile, exactPlacedTile} {
			for r := 1; r <= rows; r++ {
				a.tile(w, r, 2, kind, "", false)
			}
			for r := 1; kind != exactPlacedTile && r <= rows; r++ {
				a.tile(w, r, 1, kind, "", false)
			}
			for r := 1; w == zmm && kind.placed() && r <= rows/2; r++ {
				a.tile(w, r, 4, kind, "", false)
			}
			if kind == exactPlacedTile {
				continue // lines are long there
			}
			for r := 1; w == zmm && r <= rows; r++ {
				a.tile(w, r, 2, kind, "", true)
				a.tile(ymm512, r, 1, kind, "", false)
			}
			if kind != placedTile {
				for _, b := range []wideTile{wideFloats, wideHalves, wideBrains} {
					a.tile(w, 1, 8, kind, b, false)
				}
			}
		}
		a.gather(w)
		a.spread(w)
	}
}

// tileKind says how a tile adds up and where it finds b.
type tileKind string

const (
	fusedTile  tileKind = "fused"
	exactTile  tileKind = "exact"  // products and sums are rounded apart
	placedTile tileKind = "placed" // fused; each row of b lies at an offset of its own
	// exactPlacedTile is exact, and rows of b lie at offsets.
	exactPlacedTile tileKind = "exactPlaced"
)

func (k tileKind) exact() bool { return k == exactTile || k == exactPlacedTile }

func (k tileKind) placed() bool { return k == placedTile || k == exactPlacedTile }

// wideTile is a row by several panels of numbers of one kind; none for tiles of one panel of
// float32.
type wideTile string

const (
	wideFloats wideTile = "Wide"
	wideHalves wideTile = "WideHalf"  // float16
	wideBrains wideTile = "WideBrain" // bfloat16
)

func tileName(w width, rows, vecs int, kind tileKind, wide wideTile) string {
	if wide != "" {
		return label("%s%s%s", kind, wide, w.set)
	}
	return label("%s%dx%d%s", kind, rows, vecs, w.set)
}

// halved is the nearer half of a register.
func halved(r reg.VecPhysical) reg.VecPhysical { return r.AsY().(reg.VecPhysical) }

// tile writes the product of up to 12 rows by one panel, of up to 6 rows by two whole ones that
// lie side by side (vecs is 4), or of one row by several panels (wide). Sums stay in registers; b
// is read once, a is spread from memory. Of a short tile the second register has half as many
// columns.
func (a *asm) tile(w width, rows, vecs int, kind tileKind, numbers wideTile, short bool) {
	name, wide := tileName(w, rows, vecs, kind, numbers), numbers != ""
	if short {
		name = label("%s%dx1short%s", kind, rows, w.set)
	}
	if w == ymm512 {
		name = label("%s%dx1tiny%s", kind, rows, zmm.set)
	}
	// fit is the part of a register that holds columns of register v of a tile.
	fit := func(r reg.VecPhysical, v int) reg.VecPhysical {
		if short && v == 1 {
			return halved(r)
		}
		return r
	}
	exact, placed := kind.exact(), kind.placed()
	fetch, whole := !wide && !placed, wide || vecs > 2
	a.function(name, "func(t *Tile)")
	t := a.Load(a.Param("t"), a.GP64())

	sum := func(r, v int) reg.VecPhysical { return fit(w.reg(r*vecs+v), v) }
	free := rows * vecs
	b := make([]reg.VecPhysical, 2)
	if vecs > len(b) && !wide {
		b = make([]reg.VecPhysical, vecs)
	}
	for v := range b {
		b[v] = w.reg(free)
		free++
	}
	spread := w.reg(free)
	product := w.reg(min(free+1, w.regs-1))
	k1, k2 := reg.K1, reg.K2

	lie := rowPointers{a: a, step: a.GP64(), step3: a.GP64()}
	row := lie.at
	setBases := func(first, by int) {
		a.MOVQ(at(t, by), lie.step)
		if rows > 3 {
			a.LEAQ(operand.Mem{Base: lie.step, Index: lie.step, Scale: 2}, lie.step3)
		}
		if lie.bases == nil {
			for range (rows + 3) / 4 {
				lie.bases = append(lie.bases, a.GP64())
			}
		}
		a.MOVQ(at(t, first), lie.bases[0])
		for i := 1; i < len(lie.bases); i++ {
			a.LEAQ(operand.Mem{Base: lie.bases[i-1], Index: lie.step, Scale: 4}, lie.bases[i])
		}
	}
	mask := a.GP64()
	maskedLoads := func() {
		if w.masks {
			a.MOVL(at(t, tileBits), mask.As32())
			a.KMOVD(mask.As32(), k1)
			a.SHRL(operand.U8(16), mask.As32())
			a.KMOVD(mask.As32(), k2)
			return
		}
		a.MOVQ(at(t, tileMask), mask)
	}
	// load and store take a part of a register where columns are missing.
	load := func(m operand.Mem, v int, dst reg.VecPhysical, masked bool) {
		switch {
		case !masked:
			a.VMOVUPS(m, dst)
		case w.masks:
			a.VMOVUPS_Z(m, []reg.OpmaskPhysical{k1, k2}[v], dst)
		default:
			a.VMOVUPS(at(mask, 32*v), dst)
			a.VMASKMOVPS(m, dst, dst)
		}
	}
	store := func(src reg.VecPhysical, v int, m operand.Mem, masked bool) {
		switch {
		case !masked:
			a.VMOVUPS(src, m)
		case w.masks:
			a.VMOVUPS(src, []reg.OpmaskPhysical{k1, k2}[v], m)
		default:
			a.VMOVUPS(at(mask, 32*v), product)
			a.VMASKMOVPS(src, product, m)
		}
	}
	// masked runs f for all columns or for those that there are.
	masked := func(part string, f func(masked bool)) {
		if whole {
			f(false) // the caller gives whole panels
			return
		}
		a.TESTL(operand.U32(flagMasked), at(t, tileFlags))
		a.JNZ(operand.LabelRef(part + "_masked"))
		f(false)
		a.JMP(operand.LabelRef(part + "_end"))
		a.Label(part + "_masked")
		maskedLoads()
		f(true)
		a.Label(part + "_end")
	}
	// when runs f if a flag is set.
	when := func(flag uint32, part string, f func()) {
		a.TESTL(operand.U32(flag), at(t, tileFlags))
		a.JZ(operand.LabelRef("no_" + part))
		f()
		a.Label("no_" + part)
	}
	each := func(f func(r, v int)) {
		for r := range rows {
			for v := range vecs {
				f(r, v)
			}
		}
	}

	// Sums begin with nothing or with what is there.
	a.TESTL(operand.U32(flagContinue), at(t, tileFlags))
	a.JNZ(operand.LabelRef("continue"))
	each(func(r, v int) { a.zero(w, sum(r, v)) })
	if fetch {
		// Where results go is brought near meanwhile: they may lie in as many pages as there are
		// rows.
		setBases(tileC, tileRowC)
		for r := range rows {
			for off := 0; off < vecs*w.bytes(); off += 64 {
				a.PREFETCHT0(row(r, off))
			}
		}
	}
	a.JMP(operand.LabelRef("begin"))
	a.Label("continue")
	setBases(tileC, tileRowC)
	masked("first", func(m bool) {
		each(func(r, v int) { load(row(r, v*w.bytes()), v, sum(r, v), m) })
	})
	a.Label("begin")
	setBases(tileA, tileRowA)
	pb := a.Load(a.Param("t"), a.GP64())
	a.MOVQ(at(t, tileB), pb)
	// Whatever each step adds is in a register: operands in memory would use the load ports that
	// read a.
	stepA, stepB, fetched, seg, segs, k := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(at(t, tileStepA), stepA)
	offs, place, ahead := a.GP64(), a.GP64(), a.GP64()
	if placed {
		a.MOVQ(at(t, tileOffs), offs)
	} else {
		a.MOVQ(at(t, tileStepB), stepB)
	}
	if fetch {
		a.MOVQ(at(t, tileFetch), fetched)
		// Where there is nothing to fetch it is what is there already: an address of none is
		// looked up each time.
		a.MOVQ(at(t, tileNext), ahead)
		a.TESTQ(ahead, ahead)
		a.CMOVQEQ(pb, ahead)
	}
	a.MOVQ(at(t, tileSegs), segs)
	panel, panel3 := a.GP64(), a.GP64()
	if wide {
		a.MOVQ(at(t, tilePanelB), panel)
		a.LEAQ(operand.Mem{Base: panel, Index: panel, Scale: 2}, panel3)
	}
	// From the end of a segment of a to the beginning of the next one.
	a.MOVQ(at(t, tileK), seg)
	a.IMULQ(stepA, seg)
	a.NEGQ(seg)
	a.ADDQ(at(t, tileSegA), seg)

	a.Label("segment")
	a.MOVQ(at(t, tileK), k)
	a.Label("step")
	multiply := func(x, y, s reg.VecPhysical) {
		if exact {
			a.VMULPS(x, y, product)
			a.VADDPS(product, s, s)
			return
		}
		a.VFMADD231PS(x, y, s)
	}
	if wide {
		a.VBROADCASTSS(row(0, 0), spread)
		for v := range vecs {
			m := operand.Mem{Base: pb, Disp: v % 2 * w.bytes()}
			if numbers != wideFloats {
				m.Disp /= 2
			}
			switch v / 2 {
			case 1:
				m.Index, m.Scale = panel, 1
			case 2:
				m.Index, m.Scale = panel, 2
			case 3:
				m.Index, m.Scale = panel3, 1
			}
			var x operand.Op = m
			switch numbers {
			case wideHalves:
				a.VCVTPH2PS(m, b[v%2])
				x = b[v%2]
			case wideBrains:
				a.VPMOVZXWD(m, b[v%2])
				a.VPSLLD(operand.U8(16), b[v%2], b[v%2])
				x = b[v%2]
			}
			if exact {
				a.VMULPS(x, spread, product)
				a.VADDPS(product, sum(0, v), sum(0, v))
			} else {
				a.VFMADD231PS(x, spread, sum(0, v))
			}
		}
	} else {
		if placed {
			a.MOVLQSX(at(offs, 0), place)
		}
		for v := range vecs {
			m := at(pb, v*w.bytes())
			if placed {
				m.Index, m.Scale = place, 4
			}
			a.VMOVUPS(m, fit(b[v], v))
		}
		for r := range rows {
			if exact && w.masks {
				// Spreading in the product costs no turn of the units that add.
				for v := range vecs {
					a.VMULPS_BCST(row(r, 0), fit(b[v], v), fit(product, v))
					a.VADDPS(fit(product, v), sum(r, v), sum(r, v))
				}
				continue
			}
			a.VBROADCASTSS(row(r, 0), spread)
			for v := range vecs {
				multiply(fit(b[v], v), fit(spread, v), sum(r, v))
			}
		}
	}
	for _, base := range lie.bases {
		a.ADDQ(stepA, base)
	}
	if placed {
		a.ADDQ(operand.U32(4), offs)
	} else {
		a.ADDQ(stepB, pb)
	}
	if fetch {
		a.PREFETCHT1(at(ahead, 0))
		a.ADDQ(fetched, ahead)
	}
	a.DECQ(k)
	a.JNZ(operand.LabelRef("step"))
	for _, base := range lie.bases {
		a.ADDQ(seg, base)
	}
	a.DECQ(segs)
	a.JNZ(operand.LabelRef("segment"))

	setBases(tileC, tileRowC)
	when(flagAccumulate, "accumulate", func() {
		masked("accumulate", func(m bool) {
			each(func(r, v int) {
				if !m {
					a.VADDPS(row(r, v*w.bytes()), sum(r, v), sum(r, v))
					return
				}
				load(row(r, v*w.bytes()), v, fit(b[0], v), true)
				a.VADDPS(fit(b[0], v), sum(r, v), sum(r, v))
			})
		})
	})
	bias := a.GP64()
	a.MOVQ(at(t, tileBiasM), bias)
	a.TESTQ(bias, bias)
	a.JZ(operand.LabelRef("no_rows"))
	for r := range rows {
		a.VBROADCASTSS(at(bias, 4*r), spread)
		for v := range vecs {
			a.VADDPS(fit(spread, v), sum(r, v), sum(r, v))
		}
	}
	a.Label("no_rows")
	a.MOVQ(at(t, tileBiasN), bias)
	a.TESTQ(bias, bias)
	a.JZ(operand.LabelRef("no_columns"))
	masked("columns", func(m bool) {
		for v := range vecs {
			load(at(bias, v*w.bytes()), v, fit(b[v%len(b)], v), m)
			for r := range rows {
				a.VADDPS(fit(b[v%len(b)], v), sum(r, v), sum(r, v))
			}
		}
	})
	a.Label("no_columns")
	when(flagClamp, "clamp", func() {
		a.VBROADCASTSS(at(t, tileMin), b[0])
		a.VBROADCASTSS(at(t, tileMax), b[1])
		each(func(r, v int) {
			// With the sum last, a sum that is NaN stays.
			a.VMAXPS(sum(r, v), fit(b[0], v), sum(r, v))
			a.VMINPS(sum(r, v), fit(b[1], v), sum(r, v))
		})
	})
	masked("write", func(m bool) {
		each(func(r, v int) { store(sum(r, v), v, row(r, v*w.bytes()), m) })
	})
	a.VZEROUPPER()
	a.RET()
}

// gather writes n rows of a panel. A row is made of runs of neighbouring values, each
// copied as two whole registers: what is too much goes over to the next run or row,
// which is written later.
func (a *asm) gather(w width) {
	a.function("gather"+w.set, "func(dst, src *float32, offs *int32, n int, runs *int32, nruns int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	offs := a.Load(a.Param("offs"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	runs := a.Load(a.Param("runs"), a.GP64())
	nruns := a.Load(a.Param("nruns"), a.GP64())
	x, y, off := a.vec(w), a.vec(w), a.GP64()
	from, to, run, left := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.Label("row")
	a.MOVLQSX(operand.Mem{Base: offs}, off)
	a.LEAQ(operand.Mem{Base: src, Index: off, Scale: 4}, off)
	a.MOVQ(runs, run)
	a.MOVQ(nruns, left)
	a.Label("run")
	a.MOVLQSX(at(run, 0), from)
	a.MOVLQSX(at(run, 4), to)
	a.VMOVUPS(operand.Mem{Base: off, Index: from, Scale: 4}, x)
	a.VMOVUPS(operand.Mem{Base: off, Index: from, Scale: 4, Disp: w.bytes()}, y)
	a.VMOVUPS(x, operand.Mem{Base: dst, Index: to, Scale: 4})
	a.VMOVUPS(y, operand.Mem{Base: dst, Index: to, Scale: 4, Disp: w.bytes()})
	a.ADDQ(operand.U32(8), run)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("run"))
	a.ADDQ(operand.U32(4), offs)
	a.ADDQ(operand.U32(uint32(2*w.bytes())), dst)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// spread cuts n lines of panels·columns values into panels: line by line, because many
// lines at a time are more than the processor fetches ahead.
func (a *asm) spread(w width) {
	a.function("spread"+w.set, "func(dst *float32, panel int, src *float32, line, n, panels int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	panel := a.Load(a.Param("panel"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	line := a.Load(a.Param("line"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	panels := a.Load(a.Param("panels"), a.GP64())
	x, y := a.vec(w), a.vec(w)
	from, to, left := a.GP64(), a.GP64(), a.GP64()
	a.Label("line")
	a.MOVQ(src, from)
	a.MOVQ(dst, to)
	a.MOVQ(panels, left)
	a.Label("panel")
	a.VMOVUPS(at(from, 0), x)
	a.VMOVUPS(at(from, w.bytes()), y)
	a.VMOVUPS(x, at(to, 0))
	a.VMOVUPS(y, at(to, w.bytes()))
	a.ADDQ(operand.U32(uint32(2*w.bytes())), from)
	a.ADDQ(panel, to)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("panel"))
	a.ADDQ(line, src)
	a.ADDQ(operand.U32(uint32(2*w.bytes())), dst)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("line"))
	a.VZEROUPPER()
	a.RET()
}
