package image

// bits reads entropy-coded data bit by bit. After its end it returns zeros.
type bits struct {
	b      []byte
	at     int
	acc    uint32
	n      int
	over   int // bits that had to be made up
	broken bool
}

// madeUp is the number of missing bits up to which data is not considered broken: a few blocks'
// worth, so that a malicious size cannot cost much time.
const madeUp = 1 << 16

func (r *bits) bit() int {
	if r.n == 0 {
		v, ok := byte(0), r.at < len(r.b)
		if ok {
			v = r.b[r.at]
			if v == 0xff {
				// A marker ends the data; 0xff itself is followed by zero.
				ok = r.at+1 < len(r.b) && r.b[r.at+1] == 0
			}
		}
		switch {
		case !ok:
			v = 0
			if r.over += 8; r.over > madeUp {
				r.broken = true
			}
		case v == 0xff:
			r.at += 2
		default:
			r.at++
		}
		r.acc, r.n = uint32(v), 8
	}
	r.n--
	return int(r.acc>>r.n) & 1
}

func (r *bits) take(n int) int {
	v := 0
	for range n {
		v = v<<1 | r.bit()
	}
	return v
}

// extended reads n bits of a number whose leading bit encodes its sign.
func (r *bits) extended(n int) int {
	if n == 0 {
		return 0
	}
	v := r.take(n)
	if v < 1<<(n-1) {
		v += 1 - 1<<n
	}
	return v
}

// end returns the position of the marker after the data.
func (r *bits) end() int {
	for i := r.at; i+1 < len(r.b); i++ {
		if r.b[i] == 0xff && r.b[i+1] != 0 && r.b[i+1] != 0xff {
			return i
		}
	}
	return len(r.b)
}

// huffman is a canonical code: for each length the last code, and the position of its symbols.
type huffman struct {
	last   [17]int // -1 if absent
	offset [17]int
	syms   []byte
}

func (d *jpegFile) huffmanTables(s []byte) error {
	for len(s) > 0 {
		if len(s) < 17 || s[0]>>4 > 1 || s[0]&15 > 3 {
			return errJPEG
		}
		h := &huffman{}
		code, n := 0, 0
		for l := 1; l <= 16; l++ {
			k := int(s[l])
			h.offset[l] = n - code
			code += k
			n += k
			h.last[l] = -1
			if k > 0 {
				h.last[l] = code - 1
			}
			if code > 1<<l {
				return errJPEG
			}
			code <<= 1
		}
		if n > 256 || len(s) < 17+n {
			return errJPEG
		}
		h.syms = s[17 : 17+n]
		d.huff[s[0]>>4][s[0]&15] = h
		s = s[17+n:]
	}
	return nil
}

func (d *jpegFile) symbol(h *huffman) int {
	code := 0
	for l := 1; l <= 16; l++ {
		code = code<<1 | d.bits.bit()
		if code <= h.last[l] {
			return int(h.syms[h.offset[l]+code])
		}
	}
	d.bits.broken = true
	return 0
}

// reader selects how blocks of a scan are read: a spectral band between two coefficients, first
// pass or refinement by one bit.
func (d *jpegFile) reader(from, to int, high, low uint) func(c *component, q []int16) {
	switch {
	case !d.progressive:
		return d.baseline
	case from == 0 && high == 0:
		return func(c *component, q []int16) { d.dc(c, q, low) }
	case from == 0:
		return func(_ *component, q []int16) { q[0] |= int16(d.bits.bit() << low) }
	case high == 0:
		return func(c *component, q []int16) { d.band(c, q, from, to, low) }
	}
	return func(c *component, q []int16) { d.refine(c, q, from, to, low) }
}

func (d *jpegFile) dc(c *component, q []int16, low uint) {
	c.pred += d.bits.extended(min(d.symbol(c.dc), 16))
	q[0] = int16(c.pred << low)
}

func (d *jpegFile) baseline(c *component, q []int16) {
	d.dc(c, q, 0)
	for k := 1; k < 64; k++ {
		rs := d.symbol(c.ac)
		run, size := rs>>4, rs&15
		if size == 0 {
			if run < 15 {
				return
			}
			k += 15
			continue
		}
		if k += run; k > 63 {
			d.bits.broken = true
			return
		}
		q[zigzag[k]] = int16(d.bits.extended(size))
	}
}

// band reads a band for the first time. Runs of blocks without coefficients are stored once.
func (d *jpegFile) band(c *component, q []int16, from, to int, low uint) {
	if d.eobRun > 0 {
		d.eobRun--
		return
	}
	for k := from; k <= to; k++ {
		rs := d.symbol(c.ac)
		run, size := rs>>4, rs&15
		if size == 0 {
			if run < 15 {
				d.eobRun = 1<<run + d.bits.take(run) - 1
				return
			}
			k += 15
			continue
		}
		if k += run; k > to {
			d.bits.broken = true
			return
		}
		q[zigzag[k]] = int16(d.bits.extended(size) << low)
	}
}

// refine adds one bit to the coefficients of a band and sets new ones.
func (d *jpegFile) refine(c *component, q []int16, from, to int, low uint) {
	k := from
	// more adds the correction bit of a coefficient that is already set.
	more := func(v *int16) {
		if d.bits.bit() == 0 || *v>>low&1 != 0 && *v >= 0 || *v < 0 && -*v>>low&1 != 0 {
			return
		}
		if *v >= 0 {
			*v += 1 << low
		} else {
			*v -= 1 << low
		}
	}
	if d.eobRun == 0 {
	band:
		for k <= to {
			rs := d.symbol(c.ac)
			run, size := rs>>4, rs&15
			fresh := int16(0)
			switch {
			case size != 0:
				fresh = -1 << low
				if d.bits.bit() == 1 {
					fresh = 1 << low
				}
			case run < 15:
				d.eobRun = 1<<run + d.bits.take(run)
				break band
			}
			for ; k <= to; k++ {
				v := &q[zigzag[k]]
				if *v != 0 {
					more(v)
					continue
				}
				if run == 0 {
					*v = fresh
					k++
					break
				}
				run--
			}
			if d.bits.broken {
				return
			}
		}
	}
	if d.eobRun > 0 {
		for ; k <= to; k++ {
			if v := &q[zigzag[k]]; *v != 0 {
				more(v)
			}
		}
		d.eobRun--
	}
}
