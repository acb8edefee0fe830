package op

import (
	"testing"
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestSpare checks that freed memory serves the next tensor that it fits, one at a time, and none
// after Close.
func TestSpare(t *testing.T) {
	t.Parallel()
	const n = minRecycledBytes / 4
	of := func(k int) *tensor.Tensor { return &tensor.Tensor{Type: tensor.Float32, Shape: []int{k}} }
	at := func(x *tensor.Tensor) *byte { return unsafe.SliceData(x.Data) }
	var s Recycler
	a := of(4 * n)
	s.Alloc(a)
	first := at(a)
	if s.Free(a); a.Known() {
		t.Error("a freed block is still known")
	}
	b, c, small, large := of(2*n), of(2*n), of(n-1), of(4*n+1)
	for _, x := range []*tensor.Tensor{small, large, b, c} {
		s.Alloc(x)
		if got, want := at(x) == first, x == b; got != want || len(x.Data) != x.Bytes() {
			t.Errorf("%v: in the memory of the first: %v, want %v; %d bytes", x.Shape, got, want, len(x.Data))
		}
	}
	second := at(c)
	s.Free(c) // b has the memory of the first tensor
	d := of(n)
	if s.Alloc(d); at(d) != second {
		t.Error("no value has the memory of the second")
	}
	s.Free(large) // b and d keep theirs: it replaces one of them
	s.Free(d)
	s.Free(b)
	f := of(4*n + 1)
	if s.Alloc(f); !f.Known() {
		t.Error("a value has no memory")
	}
	s.Close()
	e := of(n)
	if s.Alloc(e); at(e) == first {
		t.Error("a plan that is made gives memory away")
	}
	s.Free(e)
	if s.blocks[0].data != nil || s.blocks[1].data != nil {
		t.Error("a plan that is made keeps memory")
	}
	(*Recycler)(nil).Alloc(e)
	(*Recycler)(nil).Free(e)
}
