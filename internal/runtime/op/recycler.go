package op

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Recycler is memory that nobody reads any more, for what is made next while a plan is made: constants that are computed, widened or multiplied, only to be
// packed would each touch fresh memory. The zero value has none; a nil one never does.
type Recycler struct {
	blocks [2]recycledBlock // of a constant, and of what is made of it
	closed bool
}

// recycledBlock is a block of memory; lent says that somebody has it.
type recycledBlock struct {
	data []byte
	lent bool
}

const (
	// minRecycledBytes is the least size of memory that is used again.
	minRecycledBytes = 1 << 16
	// maxRecycledRatio is the part of such memory that has to be used at least: who takes it may keep it.
	maxRecycledRatio = 16
)

// Alloc gives a tensor elements, of arbitrary values where they are numbers: its maker writes all of them.
func (s *Recycler) Alloc(x *tensor.Tensor) {
	if n := x.Bytes(); s != nil && x.Type.IsNumber() && n >= minRecycledBytes {
		var best *recycledBlock
		for i := range s.blocks {
			b := &s.blocks[i]
			if fits := !b.lent && n <= len(b.data) && n >= len(b.data)/maxRecycledRatio; fits && (best == nil || len(b.data) < len(best.data)) {
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
func Reusable(x *tensor.Tensor) bool { return x.Type.IsNumber() && len(x.Data) >= minRecycledBytes }

// Free takes the elements of a tensor that nobody reads any more.
func (s *Recycler) Free(x *tensor.Tensor) {
	if s != nil && !s.closed && Reusable(x) {
		s.keep(x.Data)
	}
	x.Data = nil
}

// keep takes memory back, or in place of less, or of what somebody has kept.
func (s *Recycler) keep(data []byte) {
	var in *recycledBlock
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
		*in = recycledBlock{data: data}
	}
}

// Close lets go of the memory: the plan has been made.
func (s *Recycler) Close() { *s = Recycler{closed: true} }
