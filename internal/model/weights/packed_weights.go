package weights

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// packedMatMul sets the elements of MatMulNBits weights.
func (f *finder) packedMatMul(l *Layer, n *graph.Node, at *tracedView) bool {
	bits, block := n.Attrs.Int("bits", 4), n.Attrs.Int("block_size", 0)
	rows, cols := n.Attrs.Int("N", 0), n.Attrs.Int("K", 0)
	types := map[int]tensor.Type{2: tensor.Uint2, 4: tensor.Uint4, 8: tensor.Uint8}
	if types[bits] == tensor.Invalid || block < 1 || rows < 1 || cols < 1 {
		return false
	}
	per := (cols + block - 1) / block
	if l.Const.Len() != rows*per*block*bits/8 || l.Const.Type.Bits() != 8 {
		return false
	}
	l.elems = &tensor.Tensor{Type: types[bits], Shape: []int{rows, per * block}, Data: l.Const.Data}
	at.v = contiguous(l.elems.Shape)
	scale := constOperand(f.g, n, 2)
	at.unknownQuant = scale == nil || scale.Len() != rows*per || hasInput(n, 4)
	if at.unknownQuant {
		return true
	}
	q := &tensor.Quant{Scale: make([]float32, rows*per), Zero: make([]int64, rows*per), Axis: 1, Block: block}
	tensor.Read(q.Scale, scale, 0)
	for i := range q.Zero {
		q.Zero[i] = 1 << (bits - 1)
	}
	if hasInput(n, 3) && !readPackedZeros(q.Zero, constOperand(f.g, n, 3), types[bits], per) {
		at.unknownQuant = true
		return true
	}
	at.q, at.qv = q, at.v
	l.q, l.Quant = scaler{q, at.v}, q
	return true
}

// readPackedZeros reads zero points of blocks that are packed into bytes, row by row with the
// given number of blocks per row. It is false where the tensor does not have this layout.
func readPackedZeros(zero []int64, from *tensor.Tensor, t tensor.Type, row int) bool {
	line := (row*t.Bits() + 7) / 8
	if from == nil || from.Type != tensor.Uint8 || row < 1 || from.Len() != len(zero)/row*line || len(from.Data) < from.Len() {
		return false
	}
	codes := make([]uint8, line*8/t.Bits())
	for r := range len(zero) / row {
		tensor.Unpack(codes, &tensor.Tensor{Type: t, Shape: []int{len(codes)}, Data: from.Data[r*line:][:line]}, 0)
		for k := range row {
			zero[r*row+k] = int64(codes[k])
		}
	}
	return true
}

// packedGather sets the elements of a GatherBlockQuantized table.
func (f *finder) packedGather(l *Layer, n *graph.Node, at *tracedView) bool {
	shape, t := slices.Clone(l.Const.Shape), l.Const.Type
	block, axis := n.Attrs.Int("block_size", 128), n.Attrs.Int("quantize_axis", 1)
	rank := len(shape)
	if axis < 0 {
		axis += rank
	}
	if !at.v.regular() || at.q != nil || block < 1 || axis < 0 || axis >= rank {
		return false
	}
	middle := int64(0)
	if t == tensor.Uint8 { // bytes with several values
		bits := n.Attrs.Int("bits", 4)
		if t = map[int]tensor.Type{4: tensor.Uint4, 8: tensor.Uint8}[bits]; t == tensor.Invalid || n.Inputs[0] != l.Value {
			return false
		}
		middle = 1 << (bits - 1)
		shape[rank-1] *= 8 / bits
		l.elems = &tensor.Tensor{Type: t, Shape: shape, Data: l.Const.Data}
		at.v = contiguous(shape)
	} else if t != tensor.Int4 && t != tensor.Uint4 {
		return false
	}
	at.unknownQuant = true
	scale := constOperand(f.g, n, 2)
	if scale == nil || !scale.Type.IsFloat() {
		return true
	}
	q := &tensor.Quant{Scale: make([]float32, scale.Len()), Zero: make([]int64, scale.Len()), Axis: axis, Block: block}
	tensor.Read(q.Scale, scale, 0)
	for i := range q.Zero {
		q.Zero[i] = middle
	}
	if zero := constOperand(f.g, n, 3); hasInput(n, 3) {
		row := 1
		if r := len(scale.Shape); r > 0 {
			row = scale.Shape[r-1]
		}
		switch {
		case l.Const.Type == tensor.Uint8:
			if !readPackedZeros(q.Zero, zero, t, row) {
				return true
			}
		case zero == nil || zero.Len() != len(q.Zero):
			return true
		default:
			tensor.Read(q.Zero, zero, 0)
		}
	}
	at.q, at.qv, at.unknownQuant = q, at.v, false
	l.q, l.Quant = scaler{q, at.v}, q
	return true
}
