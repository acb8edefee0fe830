package simd

import (
	"math"
	"unsafe"
)

// Parts holds kernels that compute float32 GEMM with bfloat16 matrix tiles (AMX). A float32 has
// 24 significant bits and is the sum of three bfloat16 parts of 8 bits: each part is rounded to
// the nearest, and the difference is exact.
//
// Of the nine products of parts, those count that are not smaller than the rounding error of
// float32. The product of two bfloat16 values is exact in float32, and a tile adds the products
// in float32. The error is about half that of a sum of float32 fused multiply-adds. Values with
// fewer significant bits need fewer parts: bfloat16 one, float16 two.
//
// Tiles treat subnormal inputs and results as zero. This loses less than rounding does, relative
// to the largest products, under two conditions: magnitudes are at most 2^50, and the largest
// magnitude of each row and column is at least 2^-40. Other values, including infinities and NaN,
// need the float32 kernels.
type Parts struct {
	split    func(p *splitArgs)
	products [3][3]func(p *partProgram) // by the number of parts of rows and of columns
	sums     func(p *partSums)
}

// Sizes of the data that [Parts] computes with.
const (
	PartRows  = 16 // of a block
	PartCols  = 32 // of a panel
	PartSteps = 32 // of a tile
	partTile  = PartRows * PartSteps

	minPartBits = (127 - 40) << 23 // the bits of 2^-40
	maxPartBits = (127 + 50) << 23
)

// cacheLine is the size of a cache line in bytes.
const cacheLine = 64

// PartKernels returns the kernels of the current instruction set, or nil if they are not
// available.
func PartKernels() *Parts {
	if p := partKernels.pick(); p != nil && partsAvailable() {
		return p
	}
	return nil
}

// PartBlock returns the number of values of a block of rows for a number of steps; see
// [Parts.Rows]. A panel has twice as many values.
func PartBlock(steps int) int { return (steps + PartSteps - 1) / PartSteps * 3 * partTile }

// splitArgs holds the arguments of the kernel that splits lines of n pairs of registers.
// Distances are in bytes: in dst from pair to pair, from line to line and from part to part; in
// src from pair to pair and from line to line. gap is the distance between the registers of a
// pair. The kernel updates the 16 values at most + i*nextMost with the bits of the largest
// magnitudes of line i.
type splitArgs struct {
	dst                             *uint16
	stepDst, nextDst, part          int
	src                             *float32
	stepSrc, nextSrc, gap, n, lines int
	most                            *[16]uint32
	nextMost                        int
	lost                            *[2]uint32 // nonzero bits of a second part, of a third part
}

// partProgram holds the arguments of the kernel that multiplies blocks of rows by a panel.
type partProgram struct {
	config        *[64]byte
	a, b          *uint16
	c             *float32
	steps, blocks int
	// Memory to prefetch, and cache lines that each step prefetches.
	ahead      unsafe.Pointer
	aheadLines int
}

// partSums holds the arguments of the kernel that finishes sums, which are adjacent rows of 32.
type partSums struct {
	dst          *float32
	row          int
	src          *float32
	rows         int
	column, line *float32
	add          int
	mask         uint32
	_            uint32
	clamp        int
	least, most  float32
}

// PartSums describes the results: rows of Width columns, at most [PartCols], RowC values apart.
type PartSums struct {
	C           []float32
	RowC, Width int
	BiasM       []float32 // one value for each row, or nil
	BiasN       []float32 // one value for each column, or nil
	Add         bool      // adds to the values in C
	Clamp       bool
	Min, Max    float32
}

// PartPanel describes a panel of columns in parts. It is reusable.
type PartPanel struct {
	parts int // 0 for magnitudes that tiles do not support
	most  [2 * 16]uint32
	args  splitArgs
	lost  [2]uint32
	rest  [PartSteps * PartCols]float32
}

// PartBlocks describes blocks of rows in parts. It is reusable.
type PartBlocks struct {
	parts []int // of each block; 0 for magnitudes that tiles do not support
	most  [PartRows][16]uint32
	args  splitArgs
	lost  [2]uint32
	rest  [PartRows * PartSteps]float32
	prog  partProgram
	sums  partSums
}

