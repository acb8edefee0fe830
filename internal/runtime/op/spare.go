package op

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Spare is memory that nobody reads any more, for what is made next while a plan is made: constants that are computed, widened or multiplied, only to be
// packed would each touch fresh memory. The zero value has none; a nil one never does.
type Spare struct {
	blocks [2]spareBlock // of a constant, and of what is made of it
	closed bool
}

// spareBlock is a block of memory; lent says that somebody has it.
type spareBlock struct {
	data []byte
	lent bool
}

const (
	// spareBytes is the least size of memory that is used again.
	spareBytes = 1 << 16
	// spareUse is the part of such memory that has to be used at least: who takes it may keep it.
	spareUse = 16
)

// Alloc gives a tensor elements, of arbitrary values where they are numbers: its maker writes all of them.
func (s *Spare) Alloc(x *tensor.Tensor) {
	if n := x.Bytes(); s != nil && x.Type.IsNumber() && n >= spareBytes {
		var best *spareBlock
		for i := range s.blocks {
			b := &s.blocks[i]
			if fits := !b.lent && n <= len(b.data) && n >= len(b.data)/spareUse; fits && (best == nil || len(b.data) < len(best.data)) {
				best = b
			}
		}
		if best != nil {
			x.Data, best.lent = best.data[:n:n], true
			return
		}
	}
	x.Alloc()
}

// Reusable tells whether [Spare.Free] would keep the elements of a tensor for others.
func Reusable(x *tensor.Tensor) bool { return x.Type.IsNumber() && len(x.Data) >= spareBytes }

// Free takes the elements of a tensor that nobody reads any more.
func (s *Spare) Free(x *tensor.Tensor) {
	if s != nil && !s.closed && Reusable(x) {
		s.keep(x.Data)
	}
	x.Data = nil
}

// keep takes memory back, or in place of less, or of what somebody has kept.
func (s *Spare) keep(data []byte) {
	var in *spareBlock
	for i := range s.blocks {
		b := &s.blocks[i]
		if b.lent && unsafe.SliceData(data) == unsafe.SliceData(b.data) {
			b.lent = false
			return
		}
		if less := !b.lent && len(b.data) < len(data); less && (in == nil || in.lent || len(b.data) < len(in.data)) || b.lent && in == nil {
			in = b
		}
	}
	if in != nil {
		*in = spareBlock{data: data}
	}
}

// Close lets go of the memory: the plan has been made.
func (s *Spare) Close() { *s = Spare{closed: true} }
