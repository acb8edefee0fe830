package conv

import (
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// Winograd F(2×2, 3×3) in plain Go: a tile of 2×2 outputs takes 16 multiplications per channel
// pair instead of 36. The transforms only add and halve, so results are about as accurate as
// direct sums. Larger tiles save more multiplications but lose accuracy and enlarge the weights.
// Only [N,C,H,W] uses it: sums over TFLite's layout keep the order of the reference kernels.

// winograd2CacheMax bounds the transformed input of a worker, in elements: half of a typical L2
// cache.
const winograd2CacheMax = 1 << 17

// planWinograd2 reports whether Winograd is faster: enough channels must share the transforms.
func (c *Float32) planWinograd2() bool {
	s := &c.s
	return c.f == nil && !c.nhwc && !c.depthwise && s.KH == 3 && s.KW == 3 && s.StrideH == 1 && s.StrideW == 1 && s.DilH == 1 && s.DilW == 1 &&
		c.cg >= 16 && c.og >= 16 && s.OH*s.OW >= 16
}

// packWinograd2 transforms and packs weights: for each pair of output channels and each of the 16
// transform positions one panel for the micro-kernel.
func (c *Float32) packWinograd2(w []float32) {
	pairs := (c.og + 1) / 2
	if n := c.s.Groups * pairs * 32 * c.cg; len(c.weights) != n {
		c.weights = hugepages.Make[float32](n)
	}
	for o := range c.s.OC {
		g, j := o/c.og, o%c.og
		d := c.weights[(g*pairs+j/2)*32*c.cg+j%2:]
		for i := range c.cg {
			for t, v := range filterTile((*[9]float32)(w[o*c.k+i*9:])) {
				d[(t*c.cg+i)*2] = v
			}
		}
	}
}

// filterTile returns G·k·Gᵀ.
func filterTile(k *[9]float32) (u [16]float32) {
	var h [12]float32
	for x := range 3 {
		a, b, c := k[x], k[3+x], k[6+x]
		h[x], h[3+x], h[6+x], h[9+x] = a, (a+b+c)/2, (a-b+c)/2, c
	}
	for y := range 4 {
		a, b, c := h[3*y], h[3*y+1], h[3*y+2]
		u[4*y], u[4*y+1], u[4*y+2], u[4*y+3] = a, (a+b+c)/2, (a-b+c)/2, c
	}
	return u
}

// runWinograd2 convolves x into y. Work is split as in product, by tiles instead of positions.
func (c *Float32) runWinograd2(p *workers.Pool, x, y []float32) {
	s := &c.s
	tw, th := (s.OW+1)/2, (s.OH+1)/2
	q := cutPlaces(p, s, tw*th, winograd2CacheMax/(16*c.cg), 4, (c.og+1)/2, 1)
	workers.Do(p, q.pieces(), 1, tileArgs{c, q, tw, x, y}, tileArgs.pieces)
}

// tileArgs holds the arguments of a work item: places are tiles, tw per row, and channels are in
// pairs.
type tileArgs struct {
	c    *Float32
	cut  cut
	tw   int
	x, y []float32
}

func (q tileArgs) pieces(lo, hi int) {
	c, s := q.c, &q.c.s
	sc, v := scratch.Borrow(16 * c.cg * q.cut.block)
	for i := lo; i < hi; i++ {
		n, g, b, part := q.cut.piece(i)
		t0, t1 := gemm.Portion(b, q.cut.blocks, (q.cut.places+3)/4)
		t0 *= 4
		nt := min(4*t1, q.cut.places) - t0
		o0, o1 := q.cut.channels(part, (c.og+1)/2)
		c.inputTiles(v, q.x[n*s.C*s.H*s.W:][:s.C*s.H*s.W], g, t0, nt, q.tw)
		c.outputTiles(v, q.y[n*s.OC*s.OH*s.OW:][:s.OC*s.OH*s.OW], g, t0, nt, q.tw, o0, o1)
	}
	scratch.Float32s.Put(sc)
}

// inputTiles transforms nt tiles of all input channels of a group, from tile t0, into panels of
// four tiles: for each of the 16 transform positions the channels.
func (c *Float32) inputTiles(v, x []float32, g, t0, nt, tw int) {
	s := &c.s
	area := s.H * s.W
	var d, zero [16]float32
	for t := range scratch.RoundUp(nt, 4) {
		out := v[t/4*64*c.cg+t%4:]
		if t >= nt {
			for i := range c.cg {
				storeTile(out[4*i:], 4*c.cg, &zero)
			}
			continue
		}
		y0, x0 := (t0+t)/tw*2-s.PadT, (t0+t)%tw*2-s.PadL
		if y0 >= 0 && x0 >= 0 && y0+4 <= s.H && x0+4 <= s.W {
			in := x[g*c.cg*area+y0*s.W+x0:]
			for i := range c.cg {
				loadTile(&d, in[i*area:], s.W)
				inputTile(&d)
				storeTile(out[4*i:], 4*c.cg, &d)
			}
			continue
		}
		for i := range c.cg {
			in := x[(g*c.cg+i)*area:]
			d = zero
			for yy := max(0, -y0); yy < min(4, s.H-y0); yy++ {
				for xx := max(0, -x0); xx < min(4, s.W-x0); xx++ {
					d[4*yy+xx] = in[(y0+yy)*s.W+x0+xx]
				}
			}
			inputTile(&d)
			storeTile(out[4*i:], 4*c.cg, &d)
		}
	}
}

func loadTile(d *[16]float32, in []float32, line int) {
	for y := 0; y < 16; y += 4 {
		*(*[4]float32)(d[y:]) = [4]float32(in)
		if y < 12 {
			in = in[line:]
		}
	}
}

func storeTile(v []float32, step int, d *[16]float32) {
	v = v[:15*step+1]
	at := 0
	for _, e := range d {
		v[at] = e
		at += step
	}
}

// inputTile computes Bᵀ·d·B in place.
func inputTile(d *[16]float32) {
	for x := range 4 {
		a, b, e, f := d[x], d[4+x], d[8+x], d[12+x]
		d[x], d[4+x], d[8+x], d[12+x] = a-e, b+e, e-b, b-f
	}
	for y := 0; y < 16; y += 4 {
		r := (*[4]float32)(d[y:])
		a, b, e, f := r[0], r[1], r[2], r[3]
		r[0], r[1], r[2], r[3] = a-e, b+e, e-b, b-f
	}
}

// outputTiles multiplies the transformed tiles by the pairs p0 to p1 of output channels and
// transforms the sums back.
func (c *Float32) outputTiles(v, y []float32, g, t0, nt, tw, p0, p1 int) {
	s := &c.s
	pairs := (c.og + 1) / 2
	var m [16][8]float32
	for p := p0; p < p1; p++ {
		w := c.weights[(g*pairs+p)*32*c.cg:][:32*c.cg]
		for t := 0; t < nt; t += 4 {
			in := v[t*16*c.cg:][:64*c.cg]
			for i := range m {
				gemm.Micro(c.cg, w[i*2*c.cg:][:2*c.cg], in[i*4*c.cg:][:4*c.cg], &m[i])
			}
			for i := range 8 {
				o, tile := 2*p+i/4, t0+t+i%4
				if o >= c.og || t+i%4 >= nt {
					continue
				}
				o += g * c.og
				r := outputTile(&m, i)
				if c.bias != nil {
					b := c.bias[o]
					r[0], r[1], r[2], r[3] = r[0]+b, r[1]+b, r[2]+b, r[3]+b
				}
				if c.act.On {
					// Value by value: r would escape to the heap through the kernel that clamps.
					for i, v := range r {
						r[i] = min(max(v, c.act.Min), c.act.Max)
					}
				}
				oy, ox := tile/tw*2, tile%tw*2
				at := (o*s.OH+oy)*s.OW + ox
				y[at] = r[0]
				if ox+1 < s.OW {
					y[at+1] = r[1]
				}
				if oy+1 < s.OH {
					y[at+s.OW] = r[2]
					if ox+1 < s.OW {
						y[at+s.OW+1] = r[3]
					}
				}
			}
		}
	}
}

// outputTile computes Aᵀ·m·A of column i.
func outputTile(m *[16][8]float32, i int) [4]float32 {
	var h [8]float32
	for x := range 4 {
		a, b, c, d := m[x][i], m[4+x][i], m[8+x][i], m[12+x][i]
		h[x], h[4+x] = a+b+c, b-c-d
	}
	return [4]float32{h[0] + h[1] + h[2], h[1] - h[2] - h[3], h[4] + h[5] + h[6], h[5] - h[6] - h[7]}
}