// inPartRange reports whether tiles support values whose largest magnitude has these bits.
func inPartRange(most uint32) bool { return most == 0 || most >= minPartBits && most <= maxPartBits }

// partCount returns the number of parts of values. lost has nonzero bits for second and third
// parts.
func partCount(lost *[2]uint32) int {
	switch {
	case lost[1] != 0:
		return 3
	case lost[0] != 0:
		return 2
	}
	return 1
}

// Panel splits steps rows of 32 columns, line values apart, into parts. dst has at least
// 2*[PartBlock] values.
func (f *Parts) Panel(q *PartPanel, dst []uint16, src []float32, line, steps int) {
	_ = dst[2*PartBlock(steps)-1]
	q.most, q.lost = [32]uint32{}, [2]uint32{}
	split := func(at int, src []float32, line, n int) {
		for v := range 2 {
			q.args = splitArgs{
				dst: &dst[at*6*partTile+v*partTile], stepDst: 64, nextDst: 6 * 2 * partTile, part: 2 * 2 * partTile,
				src: &src[16*v], stepSrc: 4 * line, nextSrc: 4 * line * PartSteps, gap: 4 * line * PartSteps / 2, n: PartSteps / 2, lines: n,
				most: (*[16]uint32)(q.most[16*v:]), lost: &q.lost,
			}
			f.split(&q.args)
		}
	}
	whole := steps / PartSteps
	if whole > 0 {
		_ = src[(whole*PartSteps-1)*line+PartCols-1]
		split(0, src, line, whole)
	}
	if left := steps % PartSteps; left > 0 {
		clear(q.rest[:])
		for i := range left {
			copy(q.rest[i*PartCols:][:PartCols], src[(whole*PartSteps+i)*line:])
		}
		split(whole, q.rest[:], PartCols, 1)
	}
	q.parts = partCount(&q.lost)
	for _, m := range q.most {
		if !inPartRange(m) {
			q.parts = 0
		}
	}
	q.args = splitArgs{}
}

// Supported reports whether tiles support the values of the panel.
func (q *PartPanel) Supported() bool { return q.parts > 0 }

// Rows splits rows of steps values, line values apart, into parts. dst has [PartBlock] values for
// each block of up to 16 rows.
func (f *Parts) Rows(q *PartBlocks, dst []uint16, src []float32, rows, line, steps int) {
	q.parts = q.parts[:0]
	for r := 0; r < rows; r += PartRows {
		q.parts = append(q.parts, f.block(q, dst[r/PartRows*PartBlock(steps):][:PartBlock(steps)], src[r*line:], min(PartRows, rows-r), line, steps))
	}
	q.args = splitArgs{}
}

// block splits a block of rows and returns the number of its parts.
func (f *Parts) block(q *PartBlocks, dst []uint16, src []float32, rows, line, steps int) int {
	q.most, q.lost = [PartRows][16]uint32{}, [2]uint32{}
	split := func(at int, src []float32, line, n int) {
		q.args = splitArgs{
			dst: &dst[at*3*partTile], stepDst: 3 * 2 * partTile, nextDst: 64, part: 2 * partTile,
			src: &src[0], stepSrc: 4 * PartSteps, nextSrc: 4 * line, gap: 4 * PartSteps / 2, n: n, lines: rows,
			most: &q.most[0], nextMost: 64, lost: &q.lost,
		}
		f.split(&q.args)
	}
	whole := steps / PartSteps
	if whole > 0 {
		_ = src[(rows-1)*line+whole*PartSteps-1]
		split(0, src, line, whole)
	}
	if left := steps % PartSteps; left > 0 {
		clear(q.rest[:])
		for r := range rows {
			copy(q.rest[r*PartSteps:][:left], src[r*line+whole*PartSteps:])
		}
		split(whole, q.rest[:], PartSteps, 1)
	}
	for i := range rows {
		most := uint32(0)
		for _, m := range q.most[i] {
			most = max(most, m)
		}
		if !inPartRange(most) {
			return 0
		}
	}
	return partCount(&q.lost)
}

// Supported reports whether tiles support the values of block i.
func (q *PartBlocks) Supported(i int) bool { return q.parts[i] > 0 }

