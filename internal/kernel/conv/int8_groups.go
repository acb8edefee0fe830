package conv

import (
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Grouped int8 convolutions over [N,H,W,C]: tiles loop over all taps in one call, tiles of small
// groups compute several of them (see [simd.GroupTile]), and the sums of up to groupWide channels
// are requantised together.

const (
	groupWide = 64
	// groupLine is the scratch size of the sums of a position: the last tile may write beyond the
	// end.
	groupLine = groupWide + 16
	// groupCacheMax is the number of positions whose sums stay in the L1 cache.
	groupCacheMax = 56
)

// int8Groups holds the parameters of such a convolution.
type int8Groups struct {
	cg, og, taps, k int // k 4-way groups of channels per tap
	tiles           []groupTile
	blocks          []groupBlock
	offs            []int32 // see [simd.GroupTile]
	packed          []int8
	weights         []int8  // packed; nil if they need more than 8 bits
	sums            []int32 // of the weights of each output of each tile
}

// groupTile computes outputs from out from channels from in. w and sum are the offsets of its
// weights and weight sums.
type groupTile struct {
	kind            simd.GroupKind
	in, out, w, sum int
}

// groupBlock is a range of tiles; their n outputs begin at out.
type groupBlock struct{ first, end, out, n int }

// smallGroups reports whether tiles compute several groups.
func (s *Shape) smallGroups() bool {
	cg := s.C / s.Groups
	return s.C == s.OC && (cg == 2 || cg == 4 || cg == 8) && s.C%16 == 0
}

// Without dot products of bytes, tiles take 1.4 times as long as panels, which take some 10 µs more
// for each group: measured with groups of 4 to 64 channels and 7² to 56² positions on a Xeon
// limited to AVX2.
const (
	groupWidened   = 16  // channels of a group up to which tiles are faster
	groupPositions = 128 // positions up to which tiles are faster
)

// tilesGroups reports whether tiles support the groups of a convolution, and are faster.
func (s *Shape) tilesGroups() bool {
	f := simd.IntKernels()
	if s.Groups <= 1 || f == nil || !f.HasGroups() || s.Outputs() == 0 || !s.smallGroups() && s.C/s.Groups%4 != 0 {
		return false
	}
	return f.Set != simd.AVX2 || s.C/s.Groups <= groupWidened || s.OH*s.OW <= groupPositions
}

// newInt8Groups returns nil if tiles do not support the shape.
func newInt8Groups(s *Shape, l *nhwcPlan, cg, og int) *int8Groups {
	if !s.tilesGroups() || s.KH*l.w*s.C*s.DilH > 1<<30 {
		return nil
	}
	f, small := simd.IntKernels(), s.smallGroups()
	c := &int8Groups{cg: cg, og: og, taps: s.KH * s.KW, k: cg / 4}
	w, sum := 0, 0
	add := func(kind simd.GroupKind, in, out, outputs int) {
		if i := len(c.blocks) - 1; i >= 0 && out+outputs-c.blocks[i].out <= groupWide {
			c.blocks[i].end, c.blocks[i].n = len(c.tiles)+1, out+outputs-c.blocks[i].out
		} else {
			c.blocks = append(c.blocks, groupBlock{len(c.tiles), len(c.tiles) + 1, out, outputs})
		}
		c.tiles = append(c.tiles, groupTile{kind, in, out, w, sum})
		w, sum = w+c.taps*simd.GroupSize(kind, cg), sum+kind.Outputs()
	}
	read := 4 * c.k // bytes that a tile has advanced at the end of a tap
	if small {
		kind := simd.GroupSmall4
		if read = 0; cg == 8 {
			kind = simd.GroupSmall8
		}
		for ch := 0; ch < s.C; ch += 16 {
			add(kind, ch, ch, 16)
		}
	} else {
		for g := range s.Groups {
			for o := 0; o < og; {
				kind := simd.GroupTwo
				if og-o <= 16 || f.GroupRows(kind) == 0 {
					kind = simd.GroupOne
				}
				n := min(kind.Outputs(), og-o)
				add(kind, g*cg, g*og+o, n)
				o += n
			}
		}
	}
	c.sums = make([]int32, sum)
	place := func(t int) int { return (t/s.KW*s.DilH*l.w + t%s.KW*s.DilW) * s.C }
	for t := range c.taps {
		c.offs = append(c.offs, int32(place(min(t+1, c.taps-1))-place(t)-read))
	}
	return c
}

// fillGroups packs weights [OC,KH,KW,C/Groups] minus their zero point; it returns false if they
// need more than 8 bits.
func fillGroups[W quantise.Weight](c *int8Groups, w []W, zero int32) bool {
	if c.weights = nil; !gemm.FitsInt8(w, zero) {
		return false
	}
	last := c.tiles[len(c.tiles)-1]
	c.packed = scratch.Zeroed(c.packed, last.w+c.taps*simd.GroupSize(last.kind, c.cg))
	c.weights = c.packed
	clear(c.sums)
	for _, t := range c.tiles {
		dst, size := c.weights[t.w:], simd.GroupSize(t.kind, c.cg)
		outputs := min(t.kind.Outputs(), c.og-t.out%c.og)
		if t.kind.Small() {
			outputs = t.kind.Outputs()
		}
		for o := range outputs {
			g, of := 0, o
			if t.kind.Small() {
				g, of = o/c.og, o%c.og
			}
			for i, v := range w[(t.out+o)*c.taps*c.cg:][:c.taps*c.cg] {
				d := int32(v) - zero
				dst[i/c.cg*size+simd.GroupIndex(t.kind, c.cg, g, of, i%c.cg)] = int8(d)
				c.sums[t.sum+o] += d
			}
		}
	}
	return true
}

var groupTiles = sync.Pool{New: func() any { return new(simd.GroupTile) }}

// groups computes a work item, like tiles.
func (q *int8NHWCArgs) groups(v lineView, y int, part linePart, buf []int32) {
	c, l := q.c.groups, q.c.plan
	f, p0, p1 := q.c.panels[0].F, part.p0, part.p1
	// Whole rows are contiguous.
	together := p0 == 0 && p1 == l.count && l.lineC == l.count*l.stepC
	t := groupTiles.Get().(*simd.GroupTile)
	t.K, t.Taps, t.Offs, t.RowA, t.RowC = c.k, c.taps, &c.offs[0], l.stepA, 4*groupLine
	for b := part.n0; b < part.n1; b++ {
		block := &c.blocks[b]
		for line := part.l0; line < part.l1; line++ {
			for i := block.first; i < block.end; i++ {
				tile := &c.tiles[i]
				t.B, t.Start = &c.weights[tile.w], &q.c.start[tile.sum]
				for at := p0; at < p1; {
					rows := simd.Evenly(p1-at, f.GroupRows(tile.kind))
					t.A = unsafe.Pointer(&v.x[line*l.lineA+at*l.stepA+tile.in-v.base])
					t.C = &buf[((line-part.l0)*(p1-p0)+at-p0)*groupLine+tile.out-block.out]
					f.Group(t, tile.kind, rows)
					at += rows
				}
			}
		}
		for line := part.l0; line < part.l1; line++ {
			lines := 1
			if together {
				lines = part.l1 - part.l0
			}
			sums, at := buf[(line-part.l0)*(p1-p0)*groupLine:], y+line*l.lineC+p0*l.stepC+block.out
			q.sink.put(sums, groupLine, lines*(p1-p0), at, l.stepC, block.out, block.n)
			line += lines - 1
		}
	}
	*t = simd.GroupTile{}
	groupTiles.Put(t)
}
