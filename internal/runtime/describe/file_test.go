package describe

import (
	"errors"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// TestFileBytes: the size of a model has its files of external data, and is absent without them.
func TestFileBytes(t *testing.T) {
	t.Parallel()
	m := &graph.Model{FileBytes: 100, BesideBytes: 40, BesideFileBytes: 64}
	if d := file(m, nil); d.FileBytes == nil || *d.FileBytes != 164 {
		t.Errorf("%v bytes, want 164", d.FileBytes)
	}
	m.Absent = errors.New("m.bin is missing")
	if d := file(m, nil); d.FileBytes != nil {
		t.Errorf("%d bytes without the external data", *d.FileBytes)
	}
}
