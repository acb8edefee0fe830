//go:build !linux

package measure

func pin(int) (restore func(), err error) { return nil, ErrNoPinning }

// Pin binds the calling thread to one processor. This system cannot:
// [ErrNoPinning].
func Pin(int) error { return ErrNoPinning }

// Affinity lists the processors that the calling thread may use; nil, since this
// system does not tell.
func Affinity() []int { return nil }
