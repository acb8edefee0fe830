package main

import "strings"

// Arm Architecture Reference Manual, C7.2, by name; of four single-precision numbers unless the
// comment says otherwise.
func (a *arm) fsub(m, n, d int)   { a.three("FSUB", 0x4EA0D400, m, n, d) }
func (a *arm) fdiv(m, n, d int)   { a.three("FDIV", 0x6E20FC00, m, n, d) }
func (a *arm) fmaxnm(m, n, d int) { a.three("FMAXNM", 0x4E20C400, m, n, d) }
func (a *arm) fminnm(m, n, d int) { a.three("FMINNM", 0x4EA0C400, m, n, d) }
func (a *arm) fcmgt(m, n, d int)  { a.three("FCMGT", 0x6EA0E400, m, n, d) }
func (a *arm) fcmeq(m, n, d int)  { a.three("FCMEQ", 0x4E20E400, m, n, d) }
func (a *arm) faddp(m, n, d int)  { a.three("FADDP", 0x6E20D400, m, n, d) }
func (a *arm) bit(m, n, d int)    { a.three("BIT", 0x6EA01C00, m, n, d) }
func (a *arm) bic(m, n, d int)    { a.three("BIC", 0x4E601C00, m, n, d) }
func (a *arm) frinta(n, d int)    { a.two("FRINTA", 0x6E218800, n, d) }
func (a *arm) fcvtns(n, d int)    { a.two("FCVTNS", 0x4E21A800, n, d) }
func (a *arm) fcvtas(n, d int)    { a.two("FCVTAS", 0x4E21C800, n, d) }
func (a *arm) scvtf(n, d int)     { a.two("SCVTF", 0x4E21D800, n, d) }
func (a *arm) fminv(n, d int)     { a.two("FMINV", 0x6EB0F800, n, d) }
func (a *arm) fmaxv(n, d int)     { a.two("FMAXV", 0x6E30F800, n, d) }

// 16-bit values.
func (a *arm) cmgt16(m, n, d int)    { a.three("CMGT", 0x4E603400, m, n, d) }
func (a *arm) cmeq16(n, d int)       { a.two("CMEQ $0,", 0x4E609800, n, d) }
func (a *arm) cmlt16(n, d int)       { a.two("CMLT $0,", 0x4E60A800, n, d) }
func (a *arm) fcvtl(half, n, d int)  { a.two("FCVTL", 0x0E217800|half, n, d) }
func (a *arm) fcvtn(half, n, d int)  { a.two("FCVTN", 0x0E216800|half, n, d) }
func (a *arm) sxtl16(half, n, d int) { a.two("SXTL", 0x0F10A400|half, n, d) }
func (a *arm) uxtl16(half, n, d int) { a.two("UXTL", 0x2F10A400|half, n, d) }
func (a *arm) uxtl(half, n, d int)   { a.two("UXTL", 0x2F08A400|half, n, d) }

// Of 16 8-bit values without a sign; those with one lack bit 29.
const (
	armMax8   = 0x6E206400
	armMin8   = 0x6E206C00
	armNoSign = 1 << 29
)

// armParam is a parameter or the result of a function: where it lies.
type armParam struct {
	kind string
	at   int
}

// element begins a function and says where its parameters lie; results are named ret.
func (a *arm) element(name, sig string) map[string]armParam {
	params, at := map[string]armParam{}, 0
	place := func(name, kind string) {
		size := map[string]int{"float32": 4, "int32": 4, "uint16": 2}[kind]
		if size == 0 {
			size = 8
		}
		at = (at + size - 1) / size * size
		params[name] = armParam{kind, at}
		at += size
	}
	in, out, _ := strings.Cut(strings.TrimPrefix(sig, "func("), ")")
	var names []string
	for part := range strings.SplitSeq(in, ", ") {
		name, kind, ok := strings.Cut(part, " ")
		names = append(names, name)
		if !ok {
			continue
		}
		for _, n := range names {
			place(n, kind)
		}
		names = nil
	}
	if out = strings.Trim(out, " ()"); out != "" {
		at = (at + 7) / 8 * 8
		result, kind, named := strings.Cut(out, ", ")
		if !named {
			place("ret", result)
		} else {
			second, kind, _ := strings.Cut(kind, " ")
			place(result, kind)
			place(second, kind)
		}
	}
	a.function(name+"NEON", sig, at)
	return params
}

