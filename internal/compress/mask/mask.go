// Package mask says which weights of a layer become zero, and in which order.
//
// Weights become zero in units: one by one, in blocks, channels or filters. The unit with the
// least sum of scores goes first, of equal ones the one with the lowest index, so that every
// level's zeros are among those of the next level, and a level s takes exactly round(s*n) of n
// units, halves rounded to even. Blocks begin at multiples of their size; where the size does not divide
// the matrix, the last block of a row, column or window place is shorter and counts as a block.
package mask

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// Order is the sequence in which the units of a layer become zero.
type Order struct {
	units
	order []uint32 // of units
	// pairs are the elements that 2:4 takes, group by group, by from.
	pairs []uint32
	from  []uint32
}

// units are those of a structure over a matrix: unit numbers and their elements.
type units struct {
	structure            study.Structure
	rows, cols           int
	taps, channels, outs int // outs: rows of a group
	groups               int
	n                    int
}

// MaxWeights bounds the weights of a layer.
const MaxWeights = math.MaxUint32

// New makes the order of a layer's units by scores of its weights, row by row. Scores are sums of
// what the loss of each weight costs; negative ones and NaN count as 0 and as the largest. A cause
// other than "" says that the structure does not fit.
func New(l *weights.Layer, scores []float32, s study.Structure) (*Order, study.Cause) {
	u, cause := unitsOf(l, s)
	if cause != "" {
		return nil, cause
	}
	o := &Order{units: u}
	if s == study.TwoOfFour {
		o.two(scores)
		return o, ""
	}
	keys := make([]uint64, o.n)
	if s == study.Unstructured {
		for i := range keys {
			keys[i] = key(float64(scores[i]))<<32 | uint64(i)
		}
	} else {
		for i, sum := range u.sums(scores) {
			keys[i] = key(sum)<<32 | uint64(i)
		}
	}
	sortKeys(keys)
	o.order = make([]uint32, o.n)
	for i, k := range keys {
		o.order[i] = uint32(k)
	}
	return o, ""
}

// sortKeys sorts keys whose lower halves ascend: by bytes of the upper halves, each time in order.
func sortKeys(keys []uint64) {
	if len(keys) < 256 {
		slices.Sort(keys)
		return
	}
	var count [4][256]int
	for _, k := range keys {
		for b := range 4 {
			count[b][byte(k>>(32+8*b))]++
		}
	}
	from, to := keys, make([]uint64, len(keys))
	for b := range 4 {
		c := &count[b]
		if c[byte(keys[0]>>(32+8*b))] == len(keys) {
			continue // all the same
		}
		at := 0
		for i, n := range c {
			c[i] = at
			at += n
		}
		for _, k := range from {
			d := byte(k >> (32 + 8*b))
			to[c[d]] = k
			c[d]++
		}
		from, to = to, from
	}
	if &from[0] != &keys[0] {
		copy(keys, from)
	}
}

// key orders scores as unsigned integers.
func key(x float64) uint64 {
	switch {
	case x != x:
		return math.MaxUint32
	case x <= 0:
		return 0
	}
	return uint64(math.Float32bits(float32(x)))
}

func unitsOf(l *weights.Layer, s study.Structure) (units, study.Cause) {
	u := units{structure: s, rows: l.Rows, cols: l.Cols, taps: l.Taps, channels: l.Channels, groups: l.Groups}
	if l.Fixed != "" {
		return u, l.Fixed
	}
	if l.MixedLayouts && s != study.Unstructured {
		return u, study.Shared
	}
	if l.Weights() >= MaxWeights || u.groups < 1 || u.rows%u.groups != 0 {
		return u, study.ShapeMismatch
	}
	u.outs = u.rows / u.groups
	parts := func(n, size int) int { return (n + size - 1) / size }
	fits := true
	switch s {
	case study.Unstructured:
		u.n = u.rows * u.cols
	case study.TwoOfFour, study.Block4:
		u.n, fits = u.rows*u.taps*parts(u.channels, 4), u.channels >= 4
	case study.Block1x4:
		u.n, fits = u.rows*parts(u.cols, 4), u.cols >= 4
	case study.Block4x1:
		u.n, fits = parts(u.rows, 4)*u.cols, u.rows >= 4
	case study.Block16:
		u.n, fits = parts(u.rows, 16)*u.cols, u.rows >= 16
	case study.Channel:
		u.n = u.groups * u.channels
		fits = u.n >= 2
	case study.Filter:
		u.n, fits = u.rows, u.rows >= 2
	default:
		fits = false
	}
	if !fits {
		return u, study.ShapeMismatch
	}
	return u, ""
}

// sums are those of the scores of each unit's elements.
func (u *units) sums(scores []float32) []float64 {
	sums := make([]float64, u.n)
	columns := u.columns()
	for r := range u.rows {
		first := u.first(r)
		for c, v := range scores[r*u.cols:][:u.cols] {
			sums[first+columns[c]] += float64(v)
		}
	}
	return sums
}

// columns and first number the units: element c of row r is of first(r) + columns[c].
func (u *units) columns() []int {
	columns := make([]int, u.cols)
	for c := range columns {
		switch u.structure {
		case study.Unstructured, study.Block4x1, study.Block16:
			columns[c] = c
		case study.TwoOfFour, study.Block4:
			columns[c] = c/u.taps/4*u.taps + c%u.taps
		case study.Block1x4:
			columns[c] = c / 4
		case study.Channel:
			columns[c] = c / u.taps
		case study.Filter: // one
		}
	}
	return columns
}

