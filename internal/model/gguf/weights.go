package gguf

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// packed is a matrix of block-quantised weights in the form of MatMulNBits.
type packed struct {
	from         *Tensor
	data, scales *tensor.Tensor
	zeros        *tensor.Tensor // nil for the middle of the range
}

// newPacked describes the converted weights; their elements are missing until fill.
func newPacked(t *Tensor, u *unpacking) *packed {
	n := 1
	for _, d := range t.Shape[:len(t.Shape)-1] {
		n *= d
	}
	blocks := t.Shape[len(t.Shape)-1] / u.block
	p := &packed{
		from:   t,
		data:   &tensor.Tensor{Type: tensor.Uint8, Shape: []int{n, blocks, u.block * u.bits / 8}},
		scales: &tensor.Tensor{Type: tensor.Float32, Shape: []int{n, blocks}},
	}
	if u.zeros {
		p.zeros = &tensor.Tensor{Type: tensor.Float32, Shape: []int{n, blocks}}
	}
	return p
}

// fill converts the weights.
func (p *packed) fill(pool *workers.Pool) {
	info := types[p.from.Type]
	u := info.unpack
	per := info.block / u.block // blocks of the result in one of the file
	p.data.Alloc()
	p.scales.Alloc()
	var zeros []float32
	if p.zeros != nil {
		p.zeros.Alloc()
		zeros = tensor.Of[float32](p.zeros)
	}
	data, scales := p.data.Data, tensor.Of[float32](p.scales)
	out := info.block * u.bits / 8
	pool.For(len(p.from.Data)/info.bytes, 1<<12, func(lo, hi int) {
		q := make([]uint8, info.block)
		var zero []float32
		for b := lo; b < hi; b++ {
			if zeros != nil {
				zero = zeros[b*per:][:per]
			}
			u.to(p.from.Data[b*info.bytes:][:info.bytes], q, scales[b*per:][:per], zero)
			pack(data[b*out:][:out], q, u.bits)
		}
	})
}

// pack stores elements of less than 8 bits, the low bits first.
func pack(dst []byte, q []uint8, bits int) {
	per := 8 / bits
	for i := range dst {
		dst[i] = 0
		for j, x := range q[i*per:][:per] {
			dst[i] |= x << (j * bits)
		}
	}
}

// plain is a tensor of floating-point elements, transposed if it is the matrix of a MatMul.
type plain struct {
	from      *Tensor
	to        *tensor.Tensor
	transpose bool
}

// plainTypes has the types that are used as they are.
var plainTypes = map[Type]tensor.Type{F32: tensor.Float32, F16: tensor.Float16, BF16: tensor.BFloat16}

func newPlain(t *Tensor, transpose bool) *plain {
	p := &plain{from: t, to: &tensor.Tensor{Type: plainTypes[t.Type], Shape: t.Shape}, transpose: transpose}
	if transpose {
		p.to.Shape = []int{t.Shape[1], t.Shape[0]}
	}
	return p
}

func (p *plain) fill(pool *workers.Pool) {
	if !p.transpose {
		p.to.Data = p.from.Data
		return
	}
	p.to.Alloc()
	if p.to.Type == tensor.Float32 {
		transpose(pool, wordsOf[uint32](p.to.Data), wordsOf[uint32](p.from.Data), p.to.Shape[0], p.to.Shape[1])
	} else {
		transpose(pool, wordsOf[uint16](p.to.Data), wordsOf[uint16](p.from.Data), p.to.Shape[0], p.to.Shape[1])
	}
}

// wordsOf views elements of the file, which are aligned.
func wordsOf[T uint16 | uint32](b []byte) []T {
	t := tensor.Uint16
	size := 2
	if any(T(0)) == any(uint32(0)) {
		t, size = tensor.Uint32, 4
	}
	return tensor.Of[T](&tensor.Tensor{Type: t, Shape: []int{len(b) / size}, Data: b})
}

// transpose stores a matrix of cols rows of rows elements as rows × cols.
func transpose[T uint16 | uint32](pool *workers.Pool, dst, src []T, rows, cols int) {
	const tile = 16 // rows of the result that are written together
	pool.For((rows+tile-1)/tile, 1, func(lo, hi int) {
		for r := lo * tile; r < min(rows, hi*tile); r += tile {
			for c := range cols {
				for i := r; i < min(rows, r+tile); i++ {
					dst[i*cols+c] = src[c*rows+i]
				}
			}
		}
	})
}
