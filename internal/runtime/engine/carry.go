package engine

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// carried is an output that is fed back. It has two buffers, so that a run reads
// what the one before has written while it writes anew, and nothing is copied.
type carried struct {
	Carry
	in      tensor.Tensor // what the input is given
	bufs    [2][]byte     // memory of the output, in turns; nil when it has to be copied
	spare   []byte        // for copies: the other one of two, in.Data being the first
	pending bool          // a run has made the output and no other has taken it yet
}

// carry hands the outputs of the last run on to the inputs, before anything else is
// done with them: until then callers may read them.
func (s *Session) carry() {
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
			// Inputs, constants and what is made anew in each run lie in memory that the
			// carrier may not have: another output may still have to be read from it.
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

// double gives the outputs that are carried two buffers each, for the plan f of the
// main graph. Those that no step of known shape makes are copied instead.
func (s *Session) double(f *frame) error {
	for i := range s.carried {
		c := &s.carried[i]
		c.bufs = [2][]byte{}
		id := f.g.Outputs[c.Output]
		if id < 0 || !f.apart[id] {
			continue
		}
		t := f.vals[id]
		if first := s.first(i); first < i {
			c.bufs = s.carried[first].bufs
			continue
		}
		if err := f.p.Spend(t.Bytes()); err != nil {
			return tooLarge(err)
		}
		c.bufs = [2][]byte{t.Data, tensor.New(t.Type, t.Shape...).Data}
	}
	return nil
}

// first is the first carrier of the same output.
func (s *Session) first(i int) int {
	for k := range i {
		if s.carried[k].Output == s.carried[i].Output {
			return k
		}
	}
	return i
}
