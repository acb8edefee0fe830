package gemm

import (
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Panel widths of the micro-kernel: rows of the left panel, columns of the right panel.
const (
	RowsPanel = 2
	ColsPanel = 4
)

// Micro multiplies a left panel a (k steps of 2 rows) by a right panel b (k steps of 4 columns)
// into acc, a row-major 2×4 tile. Eight accumulators and the values in flight fill the sixteen
// scalar registers of amd64. It unrolls eight steps, because the compiler keeps all sums in
// registers except in the last step of a round. Each sum adds its products strictly in order.
// Conversions prevent fused multiply-add, so the TFLite path is bit-exact with its reference
// kernels (see TestOrder).
func Micro[T float32 | float64](k int, a, b []T, acc *[8]T) {
	var c00, c01, c02, c03, c10, c11, c12, c13 T
	for ; k >= 8; k -= 8 {
		p, q := (*[16]T)(a), (*[32]T)(b)
		a0, a1 := p[0], p[1]
		v := q[0]
		c00 += T(a0 * v)
		c10 += T(a1 * v)
		v = q[1]
		c01 += T(a0 * v)
		c11 += T(a1 * v)
		v = q[2]
		c02 += T(a0 * v)
		c12 += T(a1 * v)
		v = q[3]
		c03 += T(a0 * v)
		c13 += T(a1 * v)
		a0, a1 = p[2], p[3]
		v = q[4]
		c00 += T(a0 * v)
		c10 += T(a1 * v)
		v = q[5]
		c01 += T(a0 * v)
		c11 += T(a1 * v)
		v = q[6]
		c02 += T(a0 * v)
		c12 += T(a1 * v)
		v = q[7]
		c03 += T(a0 * v)
		c13 += T(a1 * v)
		a0, a1 = p[4], p[5]
		v = q[8]
		c00 += T(a0 * v)
		c10 += T(a1 * v)
		v = q[9]
		c01 += T(a0 * v)
		c11 += T(a1 * v)
		v = q[10]
		c02 += T(a0 * v)
		c12 += T(a1 * v)
		v = q[11]
		c03 += T(a0 * v)
		c13 += T(a1 * v)
		a0, a1 = p[6], p[7]
		v = q[12]
		c00 += T(a0 * v)
		c10 += T(a1 * v)
		v = q[13]
		c01 += T(a0 * v)
		c11 += T(a1 * v)
		v = q[14]
		c02 += T(a0 * v)
		c12 += T(a1 * v)
		v = q[15]
		c03 += T(a0 * v)
		c13 += T(a1 * v)
		a0, a1 = p[8], p[9]
		v = q[16]
		c00 += T(a0 * v)
		c10 += T(a1 * v)
		v = q[17]
		c01 += T(a0 * v)
		c11 += T(a1 * v)
		v = q[18]
		c02 += T(a0 * v)
		c12 += T(a1 * v)
		v = q[19]
		c03 += T(a0 * v)
		c13 += T(a1 * v)
		a0, a1 = p[10], p[11]
		v = q[20]
		c00 += T(a0 * v)
		c10 += T(a1 * v)
		v = q[21]
		c01 += T(a0 * v)
		c11 += T(a1 * v)
		v = q[22]
		c02 += T(a0 * v)
		c12 += T(a1 * v)
		v = q[23]
		c03 += T(a0 * v)
		c13 += T(a1 * v)
		a0, a1 = p[12], p[13]
		v = q[24]
		c00 += T(a0 * v)
		c10 += T(a1 * v)
		v = q[25]
		c01 += T(a0 * v)
		c11 += T(a1 * v)
		v = q[26]
		c02 += T(a0 * v)
		c12 += T(a1 * v)
		v = q[27]
		c03 += T(a0 * v)
		c13 += T(a1 * v)
		a0, a1 = p[14], p[15]
		v = q[28]
		c00 += T(a0 * v)
		c10 += T(a1 * v)
		v = q[29]
		c01 += T(a0 * v)
		c11 += T(a1 * v)
		v = q[30]
		c02 += T(a0 * v)
		c12 += T(a1 * v)
		v = q[31]
		c03 += T(a0 * v)
		c13 += T(a1 * v)
		a, b = a[16:], b[32:]
	}
	for ; k > 0; k-- {
		p, q := (*[2]T)(a), (*[4]T)(b)
		a0, a1 := p[0], p[1]
		v := q[0]
		c00 += T(a0 * v)
		c10 += T(a1 * v)
		v = q[1]
		c01 += T(a0 * v)
		c11 += T(a1 * v)
		v = q[2]
		c02 += T(a0 * v)
		c12 += T(a1 * v)
		v = q[3]
		c03 += T(a0 * v)
		c13 += T(a1 * v)
		a, b = a[2:], b[4:]
	}
	*acc = [8]T{c00, c01, c02, c03, c10, c11, c12, c13}
}

// microRow multiplies one row a by two right panels of four columns. A single row would leave
// half of micro idle.
func microRow(k int, a, b, c []float32, acc *[8]float32) {
	var c0, c1, c2, c3, c4, c5, c6, c7 float32
	for ; k >= 4; k -= 4 {
		p, q, r := (*[4]float32)(a), (*[16]float32)(b), (*[16]float32)(c)
		v := p[0]
		c0 += float32(v * q[0])
		c1 += float32(v * q[1])
		c2 += float32(v * q[2])
		c3 += float32(v * q[3])
		c4 += float32(v * r[0])
		c5 += float32(v * r[1])
		c6 += float32(v * r[2])
		c7 += float32(v * r[3])
		v = p[1]
		c0 += float32(v * q[4])
		c1 += float32(v * q[5])
		c2 += float32(v * q[6])
		c3 += float32(v * q[7])
		c4 += float32(v * r[4])
		c5 += float32(v * r[5])
		c6 += float32(v * r[6])
		c7 += float32(v * r[7])
		v = p[2]
		c0 += float32(v * q[8])
		c1 += float32(v * q[9])
		c2 += float32(v * q[10])
		c3 += float32(v * q[11])
		c4 += float32(v * r[8])
		c5 += float32(v * r[9])
		c6 += float32(v * r[10])
		c7 += float32(v * r[11])
		v = p[3]
		c0 += float32(v * q[12])
		c1 += float32(v * q[13])
		c2 += float32(v * q[14])
		c3 += float32(v * q[15])
		c4 += float32(v * r[12])
		c5 += float32(v * r[13])
		c6 += float32(v * r[14])
		c7 += float32(v * r[15])
		a, b, c = a[4:], b[16:], c[16:]
	}
	for ; k > 0; k-- {
		v, q, r := a[0], (*[4]float32)(b), (*[4]float32)(c)
		c0 += float32(v * q[0])
		c1 += float32(v * q[1])
		c2 += float32(v * q[2])
		c3 += float32(v * q[3])
		c4 += float32(v * r[0])
		c5 += float32(v * r[1])
		c6 += float32(v * r[2])
		c7 += float32(v * r[3])
		a, b, c = a[1:], b[4:], c[4:]
	}
	*acc = [8]float32{c0, c1, c2, c3, c4, c5, c6, c7}
}

// Pack copies n vectors of length k into panels of width w: element i of vector j goes to panel
// j/w, place [i][j%w]. Missing vectors of the last panel are zero. Element i of vector j is
// src[j*vec+i*elem].
func Pack(dst, src []float32, n, k, w, vec, elem int) {
	if k == 0 {
		return
	}
	e := simd.ElementKernels()
	for j0 := 0; j0 < n; j0 += w {
		d := dst[j0*k : (j0+w)*k]
		if m := min(w, n-j0); vec == 1 {
			for i := range k {
				row := d[i*w:][:w]
				clear(row[copy(row, src[i*elem+j0:][:m]):])
			}
			continue
		}
		// One part of the panel at a time, so that it stays in the cache while its columns are
		// written.
		for i0 := 0; i0 < k; i0 += packSteps {
			steps, done := min(packSteps, k-i0), 0
			if cols := min(w, n-j0); e != nil && elem == 1 && e.Transpose(move.Words(d[i0*w:]), w, move.Words(src[j0*vec+i0:]), vec, steps, cols) {
				done = cols
			}
			for j := done; j < w; j++ {
				d := d[i0*w+j:]
				if j0+j >= n {
					for i := range steps {
						d[i*w] = 0
					}
					continue
				}
				s := src[(j0+j)*vec+i0*elem:]
				if elem == 1 {
					for i, v := range s[:steps] {
						d[i*w] = v
					}
					continue
				}
				for i := range steps {
					d[i*w] = s[i*elem]
				}
			}
		}
	}
}

const packSteps = 128
