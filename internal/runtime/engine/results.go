package engine

import (
	"slices"
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// result is an output of a nested graph. It has memory in turns, so that a run reads what the one before has made, which loops hand it
// as inputs, while it makes its own.
type result struct {
	id    int      // of the value; negative where the graph has no such output
	same  int      // the first output of the same value
	made  bool     // a step of known shape writes the value to this memory; of others that is a copy
	kept  bool     // the value lies in memory that no run writes to: an input's
	bufs  [][]byte // of which each run takes one that it does not read
	heads [2]tensor.Tensor
}

// resultsOf lists the outputs of a nested graph before its memory is placed.
func (f *frame) resultsOf() {
	if f.outer == nil {
		return
	}
	f.results = make([]result, len(f.g.Outputs))
	for i, id := range f.g.Outputs {
		f.results[i] = result{id: id, same: slices.Index(f.g.Outputs, id), kept: slices.Contains(f.g.Inputs, id) && !f.g.Values[id].Variable}
	}
	f.lists = [2][]*tensor.Tensor{make([]*tensor.Tensor, len(f.results)), make([]*tensor.Tensor, len(f.results))}
}

// makes notes that a step of known shape makes value id, in the memory of an output if it is one. It reports whether that is so.
func (f *frame) makes(id int) bool {
	for i := range f.results {
		if r := &f.results[i]; r.id == id {
			r.made = true
			return true
		}
	}
	return false
}

// begin gives the outputs that steps write to memory that nobody reads in the coming run.
func (f *frame) begin(in []*tensor.Tensor) {
	for i := range f.results {
		if r := &f.results[i]; r.made {
			f.vals[r.id].Data = f.room(r, in, f.vals[r.id].Bytes())
		}
	}
}

// finish returns the outputs of a run, which stand until the run after the next.
func (f *frame) finish(in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	f.turn = 1 - f.turn
	out := f.lists[f.turn]
	for i := range f.results {
		r := &f.results[i]
		if r.id < 0 {
			continue
		}
		x := f.vals[r.id]
		if x == nil {
			return nil, f.lacks(f.g.Values[r.id].Name)
		}
		if r.same < i {
			out[i] = out[r.same]
			continue
		}
		y := &r.heads[f.turn]
		switch out[i], *y = y, *x; {
		case x.Type.IsContainer():
			// The elements of containers are nobody's to write to: they are shared, or a list that grows from turn to turn would be copied as a
			// whole in each.
			y.Elems = slices.Clone(x.Elems)
		case r.made, r.kept:
		case x.Type == tensor.String || x.Type == tensor.Resource:
			*y = *x.Clone()
		default:
			if err := f.s.affords(len(x.Data)); err != nil {
				return nil, err
			}
			y.Shape = slices.Clone(x.Shape)
			y.Data = f.room(r, in, len(x.Data))
			copy(y.Data, x.Data)
		}
	}
	return out, nil
}

// room is memory of an output for n bytes that lies in no input of the run, and in nothing that is captured.
func (f *frame) room(r *result, in []*tensor.Tensor, n int) []byte {
	for _, b := range r.bufs {
		if cap(b) >= n && !f.reads(b, in) {
			return b[:n]
		}
	}
	// Inputs keep some at most; what is too small serves nobody any more.
	r.bufs = slices.DeleteFunc(r.bufs, func(b []byte) bool {
		small := cap(b) < n
		if small && !r.made {
			f.hold(-cap(b))
		}
		return small
	})
	b := tensor.New(tensor.Uint8, n).Data
	r.bufs = append(r.bufs, b)
	if !r.made { // the plan has counted those
		f.hold(cap(b))
	}
	return b
}

// hold notes memory that the frame keeps beside its plan's.
func (f *frame) hold(n int) {
	f.spent += n
	f.s.held += n
}

// reads reports whether an input or a captured value lies in b.
func (f *frame) reads(b []byte, in []*tensor.Tensor) bool {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	within := func(t *tensor.Tensor) bool {
		return t != nil && uintptr(unsafe.Pointer(unsafe.SliceData(t.Data)))-from < uintptr(max(1, cap(b)))
	}
	if slices.ContainsFunc(in, within) {
		return true
	}
	for _, c := range f.g.Captures {
		if within(f.outer.vals[c.Outer]) {
			return true
		}
	}
	return false
}
