//go:build !linux

package machine

// Bind binds the calling thread to one processor until restore is called. This system cannot:
// [ErrNoPinning].
func Bind(...int) (restore func(), err error) { return nil, ErrNoPinning }

// Pin binds the calling thread to one processor. This system cannot: [ErrNoPinning].
func Pin(...int) error { return ErrNoPinning }

// Affinity lists the processors that the calling thread may use; nil, because this system does
// not provide them.
func Affinity() []int { return nil }