func (u *units) first(r int) int {
	switch u.structure {
	case study.TwoOfFour, study.Block4:
		return r * u.taps * ((u.channels + 3) / 4)
	case study.Block1x4:
		return r * ((u.cols + 3) / 4)
	case study.Block4x1:
		return r / 4 * u.cols
	case study.Block16:
		return r / 16 * u.cols
	case study.Channel:
		return r / u.outs * u.channels
	case study.Filter:
		return r
	}
	return r * u.cols
}

// elements appends the elements of a unit by its number.
func (u *units) elements(i int, dst []int) []int {
	switch u.structure {
	case study.Unstructured:
		return append(dst, i)
	case study.TwoOfFour, study.Block4:
		parts := (u.channels + 3) / 4
		r, part, t := i/(parts*u.taps), i/u.taps%parts, i%u.taps
		for c := 4 * part; c < min(4*part+4, u.channels); c++ {
			dst = append(dst, r*u.cols+c*u.taps+t)
		}
	case study.Block1x4:
		parts := (u.cols + 3) / 4
		r, part := i/parts, i%parts
		for c := 4 * part; c < min(4*part+4, u.cols); c++ {
			dst = append(dst, r*u.cols+c)
		}
	case study.Block4x1, study.Block16:
		size := 4
		if u.structure == study.Block16 {
			size = 16
		}
		part, c := i/u.cols, i%u.cols
		for r := size * part; r < min(size*(part+1), u.rows); r++ {
			dst = append(dst, r*u.cols+c)
		}
	case study.Channel:
		g, c := i/u.channels, i%u.channels
		for r := g * u.outs; r < (g+1)*u.outs; r++ {
			for t := range u.taps {
				dst = append(dst, r*u.cols+c*u.taps+t)
			}
		}
	case study.Filter:
		for c := range u.cols {
			dst = append(dst, i*u.cols+c)
		}
	}
	return dst
}

// two chooses for every group of four the two with the least scores; of a shorter group as many as
// leave two. Groups have no order among themselves: the only level takes all.
func (o *Order) two(scores []float32) {
	o.order = make([]uint32, o.n)
	o.from = make([]uint32, o.n+1)
	var unit []int
	for i := range o.n {
		o.order[i] = uint32(i)
		unit = o.elements(i, unit[:0])
		slices.SortStableFunc(unit, func(a, b int) int {
			x, y := key(float64(scores[a])), key(float64(scores[b]))
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		for _, e := range unit[:max(len(unit)-2, 0)] {
			o.pairs = append(o.pairs, uint32(e))
		}
		o.from[i+1] = uint32(len(o.pairs))
	}
}

// Len is the number of units.
func (o *Order) Len() int { return o.n }

// Count is the number of units that a level takes: round(level*n), halves to even. 2:4 has one level,
// which takes all; it counts from 0.5 on.
func (o *Order) Count(level float64) int {
	if o.structure == study.TwoOfFour {
		if level >= 0.5 {
			return o.n
		}
		return 0
	}
	return int(math.RoundToEven(min(max(level, 0), 1) * float64(o.n)))
}

// Number is the number of the i-th unit that becomes zero, counted over the matrix: of channels and
// filters that of the channel or row.
func (o *Order) Number(i int) int { return int(o.order[i]) }

// Unit appends to dst the elements of the matrix, row*cols+col, that become zero with the i-th unit.
func (o *Order) Unit(i int, dst []int) []int {
	at := int(o.order[i])
	if o.structure == study.TwoOfFour {
		for _, e := range o.pairs[o.from[at]:o.from[at+1]] {
			dst = append(dst, int(e))
		}
		return dst
	}
	return o.elements(at, dst)
}

// Falls says for each element of the matrix at which of ascending levels it becomes zero: len(levels) for none. There are fewer than 65536.
func (o *Order) Falls(levels []float64) []uint16 {
	none := uint16(len(levels))
	unit := slices.Repeat([]uint16{none}, o.n)
	i := 0
	for k, level := range levels {
		for n := o.Count(level); i < n; i++ {
			unit[o.order[i]] = uint16(k)
		}
	}
	if o.structure == study.Unstructured {
		return unit
	}
	falls := make([]uint16, o.rows*o.cols)
	if o.structure == study.TwoOfFour {
		for i := range falls {
			falls[i] = none
		}
		for i, k := range unit {
			for _, e := range o.pairs[o.from[i]:o.from[i+1]] {
				falls[e] = k
			}
		}
		return falls
	}
	columns := o.columns()
	for r := range o.rows {
		row, of := falls[r*o.cols:][:len(columns)], unit[o.first(r):]
		for c, at := range columns {
			row[c] = of[at]
		}
	}
	return falls
}

// Zero makes the units of a level zero in a matrix, row by row.
func (o *Order) Zero(mat []float32, level float64) {
	var unit []int
	for i := range o.Count(level) {
		unit = o.Unit(i, unit[:0])
		for _, e := range unit {
			mat[e] = 0
		}
	}
}
