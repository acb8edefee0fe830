package jsonx

import (
	"errors"
	"testing"
)

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// TestMarshalWriteError returns the writer's error as it is.
func TestMarshalWriteError(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	if err := MarshalWrite(broken{full}, []int{1}); err == nil || err.Error() != full.Error() || !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}