// pointers loads parameters of 8 bytes into R0 and following.
func (a *arm) pointers(p map[string]armParam, names ...string) {
	for i, name := range names {
		a.line("MOVD %s+%d(FP), R%d", name, p[name].at, i)
	}
}

// spreadParams loads parameters into all lanes of V(first) on.
func (a *arm) spreadParams(p map[string]armParam, first int, names ...string) {
	for i, name := range names {
		v := first + i
		switch p[name].kind {
		case "float32":
			a.line("FMOVS %s+%d(FP), F%d", name, p[name].at, v)
			a.line("VDUP V%d.S[0], V%d.S4", v, v)
		case "uint16":
			a.line("MOVHU %s+%d(FP), R9", name, p[name].at)
			a.line("VDUP R9, V%d.H8", v)
		default:
			a.line("MOVW %s+%d(FP), R9", name, p[name].at)
			a.line("VDUP R9, V%d.S4", v)
		}
	}
}

// loop repeats body, which does each of the n numbers in R(n), and returns.
func (a *arm) loop(n, each int, body func()) {
	a.label("step")
	body()
	a.line("SUBS $%d, R%d, R%d", each, n, n)
	a.line("BNE step")
}

func neonElements(a *arm) {
	a.arithmetic()
	a.clamp()
	a.scaling()
	a.extent()
	a.nibbles()
	a.dot()
	a.dotNibbles()
	a.halves()
	for _, name := range []string{"quantise", "quantiseAway", "rescale"} {
		a.codes(name)
	}
	for _, signed := range []bool{false, true} {
		a.bytes(signed)
		a.combine(signed, false)
		a.combine(signed, true)
	}
	a.turn()
}

// arithmetic writes the four operations of two vectors, or of a vector and a number.
func (a *arm) arithmetic() {
	types := map[string]string{"VV": "dst, a, b *float32", "VS": "dst, a *float32, b float32", "SV": "dst *float32, a float32, b *float32"}
	for _, o := range []struct {
		name  string
		op    func(m, n, d int)
		kinds []string
	}{
		{"add", a.add, []string{"VV", "VS"}},
		{"sub", a.fsub, []string{"VV", "SV"}},
		{"mul", a.multiply, []string{"VV", "VS"}},
		{"div", a.fdiv, []string{"VV", "VS", "SV"}},
	} {
		for _, kind := range o.kinds {
			p := a.element(o.name+kind, "func("+types[kind]+", n int)")
			x, y := []int{0, 1}, []int{2, 3}
			a.line("MOVD dst+0(FP), R0")
			a.line("MOVD n+%d(FP), R3", p["n"].at)
			for i, name := range []string{"a", "b"} {
				if kind[i] == 'V' {
					a.line("MOVD %s+%d(FP), R%d", name, p[name].at, 1+i)
				} else {
					a.spreadParams(p, 4, name)
					*[]*[]int{&x, &y}[i] = []int{4, 4}
				}
			}
			a.loop(3, 8, func() {
				for i := range 2 {
					if kind[i] == 'V' {
						a.line("VLD1.P 32(R%d), %s", 1+i, list(2*i, 2))
					}
				}
				for i := range 2 {
					o.op(y[i], x[i], i)
				}
				a.line("VST1.P %s, 32(R0)", list(0, 2))
			})
			a.line("RET")
		}
	}
}

// each writes a function that turns numbers into others, with parameters in V16 and following.
func (a *arm) each(name, params string, names []string, f func(x int)) {
	p := a.element(name, "func(dst, src *float32, n int, "+params+" float32)")
	a.pointers(p, "dst", "src", "n")
	a.spreadParams(p, 16, names...)
	a.loop(2, 8, func() {
		a.line("VLD1.P 32(R1), %s", list(0, 2))
		f(0)
		f(1)
		a.line("VST1.P %s, 32(R0)", list(0, 2))
	})
	a.line("RET")
}

