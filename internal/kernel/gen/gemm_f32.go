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
	tileTiles  // below each other
	tileDoneA  // bytes of a that earlier tiles of the call used
	tileDoneC  //
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
	for _, kind := range []tileKind{fusedTile, exactTile} {
		for _, vecs := range []int{2, 1} {
			a.tilesBelow(ymm, 6, vecs, kind)
		}
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

// tileWriter writes one GEMM tile. It holds the shape of the tile and its registers.
type tileWriter struct {
	*asm
	w          width
	rows, vecs int
	numbers    wideTile
	short      bool // the second register has half as many columns
	wide       bool // one row by several panels
	exact      bool // multiply and add separately, each rounded
	placed     bool // each row of b has its own offset
	fetch      bool // fetch the results and the next b ahead
	whole      bool // the caller passes whole panels only
	unroll     int  // steps of a round, if a and b are contiguous

	b               []reg.VecPhysical
	spread, product reg.VecPhysical
	lie             rowPointers // of c, then of a, then of c again

	t, pb                                     reg.Register
	mask, stepA, stepB, fetched, seg, segs, k reg.GPVirtual
	offs, place, ahead, panel, panel3         reg.GPVirtual
}

// tile writes a GEMM tile whose sums stay in registers: up to 12 rows by one panel, up to 6 rows
// by two adjacent whole panels (vecs is 4), or one row by several panels (wide). It reads b once
// and broadcasts a from memory. In a short tile the second register has half as many columns.
func (a *asm) tile(w width, rows, vecs int, kind tileKind, numbers wideTile, short bool) {
	name, wide := tileName(w, rows, vecs, kind, numbers), numbers != ""
	if short {
		name = label("%s%dx1short%s", kind, rows, w.set)
	}
	if w == ymm512 {
		name = label("%s%dx1tiny%s", kind, rows, zmm.set)
	}
	a.function(name, "func(t *Tile)")
	s := &tileWriter{
		asm: a, w: w, rows: rows, vecs: vecs, numbers: numbers, short: short, wide: wide,
		exact: kind.exact(), placed: kind.placed(),
		fetch: !wide && !kind.placed(), whole: wide || vecs > 2,
		t: a.Load(a.Param("t"), a.GP64()),
	}
	s.allocate()
	s.startSums()
	s.loadFields()
	s.Label("segment")
	s.MOVQ(at(s.t, tileK), s.k)
	s.Label("step")
	if wide {
		s.wideStep()
	} else {
		s.panelStep()
	}
	s.nextStep()
	s.finish()
}

// tilesBelow writes a kernel of several tiles, one below the other, for rows of a and a panel of b
// that are contiguous. With few K steps it saves the start of each tile.
func (a *asm) tilesBelow(w width, rows, vecs int, kind tileKind) {
	a.function(label("%sTiles%dx%d%s", kind, rows, vecs, w.set), "func(t *Tile)")
	s := &tileWriter{
		asm: a, w: w, rows: rows, vecs: vecs, exact: kind.exact(), fetch: true, unroll: 4,
		t: a.Load(a.Param("t"), a.GP64()),
	}
	s.allocate()
	s.loadFields()
	s.Label("tile")
	s.startSums()
	s.setBases(tileA, tileRowA)
	s.MOVQ(at(s.t, tileB), s.pb)
	s.MOVQ(at(s.t, tileSegs), s.segs)
	s.Label("segment")
	s.MOVQ(at(s.t, tileK), s.k)
	s.SUBQ(operand.U8(uint8(s.unroll)), s.k)
	s.JLT(operand.LabelRef("rest"))
	s.Label("round")
	s.round(s.unroll)
	s.SUBQ(operand.U8(uint8(s.unroll)), s.k)
	s.JGE(operand.LabelRef("round"))
	s.Label("rest")
	s.ADDQ(operand.U8(uint8(s.unroll)), s.k)
	s.JZ(operand.LabelRef("segmentEnd"))
	s.Label("step")
	s.round(1)
	s.DECQ(s.k)
	s.JNZ(operand.LabelRef("step"))
	s.Label("segmentEnd")
	s.nextSegment()
	s.storeResults()
	for _, p := range []struct{ done, by int }{{tileDoneA, tileRowA}, {tileDoneC, tileRowC}} {
		s.IMUL3Q(operand.U8(uint8(rows)), at(s.t, p.by), s.k)
		s.ADDQ(s.k, at(s.t, p.done))
	}
	s.DECQ(at(s.t, tileTiles))
	s.JNZ(operand.LabelRef("tile"))
	s.VZEROUPPER()
	s.RET()
}

// round adds the products of some steps of contiguous rows.
func (s *tileWriter) round(steps int) {
	for u := range steps {
		for v := range s.vecs {
			s.VMOVUPS(at(s.pb, (2*u+v)*s.w.bytes()), s.b[v])
		}
		for r := range s.rows {
			s.VBROADCASTSS(s.lie.at(r, 4*u), s.spread)
			for v := range s.vecs {
				s.multiply(s.b[v], s.spread, s.sum(r, v))
			}
		}
		if u%2 == 0 {
			s.PREFETCHT1(at(s.ahead, 0))
			if steps > 1 {
				s.LEAQ(operand.Mem{Base: s.ahead, Index: s.fetched, Scale: 2}, s.ahead)
			} else {
				s.ADDQ(s.fetched, s.ahead)
			}
		}
	}
	for _, base := range s.lie.bases {
		s.ADDQ(operand.U8(uint8(4*steps)), base)
	}
	s.ADDQ(operand.U32(uint32(2*steps*s.w.bytes())), s.pb)
}

// allocate assigns the registers after those of the sums.
func (s *tileWriter) allocate() {
	free := s.rows * s.vecs
	s.b = make([]reg.VecPhysical, 2)
	if s.vecs > len(s.b) && !s.wide {
		s.b = make([]reg.VecPhysical, s.vecs)
	}
	for v := range s.b {
		s.b[v] = s.w.reg(free)
		free++
	}
	s.spread = s.w.reg(free)
	s.product = s.w.reg(min(free+1, s.w.regs-1))
	s.lie = rowPointers{a: s.asm, step: s.GP64(), step3: s.GP64()}
	s.mask = s.GP64()
}

// fit returns the part of register r that holds the columns of register v of a tile.
func (s *tileWriter) fit(r reg.VecPhysical, v int) reg.VecPhysical {
	if s.short && v == 1 {
		return halved(r)
	}
	return r
}

// sum returns the register of the sums of row r and register v.
func (s *tileWriter) sum(r, v int) reg.VecPhysical { return s.fit(s.w.reg(r*s.vecs+v), v) }

// setBases points the row pointers to the matrix whose address and row stride are the fields
// first and by.
func (s *tileWriter) setBases(first, by int) {
	s.MOVQ(at(s.t, by), s.lie.step)
	if s.rows > 3 {
		s.LEAQ(operand.Mem{Base: s.lie.step, Index: s.lie.step, Scale: 2}, s.lie.step3)
	}
	if s.lie.bases == nil {
		for range (s.rows + 3) / 4 {
			s.lie.bases = append(s.lie.bases, s.GP64())
		}
	}
	s.MOVQ(at(s.t, first), s.lie.bases[0])
	if s.unroll > 0 {
		// A pointer past the memory would mislead the garbage collector, so offsets move.
		s.ADDQ(at(s.t, map[int]int{tileA: tileDoneA, tileC: tileDoneC}[first]), s.lie.bases[0])
	}
	for i := 1; i < len(s.lie.bases); i++ {
		s.LEAQ(operand.Mem{Base: s.lie.bases[i-1], Index: s.lie.step, Scale: 4}, s.lie.bases[i])
	}
}

// loadMasks loads the masks of the columns, or their address without mask registers.
func (s *tileWriter) loadMasks() {
	if s.w.masks {
		s.MOVL(at(s.t, tileBits), s.mask.As32())
		s.KMOVD(s.mask.As32(), reg.K1)
		s.SHRL(operand.U8(16), s.mask.As32())
		s.KMOVD(s.mask.As32(), reg.K2)
		return
	}
	s.MOVQ(at(s.t, tileMask), s.mask)
}

// loadColumns loads register v of a row, masked where columns are missing.
func (s *tileWriter) loadColumns(m operand.Mem, v int, dst reg.VecPhysical, masked bool) {
	switch {
	case !masked:
		s.VMOVUPS(m, dst)
	case s.w.masks:
		s.VMOVUPS_Z(m, []reg.OpmaskPhysical{reg.K1, reg.K2}[v], dst)
	default:
		s.VMOVUPS(at(s.mask, 32*v), dst)
		s.VMASKMOVPS(m, dst, dst)
	}
}

// storeColumns stores register v of a row, masked where columns are missing. Without mask
// registers it overwrites product.
func (s *tileWriter) storeColumns(src reg.VecPhysical, v int, m operand.Mem, masked bool) {
	switch {
	case !masked:
		s.VMOVUPS(src, m)
	case s.w.masks:
		s.VMOVUPS(src, []reg.OpmaskPhysical{reg.K1, reg.K2}[v], m)
	default:
		s.VMOVUPS(at(s.mask, 32*v), s.product)
		s.VMASKMOVPS(src, s.product, m)
	}
}

// forColumns runs f for all columns, or masked if columns are missing. part is the prefix of its
// labels.
func (s *tileWriter) forColumns(part string, f func(masked bool)) {
	if s.whole {
		f(false) // the caller passes whole panels
		return
	}
	s.TESTL(operand.U32(flagMasked), at(s.t, tileFlags))
	s.JNZ(operand.LabelRef(part + "_masked"))
	f(false)
	s.JMP(operand.LabelRef(part + "_end"))
	s.Label(part + "_masked")
	s.loadMasks()
	f(true)
	s.Label(part + "_end")
}

// whenFlag writes the code of f so that it runs only if flag is set.
func (s *tileWriter) whenFlag(flag uint32, part string, f func()) {
	s.TESTL(operand.U32(flag), at(s.t, tileFlags))
	s.JZ(operand.LabelRef("no_" + part))
	f()
	s.Label("no_" + part)
}

// forEach runs f for each row and register of the tile.
func (s *tileWriter) forEach(f func(r, v int)) {
	for r := range s.rows {
		for v := range s.vecs {
			f(r, v)
		}
	}
}

// multiply adds x times y to sum.
func (s *tileWriter) multiply(x, y, sum reg.VecPhysical) {
	if s.exact {
		s.VMULPS(x, y, s.product)
		s.VADDPS(s.product, sum, sum)
		return
	}
	s.VFMADD231PS(x, y, sum)
}

// startSums sets the sums to zero, or to the earlier results with flagContinue.
func (s *tileWriter) startSums() {
	s.TESTL(operand.U32(flagContinue), at(s.t, tileFlags))
	s.JNZ(operand.LabelRef("continue"))
	s.forEach(func(r, v int) { s.zero(s.w, s.sum(r, v)) })
	if s.fetch {
		// Prefetch the results meanwhile: they may lie in as many pages as the tile has rows.
		s.setBases(tileC, tileRowC)
		for r := range s.rows {
			for off := 0; off < s.vecs*s.w.bytes(); off += 64 {
				s.PREFETCHT0(s.lie.at(r, off))
			}
		}
	}
	s.JMP(operand.LabelRef("begin"))
	s.Label("continue")
	s.setBases(tileC, tileRowC)
	s.forColumns("first", func(m bool) {
		s.forEach(func(r, v int) { s.loadColumns(s.lie.at(r, v*s.w.bytes()), v, s.sum(r, v), m) })
	})
	s.Label("begin")
}

// loadFields loads the pointers and strides of a and b, and the numbers of steps.
func (s *tileWriter) loadFields() {
	s.setBases(tileA, tileRowA)
	s.pb = s.Load(s.Param("t"), s.GP64())
	s.MOVQ(at(s.t, tileB), s.pb)
	// The strides are in registers: memory operands would use the load ports that read a.
	s.stepA, s.stepB, s.fetched, s.seg, s.segs, s.k = s.GP64(), s.GP64(), s.GP64(), s.GP64(), s.GP64(), s.GP64()
	s.MOVQ(at(s.t, tileStepA), s.stepA)
	s.offs, s.place, s.ahead = s.GP64(), s.GP64(), s.GP64()
	if s.placed {
		s.MOVQ(at(s.t, tileOffs), s.offs)
	} else {
		s.MOVQ(at(s.t, tileStepB), s.stepB)
	}
	if s.fetch {
		s.MOVQ(at(s.t, tileFetch), s.fetched)
		// Without a next address, fetch b itself: a zero address would be looked up each time.
		s.MOVQ(at(s.t, tileNext), s.ahead)
		s.TESTQ(s.ahead, s.ahead)
		s.CMOVQEQ(s.pb, s.ahead)
	}
	s.MOVQ(at(s.t, tileSegs), s.segs)
	s.panel, s.panel3 = s.GP64(), s.GP64()
	if s.wide {
		s.MOVQ(at(s.t, tilePanelB), s.panel)
		s.LEAQ(operand.Mem{Base: s.panel, Index: s.panel, Scale: 2}, s.panel3)
	}
	// seg leads from the end of a segment of a to the start of the next one.
	s.MOVQ(at(s.t, tileK), s.seg)
	s.IMULQ(s.stepA, s.seg)
	s.NEGQ(s.seg)
	s.ADDQ(at(s.t, tileSegA), s.seg)
}

// wideStep adds the products of one step for one row and several panels.
func (s *tileWriter) wideStep() {
	s.VBROADCASTSS(s.lie.at(0, 0), s.spread)
	for v := range s.vecs {
		m := operand.Mem{Base: s.pb, Disp: v % 2 * s.w.bytes()}
		if s.numbers != wideFloats {
			m.Disp /= 2
		}
		switch v / 2 {
		case 1:
			m.Index, m.Scale = s.panel, 1
		case 2:
			m.Index, m.Scale = s.panel, 2
		case 3:
			m.Index, m.Scale = s.panel3, 1
		}
		var x operand.Op = m
		switch s.numbers {
		case wideHalves:
			s.VCVTPH2PS(m, s.b[v%2])
			x = s.b[v%2]
		case wideBrains:
			s.VPMOVZXWD(m, s.b[v%2])
			s.VPSLLD(operand.U8(16), s.b[v%2], s.b[v%2])
			x = s.b[v%2]
		}
		if s.exact {
			s.VMULPS(x, s.spread, s.product)
			s.VADDPS(s.product, s.sum(0, v), s.sum(0, v))
		} else {
			s.VFMADD231PS(x, s.spread, s.sum(0, v))
		}
	}
}

// panelStep adds the products of one step for all rows.
func (s *tileWriter) panelStep() {
	if s.placed {
		s.MOVLQSX(at(s.offs, 0), s.place)
	}
	for v := range s.vecs {
		m := at(s.pb, v*s.w.bytes())
		if s.placed {
			m.Index, m.Scale = s.place, 4
		}
		s.VMOVUPS(m, s.fit(s.b[v], v))
	}
	for r := range s.rows {
		if s.exact && s.w.masks {
			// A broadcast inside the multiplication takes no cycle of the units that add.
			for v := range s.vecs {
				s.VMULPS_BCST(s.lie.at(r, 0), s.fit(s.b[v], v), s.fit(s.product, v))
				s.VADDPS(s.fit(s.product, v), s.sum(r, v), s.sum(r, v))
			}
			continue
		}
		s.VBROADCASTSS(s.lie.at(r, 0), s.spread)
		for v := range s.vecs {
			s.multiply(s.fit(s.b[v], v), s.fit(s.spread, v), s.sum(r, v))
		}
	}
}

// nextStep advances to the next step and, after the last one, to the next segment of a.
func (s *tileWriter) nextStep() {
	for _, base := range s.lie.bases {
		s.ADDQ(s.stepA, base)
	}
	if s.placed {
		s.ADDQ(operand.U32(4), s.offs)
	} else {
		s.ADDQ(s.stepB, s.pb)
	}
	if s.fetch {
		s.PREFETCHT1(at(s.ahead, 0))
		s.ADDQ(s.fetched, s.ahead)
	}
	s.DECQ(s.k)
	s.JNZ(operand.LabelRef("step"))
	s.nextSegment()
}

// nextSegment advances to the next segment of a.
func (s *tileWriter) nextSegment() {
	for _, base := range s.lie.bases {
		s.ADDQ(s.seg, base)
	}
	s.DECQ(s.segs)
	s.JNZ(operand.LabelRef("segment"))
}

// finish writes the results and returns.
func (s *tileWriter) finish() {
	s.storeResults()
	s.VZEROUPPER()
	s.RET()
}

// storeResults accumulates, adds the biases, clamps and writes the results.
func (s *tileWriter) storeResults() {
	s.setBases(tileC, tileRowC)
	s.whenFlag(flagAccumulate, "accumulate", func() {
		s.forColumns("accumulate", func(m bool) {
			s.forEach(func(r, v int) {
				if !m {
					s.VADDPS(s.lie.at(r, v*s.w.bytes()), s.sum(r, v), s.sum(r, v))
					return
				}
				s.loadColumns(s.lie.at(r, v*s.w.bytes()), v, s.fit(s.b[0], v), true)
				s.VADDPS(s.fit(s.b[0], v), s.sum(r, v), s.sum(r, v))
			})
		})
	})
	s.addBias()
	s.whenFlag(flagClamp, "clamp", func() {
		s.VBROADCASTSS(at(s.t, tileMin), s.b[0])
		s.VBROADCASTSS(at(s.t, tileMax), s.b[1])
		s.forEach(func(r, v int) {
			// With the sum last, a sum that is NaN stays.
			s.VMAXPS(s.sum(r, v), s.fit(s.b[0], v), s.sum(r, v))
			s.VMINPS(s.sum(r, v), s.fit(s.b[1], v), s.sum(r, v))
		})
	})
	s.forColumns("write", func(m bool) {
		s.forEach(func(r, v int) { s.storeColumns(s.sum(r, v), v, s.lie.at(r, v*s.w.bytes()), m) })
	})
}

// addBias adds the bias of each row and of each column, where present.
func (s *tileWriter) addBias() {
	bias := s.GP64()
	s.MOVQ(at(s.t, tileBiasM), bias)
	s.TESTQ(bias, bias)
	s.JZ(operand.LabelRef("no_rows"))
	for r := range s.rows {
		s.VBROADCASTSS(at(bias, 4*r), s.spread)
		for v := range s.vecs {
			s.VADDPS(s.fit(s.spread, v), s.sum(r, v), s.sum(r, v))
		}
	}
	s.Label("no_rows")
	s.MOVQ(at(s.t, tileBiasN), bias)
	s.TESTQ(bias, bias)
	s.JZ(operand.LabelRef("no_columns"))
	s.forColumns("columns", func(m bool) {
		for v := range s.vecs {
			s.loadColumns(at(bias, v*s.w.bytes()), v, s.fit(s.b[v%len(s.b)], v), m)
			for r := range s.rows {
				s.VADDPS(s.fit(s.b[v%len(s.b)], v), s.sum(r, v), s.sum(r, v))
			}
		}
	})
	s.Label("no_columns")
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
