package describe

import (
	"encoding/binary"
	"math/bits"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
)

// ZerosBudget bounds the weights of a model that are inspected for zeros in total: half a second
// of work.
const ZerosBudget = 1 << 27

// weightsOf describes the constant that a layer multiplies with, nil for other layers.
func weightsOf(g *graph.Graph, r *weights.Reading) *profile.Weights {
	if r == nil {
		return nil
	}
	v := g.Values[r.Value]
	shape := r.Shape
	if shape == nil {
		shape = v.Const.Shape
	}
	return &profile.Weights{Name: v.Name, DType: v.Const.Type.String(), Shape: dims(shape), Input: int64(r.Input)}
}

// weightZeros inspects the constant that a matrix multiplication or convolution reads: how many
// elements are zero, and of a matrix in which blocks. It returns nil for weights whose zero value
// is unknown, and for weights with more than *budget elements. It subtracts the inspected
// elements from the budget: weights of many gigabytes would take too long.
func weightZeros(g *graph.Graph, r *weights.Reading, budget *int64) *profile.Sparsity {
	if r == nil {
		return nil
	}
	v := g.Values[r.Value]
	mark := nonZeroMarker(v.Const, r)
	count := v.Const.Len()
	if mark == nil || count == 0 || int64(count) > *budget || len(v.Const.Data) < v.Const.Type.Bytes(count) {
		return nil
	}
	*budget -= int64(count)
	z := zeros(r.Shape, count, mark)
	if v.Sparse != nil {
		z.Encoded, z.StoredBytes = true, new(int64(v.Sparse.StoredBytes))
	}
	return z
}

// nonZeroMarker returns a function that sets row[i] to 1 if element from+i is not zero, else to
// 0; nil for types and quantisations without a known zero value.
func nonZeroMarker(c *tensor.Tensor, r *weights.Reading) func(row []uint8, from int) {
	d := c.Data
	mark := func(ok func(i int) bool) func(row []uint8, from int) {
		return func(row []uint8, from int) {
			for i := range row {
				row[i] = 0
				if ok(from + i) {
					row[i] = 1
				}
			}
		}
	}
	switch c.Type {
	case tensor.Float32:
		return func(row []uint8, from int) {
			b := d[4*from:][:4*len(row)]
			for i := range row {
				x := binary.LittleEndian.Uint32(b[4*i:4*i+4]) << 1 // without the sign
				row[i] = uint8((x | -x) >> 31)
			}
		}
	case tensor.Float64:
		return mark(func(i int) bool { return binary.LittleEndian.Uint64(d[8*i:])<<1 != 0 })
	case tensor.Float16, tensor.BFloat16:
		return mark(func(i int) bool { return binary.LittleEndian.Uint16(d[2*i:])<<1 != 0 })
	}
	zero, each, ok := r.Zero()
	if !ok {
		return nil
	}
	if each == nil {
		each = func(int) int64 { return zero }
		if c.Type == tensor.Int8 || c.Type == tensor.Uint8 {
			return byteMarker(d, byte(zero))
		}
	}
	switch c.Type {
	case tensor.Int8, tensor.Uint8:
		return mark(func(i int) bool { return d[i] != byte(each(i)) })
	case tensor.Int16, tensor.Uint16:
		return mark(func(i int) bool { return binary.LittleEndian.Uint16(d[2*i:]) != uint16(each(i)) })
	case tensor.Int4, tensor.Uint4:
		return mark(func(i int) bool { return d[i/2]>>(i%2*4)&15 != byte(each(i))&15 })
	}
	return nil
}

// byteMarker is [nonZeroMarker] for bytes of which one value stands for zero.
func byteMarker(d []byte, zero byte) func(row []uint8, from int) {
	return func(row []uint8, from int) {
		const ones = 0x0101010101010101
		b := d[from : from+len(row)]
		for ; len(row) >= 8 && len(b) >= 8; row, b = row[8:], b[8:] {
			x := binary.LittleEndian.Uint64(b) ^ ones*uint64(zero)
			// Sets the upper bit of each non-zero byte, without carries between bytes.
			x |= x&(0x7f*ones) + 0x7f*ones
			binary.LittleEndian.PutUint64(row, x>>7&ones)
		}
		for i, b := range b {
			x := uint32(b ^ zero)
			row[i] = uint8((x | -x) >> 31)
		}
	}
}

// piece is the number of elements marked at a time where rows are irrelevant.
const piece = 1 << 12

// zeros counts over a matrix, or over count elements of other shapes. Marks are bytes of 0 or 1;
// eight are counted at once.
func zeros(shape []int, count int, mark func(row []uint8, from int)) *profile.Sparsity {
	var n struct{ elements, b1x4, b4x1, b1x16, b4x16, rows, columns, two int }
	if len(shape) != 2 {
		row := make([]uint8, min(count, piece))
		for at := 0; at < count; at += piece {
			row = row[:min(piece, count-at)]
			mark(row, at)
			n.elements += len(row) - countMarks(row)
		}
		return &profile.Sparsity{Weights: new(float64(n.elements) / float64(count))}
	}
	rows, cols := shape[0], shape[1]
	row, tall, column := make([]uint8, cols), make([]uint8, cols), make([]uint8, cols)
	for r := range rows {
		mark(row, r*cols)
		if r%4 == 0 {
			clear(tall)
		}
		set := countMarks(row)
		orMarks(tall, row)
		orMarks(column, row)
		n.elements += cols - set
		if set == 0 {
			n.rows++
		}
		for c := 0; c+4 <= cols; c += 4 {
			k := bits.OnesCount32(binary.LittleEndian.Uint32(row[c:])) & 7
			n.b1x4 += 1 >> k
			n.two += 0b111 >> k & 1
		}
		n.b1x16 += emptyGroups(row)
		if r%4 == 3 {
			n.b4x16 += emptyGroups(tall)
			n.b4x1 += cols - countMarks(tall)
		}
	}
	n.columns = cols - countMarks(column)
	z := &profile.Sparsity{Weights: new(float64(n.elements) / float64(count)), Blocks: map[string]float64{}}
	for _, b := range []struct {
		name      string
		n, blocks int
	}{
		{"1x4", n.b1x4, rows * (cols / 4)},
		{"4x1", n.b4x1, rows / 4 * cols},
		{"1x16", n.b1x16, rows * (cols / 16)},
		{"4x16", n.b4x16, rows / 4 * (cols / 16)},
		{"2:4", n.two, rows * (cols / 4)},
		{"rows", n.rows, rows},
		{"columns", n.columns, cols},
	} {
		if b.blocks > 0 {
			z.Blocks[b.name] = float64(b.n) / float64(b.blocks)
		}
	}
	return z
}

// countMarks returns the number of marks.
func countMarks(row []uint8) int {
	n := 0
	for ; len(row) >= 8; row = row[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(row))
	}
	for _, x := range row {
		n += int(x)
	}
	return n
}

// orMarks adds the marks of row to those of all, which has the same length.
func orMarks(all, row []uint8) {
	for ; len(row) >= 8 && len(all) >= 8; all, row = all[8:], row[8:] {
		binary.LittleEndian.PutUint64(all, binary.LittleEndian.Uint64(all)|binary.LittleEndian.Uint64(row))
	}
	for i, x := range row {
		all[i] |= x
	}
}

// emptyGroups returns the number of groups of 16 without a mark.
func emptyGroups(row []uint8) int {
	n := 0
	for ; len(row) >= 16; row = row[16:] {
		if binary.LittleEndian.Uint64(row)|binary.LittleEndian.Uint64(row[8:]) == 0 {
			n++
		}
	}
	return n
}
