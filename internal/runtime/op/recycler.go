package op

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Recycler reuses the memory of constants that are no longer read while a plan is made. Constants
// that are computed, widened or multiplied only to be packed afterwards would otherwise touch
// fresh memory each. The zero value has no memory yet; a nil Recycler never has any.
type Recycler struct {
	blocks [2]recycledBlock // of a constant, and of the result computed from it
	closed bool
}

// recycledBlock is a block of memory; lent says that it is in use.
type recycledBlock struct {
	data []byte
	lent bool
}

const (
	// minRecycledBytes is the minimum size of memory that is reused.
	minRecycledBytes = 1 << 16
	// maxRecycledRatio bounds how many times larger than the request a reused block may be,
	// because the user may keep it.
	maxRecycledRatio = 16
)

// Alloc allocates a tensor's elements. Numbers have arbitrary values: the caller writes all of
// them.
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

// Reusable reports whether [Recycler.Free] would keep the elements of a tensor for reuse.
func Reusable(x *tensor.Tensor) bool { return x.Type.IsNumber() && len(x.Data) >= minRecycledBytes }

// Free releases the elements of a tensor that is no longer read.
func (s *Recycler) Free(x *tensor.Tensor) {
	if s != nil && !s.closed && Reusable(x) {
		s.keep(x.Data)
	}
	x.Data = nil
}

// keep takes a block back. A block that was not lent replaces a smaller free one, else one that
// is lent and that its user has kept.
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

// Close releases the memory once the plan is complete.
func (s *Recycler) Close() { *s = Recycler{closed: true} }
