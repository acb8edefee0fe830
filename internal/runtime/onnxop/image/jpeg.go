package image

import (
	"errors"

	"github.com/opmeter/opmeter/internal/runtime/op"
)

// The standard requires pixels that are bit-exact with libjpeg. The standard library transforms
// blocks with other roundings, so JPEG is decoded here: baseline and progressive, Huffman-coded,
// eight bits per sample.

// Markers of the segments that matter.
const (
	sof0, sof1, sof2, dht            = 0xc0, 0xc1, 0xc2, 0xc4
	soi, eoi, sos, dqt, dri, adobe14 = 0xd8, 0xd9, 0xda, 0xdb, 0xdd, 0xee
)

var errJPEG = errors.New("broken JPEG data")

// component is one colour plane.
type component struct {
	id, h, v, tq int
	wide, high   int // in blocks, rounded up to whole units of all planes
	w, rows      int // in samples
	coef         []int16
	dc, ac       *huffman
	pred         int
	pix          []byte // wide*8 by high*8
}

// jpegFile is the state of one decoding.
type jpegFile struct {
	b           []byte
	at          int
	w, h        int
	hmax, vmax  int
	progressive bool
	quant       [4][64]int
	huff        [2][4]*huffman
	comps       []*component
	restart     int
	rgb         bool // components are red, green and blue
	bits        bits
	eobRun      int
}

