package loss

import "github.com/opmeter/opmeter/internal/kernel/vectors"

// minTiledElements is the size of a moment matrix that does not fit into the caches. tileElements
// is the size of a tile of its rows that fits into the last-level cache while tileRows rows of
// weights are computed with it.
const minTiledElements, tileElements, tileRows = 1 << 22, 1 << 21, 32

// tiledErrors computes the errors of rows of weights with a large moment matrix, tile by tile. A
// pair of columns counts from the level on at which both are pruned. So a pruned column counts
// twice with those pruned before, and once with those of its own level.
func (x *matrix) tiledErrors(per []float64, sq []float32, fall []uint16, rows []int, levels int) {
	if len(rows) == 0 {
		return
	}
	d := x.cols
	side := min(d, max(8, tileElements/d))
	of := make([]*rowErrors, min(len(rows), tileRows))
	for i := range of {
		of[i] = newRow(d, levels)
	}
	delta := make([]float32, d)
	part := newRow(side, levels)
	for len(rows) > 0 {
		some := rows[:min(len(rows), tileRows)]
		rows = rows[len(some):]
		for i, r := range some {
			of[i].sortByLevel(fall[r*d:][:d])
		}
		for c := 0; c < d; c += side {
			n := min(side, d-c)
			for i, r := range some {
				part.sortByLevel(fall[r*d+c:][:n])
				of[i].addTile(per[r*levels:][:levels], x.w[r*d:][:d], sq, delta, part, c)
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

// addTile adds to each level the contribution of the columns of a tile, from c on, that are
// pruned there, eight columns at a time.
func (r *rowErrors) addTile(out []float64, w, sq, delta []float32, part *rowErrors, c int) {
	d := len(w)
	clear(delta)
	var sums [8]float32
	var from [8]int
	k, before := 0, uint32(0) // the level, and how many columns of the order are in delta
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
		vectors.Dots(sums[:], delta, sq, from[:]) // excess sums are of earlier columns
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
