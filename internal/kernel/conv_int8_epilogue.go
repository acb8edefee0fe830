package kernel

import (
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// tileSink takes the sums of a convolution over [N,H,W,C]: they are kept, if there is room
// for them, or quantised in the rounding of TFLite, or of ONNX where r is there, or become real numbers where h is.
type tileSink struct {
	sums []int32
	f    *simd.Ints
	y    []uint8
	q    *Requant
	r    *Rescale
	// Of hybrid layers, with the scale of what is multiplied.
	h      *FloatScale
	floats []float32
	scale  float32
	area   int // of a plane of [N,C,H,W] to write, 0 for [N,H,W,C]
	oc     int // planes of an image
	out    int // positions of an image
}

// put takes n channels from channel ch on of rows rows of sums, which lie line apart. They
// belong to place at of [N,H,W,C], and step further for each row.
func (k *tileSink) put(sums []int32, line, rows, at, step, ch, n int) {
	switch {
	case k.area > 0:
		k.planes(sums, line, rows, at, step, ch, n)
	case k.h != nil:
		k.h.Rows(k.floats[at:], step, sums, line, rows, n, ch, nil, k.scale)
	case k.r != nil:
		k.r.columns(k.y[at:], step, sums, line, rows, n, ch)
	case k.sums == nil:
		requantTile(k.f, k.y, sums, line, rows, at, step, ch, n, k.q)
	default:
		for r := range rows {
			copy(k.sums[at+r*step:][:n], sums[r*line:])
		}
	}
}

// planes is put for [N,C,H,W], where rows and columns of a piece have to be exchanged.
func (k *tileSink) planes(sums []int32, line, rows, at, step, ch, n int) {
	together := rows
	if step != k.oc {
		together = 1
	}
	for r := 0; r < rows; {
		img, p := (at+r*step)/k.oc/k.area, (at+r*step)/k.oc%k.area
		here, to := min(together, rows-r, k.area-p), (img*k.oc+ch)*k.area+p
		in := sums[r*line:]
		if k.r != nil {
			sc, codes := borrow8(here * n)
			k.r.columns(codes, n, in, line, here, n, ch)
			move.TurnBytes(k.y[to:], k.area, codes, n, n, here)
			scratch.Put(sc)
		} else {
			move.Turn(k.sums[to:], k.area, in, line, n, here)
		}
		r += here
	}
}

// rows is put for rows of sums of channels of [N,C,H,W], see putPlanes.
func (k *tileSink) rows(plane, rows, at, n int, sums []int32, line int) {
	if k.area == 0 {
		// A piece of one image, whose position at is the place of n results.
		sc, codes := borrow8(rows * n)
		ch := plane % k.oc
		k.r.Rows(codes, 0, n, sums, line, rows, n, ch)
		move.TurnBytes(k.y[(plane/k.oc*k.out+at)*k.oc+ch:], k.oc, codes, n, n, rows)
		scratch.Put(sc)
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
