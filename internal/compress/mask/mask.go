// Package mask determines which weights of a layer become zero, and in which order.
//
// Weights become zero in units: unstructured weights, blocks, channels or filters. The unit with
// the smallest sum of scores is first, of equal ones that with the lowest index. So the zeros of
// a level are included in those of the next one. A level s prunes exactly round(s*n) of n units
// (half to even). Blocks begin at multiples of their size. Where the size does not divide the
// matrix, the last block of a row, column or kernel position is shorter and counts as a block.
package mask

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// Order is the sequence in which the units of a layer become zero.
type Order struct {
	units
	order []uint32 // order of units
	// pairs are the elements that 2:4 prunes, group by group; pairStart has the start of each
	// group.
	pairs     []uint32
	pairStart []uint32
}

// units maps unit numbers of a structure to elements of a matrix: blocks of height rows and width
// columns, line blocks side by side, n in all.
type units struct {
	structure      study.Structure
	rows, cols     int
	taps, channels int
	height, width  int
	line, n        int
}

// channelBlocks reports whether units are blocks of four channels at one kernel position, whose
// columns are taps apart.
func (u *units) channelBlocks() bool {
	return u.structure == study.TwoOfFour || u.structure == study.Block4
}

// MaxWeights bounds the weights of a layer.
const MaxWeights = math.MaxUint32

// New returns the order of a layer's units by scores of its weights, in row-major order. Scores
// are additive costs of losing a weight; negative ones count as 0 and NaN as the largest. A cause
// other than "" says that the structure does not fit.
func New(l *weights.Layer, scores []float32, s study.Structure) (*Order, study.Cause) {
	u, cause := unitsOf(l, s)
	if cause != "" {
		return nil, cause
	}
	o := &Order{units: u}
	if s == study.TwoOfFour {
		o.pruneTwoOfFour(scores)
		return o, ""
	}
	keys := make([]uint64, o.n)
	if s == study.Unstructured {
		for i := range keys {
			keys[i] = sortKey(float64(scores[i]))<<32 | uint64(i)
		}
	} else {
		for i, sum := range u.sums(scores) {
			keys[i] = sortKey(sum)<<32 | uint64(i)
		}
	}
	sortKeys(keys)
	o.order = make([]uint32, o.n)
	for i, k := range keys {
		o.order[i] = uint32(k)
	}
	return o, ""
}

// Magnitudes returns the absolute values of weights: the scores of pruning by magnitude.
func Magnitudes(mat []float32) []float32 {
	out := make([]float32, len(mat))
	for i, v := range mat {
		out[i] = max(v, -v)
	}
	return out
}

// Prune makes the units of a change zero in the weights of a layer, by scores as in [New].
func Prune(l *weights.Layer, mat, scores []float32, c study.Change) study.Cause {
	o, cause := New(l, scores, c.Structure)
	if cause == "" {
		o.Zero(mat, c.Level)
	}
	return cause
}

// sortKeys sorts keys whose lower halves ascend: a radix sort by the bytes of the upper halves.
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
			continue // all bytes are equal
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

// sortKey maps scores to unsigned integers of the same order.
func sortKey(x float64) uint64 {
	switch {
	case x != x:
		return math.MaxUint32
	case x <= 0:
		return 0
	}
	return uint64(math.Float32bits(float32(x)))
}

func unitsOf(l *weights.Layer, s study.Structure) (units, study.Cause) {
	u := units{structure: s, rows: l.Rows, cols: l.Cols, taps: l.Taps, channels: l.Channels, height: 1, width: 1}
	if l.Fixed != "" {
		return u, l.Fixed
	}
	if l.MixedLayouts && s != study.Unstructured {
		return u, study.Shared
	}
	if l.Weights() >= MaxWeights || l.Groups < 1 || u.rows%l.Groups != 0 {
		return u, study.ShapeMismatch
	}
	fits := true
	switch s {
	case study.Unstructured:
	case study.TwoOfFour, study.Block4:
		fits = u.channels >= 4
	case study.Block1x4:
		u.width, fits = 4, u.cols >= 4
	case study.Block4x1:
		u.height, fits = 4, u.rows >= 4
	case study.Block16:
		u.height, fits = 16, u.rows >= 16
	case study.Channel:
		u.height, u.width, fits = u.rows/l.Groups, u.taps, l.Groups*u.channels >= 2
	case study.Filter:
		u.width, fits = u.cols, u.rows >= 2
	default:
		fits = false
	}
	if !fits || u.height < 1 || u.width < 1 {
		return u, study.ShapeMismatch
	}
	u.line = (u.cols + u.width - 1) / u.width
	if u.channelBlocks() {
		u.line = u.taps * ((u.channels + 3) / 4)
	}
	u.n = (u.rows + u.height - 1) / u.height * u.line
	return u, ""
}