// clamp takes the limit where it is greater, or less: NaN stays.
func (a *arm) clamp() {
	a.each("clamp", "lo, hi, plus", []string{"lo", "hi", "plus"}, func(x int) {
		a.fcmgt(x, 16, 4+x)
		a.bit(4+x, 16, x)
		a.fcmgt(17, x, 4+x)
		a.bit(4+x, 17, x)
		a.add(18, x, x)
	})
}

func (a *arm) scaling() {
	a.each("scale", "s, t", []string{"s", "t"}, func(x int) {
		a.multiply(16, x, x)
		a.add(17, x, x)
	})
	a.each("roundAway", "mul, lo, hi", []string{"mul", "lo", "hi"}, func(x int) {
		a.multiply(16, x, x)
		a.frinta(x, x)
		a.fmaxnm(17, x, x)
		a.fminnm(18, x, x)
	})
}

func (a *arm) extent() {
	p := a.element("extent", "func(src *float32, n int) (least, most float32)")
	a.pointers(p, "src", "n")
	a.line("VLD1 (R0), %s", list(2, 1))
	a.line("VMOV V2.B16, V3.B16")
	a.loop(1, 8, func() {
		a.line("VLD1.P 32(R0), %s", list(0, 2))
		for i := range 2 {
			a.min(i, 2, 2)
			a.max(i, 3, 3)
		}
	})
	a.fminv(2, 2)
	a.fmaxv(3, 3)
	a.line("FMOVS F2, least+%d(FP)", p["least"].at)
	a.line("FMOVS F3, most+%d(FP)", p["most"].at)
	a.line("RET")
}

// halvesOf splits 8 bytes in V(x) into their lower halves, in x, and their upper ones, in x+1;
// V15 has 15s.
func (a *arm) halvesOf(x int) {
	a.line("VUSHR $4, V%d.B16, V%d.B16", x, x+1)
	a.line("VAND V15.B16, V%d.B16, V%d.B16", x, x)
}

// floatsOf widens 8 bytes, without a sign, in V(x) to floats in V(to) and V(to+1).
func (a *arm) floatsOf(x, to int) {
	a.uxtl(0, x, x)
	a.uxtl16(upper, x, to+1)
	a.uxtl16(0, x, to)
	a.scvtf(to, to)
	a.scvtf(to+1, to+1)
}

func (a *arm) nibbles() {
	p := a.element("nibbles", "func(dst *float32, src *byte, n int, zero, scale float32)")
	a.pointers(p, "dst", "src", "n")
	a.spreadParams(p, 16, "zero", "scale")
	a.line("VMOVI $15, V15.B16")
	a.loop(2, 16, func() {
		a.line("VLD1.P 8(R1), [V0.B8]")
		a.halvesOf(0)
		a.line("VZIP1 V1.B16, V0.B16, V2.B16")
		a.line("VEXT $8, V2.B16, V2.B16, V3.B16")
		a.floatsOf(2, 4)
		a.floatsOf(3, 6)
		for v := 4; v < 8; v++ {
			a.fsub(16, v, v)
			a.multiply(17, v, v)
		}
		a.line("VST1.P %s, 64(R0)", list(4, 4))
	})
	a.line("RET")
}

// total adds the lanes of V(x) in F(x).
func (a *arm) total(x int) {
	a.faddp(x, x, x)
	a.faddp(x, x, x)
}

