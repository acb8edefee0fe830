package choose

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/study"
)

// Costs that plans are made for. Energy and RAM do not follow from profiles: [Options.Costs] gives them.
const (
	Time   = "time"   // seconds of an inference, or operations where they stand for times
	MACs   = "macs"   // multiply-accumulates with weights that are not zero
	Size   = "size"   // bytes of weights and bias as stored
	Flash  = "flash"  // the same
	Energy = "energy" // joules of an inference
	RAM    = "ram"    // bytes
	// weights that are not zero, which goals of sparsity bound
	nonzero = "nonzero"
)

// Zeros is the number of weights of a layer that are zero after a change. Those that are zero
// already are among the first that a change takes.
func Zeros(l *study.Layer, c study.Change) int64 {
	if c.Structure == study.Dense {
		return l.Zeros
	}
	return max(l.Zeros, int64(math.RoundToEven(c.Level*float64(l.Weights()))))
}

// Bytes is what weights and bias take in a file after a change. Weights that are zero one by one
// or in blocks are stored all the same; channels and filters are removed. Narrow numbers have a
// scale of 4 bytes for each row.
func Bytes(l *study.Layer, c study.Change) int64 {
	n := l.Weights()
	if c.Structure.Removes() {
		n -= int64(math.RoundToEven(c.Level * float64(n)))
	}
	own := 32
	if t, ok := tensor.ParseType(l.Type); ok && t.Bits() > 0 {
		own = t.Bits()
	}
	bits, scales := own, int64(0)
	switch c.Format {
	case study.Int8, study.Weight8:
		bits, scales = 8, 4*int64(l.Rows)
	case study.Weight4:
		bits, scales = 4, 4*int64(l.Rows)
	case study.Half:
		bits = 16
	}
	if bits >= own {
		bits, scales = own, 0
	}
	return (n*int64(bits)+7)/8 + scales + 4*max(0, l.Params-l.Weights())
}

// macs are those with weights that are not zero; nil if unknown.
func macs(l *study.Layer, c study.Change) *int64 {
	if l.MACs == nil || l.Weights() == 0 {
		return l.MACs
	}
	return new(int64(math.Round(float64(*l.MACs) * (1 - float64(Zeros(l, c))/float64(l.Weights())))))
}

// counted is a cost that follows from a layer and its change alone.
func counted(kind string, l *study.Layer, c study.Change) (float64, bool) {
	switch kind {
	case MACs:
		n := macs(l, c)
		if n == nil {
			return 0, false
		}
		return float64(*n), true
	case Size, Flash:
		return float64(Bytes(l, c)), true
	case nonzero:
		return float64(l.Weights() - Zeros(l, c)), true
	}
	return 0, false
}
