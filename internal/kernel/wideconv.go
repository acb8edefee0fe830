package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// WideConv is a convolution of 16-bit numbers over [N,H,W,C] that reads windows where they lie: each of their lines is a segment of a row of
// [Wide]. Where windows see borders, or have one number too many, the picture is copied into a frame first.
type WideConv struct {
	w           *Wide
	s           ConvShape
	lines, line int // of a picture, or of its frame; a line in numbers
	framed      bool
}

// WideLine is the length of the weights of a line of a window: with a zero at the end where pairs want one.
func (s *ConvShape) WideLine() int { return roundUp(s.KW*s.C, 2) }

// NewWideConv takes weights of [NewPacked16] for KH·WideLine steps. It returns nil where taps of a line do not lie side by side, or sums have
// several parts.
func NewWideConv(p *PackedQ, q *Requant16, s ConvShape) *WideConv {
	if s.DilW > 1 && s.KW > 1 || s.outputs() == 0 {
		return nil
	}
	c := &WideConv{w: NewWide(p, q), s: s, lines: s.H, line: s.W * s.C}
	if len(c.w.cuts) != 1 {
		return nil
	}
	lines, columns := (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1, (s.OW-1)*s.StrideW+s.KW
	if c.framed = s.PadT != 0 || s.PadL != 0 || lines > s.H || columns > s.W || s.KW*s.C%2 > 0; c.framed {
		if float64(lines)*float64(columns)*float64(s.C) > maxFramed {
			return nil
		}
		c.lines, c.line = lines, columns*s.C
	}
	return c
}

// Room is how many numbers [WideConv.Run] needs room for.
func (c *WideConv) Room() int {
	if !c.framed {
		return 0
	}
	return c.lines*c.line + 1
}

// Run convolves x.
func (c *WideConv) Run(p *workers.Pool, x, y, room []int16) {
	s, f := &c.s, c.w.p.panels.f
	height := 4 * f.Rows
	blocks, cost := (s.OW+height-1)/height, min(s.OW, height)*s.KH*s.WideLine()*roundUp(s.OC, f.Cols)+1
	for n := range s.N {
		picture := x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
		if c.framed {
			c.frame(room[:c.Room()], picture)
			picture = room
		}
		workers.Do(p, s.OH*blocks, max(1, workers.Grain(f.Rate()/4)/cost), wideConvArgs{c, picture, y[n*s.OH*s.OW*s.OC:], height, blocks}, wideConvArgs.some)
	}
}

// frame copies a picture.
func (c *WideConv) frame(room, x []int16) {
	s := &c.s
	room[len(room)-1] = 0
	left := min(s.PadL*s.C, c.line)
	wide := min(s.W*s.C, c.line-left)
	for i := range c.lines {
		to, y := room[i*c.line:][:c.line], i-s.PadT
		if uint(y) >= uint(s.H) {
			clear(to)
			continue
		}
		clear(to[:left])
		copy(to[left:], x[y*s.W*s.C:][:wide])
		clear(to[left+wide:])
	}
}

// wideConvArgs is what a piece of the work needs.
type wideConvArgs struct {
	c              *WideConv
	x, y           []int16
	height, blocks int // positions of a block, and blocks of a line
}

// some computes blocks lo to hi of the lines of the results.
func (a wideConvArgs) some(lo, hi int) {
	c, s := a.c, &a.c.s
	p, w, f := c.w.p, c.w.p.panels, c.w.p.panels.f
	t := intTiles.Get().(*simd.IntTile)
	sc, room := borrow(f.Rows * f.Cols)
	buf := asInt32(room)
	t.Segs, t.SegA, t.K = s.KH, 2*s.DilH*c.line, s.WideLine()/2
	t.RowA, t.C, t.RowC = 2*s.StrideW*s.C, &buf[0], 4*f.Cols
	q := wideArgs{Wide: c.w, cuts: c.w.cuts}
	for i := lo; i < hi; i++ {
		oy, first := i/a.blocks, i%a.blocks*a.height
		end := min(s.OW, first+a.height)
		from, out := a.x[oy*s.StrideH*c.line:], a.y[oy*s.OW*p.n:]
		for n := 0; n < p.n; n += f.Cols {
			width := min(f.Cols, p.n-n)
			t.B = w.at(n/f.Cols, 0)
			for ox := first; ox < end; {
				rows := evenly(end-ox, f.Rows)
				t.A = unsafe.Pointer(&from[ox*s.StrideW*s.C])
				f.Run(t, rows, width, w.wide != nil)
				q.finish(out[ox*p.n+n:], buf, rows, width, n)
				ox += rows
			}
		}
	}
	scratch.Put(sc)
	giveIntTile(t)
}
