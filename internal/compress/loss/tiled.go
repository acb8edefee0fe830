package loss

import "github.com/opmeter/opmeter/internal/kernel/vectors"

// tiledAt is the number of elements of a matrix of second moments that caches do not hold, tileAt that of some rows of it that the
// last one does while tileRows rows of weights are computed with them.
const tiledAt, tileAt, tileRows = 1 << 22, 1 << 21, 32

// tiled computes the errors of rows of weights by a large matrix of second moments, some of its rows at a time. Two columns count
// from the level on at which both have fallen, so one that falls counts with those that did before, twice, and with those of its level.
func (x *matrix) tiled(per []float64, sq []float32, fall []uint16, rows []int, levels int) {
	if len(rows) == 0 {
		return
	}
	d := x.cols
	side := min(d, max(8, tileAt/d))
	of := make([]*row, min(len(rows), tileRows))
	for i := range of {
		of[i] = newRow(d, levels)
	}
	delta := make([]float32, d)
	part := newRow(side, levels)
	for len(rows) > 0 {
		some := rows[:min(len(rows), tileRows)]
		rows = rows[len(some):]
		for i, r := range some {
			of[i].sort(fall[r*d:][:d])
		}
		for c := 0; c < d; c += side {
			n := min(side, d-c)
			for i, r := range some {
				part.sort(fall[r*d+c:][:n])
				of[i].tile(per[r*levels:][:levels], x.w[r*d:][:d], sq, delta, part, c)
			}
		}
		for _, r := range some {
			sum := 0.0
			for k, v := range per[r*levels:][:levels] {
				sum += v
				per[r*levels+k] = max(sum, 0)
			}
		}
	}
}

// tile adds to each level what the columns of a part, from c on, that fall there count, eight columns at a time.
func (r *row) tile(out []float64, w, sq, delta []float32, part *row, c int) {
	d := len(w)
	clear(delta)
	var sums [8]float32
	var from [8]int
	k, before := 0, uint32(0) // the level, and of the order what is in delta
	last := part.at[r.levels]
	for i := uint32(0); i < last; i += 8 {
		columns := part.order[i:min(i+8, last)]
		for i >= part.at[k+1] {
			k++
		}
		for _, e := range r.order[before:r.at[k]] {
			delta[e] = 2 * w[e]
		}
		before = r.at[k]
		for x, e := range columns {
			from[x] = (c + int(e)) * d
		}
		vectors.Dots(sums[:], delta, sq, from[:]) // what is too much is of places before
		level := k
		for x, e := range columns {
			for i+uint32(x) >= part.at[level+1] {
				level++
			}
			row, s := sq[from[x]:][:d], sums[x]
			for _, e := range r.order[before:r.at[level]] {
				s += 2 * w[e] * row[e]
			}
			for _, e := range r.order[r.at[level]:r.at[level+1]] {
				s += w[e] * row[e]
			}
			out[level] += float64(w[c+int(e)]) * float64(s)
		}
	}
}
