package pooling

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// MaxInt8 is two-dimensional max pooling over planes of 8-bit values with SIMD kernels. The
// result of a window without input is the smallest value.
type MaxInt8 struct {
	Shape  conv.Shape // N·C planes; Groups and OC are ignored
	Signed bool
	f      *simd.Elements
	ints   *simd.Ints
	line   int // values that a row of windows reads
}

// Prepare reports whether SIMD kernels support the windows.
func (m *MaxInt8) Prepare() bool {
	s := &m.Shape
	m.f, m.ints = simd.ElementKernels(), simd.IntKernels()
	if m.f == nil || m.ints == nil || s.OH*s.OW == 0 || s.H*s.W == 0 || s.KH > conv.MaxTaps || s.KW > conv.MaxTaps/s.KH {
		return false
	}
	if float64(s.OW)*float64(s.StrideW)+float64(s.KW)*float64(s.DilW) > conv.MaxFramed {
		return false
	}
	m.line = (s.OW-1)*s.StrideW + (s.KW-1)*s.DilW + 1
	return true
}

// Name returns the kernel name.
func (m *MaxInt8) Name() string { return "windows/" + m.f.Set.String() }

// Run pools x into y: each row of windows first vertically, then horizontally.
func (m *MaxInt8) Run(p *workers.Pool, x, y []uint8) {
	s := &m.Shape
	out := s.OH * s.OW
	least := uint8(0)
	if m.Signed {
		least = 0x80
	}
	if s.InsideImage() && s.KH*s.KW > 1 && s.StrideW <= 2 && 2*s.OH*s.StrideH > s.H {
		workers.Do(p, s.N*s.C, max(1, 1<<16/(s.H*s.W*(s.KH+s.KW))), maxPoolInt8Args{m, x, y, least}, maxPoolInt8Args.planes)
		return
	}
	workers.Do(p, s.N*s.C, max(1, 1<<16/(out*s.KH*s.KW+1)), maxPoolInt8Args{m, x, y, least}, maxPoolInt8Args.lines)
}

// maxPoolInt8Args holds the arguments of a work item of [MaxInt8.Run].
type maxPoolInt8Args struct {
	m     *MaxInt8
	x, y  []uint8
	least uint8
}

// lines pools planes first to end row by row.
func (q maxPoolInt8Args) lines(first, end int) {
	m, s := q.m, &q.m.Shape
	in, out := s.H*s.W, s.OH*s.OW
	lo := min(max(0, s.PadL), m.line)
	hi := max(lo, min(m.line, s.PadL+s.W))
	sc, workspace := scratch.Borrow8(m.line + (s.OW-1)*s.StrideW + 1)
	line, along := workspace[:m.line], workspace[m.line:]
	scratch.Fill(line, q.least)
	for i := first; i < end; i++ {
		plane := q.x[i*in:][:in]
		for oy := range s.OH {
			m.down(line[lo:hi], plane, oy, lo-s.PadL, q.least)
			row := q.y[i*out+oy*s.OW:][:s.OW]
			if s.StrideW == 1 {
				along = row
			}
			copy(along, line)
			for k := 1; k < s.KW; k++ {
				m.larger(along, line[k*s.DilW:])
			}
			if s.StrideW > 1 && !m.ints.CopyBytes(row, 0, along, 0, s.StrideW, s.OW, 1, false) {
				move.Strided(row, along, s.StrideW)
			}
		}
	}
	scratch.Float32s.Put(sc)
}

// planes pools planes without padding. Consecutive planes form one row; each value is compared
// with the others of its window, including positions without a window.
func (q maxPoolInt8Args) planes(first, end int) {
	const near = 1 << 13 // values of planes that stay in the L1 cache
	m, s := q.m, &q.m.Shape
	in, out := s.H*s.W, s.OH*s.OW
	together := min(end-first, max(1, near/in))
	sc, workspace := scratch.Borrow8(2 * together * in)
	along, down := workspace[:together*in], workspace[together*in:]
	for ; first < end; first += together {
		together = min(together, end-first)
		n := together * in
		src := q.x[first*in:][:n]
		copy(along, src)
		for k := 1; k < s.KW; k++ {
			m.larger(along[:n-k*s.DilW], src[k*s.DilW:])
		}
		copy(down, along[:n])
		for k := 1; k < s.KH; k++ {
			m.larger(down[:n-k*s.DilH*s.W], along[k*s.DilH*s.W:n])
		}
		for i := range together {
			dst, from := q.y[(first+i)*out:][:out], down[i*in:]
			if !m.ints.CopyBytes(dst, s.OW, from, s.StrideH*s.W, s.StrideW, s.OW, s.OH, false) {
				move.Lines(dst, s.OW, from, s.StrideH*s.W, s.StrideW, s.OW, s.OH)
			}
		}
	}
	scratch.Float32s.Put(sc)
}

// down writes the maximum of the input rows of window row oy, from column x.
func (m *MaxInt8) down(dst, plane []uint8, oy, x int, least uint8) {
	s := &m.Shape
	some := false
	for ky := range s.KH {
		iy := oy*s.StrideH - s.PadT + ky*s.DilH
		if len(dst) == 0 || uint(iy) >= uint(s.H) {
			continue
		}
		if src := plane[iy*s.W+x:]; some {
			m.larger(dst, src)
		} else {
			copy(dst, src)
			some = true
		}
	}
	if !some {
		scratch.Fill(dst, least)
	}
}

// larger writes the element-wise maximum of dst and b to dst.
func (m *MaxInt8) larger(dst, b []uint8) {
	b = b[:len(dst)]
	i := m.f.MaxBytes(dst, dst, b, m.Signed)
	if i > 0 && i < len(dst) {
		// The last vector overlaps the previous one: the maximum is idempotent.
		end := len(dst) - 32
		m.f.MaxBytes(dst[end:], dst[end:], b[end:], m.Signed)
		return
	}
	for ; i < len(dst); i++ {
		if m.Signed {
			dst[i] = uint8(max(int8(dst[i]), int8(b[i])))
		} else {
			dst[i] = max(dst[i], b[i])
		}
	}
}
