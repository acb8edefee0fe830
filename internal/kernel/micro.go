package kernel

// Panel widths of the micro-kernel: rows of the left panel, columns of the right.
const (
	rowsPanel = 2
	colsPanel = 4
)

// micro multiplies a left panel a (k steps of 2 rows) by a right panel b (k
// steps of 4 columns) into acc, row-major 2×4. Eight accumulators and the values
// in flight are what fits the sixteen scalar registers of amd64. Eight steps are
// unrolled, because the compiler keeps all sums in registers but for the last
// step of a round.
func micro[T float32 | float64](k int, a, b []T, acc *[8]T) {
	var c00, c01, c02, c03, c10, c11, c12, c13 T
	for ; k >= 8; k -= 8 {
		p, q := (*[16]T)(a), (*[32]T)(b)
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
		a0, a1 = p[4], p[5]
		v = q[8]
		c00 += a0 * v
		c10 += a1 * v
		v = q[9]
		c01 += a0 * v
		c11 += a1 * v
		v = q[10]
		c02 += a0 * v
		c12 += a1 * v
		v = q[11]
		c03 += a0 * v
		c13 += a1 * v
		a0, a1 = p[6], p[7]
		v = q[12]
		c00 += a0 * v
		c10 += a1 * v
		v = q[13]
		c01 += a0 * v
		c11 += a1 * v
		v = q[14]
		c02 += a0 * v
		c12 += a1 * v
		v = q[15]
		c03 += a0 * v
		c13 += a1 * v
		a0, a1 = p[8], p[9]
		v = q[16]
		c00 += a0 * v
		c10 += a1 * v
		v = q[17]
		c01 += a0 * v
		c11 += a1 * v
		v = q[18]
		c02 += a0 * v
		c12 += a1 * v
		v = q[19]
		c03 += a0 * v
		c13 += a1 * v
		a0, a1 = p[10], p[11]
		v = q[20]
		c00 += a0 * v
		c10 += a1 * v
		v = q[21]
		c01 += a0 * v
		c11 += a1 * v
		v = q[22]
		c02 += a0 * v
		c12 += a1 * v
		v = q[23]
		c03 += a0 * v
		c13 += a1 * v
		a0, a1 = p[12], p[13]
		v = q[24]
		c00 += a0 * v
		c10 += a1 * v
		v = q[25]
		c01 += a0 * v
		c11 += a1 * v
		v = q[26]
		c02 += a0 * v
		c12 += a1 * v
		v = q[27]
		c03 += a0 * v
		c13 += a1 * v
		a0, a1 = p[14], p[15]
		v = q[28]
		c00 += a0 * v
		c10 += a1 * v
		v = q[29]
		c01 += a0 * v
		c11 += a1 * v
		v = q[30]
		c02 += a0 * v
		c12 += a1 * v
		v = q[31]
		c03 += a0 * v
		c13 += a1 * v
		a, b = a[16:], b[32:]
	}
	for ; k > 0; k-- {
		p, q := (*[2]T)(a), (*[4]T)(b)
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
		a, b = a[2:], b[4:]
	}
	*acc = [8]T{c00, c01, c02, c03, c10, c11, c12, c13}
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
