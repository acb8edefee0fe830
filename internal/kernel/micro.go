package kernel

// Panel widths of the micro-kernel: rows of the left panel, columns of the right.
const (
	rowsPanel = 2
	colsPanel = 4
)

// micro multiplies a left panel a (k steps of 2 rows) by a right panel b (k
// steps of 4 columns) into acc, row-major 2×4. Eight accumulators and the values
// in flight are what fits the sixteen scalar registers of amd64.
func micro(k int, a, b []float32, acc *[8]float32) {
	var c00, c01, c02, c03, c10, c11, c12, c13 float32
	for ; k >= 2; k -= 2 {
		p, q := (*[4]float32)(a), (*[8]float32)(b)
		a0, a1 := p[0], p[1]
		v := q[0]
		c00 += a0 * v
		c10 += a1 * v
		v = q[1]
		c01 += a0 * v
		c11 += a1 * v
		v = q[2]
		c02 += a0 * v
		c12 += a1 * v
		v = q[3]
		c03 += a0 * v
		c13 += a1 * v
		a0, a1 = p[2], p[3]
		v = q[4]
		c00 += a0 * v
		c10 += a1 * v
		v = q[5]
		c01 += a0 * v
		c11 += a1 * v
		v = q[6]
		c02 += a0 * v
		c12 += a1 * v
		v = q[7]
		c03 += a0 * v
		c13 += a1 * v
		a, b = a[4:], b[8:]
	}
	if k == 1 {
		p, q := (*[2]float32)(a), (*[4]float32)(b)
		c00 += p[0] * q[0]
		c01 += p[0] * q[1]
		c02 += p[0] * q[2]
		c03 += p[0] * q[3]
		c10 += p[1] * q[0]
		c11 += p[1] * q[1]
		c12 += p[1] * q[2]
		c13 += p[1] * q[3]
	}
	*acc = [8]float32{c00, c01, c02, c03, c10, c11, c12, c13}
}

// pack copies n vectors of length k into panels of w: element i of vector j goes
// to panel j/w, place [i][j%w]; missing vectors of the last panel are zero.
// Element i of vector j is src[j*vec+i*elem].
func pack(dst, src []float32, n, k, w, vec, elem int) {
	for j0 := 0; j0 < n; j0 += w {
		d := dst[j0*k : (j0+w)*k]
		for j := range w {
			if j0+j >= n {
				for i := range k {
					d[i*w+j] = 0
				}
				continue
			}
			s := src[(j0+j)*vec:]
			if elem == 1 {
				for i, v := range s[:k] {
					d[i*w+j] = v
				}
				continue
			}
			for i := range k {
				d[i*w+j] = s[i*elem]
			}
		}
	}
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
