package count

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
)

// ZerosBudget is the number of weights of a model that are looked at for zeros, in
// all: half a second's work.
const ZerosBudget = 1 << 27

// WeightZeros looks at the constant weights of a matrix product or convolution:
// how many are zero and, of those of two dimensions, in what blocks.
// It returns nil for other operators, for weights of which it is not known what
// stands for zero, and when they have more than *budget elements, from which it
// takes those that it reads: weights of many gigabytes are not worth the wait.
func WeightZeros(g *graph.Graph, n *graph.Node, budget *int64) *profile.Sparsity {
	for _, i := range weights.Inputs(n) {
		if i >= len(n.Inputs) || n.Inputs[i] < 0 || n.Inputs[i] >= len(g.Values) {
			continue
		}
		var made []*graph.Node
		if g.Values[n.Inputs[i]].Const == nil {
			made = weights.Producers(g)
		}
		from := weights.SourceOf(g, made, n.Inputs[i])
		if from == nil {
			continue
		}
		v := g.Values[from.Value]
		// Of lists of shapes, such as the first input of TRANSPOSE_CONV, nothing.
		mark := marker(v)
		count := v.Const.Len()
		if mark == nil || count == 0 || int64(count) > *budget || len(v.Const.Data) < v.Const.Type.Bytes(count) {
			return nil
		}
		shape := v.Const.Shape
		if !from.KeepsShape() { // blocks would be others
			shape = nil
		}
		*budget -= int64(count)
		z := zeros(shape, count, mark)
		if v.Sparse != nil {
			z.Encoded, z.StoredBytes = true, new(int64(v.Sparse.StoredBytes))
		}
		return z
	}
	return nil
}

// marker returns what sets row[i] to 1 where element from+i is not zero and to 0
// where it is; nil for types and quantisations in which zero is not one value.
func marker(v *graph.Value) func(row []uint8, from int) {
	d := v.Const.Data
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
	switch v.Const.Type {
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
	q := v.Quant
	if q == nil || len(q.Zero) == 0 || slices.ContainsFunc(q.Zero, func(z int64) bool { return z != q.Zero[0] }) {
		return nil
	}
	switch zero := q.Zero[0]; v.Const.Type {
	case tensor.Int8, tensor.Uint8:
		return func(row []uint8, from int) {
			const ones = 0x0101010101010101
			b := d[from : from+len(row)]
			for ; len(row) >= 8 && len(b) >= 8; row, b = row[8:], b[8:] {
				x := binary.LittleEndian.Uint64(b) ^ ones*uint64(byte(zero))
				// The upper bit of a byte that is not 0, without carries between bytes.
				x |= x&(0x7f*ones) + 0x7f*ones
				binary.LittleEndian.PutUint64(row, x>>7&ones)
			}
			for i, b := range b {
				x := uint32(b ^ byte(zero))
				row[i] = uint8((x | -x) >> 31)
			}
		}
	case tensor.Int16:
		return mark(func(i int) bool { return binary.LittleEndian.Uint16(d[2*i:]) != uint16(zero) })
	case tensor.Int4:
		return mark(func(i int) bool { return d[i/2]>>(i%2*4)&15 != byte(zero)&15 })
	}
	return nil
}

// piece is how many elements are marked at a time where no rows matter.
const piece = 1 << 12

// zeros counts over a matrix, or over count elements of other shapes. Marks are bytes
// of 0 or 1, of which eight are counted at once.
func zeros(shape []int, count int, mark func(row []uint8, from int)) *profile.Sparsity {
	var n struct{ elements, b1x4, b4x1, b1x16, b4x16, rows, columns, two int }
	if len(shape) != 2 {
		row := make([]uint8, min(count, piece))
		for at := 0; at < count; at += piece {
			row = row[:min(piece, count-at)]
			mark(row, at)
			n.elements += len(row) - marked(row)
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
		set := marked(row)
		join(tall, row)
		join(column, row)
		n.elements += cols - set
		if set == 0 {
			n.rows++
		}
		for c := 0; c+4 <= cols; c += 4 {
			k := bits.OnesCount32(binary.LittleEndian.Uint32(row[c:])) & 7
			n.b1x4 += 1 >> k
			n.two += 0b111 >> k & 1
		}
		n.b1x16 += empty(row)
		if r%4 == 3 {
			n.b4x16 += empty(tall)
			n.b4x1 += cols - marked(tall)
		}
	}
	n.columns = cols - marked(column)
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

// marked is the number of marks.
func marked(row []uint8) int {
	n := 0
	for ; len(row) >= 8; row = row[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(row))
	}
	for _, x := range row {
		n += int(x)
	}
	return n
}

// join adds the marks of row to those of all, which is as long.
func join(all, row []uint8) {
	for ; len(row) >= 8 && len(all) >= 8; all, row = all[8:], row[8:] {
		binary.LittleEndian.PutUint64(all, binary.LittleEndian.Uint64(all)|binary.LittleEndian.Uint64(row))
	}
	for i, x := range row {
		all[i] |= x
	}
}

// empty is the number of groups of 16 without a mark.
func empty(row []uint8) int {
	n := 0
	for ; len(row) >= 16; row = row[16:] {
		if binary.LittleEndian.Uint64(row)|binary.LittleEndian.Uint64(row[8:]) == 0 {
			n++
		}
	}
	return n
}
