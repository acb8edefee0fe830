package image

// The inverse cosine transform of Loeffler, Ligtenberg and Moschytz in 13-bit
// fixed point, with the roundings of libjpeg's accurate integer method: two
// extra bits between the passes.
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