func (a *arm) dot() {
	p := a.element("dot", "func(a, b *float32, n int) float32")
	a.pointers(p, "a", "b", "n")
	for i := range 8 {
		a.line("VEOR V%d.B16, V%d.B16, V%d.B16", 16+i, 16+i, 16+i)
	}
	a.loop(2, 32, func() {
		for h := range 2 {
			a.line("VLD1.P 64(R0), %s", list(0, 4))
			a.line("VLD1.P 64(R1), %s", list(4, 4))
			for i := range 4 {
				a.line("VFMLA V%d.S4, V%d.S4, V%d.S4", i, 4+i, 16+4*h+i)
			}
		}
	})
	for step := 4; step > 0; step /= 2 {
		for i := range step {
			a.add(16+step+i, 16+i, 16+i)
		}
	}
	a.total(16)
	a.line("FMOVS F16, ret+%d(FP)", p["ret"].at)
	a.line("RET")
}

func (a *arm) dotNibbles() {
	p := a.element("dotNibbles", "func(x *float32, w *byte, groups, blocks int, scales, zeros, sums *float32) float32")
	a.pointers(p, "x", "w", "groups", "blocks", "scales", "zeros", "sums")
	a.line("VMOVI $15, V15.B16")
	const total, rest, part = 16, 18, 20 // two registers each, and 4 of parts
	clear := func(first, n int) {
		for i := range n {
			a.line("VEOR V%d.B16, V%d.B16, V%d.B16", first+i, first+i, first+i)
		}
	}
	clear(total, 3)
	a.label("block")
	clear(part, 4)
	a.line("MOVD R2, R7")
	a.loop(7, 1, func() {
		a.line("VLD1.P 8(R1), [V0.B8]")
		a.halvesOf(0)
		a.floatsOf(0, 4)
		a.floatsOf(1, 6)
		a.line("VLD1.P 64(R0), %s", list(8, 4))
		for i := range 4 {
			a.line("VFMLA V%d.S4, V%d.S4, V%d.S4", 4+i, 8+i, part+i)
		}
	})
	for i, r := range []string{"R4", "R5", "R6"} { // scale, zero, sum
		a.line("VLD1R.P 4(%s), [V%d.S4]", r, i)
	}
	for i := range 2 {
		a.add(part+2+i, part+i, part+i)
		a.line("VFMLA V0.S4, V%d.S4, V%d.S4", part+i, total+i)
	}
	a.multiply(0, 1, 1)
	a.line("VFMLA V1.S4, V2.S4, V%d.S4", rest)
	a.line("SUBS $1, R3, R3")
	a.line("BNE block")
	a.add(total+1, total, total)
	a.total(total)
	a.fsub(rest, total, total)
	a.line("FMOVS F%d, ret+%d(FP)", total, p["ret"].at)
	a.line("RET")
}

// halves writes what reads or writes 16-bit values, and what turns integers into floats.
func (a *arm) halves() {
	p := a.element("rectifyHalf", "func(dst, src *uint16, n int, inf uint16)")
	a.pointers(p, "dst", "src", "n")
	a.spreadParams(p, 16, "inf")
	a.line("VMOVI $255, V17.B16")
	a.line("VUSHR $1, V17.H8, V17.H8")
	a.loop(2, 16, func() {
		a.line("VLD1.P 32(R1), %s", listOf(0, 2, "H8"))
		for x := range 2 {
			a.line("VAND V17.B16, V%d.B16, V2.B16", x)
			a.cmgt16(16, 2, 3)
			a.cmeq16(2, 2)
			a.line("VORR V2.B16, V3.B16, V3.B16")
			a.cmlt16(x, 2)
			a.bic(3, 2, 2)
			a.bic(2, x, x)
		}
		a.line("VST1.P %s, 32(R0)", listOf(0, 2, "H8"))
	})
	a.line("RET")

	p = a.element("fromHalf", "func(dst *float32, src *uint16, n int)")
	a.pointers(p, "dst", "src", "n")
	a.loop(2, 8, func() {
		a.line("VLD1.P 16(R1), [V0.H8]")
		a.fcvtl(0, 0, 2)
		a.fcvtl(upper, 0, 3)
		a.line("VST1.P %s, 32(R0)", list(2, 2))
	})
	a.line("RET")

	p = a.element("toHalf", "func(dst *uint16, src *float32, n int)")
	a.pointers(p, "dst", "src", "n")
	a.loop(2, 8, func() {
		a.line("VLD1.P 32(R1), %s", list(0, 2))
		a.fcvtn(0, 0, 2)
		a.fcvtn(upper, 1, 2)
		a.line("VST1.P [V2.H8], 16(R0)")
	})
	a.line("RET")

	p = a.element("toFloats", "func(dst *float32, src *int32, n int)")
	a.pointers(p, "dst", "src", "n")
	a.loop(2, 8, func() {
		a.line("VLD1.P 32(R1), %s", list(0, 2))
		a.scvtf(0, 0)
		a.scvtf(1, 1)
		a.line("VST1.P %s, 32(R0)", list(0, 2))
	})
	a.line("RET")
}

