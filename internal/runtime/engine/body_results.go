package engine

import (
	"slices"
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// bodyResult is an output of a nested graph. Its buffers alternate: a run reads the result of the
// previous one, which loops pass as inputs, while it writes its own.
type bodyResult struct {
	id    int      // value id; negative if the graph has no such output
	same  int      // first output with the same value
	made  bool     // a step of known shape writes to this memory; others are copied
	kept  bool     // the value is in memory that no run writes: an input's
	bufs  [][]byte // each run takes one that it does not read
	heads [2]tensor.Tensor
}

// initResults lists the outputs of a nested graph before its memory is placed.
func (f *frame) initResults() {
	if f.outer == nil {
		return
	}
	f.results = make([]bodyResult, len(f.g.Outputs))
	for i, id := range f.g.Outputs {
		f.results[i] = bodyResult{id: id, same: slices.Index(f.g.Outputs, id), kept: slices.Contains(f.g.Inputs, id) && !f.g.Values[id].Variable}
	}
	f.lists = [2][]*tensor.Tensor{make([]*tensor.Tensor, len(f.results)), make([]*tensor.Tensor, len(f.results))}
}

// writesResult records that a step of known shape computes value id, and reports whether the
// value is an output, which it then writes directly.
func (f *frame) writesResult(id int) bool {
	for i := range f.results {
		if r := &f.results[i]; r.id == id {
			r.made = true
			return true
		}
	}
	return false
}

// beginRun gives directly written outputs memory that the coming run does not read.
func (f *frame) beginRun(in []*tensor.Tensor) {
	for i := range f.results {
		if r := &f.results[i]; r.made {
			f.vals[r.id].Data = f.resultBuffer(r, in, f.vals[r.id].Bytes())
		}
	}
}

// finishRun returns the outputs of a run, which stay valid until the run after the next.
func (f *frame) finishRun(in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	f.turn = 1 - f.turn
	out := f.lists[f.turn]
	for i := range f.results {
		r := &f.results[i]
		if r.id < 0 {
			continue
		}
		x := f.vals[r.id]
		if x == nil {
			return nil, f.missingOutput(f.g.Values[r.id].Name)
		}
		if r.same < i {
			out[i] = out[r.same]
			continue
		}
		y := &r.heads[f.turn]
		switch out[i], *y = y, *x; {
		case x.Type.IsContainer():
			// Container elements are immutable and shared: otherwise a list that grows in each
			// iteration would be copied as a whole each time.
			y.Elems = slices.Clone(x.Elems)
		case r.made, r.kept:
		case x.Type == tensor.String || x.Type == tensor.Resource:
			*y = *x.Clone()
		default:
			if err := f.s.checkHeld(len(x.Data)); err != nil {
				return nil, err
			}
			y.Shape = slices.Clone(x.Shape)
			y.Data = f.resultBuffer(r, in, len(x.Data))
			copy(y.Data, x.Data)
		}
	}
	return out, nil
}

// resultBuffer returns n bytes for an output that overlap neither an input of the run nor a
// captured value.
func (f *frame) resultBuffer(r *bodyResult, in []*tensor.Tensor, n int) []byte {
	for _, b := range r.bufs {
		if cap(b) >= n && !f.overlapsInput(b, in) {
			return b[:n]
		}
	}
	// Inputs occupy some buffers at most; drop buffers that are too small.
	r.bufs = slices.DeleteFunc(r.bufs, func(b []byte) bool {
		small := cap(b) < n
		if small && !r.made {
			f.addHeld(-cap(b))
		}
		return small
	})
	b := tensor.New(tensor.Uint8, n).Data
	r.bufs = append(r.bufs, b)
	if !r.made { // the plan has counted made results
		f.addHeld(cap(b))
	}
	return b
}

// addHeld records memory that the frame keeps in addition to its plan's.
func (f *frame) addHeld(n int) {
	f.spent += n
	f.s.held += n
}

// overlapsInput reports whether an input or a captured value is in b.
func (f *frame) overlapsInput(b []byte, in []*tensor.Tensor) bool {
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