// zigzag is the order in which coefficients are stored.
var zigzag = [64]int{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

func decodeJPEG(b []byte) (*rgbImage, error) {
	d := &jpegFile{b: b, at: 2}
	if err := d.segments(); err != nil {
		return nil, err
	}
	if len(d.comps) == 0 {
		return nil, errJPEG
	}
	p, err := newImage(d.w, d.h)
	if err != nil {
		return nil, err
	}
	for _, c := range d.comps {
		c.transform(&d.quant[c.tq])
	}
	d.paint(p)
	return p, nil
}

// segments walks the file up to its end marker. If the data ends early after at least one scan,
// the decoded part is kept, as in libjpeg.
func (d *jpegFile) segments() error {
	scans := 0
	for {
		for d.at < len(d.b) && d.b[d.at] != 0xff {
			d.at++
		}
		for d.at < len(d.b) && d.b[d.at] == 0xff {
			d.at++
		}
		if d.at >= len(d.b) {
			break
		}
		marker := d.b[d.at]
		d.at++
		if marker == eoi {
			break
		}
		if marker == 0 || marker == 1 || marker >= 0xd0 && marker <= soi {
			continue
		}
		if d.at+2 > len(d.b) {
			return errJPEG
		}
		n := int(d.b[d.at])<<8 | int(d.b[d.at+1])
		if n < 2 || n > len(d.b)-d.at {
			return errJPEG
		}
		seg := d.b[d.at+2 : d.at+n]
		d.at += n
		var err error
		switch marker {
		case sof0, sof1, sof2:
			d.progressive = marker == sof2
			err = d.frame(seg)
		case dht:
			err = d.huffmanTables(seg)
		case dqt:
			err = d.quantTables(seg)
		case dri:
			if len(seg) < 2 {
				return errJPEG
			}
			d.restart = int(seg[0])<<8 | int(seg[1])
		case sos:
			scans++
			err = d.scan(seg)
		case adobe14:
			if len(seg) >= 12 && string(seg[:5]) == "Adobe" {
				d.rgb = seg[11] == 0
			}
		default:
			if marker >= 0xc3 && marker <= 0xcf && marker != 0xc8 && marker != 0xcc {
				return op.Unsupported("JPEG process %#x", marker)
			}
		}
		if err != nil {
			return err
		}
	}
	if scans == 0 {
		return errJPEG
	}
	return nil
}

func (d *jpegFile) frame(s []byte) error {
	if len(s) < 6 || len(s) < 6+3*int(s[5]) || len(d.comps) > 0 {
		return errJPEG
	}
	if s[0] != 8 {
		return op.Unsupported("JPEG with %d bits a sample", s[0])
	}
	if s[5] != 1 && s[5] != 3 {
		return op.Unsupported("JPEG with %d components", s[5])
	}
	d.h, d.w = int(s[1])<<8|int(s[2]), int(s[3])<<8|int(s[4])
	if d.w == 0 || d.h == 0 || d.w > maxPixels/d.h {
		return errTooLarge
	}
	for i := range int(s[5]) {
		q := s[6+3*i:]
		c := &component{id: int(q[0]), h: int(q[1] >> 4), v: int(q[1] & 15), tq: int(q[2])}
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.tq > 3 {
			return errJPEG
		}
		if s[5] == 1 {
			c.h, c.v = 1, 1 // sampling means nothing for a single plane
		}
		d.hmax, d.vmax = max(d.hmax, c.h), max(d.vmax, c.v)
		d.comps = append(d.comps, c)
	}
	for _, c := range d.comps {
		if d.hmax%c.h != 0 || d.vmax%c.v != 0 {
			return op.Unsupported("JPEG with sampling %dx%d of %dx%d", c.h, c.v, d.hmax, d.vmax)
		}
		c.wide, c.high = up(d.w, 8*d.hmax)*c.h, up(d.h, 8*d.vmax)*c.v
		c.w, c.rows = up(d.w*c.h, d.hmax), up(d.h*c.v, d.vmax)
		c.coef = make([]int16, c.wide*c.high*64)
	}
	return nil
}

// up divides and rounds up.
func up(a, b int) int { return (a + b - 1) / b }

func (d *jpegFile) quantTables(s []byte) error {
	for len(s) > 0 {
		wide, id := s[0]>>4, s[0]&15
		n := 64 * (1 + int(wide))
		if wide > 1 || id > 3 || len(s) < 1+n {
			return errJPEG
		}
		for i, z := range zigzag {
			if wide == 0 {
				d.quant[id][z] = int(s[1+i])
			} else {
				d.quant[id][z] = int(s[1+2*i])<<8 | int(s[2+2*i])
			}
		}
		s = s[1+n:]
	}
	return nil
}

// scan reads the coefficients of one scan.
func (d *jpegFile) scan(s []byte) error {
	if len(s) < 1 || len(s) < 4+2*int(s[0]) || s[0] < 1 || int(s[0]) > len(d.comps) {
		return errJPEG
	}
	n := int(s[0])
	var comps []*component
	for i := range n {
		var c *component
		for _, k := range d.comps {
			if k.id == int(s[1+2*i]) {
				c = k
			}
		}
		t := s[2+2*i]
		if c == nil || t>>4 > 3 || t&15 > 3 {
			return errJPEG
		}
		c.dc, c.ac = d.huff[0][t>>4], d.huff[1][t&15]
		comps = append(comps, c)
	}
	from, to, high, low := int(s[1+2*n]), int(s[2+2*n]), uint(s[3+2*n]>>4), uint(s[3+2*n]&15)
	if !d.progressive {
		from, to, high, low = 0, 63, 0, 0
	}
	if from > to || to > 63 || low > 13 || d.progressive && (from == 0) != (to == 0) || from > 0 && n > 1 {
		return errJPEG
	}
	for _, c := range comps {
		if from == 0 && high == 0 && c.dc == nil || to > 0 && c.ac == nil {
			return errJPEG
		}
	}
	block := d.reader(from, to, high, low)
	wide, rows := up(d.w, 8*d.hmax), up(d.h, 8*d.vmax)
	if n == 1 {
		wide, rows = up(comps[0].w, 8), up(comps[0].rows, 8)
	}
	d.startScan(comps)
	for unit := range wide * rows {
		if d.restart > 0 && unit > 0 && unit%d.restart == 0 {
			d.resync(comps)
		}
		x, y := unit%wide, unit/wide
		for _, c := range comps {
			if n == 1 {
				block(c, c.block(x, y))
				continue
			}
			for k := range c.h * c.v {
				block(c, c.block(x*c.h+k%c.h, y*c.v+k/c.h))
			}
		}
		if d.bits.broken {
			return errJPEG
		}
	}
	d.at = d.bits.end()
	return nil
}

func (c *component) block(x, y int) []int16 { return c.coef[(y*c.wide+x)*64:][:64] }

func (d *jpegFile) startScan(comps []*component) {
	d.bits = bits{b: d.b, at: d.at}
	d.eobRun = 0
	for _, c := range comps {
		c.pred = 0
	}
}

// resync continues after the next restart marker.
func (d *jpegFile) resync(comps []*component) {
	d.at = d.bits.end()
	if d.at+1 < len(d.b) && d.b[d.at] == 0xff && d.b[d.at+1] >= 0xd0 && d.b[d.at+1] <= 0xd7 {
		d.at += 2
	}
	d.startScan(comps)
}

// paint upsamples the chroma planes to full size and converts to RGB.
func (d *jpegFile) paint(p *rgbImage) {
	lines := make([][]byte, len(d.comps))
	for i := range lines {
		lines[i] = make([]byte, p.w)
	}
	for y := range p.h {
		for i, c := range d.comps {
			c.line(lines[i], d.hmax/c.h, d.vmax/c.v, y)
		}
		out := p.rgb[3*y*p.w:]
		for x := range p.w {
			switch {
			case len(lines) == 1:
				v := lines[0][x]
				out[3*x], out[3*x+1], out[3*x+2] = v, v, v
			case d.rgb:
				out[3*x], out[3*x+1], out[3*x+2] = lines[0][x], lines[1][x], lines[2][x]
			default:
				out[3*x], out[3*x+1], out[3*x+2] = convert(lines[0][x], lines[1][x], lines[2][x])
			}
		}
	}
}

// The inverse cosine transform of Loeffler, Ligtenberg and Moschytz in 13-bit fixed point, with
// the roundings of libjpeg's accurate integer method: two extra bits between the passes.
const (
	fix    = 13
	extra  = 2
	c0298  = 2446  // 0.298631336
	c0390  = 3196  // 0.390180644
	c0541  = 4433  // 0.541196100
	c0765  = 6270  // 0.765366865
	c0899  = 7373  // 0.899976223
	c1175  = 9633  // 1.175875602
	c1501  = 12299 // 1.501321110
	c1847  = 15137 // 1.847759065
	c1961  = 16069 // 1.961570560
	c2053  = 16819 // 2.053119869
	c2562  = 20995 // 2.562915447
	c3072  = 25172 // 3.072711026
	center = 128
)

// transform turns the plane's coefficients into samples.
func (c *component) transform(quant *[64]int) {
	stride := c.wide * 8
	c.pix = make([]byte, stride*c.high*8)
	var m [64]int
	for b := range c.wide * c.high {
		for i, v := range c.coef[b*64 : (b+1)*64] {
			m[i] = int(v) * quant[i]
		}
		for x := range 8 {
			eight(m[x:], 8, fix-extra)
		}
		for y := range 8 {
			eight(m[8*y:], 1, fix+extra+3)
		}
		out := c.pix[b/c.wide*8*stride+b%c.wide*8:]
		for i, v := range m {
			out[i/8*stride+i%8] = clamp(v + center)
		}
	}
	c.coef = nil
}

// eight transforms eight values that lie step apart and drops shift bits.
func eight(m []int, step int, shift uint) {
	z := (m[2*step] + m[6*step]) * c0541
	t2, t3 := z-m[6*step]*c1847, z+m[2*step]*c0765
	t0, t1 := (m[0]+m[4*step])<<fix, (m[0]-m[4*step])<<fix
	e0, e3, e1, e2 := t0+t3, t0-t3, t1+t2, t1-t2

	o0, o1, o2, o3 := m[7*step], m[5*step], m[3*step], m[step]
	z1, z2, z3, z4 := o0+o3, o1+o2, o0+o2, o1+o3
	z5 := (z3 + z4) * c1175
	z1, z2, z3, z4 = -z1*c0899, -z2*c2562, z5-z3*c1961, z5-z4*c0390
	o0 = o0*c0298 + z1 + z3
	o1 = o1*c2053 + z2 + z4
	o2 = o2*c3072 + z2 + z3
	o3 = o3*c1501 + z1 + z4

	half := 1 << (shift - 1)
	m[0], m[7*step] = (e0+o3+half)>>shift, (e0-o3+half)>>shift
	m[step], m[6*step] = (e1+o2+half)>>shift, (e1-o2+half)>>shift
	m[2*step], m[5*step] = (e2+o1+half)>>shift, (e2-o1+half)>>shift
	m[3*step], m[4*step] = (e3+o0+half)>>shift, (e3-o0+half)>>shift
}

// line upsamples row y of the image from a plane that is smaller by hx and vx.
func (c *component) line(dst []byte, hx, vx, y int) {
	stride := c.wide * 8
	near := y / vx
	row := func(i int) []byte { return c.pix[min(max(i, 0), c.rows-1)*stride:][:c.w] }
	switch {
	case hx == 1 && vx == 1:
		copy(dst, row(y))
	case hx <= 2 && vx <= 2 && (hx == 1 || c.w > 2):
		far := near
		if vx == 2 {
			far += 2*(y%2) - 1 // the other row that a pixel leans on is above or below
		}
		interpolate(dst, row(near), row(far), hx, vx, y)
	default:
		src := row(near)
		for x := range dst {
			dst[x] = src[x/hx]
		}
	}
}

// interpolate makes one row: three quarters of the nearer sample and one of the farther in each
// direction that is subsampled. Ties round up and down alternately, so that there is no bias.
func interpolate(dst, near, far []byte, hx, vx, y int) {
	n := len(near)
	if hx == 1 {
		for i := range dst {
			dst[i] = byte((3*int(near[i]) + int(far[i]) + 1 + y%2) >> 2)
		}
		return
	}
	if vx == 1 {
		for i := range dst {
			k := i / 2
			other := k + 2*(i%2) - 1
			if other < 0 || other >= n {
				dst[i] = near[k]
				continue
			}
			dst[i] = byte((3*int(near[k]) + int(near[other]) + 1 + i%2) >> 2)
		}
		return
	}
	sum := func(i int) int { i = min(max(i, 0), n-1); return 3*int(near[i]) + int(far[i]) }
	for i := range dst {
		k := i / 2
		dst[i] = byte((3*sum(k) + sum(k+2*(i%2)-1) + 8 - i%2) >> 4)
	}
}

// convert converts JFIF colour to RGB in 16-bit fixed point.
func convert(y, cb, cr byte) (r, g, b byte) {
	const half = 1 << 15
	l, u, v := int(y), int(cb)-128, int(cr)-128
	return clamp(l + (91881*v+half)>>16), clamp(l + (-22554*u-46802*v+half)>>16), clamp(l + (116130*u+half)>>16)
}

func clamp(v int) byte { return byte(min(max(v, 0), 255)) }