// store adds V(zero) to eight integers in V0 and V1 and stores their lowest bytes.
func (a *arm) store(zero int) {
	for x := range 2 {
		a.line("VADD V%d.S4, V%d.S4, V%d.S4", zero, x, x)
	}
	a.xtn16(0, 0, 0)
	a.xtn16(upper, 1, 0)
	a.xtn8(0, 0)
	a.line("VST1.P [V0.B8], 8(R0)")
}

// codes writes 8-bit values of numbers; see that for amd64.
func (a *arm) codes(name string) {
	sig, names := "func(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)", []string{"scale", "lo", "hi", "zero"}
	if name == "rescale" {
		sig = "func(dst *byte, src *int32, n int, scale, lo, hi float32, zero, bias int32)"
		names = append(names, "bias")
	}
	p := a.element(name, sig)
	a.pointers(p, "dst", "src", "n")
	const scale, lo, hi, zero, bias = 16, 17, 18, 19, 20
	a.spreadParams(p, scale, names...)
	a.loop(2, 8, func() {
		a.line("VLD1.P 32(R1), %s", list(0, 2))
		for x := range 2 {
			if name == "rescale" {
				a.line("VADD V%d.S4, V%d.S4, V%d.S4", bias, x, x)
				a.scvtf(x, x)
				a.multiply(scale, x, x)
			} else {
				a.fdiv(scale, x, x)
			}
			if name == "quantiseAway" {
				// NaN becomes zero.
				a.fcmeq(x, x, 4)
				a.line("VAND V4.B16, V%d.B16, V%d.B16", x, x)
			}
			// NaN becomes the lower limit.
			a.fmaxnm(lo, x, x)
			a.fminnm(hi, x, x)
			if name == "quantiseAway" {
				a.fcvtas(x, x)
			} else {
				a.fcvtns(x, x)
			}
		}
		a.store(zero)
	})
	a.line("RET")
}

// bytes writes limits and the larger of two bytes.
func (a *arm) bytes(signed bool) {
	most, least := armMax8, armMin8
	if signed {
		most, least = most&^armNoSign, least&^armNoSign
	}
	p := a.element("limit"+signName(signed), "func(dst, src *byte, n int, lo, hi int32)")
	a.pointers(p, "dst", "src", "n")
	for i, name := range []string{"lo", "hi"} {
		a.line("MOVW %s+%d(FP), R9", name, p[name].at)
		a.line("VDUP R9, V%d.B16", 16+i)
	}
	a.loop(2, 32, func() {
		a.line("VLD1.P 32(R1), %s", listOf(0, 2, "B16"))
		for x := range 2 {
			a.three("MAX", most, 16, x, x)
			a.three("MIN", least, 17, x, x)
		}
		a.line("VST1.P %s, 32(R0)", listOf(0, 2, "B16"))
	})
	a.line("RET")

	p = a.element("max"+signName(signed), "func(dst, a, b *byte, n int)")
	a.pointers(p, "dst", "a", "b", "n")
	a.loop(3, 32, func() {
		a.line("VLD1.P 32(R1), %s", listOf(0, 2, "B16"))
		a.line("VLD1.P 32(R2), %s", listOf(2, 2, "B16"))
		for x := range 2 {
			a.three("MAX", most, 2+x, x, x)
		}
		a.line("VST1.P %s, 32(R0)", listOf(0, 2, "B16"))
	})
	a.line("RET")
}

