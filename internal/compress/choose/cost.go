package choose

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/study"
)

// Costs of plans. Energy and RAM do not follow from profiles: [Options.Costs] supplies them.
const (
	Time   = "time"   // seconds per inference, or operation counts
	MACs   = "macs"   // multiply-accumulates with non-zero weights
	Size   = "size"   // bytes of weights and bias as stored
	Flash  = "flash"  // the same
	Energy = "energy" // joules per inference
	RAM    = "ram"    // bytes
	// non-zero weights, for goals of sparsity
	nonzero = "nonzero"
)

// Zeros returns the number of zero weights of a layer after a change. Weights that are already
// zero are pruned first.
func Zeros(l *study.Layer, c study.Change) int64 {
	if c.Structure == study.Dense {
		return l.Zeros
	}
	return max(l.Zeros, int64(math.RoundToEven(c.Level*float64(l.Weights()))))
}

// Bytes returns the stored bytes of weights and bias after a change. Weights that are zero singly
// or in blocks are still stored; channels and filters are removed. Low-bit formats have a 4-byte
// scale per row, and [study.Dynamic8] one.
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
	case study.Dynamic8:
		bits, scales = 8, 4
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

// macs returns the multiply-accumulates with non-zero weights; nil if unknown.
func macs(l *study.Layer, c study.Change) *int64 {
	if l.MACs == nil || l.Weights() == 0 {
		return l.MACs
	}
	return new(int64(math.Round(float64(*l.MACs) * (1 - float64(Zeros(l, c))/float64(l.Weights())))))
}

// countedCost returns a cost that follows from a layer and its change alone.
func countedCost(kind string, l *study.Layer, c study.Change) (float64, bool) {
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
