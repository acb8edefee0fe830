package engine

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// carried is an output that is fed back to an input. It is double-buffered: a run reads one
// buffer and writes the other, without a copy.
type carried struct {
	Carry
	in      tensor.Tensor // passed to the input
	bufs    [2][]byte     // output memory, alternating; nil if it is copied
	spare   []byte        // for copies: the second buffer beside in.Data
	pending bool          // the output was computed and not yet fed back
}

// feedBack passes the outputs of the last run to the inputs. It runs at the start of the next
// action, because callers may read the outputs until then.
func (s *Session) feedBack() {
	for i := range s.carried {
		c := &s.carried[i]
		o := s.Output(c.Output)
		if !c.pending || o == nil {
			c.pending = false
			continue
		}
		data := o.Data
		switch {
		case o.Type == tensor.String || o.Type.IsContainer() || o.Type == tensor.Resource:
			c.in = *o.Clone()
			continue
		case c.bufs[0] == nil:
			// Inputs, constants and dynamic outputs are in memory that the input cannot take
			// over, because another output may still be read from it.
			if cap(c.spare) < len(data) || c.spare == nil {
				c.spare = tensor.New(tensor.Uint8, len(data)).Data
			}
			copy(c.spare[:len(data)], data)
			data, c.spare = c.spare[:len(data)], c.in.Data[:0]
		}
		c.in = tensor.Tensor{Type: o.Type, Shape: o.Shape, Data: data, Elem: o.Elem, Quant: o.Quant}
	}
	for i := range s.carried {
		c := &s.carried[i]
		if !c.pending {
			continue
		}
		c.pending = false
		s.in[c.Input] = &c.in
		if c.bufs[0] != nil {
			next := c.bufs[0]
			if unsafe.SliceData(c.in.Data) == unsafe.SliceData(next) {
				next = c.bufs[1]
			}
			s.Output(c.Output).Data = next
		}
	}
}

// doubleBuffer allocates two buffers for each carried output of the main graph's plan f. Outputs
// that no step of known shape writes are copied instead.
func (s *Session) doubleBuffer(f *frame) error {
	for i := range s.carried {
		c := &s.carried[i]
		c.bufs = [2][]byte{}
		id := f.g.Outputs[c.Output]
		if id < 0 || !f.ownMemory[id] {
			continue
		}
		t := f.vals[id]
		if first := s.firstCarried(i); first < i {
			c.bufs = s.carried[first].bufs
			continue
		}
		if err := f.p.Reserve(t.Bytes()); err != nil {
			return tooLarge(err)
		}
		c.bufs = [2][]byte{t.Data, tensor.New(t.Type, t.Shape...).Data}
	}
	return nil
}

// firstCarried returns the first carried entry of the same output.
func (s *Session) firstCarried(i int) int {
	for k := range i {
		if s.carried[k].Output == s.carried[i].Output {
			return k
		}
	}
	return i
}