// combine writes the codes of sums or products of quantised values; see that for amd64.
func (a *arm) combine(signed, product bool) {
	name := "sum"
	op := a.add
	if product {
		name, op = "product", a.multiply
	}
	p := a.element(name+signName(signed), "func(dst, a, b *byte, n int, q *Codes)")
	a.pointers(p, "dst", "a", "b", "n", "q")
	const zeroA, scaleA, zeroB, scaleB, scale, lo, hi, zero = 16, 17, 18, 19, 20, 21, 22, 23
	for v := zeroA; v <= zero; v++ {
		a.line("VLD1R.P 4(R4), [V%d.S4]", v)
	}
	a.loop(3, 8, func() {
		for i := range 2 {
			x := 2 * i
			a.line("VLD1.P 8(R%d), [V4.B8]", 1+i)
			if signed {
				a.sxtl(0, 4, 4)
				a.sxtl16(0, 4, x)
				a.sxtl16(upper, 4, x+1)
				a.scvtf(x, x)
				a.scvtf(x+1, x+1)
			} else {
				a.floatsOf(4, x)
			}
			for v := x; v < x+2; v++ {
				a.fsub(zeroA+2*i, v, v)
				a.multiply(scaleA+2*i, v, v)
			}
		}
		for x := range 2 {
			op(2+x, x, x)
			a.fdiv(scale, x, x)
			a.fmaxnm(lo, x, x)
			a.fminnm(hi, x, x)
			a.fcvtns(x, x)
		}
		a.store(zero)
	})
	a.line("RET")
}

// turn writes n squares of 8 by 8 words, side by side, with rows and columns exchanged: squares
// of 4 by 4.
func (a *arm) turn() {
	p := a.element("turn", "func(dst *uint32, stepDst int, src *uint32, stepSrc, n int)")
	a.pointers(p, "dst", "stepDst", "src", "stepSrc", "n")
	a.loop(4, 1, func() {
		for i := range 8 {
			a.line("VLD1 (R2), %s", list(2*i, 2))
			a.line("ADD R3, R2, R2")
		}
		a.line("MOVD R0, R5")
		for h := range 2 {
			for q := range 2 {
				in := func(j int) int { return 2*(4*q+j) + h }
				for j := range 2 {
					a.line("VTRN1 V%d.S4, V%d.S4, V%d.S4", in(2*j+1), in(2*j), 24+2*j)
					a.line("VTRN2 V%d.S4, V%d.S4, V%d.S4", in(2*j+1), in(2*j), 25+2*j)
				}
				for c := range 4 {
					a.line("VTRN%d V%d.D2, V%d.D2, V%d.D2", 1+c/2, 26+c%2, 24+c%2, 16+2*c+q)
				}
			}
			for c := range 4 {
				a.line("VST1 %s, (R5)", list(16+2*c, 2))
				a.line("ADD R1, R5, R5")
			}
		}
		a.line("ADD $32, R0, R0")
	})
	a.line("RET")
}

// lookup replaces n bytes, a multiple of 64, by their entries in a table of 256: four tables of
// 64, each of which knows only what lies within it.
func (a *arm) lookup() {
	p := a.element("lookup", "func(dst, src *byte, n int, table *byte)")
	a.pointers(p, "dst", "src", "n", "table")
	for i := range 4 {
		a.line("VLD1.P 64(R3), %s", listOf(16+4*i, 4, "B16"))
	}
	a.line("VMOVI $64, V15.B16")
	a.loop(2, 16, func() {
		a.line("VLD1.P 16(R1), [V0.B16]")
		for i := range 4 {
			if i == 0 {
				a.line("VTBL V0.B16, %s, V1.B16", listOf(16, 4, "B16"))
				continue
			}
			a.line("VSUB V15.B16, V0.B16, V0.B16")
			a.line("VTBX V0.B16, %s, V1.B16", listOf(16+4*i, 4, "B16"))
		}
		a.line("VST1.P [V1.B16], 16(R0)")
	})
	a.line("RET")
}