// sums returns the sum of scores of each unit.
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

// columns and first number the units: element c of row r belongs to unit first(r) + columns[c].
func (u *units) columns() []int {
	columns := make([]int, u.cols)
	for c := range columns {
		if columns[c] = c / u.width; u.channelBlocks() {
			columns[c] = c/u.taps/4*u.taps + c%u.taps
		}
	}
	return columns
}

func (u *units) first(r int) int { return r / u.height * u.line }

// elements appends the elements of a unit by its number.
func (u *units) elements(i int, dst []int) []int {
	if u.structure == study.Unstructured {
		return append(dst, i)
	}
	c, step := i%u.line*u.width, 1
	end := min(c+u.width, u.cols)
	if u.channelBlocks() {
		part := i % u.line / u.taps
		c, step = 4*part*u.taps+i%u.taps, u.taps
		end = min(4*part+4, u.channels) * u.taps
	}
	top := i / u.line * u.height
	for r := top; r < min(top+u.height, u.rows); r++ {
		for k := c; k < end; k += step {
			dst = append(dst, r*u.cols+k)
		}
	}
	return dst
}

// pruneTwoOfFour chooses in every group of four the two elements with the smallest scores; in a
// shorter group as many as leave two. Groups are unordered: the only level prunes all of them.
func (o *Order) pruneTwoOfFour(scores []float32) {
	o.order = make([]uint32, o.n)
	o.pairStart = make([]uint32, o.n+1)
	var unit []int
	for i := range o.n {
		o.order[i] = uint32(i)
		unit = o.elements(i, unit[:0])
		sorting.Stable(unit, func(a, b int) int {
			return cmp.Compare(sortKey(float64(scores[a])), sortKey(float64(scores[b])))
		})
		for _, e := range unit[:max(len(unit)-2, 0)] {
			o.pairs = append(o.pairs, uint32(e))
		}
		o.pairStart[i+1] = uint32(len(o.pairs))
	}
}

// Len is the number of units.
func (o *Order) Len() int { return o.n }

// Count is the number of units that a level prunes: round(level*n), half to even. 2:4 has a
// single level, which prunes all units; it applies from 0.5 on.
func (o *Order) Count(level float64) int {
	if o.structure == study.TwoOfFour {
		if level >= 0.5 {
			return o.n
		}
		return 0
	}
	return int(math.RoundToEven(min(max(level, 0), 1) * float64(o.n)))
}

// Number returns the number of the i-th unit in pruning order; for channels and filters it is the
// number of the channel or row.
func (o *Order) Number(i int) int { return int(o.order[i]) }

// Elements appends to dst the elements of a unit by its number, without regard to 2:4.
func (o *Order) Elements(number int, dst []int) []int { return o.elements(number, dst) }

// Unit appends to dst the elements of the matrix, row*cols+col, that become zero with the i-th
// unit.
func (o *Order) Unit(i int, dst []int) []int {
	at := int(o.order[i])
	if o.structure == study.TwoOfFour {
		for _, e := range o.pairs[o.pairStart[at]:o.pairStart[at+1]] {
			dst = append(dst, int(e))
		}
		return dst
	}
	return o.elements(at, dst)
}

// PruningLevels returns for each element the index of the level at which it becomes zero, or
// len(levels) for none. Levels ascend, fewer than 65536.
func (o *Order) PruningLevels(levels []float64) []uint16 {
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
	if o.structure == study.TwoOfFour {
		falls := slices.Repeat([]uint16{none}, o.rows*o.cols)
		for i, k := range unit {
			for _, e := range o.pairs[o.pairStart[i]:o.pairStart[i+1]] {
				falls[e] = k
			}
		}
		return falls
	}
	falls, columns := make([]uint16, o.rows*o.cols), o.columns()
	for r := range o.rows {
		row, of := falls[r*o.cols:][:len(columns)], unit[o.first(r):]
		for c, at := range columns {
			row[c] = of[at]
		}
	}
	return falls
}

// Zero makes the units of a level zero in a row-major matrix.
func (o *Order) Zero(mat []float32, level float64) {
	var unit []int
	for i := range o.Count(level) {
		unit = o.Unit(i, unit[:0])
		for _, e := range unit {
			mat[e] = 0
		}
	}
}
