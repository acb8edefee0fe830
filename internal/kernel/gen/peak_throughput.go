package main

import "github.com/mmcloughlin/avo/operand"

// peaks writes loops that do nothing but multiply and add, with as many sums at a time as
// hide how long one takes: what no matrix multiplication can exceed.
func peaks(a *asm) {
	for _, w := range []width{ymm, zmm} {
		x, y := w.reg(w.regs-1), w.reg(w.regs-2)
		a.peak("peakFloats"+w.set, w, func(i int) { a.VFMADD231PS(x, y, w.reg(i)) })
		product := w.reg(w.regs - 3)
		a.peak("peakExact"+w.set, w, func(i int) {
			a.VMULPS(x, y, product)
			a.VADDPS(product, w.reg(i), w.reg(i))
		})
		// Products of 16-bit numbers, two at a time, and their sums.
		add := func(i int) {
			a.VPMADDWD(x, y, product)
			a.VPADDD(product, w.reg(i), w.reg(i))
		}
		a.peak("peakPairs"+w.set, w, add)
	}
	w := zmm
	a.peak("peakQuadsVNNI", w, func(i int) { a.VPDPBUSD(w.reg(30), w.reg(31), w.reg(i)) })
}

// peak writes a loop that repeats step for each of its sums.
func (a *asm) peak(name string, w width, step func(i int)) {
	a.function(name, "func(n int)")
	n := a.Load(a.Param("n"), a.GP64())
	for i := range w.regs {
		a.zero(w, w.reg(i))
	}
	a.Label("step")
	for i := range w.regs - 4 {
		step(i)
	}
	a.DECQ(n)
	a.JNZ(operand.LabelRef("step"))
	a.VZEROUPPER()
	a.RET()
}
