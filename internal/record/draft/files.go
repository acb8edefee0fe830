package draft

import (
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/internal/record"
)

// At says which line of a file an error is of.
func At(f *record.File, line int, err error) error {
	return &record.FileError{Path: f.Path, Place: fmt.Sprintf("line %d", line), Err: err}
}

// ErrNothing is wrapped where a file was recognised and holds nothing that could be read.
var ErrNothing = errors.New("is recognised, and holds no operator, time or size of a run")
