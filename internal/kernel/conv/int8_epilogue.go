package conv

import (
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// epilogue is the epilogue of a convolution over [N,H,W,C]: it stores the sums if sums is set,
// requantises them with TFLite's rounding, with ONNX's rounding if r is set, or dequantises them
// if h is set.
type epilogue struct {
	sums []int32
	f    *simd.Ints
	y    []uint8
	q    *quantise.Requant
	r    *quantise.Rescale
	// Of hybrid layers, with the input scale.
	h      *quantise.FloatScale
	floats []float32
	scale  float32
	area   int // plane size for [N,C,H,W] output, 0 for [N,H,W,C]
	oc     int // planes per image
	out    int // positions per image
}

// put stores n channels from channel ch of rows rows of sums, line apart. They belong to place at
// of [N,H,W,C], each row step further.
func (k *epilogue) put(sums []int32, line, rows, at, step, ch, n int) {
	switch {
	case k.area > 0:
		k.planes(sums, line, rows, at, step, ch, n)
	case k.h != nil:
		k.h.Rows(k.floats[at:], step, sums, line, rows, n, ch, nil, k.scale)
	case k.r != nil:
		k.r.Columns(k.y[at:], step, sums, line, rows, n, ch)
	case k.sums == nil:
		quantise.RequantTile(k.f, k.y, sums, line, rows, at, step, ch, n, k.q)
	default:
		for r := range rows {
			copy(k.sums[at+r*step:][:n], sums[r*line:])
		}
	}
}

// planes is put for [N,C,H,W] output, which needs a transpose.
func (k *epilogue) planes(sums []int32, line, rows, at, step, ch, n int) {
	together := rows
	if step != k.oc {
		together = 1
	}
	for r := 0; r < rows; {
		img, p := (at+r*step)/k.oc/k.area, (at+r*step)/k.oc%k.area
		here, to := min(together, rows-r, k.area-p), (img*k.oc+ch)*k.area+p
		in := sums[r*line:]
		if k.r != nil {
			sc, codes := scratch.Borrow8(here * n)
			k.r.Columns(codes, n, in, line, here, n, ch)
			move.TransposeBytes(k.y[to:], k.area, codes, n, n, here)
			scratch.Float32s.Put(sc)
		} else {
			move.Transpose(k.sums[to:], k.area, in, line, n, here)
		}
		r += here
	}
}

// rows is put for rows of sums of channels of [N,C,H,W], see putPlanes.
func (k *epilogue) rows(plane, rows, at, n int, sums []int32, line int) {
	if k.area == 0 {
		// A range of one image, where position at holds n outputs.
		sc, codes := scratch.Borrow8(rows * n)
		ch := plane % k.oc
		k.r.Rows(codes, 0, n, sums, line, rows, n, ch)
		move.TransposeBytes(k.y[(plane/k.oc*k.out+at)*k.oc+ch:], k.oc, codes, n, n, rows)
		scratch.Float32s.Put(sc)
		return
	}
	to := plane*k.area + at
	if k.r != nil {
		k.r.Rows(k.y, to, k.area, sums, line, rows, n, plane%k.oc)
		return
	}
	for r := range rows {
		copy(k.sums[to+r*k.area:][:n], sums[r*line:])
	}
}
