package nn

import (
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// product multiplies rows of small integers by a packed matrix of n columns and
// k rows, exactly.
//
// Two weights share one 64-bit word, w0 + w1·2^32, so that one multiplication by
// an element and one addition serve two columns; the sums part again because the
// lower one, sign included, is known to fit 32 bits over a chunk of rows. Four
// columns lie together, two words a row.
type product[T integer] struct {
	k, n  int
	words []int64
	chunk int // rows after which sums are parted
}

// quads is the number of column groups.
func (m *product[T]) quads() int { return (m.n + 3) / 4 }

// newProduct packs w, n rows of k (each column's weights side by side).
func newProduct[T integer](n, k int, w []int16) *product[T] {
	m := &product[T]{k: k, n: n}
	// |x·w| is at most 2^15·2^8 and 2^8·2^9 respectively.
	m.chunk = 1 << 13
	if int64(^T(0)>>1) > 255 || int64(^T(0)) < 0 && wide[T]() {
		m.chunk = 1 << 7
	}
	m.pack(w)
	return m
}

// wide reports whether T is 16 bits.
func wide[T integer]() bool {
	v := 1 << 8
	return T(v) != 0
}

func (m *product[T]) pack(w []int16) {
	size := m.quads() * m.k * 2
	if len(m.words) != size {
		m.words = make([]int64, size)
	}
	at := func(o, i int) int64 {
		if o >= m.n {
			return 0
		}
		return int64(w[o*m.k+i])
	}
	for q := range m.quads() {
		for i := range m.k {
			j := (q*m.k + i) * 2
			m.words[j] = at(4*q, i) + at(4*q+1, i)<<32
			m.words[j+1] = at(4*q+2, i) + at(4*q+3, i)<<32
		}
	}
}

func part(acc int64) (lo, hi int64) {
	lo = int64(int32(acc))
	return lo, (acc - lo) >> 32
}

// two adds to four sums of each of two rows.
func (m *product[T]) two(x, y []T, q int, a, b []int64) {
	w := m.words[q*m.k*2 : (q+1)*m.k*2]
	var s, t [4]int64
	for at := 0; at < m.k; at += m.chunk {
		end := min(at+m.chunk, m.k)
		xs, ys, ws := x[at:end], y[at:end], w[2*at:2*end]
		var x0, x1, y0, y1 int64
		for len(ys) > 0 && len(xs) >= len(ys) && len(ws) >= 2 {
			p, r := int64(xs[0]), int64(ys[0])
			u, v := ws[0], ws[1]
			x0 += p * u
			x1 += p * v
			y0 += r * u
			y1 += r * v
			xs, ys, ws = xs[1:], ys[1:], ws[2:]
		}
		for i, c := range [4]int64{x0, x1, y0, y1} {
			lo, hi := part(c)
			if i < 2 {
				s[2*i] += lo
				s[2*i+1] += hi
			} else {
				t[2*i-4] += lo
				t[2*i-3] += hi
			}
		}
	}
	copy(a, s[:])
	copy(b, t[:])
}

// single is two for one row.
func (m *product[T]) single(x []T, q int, a []int64) {
	w := m.words[q*m.k*2 : (q+1)*m.k*2]
	var s [4]int64
	for at := 0; at < m.k; at += m.chunk {
		end := min(at+m.chunk, m.k)
		xs, ws := x[at:end], w[2*at:2*end]
		var x0, x1 int64
		for len(xs) > 0 && len(ws) >= 2 {
			p := int64(xs[0])
			x0 += p * ws[0]
			x1 += p * ws[1]
			xs, ws = xs[1:], ws[2:]
		}
		lo, hi := part(x0)
		s[0] += lo
		s[1] += hi
		lo, hi = part(x1)
		s[2] += lo
		s[3] += hi
	}
	copy(a, s[:])
}

// span computes columns of quads q0 to q1 for up to rowsBlock rows into acc, row
// by row with stride columns.
func (m *product[T]) span(rows [][]T, q0, q1 int, acc []int64, stride int) {
	for q := q0; q < q1; q++ {
		at := 4 * (q - q0)
		i := 0
		for ; i+1 < len(rows); i += 2 {
			m.two(rows[i], rows[i+1], q, acc[i*stride+at:], acc[(i+1)*stride+at:])
		}
		if i < len(rows) {
			m.single(rows[i], q, acc[i*stride+at:])
		}
	}
}

// rowsBlock rows share one walk over the weights.
const rowsBlock = 8

// task is a prepared product over many rows.
type task[T integer] struct {
	m *product[T]
	// patch returns the k elements of row p; it may use buf.
	patch func(p int, buf []T) []T
	// finish takes the sums of row p for columns from o0 on.
	finish func(p, o0 int, acc []int64)
	rows   int
	bufs   [][]T
	heads  [][rowsBlock][]T
	accs   [][]int64
	split  int // column groups a piece of work computes
	step   func(worker, lo, hi int)
}

// plan reserves memory; buffered tells whether patch uses its buffer.
func (t *task[T]) plan(c *op.Call, typ tensor.Type, buffered bool) *task[T] {
	threads := c.Pool.Threads()
	t.heads = make([][rowsBlock][]T, threads)
	for range threads {
		var b []T
		if buffered {
			b = view[T](c.Scratch(typ.Bytes(rowsBlock*max(t.m.k, 1))), typ)
		}
		t.bufs = append(t.bufs, b)
		t.accs = append(t.accs, view[int64](c.Scratch(8*rowsBlock*4*t.m.quads()), tensor.Int64))
	}
	blocks := (t.rows + rowsBlock - 1) / rowsBlock
	t.split = max(t.m.quads(), 1)
	if blocks < 2*threads && threads > 1 && t.m.k*t.m.n > 1<<14 {
		t.split = (t.split + 2*threads - 1) / (2 * threads)
	}
	t.step = t.piece
	return t
}

func (t *task[T]) run(p *op.Pool) {
	blocks := (t.rows + rowsBlock - 1) / rowsBlock
	pieces := (t.m.quads() + t.split - 1) / t.split
	work := rowsBlock * t.m.k * t.split * 4
	p.ForWorker(blocks*pieces, 1+(1<<15)/max(work, 1), t.step)
}

func (t *task[T]) piece(worker, lo, hi int) {
	pieces := (t.m.quads() + t.split - 1) / t.split
	acc := t.accs[worker]
	for i := lo; i < hi; i++ {
		p0 := i / pieces * rowsBlock
		n := min(rowsBlock, t.rows-p0)
		q0 := i % pieces * t.split
		q1 := min(q0+t.split, t.m.quads())
		heads := t.heads[worker][:n]
		for j := range heads {
			var buf []T
			if b := t.bufs[worker]; b != nil {
				buf = b[j*t.m.k : (j+1)*t.m.k]
			}
			heads[j] = t.patch(p0+j, buf)
		}
		stride := 4 * (q1 - q0)
		t.m.span(heads, q0, q1, acc, stride)
		cols := min(stride, t.m.n-4*q0)
		for j := range heads {
			t.finish(p0+j, 4*q0, acc[j*stride:j*stride+cols])
		}
	}
}
