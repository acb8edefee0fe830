package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// picks writes, for elements of 1, 2, 4 and 8 bytes, those of x where a byte is not zero and
// those of y elsewhere. Steps are the bytes that x and y advance for each register, 0 for a first
// element that stands for all.
func picks(a *asm) {
	for _, size := range []int{1, 2, 4, 8} {
		a.pick(size)
	}
}

func (a *asm) pick(size int) {
	a.function(fmt.Sprintf("pick%dAVX512", size), "func(dst, x, y, cond *byte, n, stepX, stepY int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	cond := a.Load(a.Param("cond"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	var from, by [2]reg.Register
	var v [2]reg.VecVirtual
	advance := [2]reg.Register{reg.K3, reg.K4}
	for i, name := range []string{"x", "y"} {
		from[i] = a.Load(a.Param(name), a.GP64())
		by[i] = a.Load(a.Param([]string{"stepX", "stepY"}[i]), a.GP64())
		v[i] = a.ZMM()
		[]func(...operand.Op){a.VPBROADCASTB, a.VPBROADCASTW, nil, a.VPBROADCASTD, nil, nil, nil, a.VPBROADCASTQ}[size-1](at(from[i], 0), v[i])
		all := a.GP64()
		a.XORQ(all, all)
		a.CMPQ(all, by[i])
		a.SBBQ(all, all) // all ones where the step is not zero
		a.KMOVQ(all, advance[i])
	}
	each := 64 / size
	bytes := a.ZMM()
	c := []reg.Register{bytes, bytes.AsY(), nil, bytes.AsX(), nil, nil, nil, bytes.AsX()}[size-1]
	load := map[int]func(...operand.Op){1: a.VMOVDQU8, 2: a.VMOVDQU16, 4: a.VMOVDQU32, 8: a.VMOVDQU64}[size]
	a.masked("elements", n, each, func(mask reg.Register) {
		switch {
		case mask != nil:
			a.VMOVDQU8_Z(at(cond, 0), mask, c)
		case size == 8:
			a.VMOVQ(at(cond, 0), c)
		default:
			a.VMOVDQU8(at(cond, 0), c)
		}
		a.VPTESTMB(c, c, reg.K2)
		for i := range v {
			k := advance[i]
			if mask != nil {
				a.KANDQ(mask, k, reg.K5)
				k = reg.K5
			}
			load(at(from[i], 0), k, v[i])
			a.ADDQ(by[i], from[i])
		}
		y := a.ZMM()
		[]func(...operand.Op){a.VPBLENDMB, a.VPBLENDMW, nil, a.VPBLENDMD, nil, nil, nil, a.VPBLENDMQ}[size-1](v[0], v[1], reg.K2, y)
		if mask != nil {
			load(y, mask, at(dst, 0))
		} else {
			load(y, at(dst, 0))
		}
	}, step{cond, each}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}
