package op

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/tensor"
)

// Spare is memory that nobody reads any more, for what is made next while a plan is made: constants that are computed, or widened, only to be packed
// would each touch fresh memory. The zero value has none; a nil one never does.
type Spare struct {
	data   []byte
	lent   bool // somebody has it
	closed bool
}

const (
	// spareBytes is the least size of memory that is used again.
	spareBytes = 1 << 16
	// spareUse is the part of such memory that has to be used at least: who takes it may keep it.
	spareUse = 16
)

// Alloc gives a tensor elements, of arbitrary values where they are numbers: its maker writes all of them.
func (s *Spare) Alloc(x *tensor.Tensor) {
	if n := x.Bytes(); s != nil && x.Type.IsNumber() && n >= spareBytes && n <= len(s.data) && n >= len(s.data)/spareUse && !s.lent {
		x.Data, s.lent = s.data[:n:n], true
		return
	}
	x.Alloc()
}

// Reusable tells whether [Spare.Free] would keep the elements of a tensor for others.
func Reusable(x *tensor.Tensor) bool { return x.Type.IsNumber() && len(x.Data) >= spareBytes }

// Free takes the elements of a tensor that nobody reads any more.
func (s *Spare) Free(x *tensor.Tensor) {
	switch {
	case s == nil || s.closed || !Reusable(x):
	case s.lent && unsafe.SliceData(x.Data) == unsafe.SliceData(s.data):
		s.lent = false
	case s.lent || len(x.Data) > len(s.data):
		s.data, s.lent = x.Data, false
	}
	x.Data = nil
}

// Close lets go of the memory: the plan has been made.
func (s *Spare) Close() { *s = Spare{closed: true} }