// Products multiplies all blocks, rows rows of steps values in parts at a, by a panel at b. It
// skips blocks that are not supported. buf has 512 values for each block. Meanwhile it prefetches
// ahead.
func (f *Parts) Products(q *PartBlocks, a []uint16, b []uint16, panel *PartPanel, buf []float32, rows, steps int, ahead []uint8, to *PartSums) {
	size, blocks, tiles := PartBlock(steps), len(q.parts), (steps+PartSteps-1)/PartSteps
	_, _ = b[2*size-1], buf[blocks*PartRows*PartCols-1]
	_ = to.C[(rows-1)*to.RowC+to.Width-1]
	for i := 0; i < blocks; {
		n, parts := 1, q.parts[i]
		for i+n < blocks && q.parts[i+n] == parts {
			n++
		}
		if parts > 0 {
			p := &q.prog
			*p = partProgram{config: &partConfig, a: &a[i*size], b: &b[0], c: &buf[i*PartRows*PartCols], steps: tiles, blocks: n}
			if len(ahead) > 0 {
				p.ahead, p.aheadLines = unsafe.Pointer(&ahead[0]), (len(ahead)/cacheLine+tiles*n-1)/(tiles*n)
				ahead = nil
			}
			f.products[parts-1][panel.parts-1](p)
			f.finish(q, buf, i, n, rows, to)
			*p = partProgram{}
		}
		i += n
	}
}

// finish writes the results of n blocks from i on.
func (f *Parts) finish(q *PartBlocks, buf []float32, i, n, rows int, to *PartSums) {
	r := i * PartRows
	q.sums = partSums{
		dst: &to.C[r*to.RowC], row: 4 * to.RowC, src: &buf[r*PartCols], rows: min(n*PartRows, rows-r),
		mask: uint32(1<<to.Width - 1), least: to.Min, most: to.Max,
	}
	if to.BiasM != nil {
		q.sums.column = &to.BiasM[r]
	}
	if to.BiasN != nil {
		q.sums.line = &to.BiasN[0]
	}
	if to.Add {
		q.sums.add = 1
	}
	if to.Clamp {
		q.sums.clamp = 1
	}
	f.sums(&q.sums)
	q.sums = partSums{}
}

// partConfig is the tile configuration: all tiles are full.
var partConfig = func() (c [64]byte) {
	c[0] = 1 // the palette
	for tile := range 4 {
		c[16+2*tile], c[48+tile] = 64, PartRows
	}
	return c
}()

// check compares products with sums in float64. A processor that reports the instructions must
// also compute correctly with them.
func (f *Parts) check() bool {
	const rows, steps = PartRows + 1, 2*PartSteps + 5
	a, b := make([]float32, rows*steps), make([]float32, steps*PartCols)
	seed := uint32(1)
	for _, v := range [][]float32{a, b} {
		for i := range v {
			seed = seed*1664525 + 1013904223
			v[i] = float32(int32(seed)) / (1 << 31)
		}
	}
	var panel PartPanel
	var blocks PartBlocks
	pa, pb, buf, c := make([]uint16, 2*PartBlock(steps)), make([]uint16, 2*PartBlock(steps)), make([]float32, 2*PartRows*PartCols), make([]float32, rows*PartCols)
	f.Panel(&panel, pb, b, PartCols, steps)
	f.Rows(&blocks, pa, a, rows, steps, steps)
	if !panel.Supported() || !blocks.Supported(0) || !blocks.Supported(1) {
		return false
	}
	f.Products(&blocks, pa, pb, &panel, buf, rows, steps, nil, &PartSums{C: c, RowC: PartCols, Width: PartCols})
	for r := range rows {
		var sums, sizes [PartCols]float64
		for i := range steps {
			x, line := float64(a[r*steps+i]), b[i*PartCols:][:PartCols]
			for j, y := range line {
				v := x * float64(y)
				sums[j] += v
				sizes[j] += math.Abs(v)
			}
		}
		for j, sum := range sums {
			// About five additions in a row each lose at most 2^-25 of their sum; the omitted
			// products are 2^-25.
			if math.Abs(float64(c[r*PartCols+j])-sum) > sizes[j]*0x1p-21 {
				return false
			}
		}
	}
	return true
}
